"""Rounds of boosting: each grows K trees from the gradients of the raw predictions so far, and
adds what their leaves predict.

    raw -> gradients (integers) -> K trees, grown best first -> raw + learning_rate * leaf values
"""

from __future__ import annotations

import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from gpuforest.backends.base import Backend
from gpuforest.boosting.losses import Loss
from gpuforest.common import hashing
from gpuforest.engine import binning, nodes
from gpuforest.kernels.boosted_tree.records import MOST_STEP, GrownTree, LossOf, TreeRules
from gpuforest.kernels.gradients.numpy import derivatives, power_of_two

ONE_WORD_BITS = 24  # the fewest bits of a gradient that shares its word with the count
SUM_BITS = 62
ENOUGH_BITS = 29  # of a row's part in a sum: a leaf's value is then right to 1e-9
KEYS_AT_ONCE = 256  # keys of trees: one takes as long as all of these
LOOK_ROWS = 10_000  # rows whose derivatives show what is typical
# Of targets 10**14 and 3 * 10**14 + numbers of size one, float64 keeps steps of 1/64 and 1/16. With
# learning_rate=0.1 the first fit was as good as one without the offset (R2 0.93), the second not
# (0.91); of 10**15, with steps of 1/8, R2 was 0.82, and of 3 * 10**15 it was 0.07
COARSE_STEP = 0.2


@dataclass(frozen=True, eq=False)
class Boosting:
    """What rounds grow from, however many there are; y f64[N] holds numbers or class codes.

    share, subsample : the part of the allowed features that a node tries, and of the rows that a
        round grows from
    signs : i8[F]; groups : bool[n, F], see `TreeRules`
    row_groups : i32[N], the numbers of the rows' groups, of which a round draws whole ones, or None
    memory : bytes that the histograms of all open nodes may take
    watched, by_loss : whether raw predictions, or the mean loss, are asked for after each round
    """

    matrix: binning.BinnedMatrix  # for these rounds alone, see `columns_of`
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
    backend: Backend
    row_groups: np.ndarray | None = None
    watched: bool = True
    by_loss: bool = False

    @property
    def n_rows(self) -> int:
        return len(self.y)

    @property
    def n_drawn(self) -> int:
        """R, the rows that a round grows from; where groups are drawn, at most so many."""
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
        return words_of(self.loss, self.weight is not None, self.n_rows)

    @property
    def bits(self) -> tuple[int, int]:
        """The bits of a gradient and of a hessian: the sums of all rows stay below 2**62."""
        h = SUM_BITS - 2 * self.n_bits
        return SUM_BITS - self.n_bits if self.n_words == 2 else h, h

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The largest size that a gradient and a hessian may have; None if there is no bound."""
        if not self.loss.is_bounded:
            return None
        most = 1.0 if self.weight is None else float(self.weight.max())
        return most, most * self.loss.most_hessian

    @property
    def has_rests(self) -> bool:
        """Whether leaves' values need the remainders of rounded gradients and hessians, see
        kernels/gradients. Within monotonic bounds values follow from the sums of the splits."""
        return self.loss.is_log and not self.signs.any()

    @property
    def hessian_digits(self) -> int:
        """The bits that the mean hessian of a leaf's rows needs; with fewer, the leaf adds
        the remainders of rounding. At least 8 less than the bits of the largest hessian."""
        return max(0, min(ENOUGH_BITS, self.bits[1] - 8))

    def rules(self, scale: Any, asarray: Callable[[np.ndarray], Any] = np.asarray) -> TreeRules:
        """The rules of all trees, with the scales of a round; asarray : puts an array where the
        trees grow."""
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
            min_hessian=max(self.min_hessian, sys.float_info.min),
            l2=self.l2,
            most=self.loss.most_value,
            share=self.share,
            rate=self.learning_rate,
        )


def words_of(loss: Loss, weighted: bool, n_rows: int) -> int:
    """The words of a row's stats: 1 if every hessian is 1 and ONE_WORD_BITS fit; else 2."""
    one = loss.constant_hessian and not weighted
    return 1 if one and SUM_BITS - 2 * n_rows.bit_length() >= ONE_WORD_BITS else 2


@dataclass(frozen=True, eq=False)
class Round:
    """The K trees of a round.

    units : what their sums of gradients and of hessians are multiplied by
    loss : float, the mean loss after it, from a backend that keeps raw predictions; else None
    """

    trees: list[GrownTree]
    units: tuple[float, float]
    loss: float | None = None

    @property
    def diverges(self) -> bool:
        """Whether what leaves add was cut off, because it is too large."""
        return any((np.abs(tree.leaves["added"]) >= MOST_STEP).any() for tree in self.trees)


class Booster(ABC):
    """The rounds of one fit. A backend has the steps; their order is written here.

    Raw predictions f64[K, N] are in the `LossOf` that `begin` returns, which all other steps take.
    """

    def __init__(self, boosting: Boosting) -> None:
        self.boosting = boosting

    def round(self, raw: np.ndarray, number: int) -> Round | None:
        """Grow the round of this number, and add what it predicts to the raw predictions; None:
        gradients are too large for float64.

        raw : f64[K, N], what the fit begins with; changed, if the fit is watched
        """
        b = self.boosting
        loss = self.begin(raw, number)
        if not self.derive(loss):
            return None
        self.grow(number)
        if b.has_rests:
            self.add_rests(loss)
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
        """Compute the scales of the round and the stats of all rows; False if gradients are known
        to be too large."""

    @abstractmethod
    def grow(self, number: int) -> None:
        """Grow the trees. Their leaves add minus the sum of the gradients by that of the hessians,
        times the learning rate."""

    @abstractmethod
    def add_rests(self, loss: LossOf) -> None:
        """Compute the values of leaves again, from all digits of their sums, where these have too
        few."""

    @abstractmethod
    def add_quantiles(self, loss: LossOf) -> None:
        """Have leaves add the best constant for their rows instead (Friedman 2001, algorithms 3
        and 4)."""

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
        """End what waits for work, if anything does."""


def rounds(boosting: Boosting, raw: np.ndarray, first: int = 0) -> Iterator[Round]:
    """Grow round after round, without end unless they diverge; raw f64[K, N] is changed if the fit
    is watched.

    first : the number of the first round
    """
    booster = boosting.backend.booster(boosting)
    try:
        while (done := booster.round(raw, first)) is not None:
            yield done
            first += 1
            if done.diverges:
                break
        warnings.warn(
            f"boosting ended after {first} rounds: predictions grow beyond what float64 "
            "holds: lower learning_rate",
            stacklevel=2,
        )
    finally:
        booster.close()


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
    """What the leaves add, f64[L], cut off where the two sides of a split break its constraint:
    both at the middle between the leaves that break it most.

    Quantiles need it: the bounds within which trees grow are those of mean gradients.
    """
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


def refuse_overflow(y: np.ndarray, weight: np.ndarray | None) -> None:
    """Raise ValueError if weighted gradients would lie beyond float64."""
    far = float(np.abs(y).max())
    if weight is not None and far > 1 and float(weight.max()) > MOST_STEP / far:
        raise ValueError(
            "weights times targets lie beyond 1e304, whose sums overflow: divide the weights or y "
            "by a constant"
        )


def warn_of_lost_precision(b: Boosting, baseline: np.ndarray) -> None:
    """Warn, as UserWarning, of what rounding will take from a fit; baseline : f64[K].

    Outliers are no case: with the squared error they decide the splits long before gradients are
    rounded. Fits with units a thousand times coarser were as good as those of exact gradients.
    """
    if (b.y == b.y[0]).all():
        return  # nothing to learn
    sample = slice(None, None, -(-b.n_rows // LOOK_ROWS))
    y, weight = b.y[sample], None if b.weight is None else b.weight[sample]
    raw = np.repeat(baseline[:, None], len(y), axis=1)
    _, h = derivatives(b.loss.of_rows(y, weight, raw, np.zeros(1)))
    if not (b.loss.is_log or b.loss.is_classes):  # a prediction is the raw one
        _warn_of_far_targets(b, np.abs(y - raw[0]), float(np.abs(baseline[0])))
    if b.n_rows < 2 * b.min_rows:
        return  # no split anyway
    # what hessians are divided by in the first round
    _, most = b.bounds or (0.0, float(h.max()))
    if (h.mean(axis=1) * b.n_rows).max() < b.min_hessian:
        warnings.warn(
            "the hessians of all rows add up to less than min_hessian="
            f"{b.min_hessian:g}, so no node is split: the weights, or the means of the target, are "
            "too small; lower it, or multiply them by a constant",
            stacklevel=2,
        )
    elif b.n_words == 2 and (np.median(h, axis=1) < 1 / power_of_two(b.bits[1], most)).any():
        why = "the targets differ so much" if not b.loss.is_classes else "a class is so rare"
        why = why if b.weight is None else "the weights differ so much"
        warnings.warn(
            f"{why} among {b.n_rows} rows that the hessians of most rows are rounded to zero, and "
            "trees learn little from these: change the weights, or train on fewer rows",
            stacklevel=2,
        )


def _warn_of_far_targets(b: Boosting, rest: np.ndarray, far: float) -> None:
    """Of targets that float64 does not tell apart well; rest : f64[n] >= 0, distances from the
    baseline."""
    typical = float(np.median(rest[rest > 0])) if rest.any() else 0.0
    step = float(np.spacing(far))
    if far > typical and step > COARSE_STEP * b.learning_rate * typical:
        warnings.warn(
            f"y varies by about {typical:.2g} around {far:.2g}, where float64 has steps of "
            f"{step:.2g}: subtract a constant from y",
            stacklevel=2,
        )
