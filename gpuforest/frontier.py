"""The growing types: the open nodes of all trees, and what is found for them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from gpuforest.common.hashing import permute
from gpuforest.criteria import Criterion

Array = Any


@dataclass(frozen=True)
class Rules:
    """What a tree may do.

    criterion : by which splits are chosen
    n_tried : k, features that vary in the node, tried for a split
    max_depth : at most so many levels below the root
    min_rows_split, min_rows_leaf : rows of a node that may be split; of either side
    min_gain : a split's least score difference; -inf: any
    min_weight_leaf : what either side must weigh
    random : each feature has one cut, drawn at random
    signs : i8[F] on the host, -1 or 1 where predictions must not rise, or fall, with the
        feature; i8[0]: there are no such constraints
    n_features_tree : features drawn for each tree; 0: it has all
    features_again : they are drawn with replacement
    multiway : categorical features have a branch for each category, see multiway.py
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

    @property
    def deep(self) -> bool:
        """Whether the deep phases know these rules; they leave out what small trees need."""
        common = not len(self.signs) and not self.criterion.medians
        return self.min_weight_leaf == 1 and common

    @property
    def count_rows(self) -> bool:
        """Histograms need a channel of row counts: weights are no counts."""
        return self.min_rows_leaf > 1


@dataclass(frozen=True, eq=False)
class Frontier:
    """S open nodes (slots) of one depth, on the backend's device.

    tree : i32[S]
    key : u64[S], the node's random key
    n_rows : i64[S], rows of the node
    begin, end : i64[S], rows[begin[s]:end[s]] are those of them that are stored here: all
    sums : i64[S, C], channel sums
    constant : bool[S], all targets are equal
    depth : i32[S], levels above
    rows, weights : i32[2 R], rows by slot, ascending, and their weights in the bag. A
        split slot's rows move to the same place of the other half, so that nobody ever
        writes where another slot's rows lie. i32[R] while none has been split
    n_held : int on the host, the rows of all slots together, or more
    bounds : f64[S, 2], between what the means of a slot's second channel must lie, where
        predictions are to be monotonic; else None
    allowed : bool[T, F], features drawn for each tree, where they are; else None
    pending : i32[S], the feature whose multiway split goes on in the slot, or -1; None where
        there are no such splits
    used : bool[S, F], categorical features split on above; None likewise
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
    pending: Array | None = None
    used: Array | None = None

    @property
    def n_slots(self) -> int:
        return int(self.tree.shape[0])

    @property
    def per_slot(self) -> tuple[str, ...]:
        """Names of the arrays that hold something for each slot."""
        return *PER_SLOT, *(name for name in SOMETIMES if getattr(self, name) is not None)

    @cached_property
    def n_stored(self) -> Array:
        """Rows of each slot that are stored here, i64[S]."""
        return self.end - self.begin

    def part(self, slots: slice) -> Frontier:
        """Some slots, one behind another."""
        own = {name: getattr(self, name)[slots, ...] for name in self.per_slot}
        return replace(self, **own)

    def take(self, xp: Any, slots: Array, n_held: int) -> Frontier:
        """The slots of these numbers, i64[...], which hold `n_held` rows."""
        own = {name: xp.take(getattr(self, name), slots, axis=0) for name in self.per_slot}
        return replace(self, **own, n_held=n_held)

    def with_room(self, xp: Any) -> Frontier:
        """Its rows with the other half that splits move them to."""
        rows, weights = (xp.concat([a, xp.empty_like(a)]) for a in (self.rows, self.weights))
        return replace(self, rows=rows, weights=weights)

    def only_allowed(self, xp: Any, features: Array) -> Array:
        """Features i32[S, k], -1 where a slot's tree did not draw them."""
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
        """Slots that are leaves without a look at their features, bool[S]."""
        fewest = max(rules.min_rows_split, 2 * rules.min_rows_leaf)
        end = self.constant | (self.n_rows < fewest) | (self.depth >= rules.max_depth)
        if rules.min_weight_leaf > 1:
            weight = rules.criterion.side_weight(xp, self.sums)
            end = end | (weight < 2 * rules.min_weight_leaf)
        return end if self.pending is None else end & (self.pending < 0)


SOMETIMES = ("bounds", "pending", "used")
PER_SLOT = ("tree", "key", "n_rows", "begin", "end", "sums", "constant", "depth")


def draw_features(xp: Any, keys: Array, first: int, k: int, n_features: int) -> Array:
    """Elements first .. first + k - 1 of each slot's random order of the features.

    Parameters
    ----------
    keys : u64[S]

    Returns
    -------
    i32[S, k]; -1 past the end of the order. All features at once need no order.
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

    A split by a feature of sign -1 or 1 i8[S] leaves to each side what lies on its side of
    the middle between their means f64[2 S], or medians.
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

    score : f64[S], -inf: none
    feature : i32[S], -1: none
    bin : i32[S], codes <= bin go left
    missing_left : bool[S]
    left : i64[S, C], channel sums of the left side
    tried : i64[S], features that varied and were tried
    sets : u64[S, W], of splits whose bin is SET_BIN the codes that go left, a bit each; W is
        zero where no feature is categorical
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
        """Of no slots."""
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
        """Slot by slot the higher score, of equal ones the earlier, own; `tried` adds up."""
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
    nodes : u64[...], in the order of nodes.py; children counted in the block
    first_leaf : i64[D], the row of leaf_sums from which each block's leaves are counted; blocks
        may share rows
    leaf_sums : i64[..., C]
    set_at : i64[...] or None, where in `sets` u64[...] each node's set begins, if it has one;
        None where no feature is categorical
    """

    offsets: Array
    nodes: Array
    first_leaf: Array
    leaf_sums: Array
    set_at: Array | None = None
    sets: Array | None = None
