"""The records of growing: rules, open nodes of all trees, their splits, and grown subtrees."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from gpuforest.common.hashing import permute
from gpuforest.engine.criteria import Criterion

Array = Any


@dataclass(frozen=True)
class Rules:
    """The rules by which trees grow.

    criterion : the criterion that chooses splits
    n_tried : k, the number of features that vary in a node and are tried for its split
    max_depth : the most levels below the root
    min_rows_split : the fewest rows of a node that may be split
    min_rows_leaf : the fewest rows of either side of a split
    min_gain : the least score difference of a split; -inf: any
    min_weight_leaf : the least weight of either side of a split
    random : whether each feature has one cut only, drawn at random
    signs : i8[F] on the host, 1 (or -1) where predictions must not fall (or rise) with the
        feature; i8[0]: there are no such constraints
    n_features_tree : number of features drawn for each tree; 0: a tree has all
    features_again : whether these are drawn with replacement
    multiway : whether categorical features have a branch for each category
    combined : mean number of features in the combinations that are tried; 0: features are tried
        alone
    heaviest : the greatest weight of a feature in a combination
    """

    criterion: Criterion
    n_tried: int
    max_depth: int
    min_rows_split: int
    min_rows_leaf: int
    min_gain: float
    min_weight_leaf: int = 1
    random: bool = False
    signs: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int8))
    n_features_tree: int = 0
    features_again: bool = False
    multiway: bool = False
    combined: float = 0.0
    heaviest: int = 1

    @property
    def limited(self) -> bool:
        """Whether cuts have limits that only some deep phases keep: the least weight of a side, or
        monotonic constraints."""
        return self.min_weight_leaf > 1 or len(self.signs) > 0

    @property
    def count_rows(self) -> bool:
        """Whether histograms have a channel that counts rows, because weights are no counts."""
        return self.min_rows_leaf > 1


@dataclass(frozen=True, eq=False)
class Frontier:
    """S open nodes (slots) of one depth, on the backend's device.

    tree : i32[S]
    key : u64[S], node keys
    n_rows : i64[S], rows of each node
    begin, end : i64[S], slot s holds rows[begin[s]:end[s]]
    sums : i64[S, C], channel sums
    constant : bool[S], whether all targets of a slot are equal
    depth : i32[S], levels above the slot
    rows, weights : i32[2 R], row numbers by slot, ascending, and their weights in the bag. The
        rows of a split slot move to the same positions of the other half, so slots never
        overwrite each other's rows. i32[R] until a slot is split
    n_held : int on the host, at least the number of rows that all slots hold
    bounds : f64[S, 2], bounds of the means of a slot's second channel, for monotonic
        predictions; else None
    allowed : bool[T, F], the features drawn for each tree; None: trees have all
    """

    tree: Array
    key: Array
    n_rows: Array
    begin: Array
    end: Array
    sums: Array
    constant: Array
    depth: Array
    rows: Array
    weights: Array
    n_held: int
    bounds: Array | None = None
    allowed: Array | None = None

    @property
    def n_slots(self) -> int:
        return int(self.tree.shape[0])

    @property
    def per_slot(self) -> tuple[str, ...]:
        """Names of the arrays with an element for each slot."""
        return *PER_SLOT, *(name for name in SOMETIMES if getattr(self, name) is not None)

    @cached_property
    def n_stored(self) -> Array:
        """Number of rows that each slot holds, i64[S]."""
        return self.end - self.begin

    def part(self, slots: slice) -> Frontier:
        """A range of the slots, as views."""
        own = {name: getattr(self, name)[slots, ...] for name in self.per_slot}
        return replace(self, **own)

    def take(self, xp: Any, slots: Array, n_held: int) -> Frontier:
        """The slots numbered `slots` i64[n], which hold `n_held` rows together."""
        own = {name: xp.take(getattr(self, name), slots, axis=0) for name in self.per_slot}
        return replace(self, **own, n_held=n_held)

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
        own = {name: xp.concat([getattr(p, name) for p in parts], axis=0) for name in names}
        return cls(**own, rows=rows, weights=weights, n_held=held, allowed=parts[0].allowed)

    def must_end(self, xp: Any, rules: Rules) -> Array:
        """Whether a slot is a leaf whatever its features are, bool[S]."""
        fewest = max(rules.min_rows_split, 2 * rules.min_rows_leaf)
        end = self.constant | (self.n_rows < fewest) | (self.depth >= rules.max_depth)
        if rules.min_weight_leaf > 1:
            weight = rules.criterion.side_weight(xp, self.sums)
            end = end | (weight < 2 * rules.min_weight_leaf)
        return end


SOMETIMES = ("bounds",)
PER_SLOT = ("tree", "key", "n_rows", "begin", "end", "sums", "constant", "depth")


def draw_features(xp: Any, keys: Array, first: int, k: int, n_features: int) -> Array:
    """Elements first .. first + k - 1 of each slot's random order of the features.

    Parameters
    ----------
    keys : u64[S]

    Returns
    -------
    i32[S, k]; -1 past the end of the order. If k >= n_features, the order is 0, 1, 2, ...
    """
    S, device = keys.shape[0], keys.device
    position = xp.arange(first, first + k, dtype=xp.uint64, device=device)[None, :]
    if k >= n_features:
        return xp.broadcast_to(xp.astype(position, xp.int32), (S, k))
    inside = position < n_features
    drawn = permute(xp, keys[:, None], xp.where(inside, position, 0), n_features)
    return xp.where(inside, xp.astype(drawn, xp.int32), -1)


def bounds_below(xp: Any, slots: Frontier, means: Array, sign: Array) -> Array:
    """Bounds f64[2 S, 2] of the two sides of each slot's split.

    A split by a feature of sign -1 or 1 (`sign` i8[S]) divides the slot's bounds at the middle of
    the means (or medians) f64[2 S] of its two sides.
    """
    assert slots.bounds is not None
    middle, (least, most) = (means[0::2] + means[1::2]) * 0.5, (slots.bounds[:, i] for i in (0, 1))
    sides = [
        xp.stack(
            [xp.where(sign == -way, middle, least), xp.where(sign == way, middle, most)], axis=1
        )
        for way in (1, -1)
    ]
    return xp.reshape(xp.stack(sides, axis=1), (-1, 2))


@dataclass(frozen=True, eq=False)
class Splits:
    """The best split of each slot, on the backend's device.

    score : f64[S], -inf where there is no split
    feature : i32[S], -1 where there is no split
    bin : i32[S], codes <= bin go left; others mark sets and combinations, see nodes.py
    missing_left : bool[S], whether missing values go left
    left : i64[S, C], channel sums of the left side
    tried : i64[S], number of features that varied and were tried
    sets : u64[S, W], bit c of a slot's is set where code c goes left; or the words of its
        combination. W is zero if no feature is categorical and none are combined
    """

    score: Array
    feature: Array
    bin: Array
    missing_left: Array
    left: Array
    tried: Array
    sets: Array

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
class Subtrees:
    """Whole subtrees of D slots, each a block of packed nodes, on the device.

    offsets : i64[D + 1], block d is nodes[offsets[d]:offsets[d + 1]], its root first
    nodes : u64[n], in the order of nodes.py; children are numbered within the block
    first_leaf : i64[D], the row of leaf_sums from which each block's leaves are numbered; blocks
        may share rows
    leaf_sums : i64[V, C]
    set_at : i64[n] or None, the word of `sets` where each node's set begins
    sets : u64[...] or None, the split sets; both are None if no feature is categorical
    """

    offsets: Array
    nodes: Array
    first_leaf: Array
    leaf_sums: Array
    set_at: Array | None = None
    sets: Array | None = None
