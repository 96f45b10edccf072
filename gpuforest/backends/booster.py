"""Boosting on a backend: rounds grow K trees from gradients of the raw predictions, and add leaves.

raw -> gradients (integers) -> K trees, grown best first -> raw + learning_rate * leaf values
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from gpuforest.common import hashing
from gpuforest.core import nodes
from gpuforest.core.bins import BinnedMatrix
from gpuforest.kernels.boosted_tree import vector
from gpuforest.kernels.boosted_tree.records import MOST_STEP, GrownTree, LossOf, TreeRules
from gpuforest.kernels.gradients.losses import Loss

ONE_WORD_BITS = 24  # the fewest bits of a gradient that shares its word with the count
SUM_BITS = 62
ENOUGH_BITS = 29  # of a row's part in a sum: a leaf's value is then right to 1e-9
KEYS_AT_ONCE = 256  # keys of trees: one takes as long as all of these


@dataclass(frozen=True, eq=False)
class Boosting:
    """What rounds grow from, however many there are; y f64[N] holds numbers or class codes.

    share, subsample : the part of the allowed features that a node tries, and of the rows that a
        round grows from
    signs : i8[F]; groups : bool[n, F], see `TreeRules`
    row_groups : i32[N] or None, the numbers of the rows' groups; a round draws whole groups
    is_vector : whether a round has one tree for all raw predictions, see boosted_tree/vector.py
    memory : bytes that the histograms of all open nodes may take
    watched, by_loss : whether raw predictions, or the mean loss, are asked for after each round
    """

    matrix: BinnedMatrix  # for these rounds alone, see `columns_of`
    y: np.ndarray
    weight: np.ndarray | None
    loss: Loss
    learning_rate: float
    l2: float
    min_rows: int
    min_hessian: float
    max_depth: int
    max_leaves: int
    share: float
    subsample: float
    signs: np.ndarray
    groups: np.ndarray
    memory: int
    seed: int
    row_groups: np.ndarray | None = None
    is_vector: bool = False
    watched: bool = True
    by_loss: bool = False

    @property
    def n_rows(self) -> int:
        return len(self.y)

    @property
    def n_drawn(self) -> int:
        """R, the number of rows that a round grows from; the most where it draws groups."""
        if self.row_groups is not None:
            return self.n_rows
        return min(max(1, int(self.subsample * self.n_rows)), self.n_rows)

    @property
    def n_leaves(self) -> int:
        """The most leaves that a tree can have."""
        leaves = max(1, min(self.max_leaves, self.n_drawn // max(self.min_rows, 1)))
        return min(leaves, 1 << min(self.max_depth, 31))

    @cached_property
    def n_bits(self) -> int:
        """The bits that a count of rows takes."""
        return self.n_rows.bit_length()

    @cached_property
    def n_words(self) -> int:
        return words_of(self.loss, self.weight is not None, self.n_rows, self.is_vector)

    @property
    def bits(self) -> tuple[int, int]:
        """The bits of a gradient and of a hessian: the sums of all rows stay below 2**62, and of
        all outputs where these share a tree."""
        outputs = self.loss.n_raw.bit_length() if self.is_vector else 0
        h = SUM_BITS - outputs - 2 * self.n_bits
        return SUM_BITS - outputs - self.n_bits if self.n_words > 1 else h, h

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The largest size that a gradient and a hessian may have; None if there is no bound."""
        if not self.loss.is_bounded:
            return None
        most = 1.0 if self.weight is None else float(self.weight.max())
        return most, most * self.loss.most_hessian

    @property
    def has_residual_bits(self) -> bool:
        """True if leaf values need remainders of rounded gradients, see kernels/gradients. Within
        monotonic bounds values follow from the sums of the splits."""
        return self.loss.is_log and self.loss.n_raw == 1 and not self.signs.any()

    @property
    def hessian_digits(self) -> int:
        """Bits that a leaf's mean hessian needs; with fewer the leaf adds remainders of rounding.
        At least 8 less than the bits of the largest hessian."""
        return max(0, min(ENOUGH_BITS, self.bits[1] - 8))

    def rules(self, scale: Any, asarray: Callable[[np.ndarray], Any] = np.asarray) -> TreeRules:
        """The rules of all trees with a round's scales; asarray : puts arrays where trees grow."""
        outputs = self.loss.n_raw if self.is_vector else 1  # hessians are sums over them
        return TreeRules(
            kinds=asarray(np.ascontiguousarray(self.matrix.edges.kinds, np.uint8)),
            signs=asarray(np.ascontiguousarray(self.signs, np.int8)),
            groups=asarray(np.ascontiguousarray(self.groups, np.bool_)),
            scale=scale,
            n_groups=len(self.groups),
            n_bits=self.n_bits,
            n_drawn=self.n_drawn,
            min_rows=self.min_rows,
            max_depth=self.max_depth,
            max_leaves=self.n_leaves,
            limited=self.max_leaves < self.n_drawn,
            # a side whose hessians were all rounded to zero has no value
            min_hessian=max(self.min_hessian * outputs, sys.float_info.min),
            l2=self.l2 * outputs,
            most=self.loss.most_value,
            share=self.share,
            rate=self.learning_rate,
        )


def words_of(loss: Loss, weighted: bool, n_rows: int, is_vector: bool = False) -> int:
    """The words of a row's stats: 1 if every hessian is 1 and ONE_WORD_BITS fit; else 2; of a tree
    for several outputs one more than it has sums of gradients."""
    if is_vector:
        return vector.n_sums(loss.n_raw) + 1
    one = loss.constant_hessian and not weighted
    return 1 if one and SUM_BITS - 2 * n_rows.bit_length() >= ONE_WORD_BITS else 2


@dataclass(frozen=True, eq=False)
class Round:
    """The K trees of a round, or one for all outputs.

    sums, added : sums i64[L, K, 2] of gradients and hessians in the leaves of the tree for all
        outputs, and what they add f64[L, K]; else None
    units : factors of the integer sums of gradients and hessians
    loss : float, mean loss after the round if the backend keeps raw predictions; else None"""

    trees: list[GrownTree]
    units: tuple[float, float]
    loss: float | None = None
    sums: np.ndarray | None = None
    added: np.ndarray | None = None

    @property
    def diverges(self) -> bool:
        """Whether what leaves add was cut off, because it is too large."""
        each = [tree.leaves["added"] for tree in self.trees] if self.added is None else self.added
        return any((np.abs(added) >= MOST_STEP).any() for added in each)


class Booster(ABC):
    """The rounds of one fit: the order of steps is here, the steps are the backend's. Raw
    predictions f64[K, N] are in the `LossOf` that `begin` returns and all steps take."""

    def __init__(self, boosting: Boosting) -> None:
        self.boosting = boosting

    def round(self, raw: np.ndarray, number: int) -> Round | None:
        """Grow a round and add its predictions; None: gradients are too large for float64.

        raw : f64[K, N], the first raw predictions; updated if the fit is watched"""
        b = self.boosting
        loss = self.begin(raw, number)
        if not self.derive(loss):
            return None
        self.grow(number)
        if b.has_residual_bits:
            self.add_residual_bits(loss)
        if b.loss.by_order:
            self.add_quantiles(loss)
            if b.signs.any():
                self.put_in_order()
        self.add_values(loss)
        return self.finish(loss, raw)

    @abstractmethod
    def begin(self, raw: np.ndarray, number: int) -> LossOf:
        """Draw the rows that the round grows from; the loss of the raw predictions so far."""

    @abstractmethod
    def derive(self, loss: LossOf) -> bool:
        """Compute the round's scales and all rows' stats; False: gradients are too large."""

    @abstractmethod
    def grow(self, number: int) -> None:
        """Grow the trees; leaves add -rate * sum of gradients / sum of hessians."""

    @abstractmethod
    def add_residual_bits(self, loss: LossOf) -> None:
        """Recompute leaf values from all digits where their sums have too few."""

    @abstractmethod
    def add_quantiles(self, loss: LossOf) -> None:
        """Let leaves add the best constant for their rows (Friedman 2001, algorithms 3 and 4)."""

    @abstractmethod
    def put_in_order(self) -> None:
        """Have what leaves add respect monotonic constraints, see `in_monotonic_order`."""

    @abstractmethod
    def add_values(self, loss: LossOf) -> None:
        """Add what leaves add to the raw predictions of their rows."""

    @abstractmethod
    def finish(self, loss: LossOf, raw: np.ndarray) -> Round | None:
        """The round; None if gradients were too large."""

    def close(self) -> None:  # noqa: B027
        """Stop the worker threads."""


def root_key(seed: int, tree: int) -> int:
    """The key of the root of the tree of this number."""
    return _root_keys(seed, tree // KEYS_AT_ONCE)[tree % KEYS_AT_ONCE]


@lru_cache(maxsize=4)
def _root_keys(seed: int, block: int) -> list[int]:
    first = KEYS_AT_ONCE * block
    trees = hashing.tree_keys(np, seed, first, first + KEYS_AT_ONCE)
    keys: list[int] = hashing.hash_at(trees, hashing.ROOT).tolist()
    return keys


def in_monotonic_order(tree: GrownTree, signs: np.ndarray) -> np.ndarray:
    """Leaf values f64[L]. Where sides of a split break its constraint, both are clipped to the
    middle between the leaves that break it most. Quantiles need it: trees grow within the bounds of
    mean gradients."""
    values: np.ndarray = tree.leaves["added"].copy()
    feature, _, _, child = nodes.unpack(np, tree.nodes)
    leaves: list[slice] = [slice(0, 0)] * len(feature)  # below each node
    for node in range(len(feature) - 1, -1, -1):  # children come after their parents
        first = int(child[node])
        if feature[node] < 0:
            leaves[node] = slice(first, first + 1)
            continue
        left, right = leaves[first], leaves[first + 1]
        leaves[node] = slice(left.start, right.stop)
        if sign := signs[feature[node]]:
            low, high = (values[side] for side in (left, right)[:: int(sign)])
            most, least = low.max(), high.min()
            if most > least:
                middle = (most + least) * 0.5
                np.minimum(low, middle, out=low)
                np.maximum(high, middle, out=high)
    return values
