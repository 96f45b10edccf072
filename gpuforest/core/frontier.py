"""Records of the loop over levels: open nodes, splits, subtrees, trees to walk; see rules.py."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from gpuforest.common.dtypes import Array
from gpuforest.compiler.types import I64, Codes2, I32s, I64s, Targets2, U64s, new_arrays
from gpuforest.core.rules import Rules


@dataclass(frozen=True, eq=False)
class Data:
    """The binned rows that trees grow from, as kernels on the CPU read them."""

    codes: Codes2  # [F, N], row r's bin of feature f; NumPy's kernels read them as [N, F]
    y: Targets2  # i32[N, 1] class codes, or i64[N, K] moments
    n_bins: I32s  # i32[F], bins of each feature, without the one for missing values
    n_codes: I64  # B; the last code, B - 1, is that of missing values
    n_channels: I64  # C


@dataclass(frozen=True, eq=False)
class Frontier:
    """S open nodes (slots) of one depth, on the backend's device. The rows of a split slot move to
    the same positions of the other half of `rows` and `weights`, so slots never overwrite each
    other's rows. There is one half only until a slot is split."""

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
    max_rows: int  # at least the number of rows that all slots hold
    # bounds of the means of a slot's second channel, for monotonic predictions
    bounds: Annotated[Array | None, "f64[S, 2]"] = None
    allowed: Annotated[Array | None, "bool[T, F]"] = None  # features drawn for trees; None: all

    @classmethod
    def of_rows(cls, rows: Array, weights: Array | None, begin: Array, end: Array) -> Frontier:
        """Slots for kernels that read only their rows."""
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
    def local_rows(self) -> Array:
        """Number of rows that each slot holds, i64[S]."""
        return self.end - self.begin

    def part(self, slots: slice) -> Frontier:
        """A range of the slots, as views."""
        if slots == slice(0, self.n_slots):
            return self
        return replace(self, **{name: getattr(self, name)[slots, ...] for name in self.per_slot})

    def take(self, xp: Any, slots: Array, max_rows: int) -> Frontier:
        """The slots numbered `slots` i64[n], which hold `max_rows` rows together."""
        taken = {name: xp.take(getattr(self, name), slots, axis=0) for name in self.per_slot}
        return replace(self, **taken, max_rows=max_rows)

    def with_room(self, xp: Any) -> Frontier:
        """The frontier with a second half of `rows` and `weights`, for splits to move rows to."""
        n = self.rows.shape[0]
        rows, weights = (
            xp.empty(2 * n, dtype=a.dtype, device=a.device) for a in (self.rows, self.weights)
        )
        rows[:n], weights[:n] = self.rows, self.weights
        return replace(self, rows=rows, weights=weights)

    def only_allowed(self, xp: Any, features: Array) -> Array:
        """`features` i32[S, k], with -1 for features that a slot's tree did not draw."""
        assert self.allowed is not None
        at = xp.astype(self.tree, xp.int64)[:, None] * self.allowed.shape[1] + features
        at = xp.reshape(xp.where(features < 0, 0, at), (-1,))
        drawn = xp.take(xp.reshape(self.allowed, (-1,)), at)
        return xp.where(xp.reshape(drawn, features.shape), features, -1)

    @classmethod
    def join(cls, xp: Any, parts: list[Frontier], rows: Array, weights: Array) -> Frontier:
        """The slots of several frontiers of one wave."""
        names, held = parts[0].per_slot, sum(p.max_rows for p in parts)
        arrays = {name: xp.concat([getattr(p, name) for p in parts], axis=0) for name in names}
        return cls(**arrays, rows=rows, weights=weights, max_rows=held, allowed=parts[0].allowed)

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
    # zero without categorical features and combinations
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
        if slots == slice(0, self.score.shape[0]):
            return self
        return Splits(*(getattr(self, f.name)[slots, ...] for f in fields(self)))

    def take(self, xp: Any, slots: Array) -> Splits:
        """The splits numbered `slots` i64[n]."""
        return Splits(*(xp.take(getattr(self, f.name), slots, axis=0) for f in fields(self)))

    def put(self, at: Array, splits: Splits) -> None:
        """Set the splits numbered `at` i64[n], on the host."""
        for field in fields(self):
            getattr(self, field.name)[at] = getattr(splits, field.name)

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
