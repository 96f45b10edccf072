"""The records of growing: rules for splits and bags, a training, the open nodes of all trees, their
splits, and grown subtrees. Each is declared once: compiler/types.py and kernels/shared/structs.py
say how its fields reach kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from gpuforest.compiler.types import F64, I64, Bool, Codes2, I32s, I64s, Targets2, U64s, new_arrays
from gpuforest.engine.criteria import Criterion

if TYPE_CHECKING:  # kernels import the records here, and need none of these
    from gpuforest.backends.base import Backend
    from gpuforest.engine.binning import BinnedMatrix
    from gpuforest.engine.target import Target
    from gpuforest.splits.base import Kind
    from gpuforest.splits.oblique.terms import Combining

Array = Any


@dataclass(frozen=True)
class Rules:
    """The rules for growing trees."""

    criterion: Criterion  # chooses splits
    n_tried: I64  # k, the number of features that vary in a node and are tried for its split
    max_depth: I64  # the most levels below the root
    min_rows_split: int  # the fewest rows of a node that may be split
    min_rows_leaf: I64  # the fewest rows of either side of a split
    min_gain: F64  # the least score difference of a split; -inf: any
    min_weight_leaf: I64 = 1  # the least weight of either side of a split
    random: Bool = False  # whether each feature has one cut only, drawn at random
    # 1 (or -1) where predictions must not fall (or rise) with the feature; without elements if
    # there are no such constraints
    signs: Annotated[np.ndarray, "i8[F]"] = field(default_factory=lambda: np.zeros(0, np.int8))
    n_features_tree: int = 0  # number of features drawn for each tree; 0: a tree has all
    features_again: bool = False  # whether these are drawn with replacement
    multiway: bool = False  # whether categorical features have a branch for each category
    # mean number of features in the combinations that are tried; 0: features are tried alone
    combined: float = 0.0
    heaviest: int = 1  # the greatest weight of a feature in a combination

    @property
    def fewest_rows(self) -> I64:
        """The fewest rows of a node that a split may divide."""
        return max(self.min_rows_split, 2 * self.min_rows_leaf)

    @property
    def limited(self) -> bool:
        """Whether cuts have limits that only some deep phases keep: the least weight of a side, or
        monotonic constraints."""
        return self.min_weight_leaf > 1 or len(self.signs) > 0

    @property
    def count_rows(self) -> Bool:
        """Whether histograms have a channel that counts rows, because weights are no counts."""
        return self.min_rows_leaf > 1


@dataclass(frozen=True, eq=False)
class Sampling:
    """The rules for drawing bags."""

    n_rows: int  # of the training data
    n_draws: int  # rows or groups drawn for each tree; 0: a bag holds every row once
    # i32[N] or None. If rows are drawn, they are proportional to the chances of rows to be drawn,
    # as in scikit-learn >= 1.9 and ranger; if not, or if groups are, they multiply the statistics
    weights: np.ndarray | None
    factors: np.ndarray | None = None  # i32[N], the weight that a draw of each row adds to the bag
    # instead of factors, the classes of each bag are balanced: a draw of class c adds about
    # n_draws * balance / (classes in the bag * draws of c), and with several outputs `balance`
    # times the product of such ratios; 0: a draw adds one
    balance: int = 0
    draw_weight: float = 1.0  # the mean weight that a draw adds
    # rows of positive weight are drawn without replacement; then weights multiply the statistics
    distinct: bool = False
    # i32[N], the number of each row's group, or None. Groups with a row of positive weight have
    # equal chances to be drawn, and all rows of a group are drawn with it
    groups: np.ndarray | None = None
    # i32[N], the number of blocks of time before that of each row, or None. A tree then draws from
    # the blocks up to its cutoff, and rows of later ones are out of its bag; see `sampling.cutoff`
    blocks: np.ndarray | None = None

    @property
    def units(self) -> Sampling:
        """How rows are drawn, or the groups in their place."""
        if self.groups is None:
            return self
        rows = np.bincount(self.groups, None if self.weights is None else self.weights > 0)
        weights = None if rows.all() else (rows > 0).astype(np.int32)
        return Sampling(len(rows), self.n_draws, weights, distinct=self.distinct)

    @property
    def multiplies(self) -> bool:
        """Whether there are weights, and they multiply the statistics."""
        of_draws = self.n_draws and not self.distinct and self.groups is None
        return self.weights is not None and not of_draws

    @property
    def most_drawn(self) -> int:
        """How often a bag counts a group at most, so that no sum can overflow. A group is drawn
        more often with a chance below 10**-30 (Chernoff's bound), which means never."""
        if self.distinct:
            return 1
        return min(self.n_draws, 32 + 4 * -(-self.n_draws // self.units.n_counted))

    @property
    def counted(self) -> np.ndarray | None:
        """The rows of positive weight, i64[n], ascending; None if all are. Others are ignored."""
        if self.weights is None or self.weights.all():
            return None
        return np.flatnonzero(self.weights)

    @property
    def n_counted(self) -> int:
        """Number of rows of positive weight."""
        return self.n_rows if self.weights is None else int(np.count_nonzero(self.weights))

    @property
    def bag_weight(self) -> int:
        """Total weight of a bag: the same for every tree, or the mean over trees."""
        if self.groups is not None:
            total = self.n_rows if self.weights is None else int(self.weights.sum(dtype=np.int64))
            return round(total * self.n_draws / self.units.n_counted * self.draw_weight)
        if not self.distinct or self.weights is None:
            return round(self.most_weight * self.draw_weight)
        return round(self.most_weight * min(1.0, self.n_draws / self.n_counted))

    @property
    def most_weight(self) -> int:
        """The greatest total weight of a bag, if a draw adds one."""
        if self.groups is not None:
            of_groups = np.bincount(self.groups, self.weights)
            return int(min(self.n_draws * of_groups.max(), self.most_drawn * of_groups.sum()))
        if self.weights is None or (self.n_draws and not self.distinct):
            return self.n_draws or self.n_rows
        return int(self.weights.sum(dtype=np.int64))

    @property
    def bag_rows(self) -> int:
        """The greatest number of rows that a bag can hold."""
        if self.groups is not None:
            return int(np.sort(np.bincount(self.groups))[-self.n_draws :].sum())
        return min(self.n_rows, self.n_draws) if self.n_draws else self.n_rows

    @property
    def likely_rows(self) -> int:
        """A number of rows that a bag exceeds with a chance below 10**-15, by Hoeffding's bound:
        the rows that are hit have a variance below n / 4, or a quarter of the sum of the squares of
        groups' rows, and draws of unequal weights hit fewer."""
        n, draws, squares = self.units.n_counted, self.n_draws, self.n_rows
        if not draws or self.distinct or n < 2:
            return self.bag_rows
        if self.groups is not None:
            squares = int((np.bincount(self.groups) ** 2).sum())
        expected = -self.n_counted * math.expm1(draws * math.log1p(-1 / n))
        return min(self.bag_rows, math.ceil(expected + 4.5 * math.sqrt(squares)))


@dataclass(frozen=True, eq=False)
class Data:
    """The binned rows that trees grow from, as kernels on the CPU read them."""

    codes: Codes2  # [F, N], row r's bin of feature f; NumPy's kernels read them as [N, F]
    y: Targets2  # i32[N, 1] class codes, or i64[N, K] moments
    n_bins: I32s  # i32[F], bins of each feature, without the one for missing values
    n_codes: I64  # B; the last code, B - 1, is that of missing values
    n_channels: I64  # C


@dataclass(frozen=True, eq=False)
class Training:
    """What trees grow from, however many grow. It is made once, and every stage takes it."""

    matrix: BinnedMatrix  # the codes of all rows, and the bin edges
    target: Target  # the targets of all rows, as integers
    sampling: Sampling  # the rules for drawing bags
    rules: Rules  # the rules for growing trees
    seed: int  # determines every random draw
    backend: Backend  # runs the kernels

    def on(self, backend: Backend) -> Training:
        """The same training on another backend."""
        return replace(self, backend=backend)

    @property
    def n_features(self) -> int:
        """F, the number of features."""
        return self.matrix.n_features

    @property
    def n_codes(self) -> int:
        """B, the most bins of any feature, plus one for missing values."""
        return self.matrix.edges.n_codes

    @property
    def n_channels(self) -> int:
        """C, the number of channels."""
        return self.target.coding.n_channels

    @property
    def n_words(self) -> int:
        """W, the 64-bit words of a split set; 0 if no feature is categorical."""
        return self.matrix.edges.most_words

    @cached_property
    def kind(self) -> Kind:
        """The kind of split, which is chosen once."""
        from gpuforest.splits.kinds import kind_of

        return kind_of(self.rules, self.n_words > 0)

    @cached_property
    def combining(self) -> Combining:
        """What combinations of features are drawn from."""
        from gpuforest.splits.oblique.terms import NO_COMBINATIONS, Combining

        rules, edges = self.rules, self.matrix.edges
        if not self.kind.combines:
            return NO_COMBINATIONS
        return Combining.of(edges, rules.combined, rules.heaviest, self.backend.asarray)

    @property
    def data(self) -> Data:
        """The rows as kernels read them that take codes [N, F]."""
        matrix = self.matrix
        return Data(matrix.codes, self.target.y, matrix.n_bins, self.n_codes, self.n_channels)

    @property
    def columns(self) -> Data:
        """The rows with codes [F, N], one feature after another; codes that lie otherwise are
        copied."""
        return replace(self.data, codes=np.ascontiguousarray(self.matrix.codes.T))

    @property
    def node_words(self) -> int:
        """The most words that a node stores, of a set or of a combination."""
        return self.kind.node_words(self)

    @property
    def hist_channels(self) -> int:
        """Channels of a histogram: C, or C + 1 if it counts rows."""
        return self.n_channels + self.rules.count_rows


@dataclass(frozen=True, eq=False)
class Frontier:
    """S open nodes (slots) of one depth, on the backend's device.

    The rows of a split slot move to the same positions of the other half of `rows` and `weights`,
    so slots never overwrite each other's rows. There is one half only until a slot is split.
    """

    tree: Annotated[Array, "i32[S]"]
    key: Annotated[Array, "u64[S]"]
    n_rows: Annotated[Array, "i64[S]"]
    begin: Annotated[Array, "i64[S]"]  # slot s holds rows[begin[s]:end[s]]
    end: Annotated[Array, "i64[S]"]
    sums: Annotated[Array, "i64[S, C]"]  # channel sums
    constant: Annotated[Array, "bool[S]"]  # whether all targets of a slot are equal
    depth: Annotated[Array, "i32[S]"]  # levels above the slot
    rows: Annotated[Array, "i32[R]"]  # row numbers by slot, ascending
    weights: Annotated[Array, "i32[R]"]  # of these rows in the bag
    n_held: int  # at least the number of rows that all slots hold
    # bounds of the means of a slot's second channel, for monotonic predictions
    bounds: Annotated[Array | None, "f64[S, 2]"] = None
    allowed: Annotated[Array | None, "bool[T, F]"] = None  # features drawn for trees; None: all

    @classmethod
    def of_rows(cls, rows: Array, weights: Array | None, begin: Array, end: Array) -> Frontier:
        """Slots of which kernels read the rows alone."""
        no: Any = None
        return cls(no, no, no, begin, end, no, no, no, rows, weights, rows.shape[0])

    @property
    def n_slots(self) -> int:
        return int(self.tree.shape[0])

    @property
    def per_slot(self) -> tuple[str, ...]:
        """Names of the arrays with an element for each slot."""
        return PER_SLOT if self.bounds is None else (*PER_SLOT, "bounds")

    @cached_property
    def n_stored(self) -> Array:
        """Number of rows that each slot holds, i64[S]."""
        return self.end - self.begin

    def part(self, slots: slice) -> Frontier:
        """A range of the slots, as views."""
        return replace(self, **{name: getattr(self, name)[slots, ...] for name in self.per_slot})

    def take(self, xp: Any, slots: Array, n_held: int) -> Frontier:
        """The slots numbered `slots` i64[n], which hold `n_held` rows together."""
        taken = {name: xp.take(getattr(self, name), slots, axis=0) for name in self.per_slot}
        return replace(self, **taken, n_held=n_held)

    def with_room(self, xp: Any) -> Frontier:
        """The frontier with a second half of `rows` and `weights`, for splits to move rows to."""
        n = self.rows.shape[0]
        rows, weights = (
            xp.empty(2 * n, dtype=a.dtype, device=a.device) for a in (self.rows, self.weights)
        )
        rows[:n], weights[:n] = self.rows, self.weights
        return replace(self, rows=rows, weights=weights)

    def only_allowed(self, xp: Any, features: Array) -> Array:
        """`features` i32[S, k], with -1 for those that a slot's tree did not draw."""
        assert self.allowed is not None
        at = xp.astype(self.tree, xp.int64)[:, None] * self.allowed.shape[1] + features
        at = xp.reshape(xp.where(features < 0, 0, at), (-1,))
        drawn = xp.take(xp.reshape(self.allowed, (-1,)), at)
        return xp.where(xp.reshape(drawn, features.shape), features, -1)

    @classmethod
    def join(cls, xp: Any, parts: list[Frontier], rows: Array, weights: Array) -> Frontier:
        """The slots of several frontiers of one wave."""
        names, held = parts[0].per_slot, sum(p.n_held for p in parts)
        arrays = {name: xp.concat([getattr(p, name) for p in parts], axis=0) for name in names}
        return cls(**arrays, rows=rows, weights=weights, n_held=held, allowed=parts[0].allowed)

    def must_end(self, xp: Any, rules: Rules) -> Array:
        """Whether a slot is a leaf whatever its features are, bool[S]."""
        end = self.constant | (self.n_rows < rules.fewest_rows) | (self.depth >= rules.max_depth)
        if rules.min_weight_leaf > 1:
            weight = rules.criterion.side_weight(xp, self.sums)
            end = end | (weight < 2 * rules.min_weight_leaf)
        return end


PER_SLOT = ("tree", "key", "n_rows", "begin", "end", "sums", "constant", "depth")


@dataclass(frozen=True, eq=False)
class Splits:
    """The best split of each slot, on the backend's device."""

    score: Annotated[Array, "f64[S]"]  # -inf where there is no split
    feature: Annotated[Array, "i32[S]"]  # -1 where there is no split
    # codes <= bin go left; others mark sets and combinations, see nodes.py
    bin: Annotated[Array, "i32[S]"]
    # whether missing values go left; if the slot has none, whether the left side is the heavier
    missing_left: Annotated[Array, "bool[S]"]
    left: Annotated[Array, "i64[S, C]"]  # channel sums of the left side
    tried: Annotated[Array, "i64[S]"]  # number of features that varied and were tried
    # bit c of a slot's words is set where code c goes left; or the words of its combination. W is
    # zero if no feature is categorical and none are combined
    sets: Annotated[Array, "u64[S, W]"]

    @classmethod
    def none_yet(cls, n_slots: int, n_channels: int, n_words: int) -> Splits:
        """Arrays on the host for the splits of `n_slots` slots, with no split found yet."""
        splits = cls(**new_arrays(cls, np.zeros, S=n_slots, C=n_channels, W=n_words))
        splits.score.fill(-np.inf)
        splits.feature.fill(-1)
        return splits

    @classmethod
    def empty(cls, xp: Any, frontier: Frontier, n_words: int) -> Splits:
        """The splits of no slots."""
        none = frontier.tree[:0]
        score, no = xp.astype(none, xp.float64), xp.astype(none, xp.bool)
        sums, tried = frontier.sums[:0, ...], xp.astype(none, xp.int64)
        sets = xp.zeros((0, n_words), dtype=xp.uint64, device=none.device)
        return cls(score, none, none, no, sums, tried, sets)

    @classmethod
    def join(cls, xp: Any, parts: list[Splits]) -> Splits:
        """The splits of several groups of slots, one group after another."""
        names = [f.name for f in fields(cls)]
        return cls(*(xp.concat([getattr(p, name) for p in parts]) for name in names))

    def part(self, slots: slice) -> Splits:
        """The splits of some slots, as views."""
        return Splits(*(getattr(self, f.name)[slots, ...] for f in fields(self)))

    def better(self, xp: Any, other: Splits) -> Splits:
        """Each slot's split of higher score, or its own if both are equal; `tried` adds up."""
        wins = other.score > self.score
        return Splits(
            xp.where(wins, other.score, self.score),
            xp.where(wins, other.feature, self.feature),
            xp.where(wins, other.bin, self.bin),
            xp.where(wins, other.missing_left, self.missing_left),
            xp.where(wins[:, None], other.left, self.left),
            self.tried + other.tried,
            xp.where(wins[:, None], other.sets, self.sets),
        )


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees of packed nodes, see nodes.py, as kernels walk them."""

    nodes: U64s  # u64[M]
    offsets: I64s  # i64[T + 1], tree t is nodes[offsets[t]:offsets[t + 1]], its root first
    missing: I64  # the code of a missing value
    set_at: I64s  # i64[M], the word of `sets` where a node's set begins, if its bin is SET_BIN
    sets: U64s  # bit c of a set is 1 if code c goes left; or a combination, see nodes.py
    # what combinations of features add up; None: there are no combinations
    coordinates: Annotated[Array | None, "i32[F, B]"] = None

    @property
    def T(self) -> I64:
        """The number of trees."""
        return len(self.offsets) - 1


@dataclass(frozen=True, eq=False)
class Subtrees:
    """Whole subtrees of D slots, each a block of packed nodes, on the device."""

    offsets: Array  # i64[D + 1], block d is nodes[offsets[d]:offsets[d + 1]], its root first
    nodes: Array  # u64[n], in the order of nodes.py; children are numbered within the block
    # i64[D], the row of leaf_sums from which a block's leaves are numbered; blocks may share rows
    first_leaf: Array
    leaf_sums: Array  # i64[V, C]
    # i64[n], the word of `sets` u64[...] where each node's set begins; None without sets
    set_at: Array | None = None
    sets: Array | None = None
