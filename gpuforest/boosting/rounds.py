"""Rounds of boosting: each grows K trees from the gradients of the raw predictions so far, and
adds what their leaves predict.

    raw -> gradients (integers) -> K trees, grown best first -> raw + learning_rate * leaf values
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np

from gpuforest.backends.base import Backend
from gpuforest.boosting.losses import Loss
from gpuforest.common import hashing
from gpuforest.engine.binning import BinnedMatrix, draw_rows
from gpuforest.engine.nodes import unpack
from gpuforest.kernels.boosted_tree.records import MIN_HESSIAN, BoostRules, GrownTree
from gpuforest.kernels.gradients.numpy import (
    MOST_GRADIENT,
    MOST_STEP,
    REST_BITS,
    LossNumbers,
    Units,
    derivatives,
)

ONE_WORD_BITS = 24  # a gradient that shares its word with the count keeps at least so many
SUM_BITS = 62
ENOUGH_BITS = 29  # of a row's part in a sum: a leaf's value is then right to 1e-9
KEYS_AT_ONCE = 256  # keys of trees: one takes as long as all of these
LOOK_ROWS = 10_000  # rows whose derivatives tell what is typical
# Of targets 10**14 and 3 * 10**14 + numbers of size one, float64 keeps steps of 1/64 and 1/16. With
# learning_rate=0.1 the first fit was as good as one without the offset (R2 0.93), the second not
# (0.91); of 10**15, with steps of 1/8, R2 was 0.82, and of 3 * 10**15 it was 0.07
COARSE_STEP = 0.2


@dataclass(frozen=True, eq=False)
class Boosting:
    """What rounds grow from, however many there are; y f64[N] holds numbers or class codes.

    share, subsample : the part of the allowed features that a node tries, and of the rows that a
        round grows from
    signs : i8[F]; groups : bool[n, F], see `BoostRules`
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
    max_depth: int
    max_leaves: int
    share: float
    subsample: float
    signs: np.ndarray
    groups: np.ndarray
    memory: int
    seed: int
    backend: Backend
    watched: bool = True
    by_loss: bool = False

    @property
    def n_rows(self) -> int:
        return len(self.y)

    @cached_property
    def n_bits(self) -> int:
        """The bits that a count of rows takes."""
        return self.n_rows.bit_length()

    @cached_property
    def n_words(self) -> int:
        return words_of(self.loss, self.weight is not None, self.n_rows)


def words_of(loss: Loss, weighted: bool, n_rows: int) -> int:
    """The words of a row's stats: 1 if every hessian is 1, and few rows leave enough bits."""
    one = loss.constant_hessian and not weighted
    return 1 if one and SUM_BITS - 2 * n_rows.bit_length() >= ONE_WORD_BITS else 2


@dataclass(frozen=True, eq=False)
class Round:
    """The trees of a round.

    trees : K grown trees
    values : of each, what its leaves add to the raw predictions, f64[L]
    units : of each, what its sums of gradients and hessians are multiplied by
    loss : float, the mean loss after it, from a backend that keeps raw predictions; else None
    """

    trees: list[GrownTree]
    values: list[np.ndarray]
    units: list[tuple[float, float]]
    loss: float | None = None

    @property
    def diverges(self) -> bool:
        """Whether values were cut off, because they are too large."""
        return any(bool((np.abs(values) >= MOST_STEP).any()) for values in self.values)


class GrowsRounds(Protocol):
    """What a backend makes for one fit."""

    def round(self, raw: np.ndarray, number: int) -> Round | None:
        """Grow the round of this number, and add what it predicts to the raw predictions; None:
        gradients are too large for float64.

        raw : f64[K, N], what the fit begins with; changed, if the fit is watched
        """

    def close(self) -> None:
        """End what waits for work."""


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


def drawn_rows(b: Boosting, number: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows that a round grows from, and the others, both i32[...] ascending."""
    every = np.arange(b.n_rows, dtype=np.int32)
    wanted = max(1, int(b.subsample * b.n_rows))
    if wanted >= b.n_rows:
        return every, every[:0].copy()
    key = int(hashing.tree_keys(np, b.seed, number, number + 1)[0])
    rows = draw_rows(key, b.n_rows, wanted).astype(np.int32)
    return rows, np.setdiff1d(every, rows, assume_unique=True)


def loss_numbers(b: Boosting, raw: np.ndarray, rows: np.ndarray) -> LossNumbers:
    """The loss as kernels take it."""
    delta = 0.0
    if b.loss.has_delta:
        weight = None if b.weight is None else b.weight[rows]
        delta = b.loss.delta(b.y[rows] - raw[0, rows], weight)
    return LossNumbers(b.loss.number, b.loss.quantile, delta)


def bounds_of(b: Boosting) -> tuple[float, float] | None:
    """The largest size that a gradient and a hessian may have; None if the loss has no bound."""
    if not b.loss.is_bounded:
        return None
    most = 1.0 if b.weight is None else float(b.weight.max())
    return most, most * b.loss.most_hessian


def units_of(b: Boosting, g: float, h: float) -> Units | None:
    """Powers of two by which gradients and hessians up to g and h become integers, so that the sums
    of all rows stay below 2**62. They do not depend on any order. None: the largest is too large
    for float64."""
    if not max(g, h) <= MOST_GRADIENT:
        return None
    bits = b.n_bits
    return Units(power_of_two(room_of(b), g), power_of_two(SUM_BITS - 2 * bits, h), bits)


def room_of(b: Boosting) -> int:
    """The bits of a gradient."""
    return SUM_BITS - (b.n_bits if b.n_words == 2 else 2 * b.n_bits)


def power_of_two(bits: int, most: float) -> float:
    """The power of two that brings numbers up to `most` below 2**bits."""
    exponent = math.frexp(most)[1] if most > 0 else 0
    return math.ldexp(1.0, max(-1000, min(bits - exponent, 1000)))


def rules_of(b: Boosting, units: Units, tree: int) -> BoostRules:
    """The rules by which a tree grows; tree : its number.

    Gradients count as of size one, however large or small they are: no square of them overflows.
    """
    key = root_keys(b.seed, tree // KEYS_AT_ONCE)[tree % KEYS_AT_ONCE]
    g, h = 2.0 ** -room_of(b), 1.0 if b.n_words == 1 else 1.0 / units.h
    return BoostRules(
        g, h, units.n_bits, b.l2, b.loss.most_value * units.g * g, b.min_rows, b.max_depth,
        b.max_leaves, b.share, key, b.signs, b.groups,
    )  # fmt: skip


@lru_cache(maxsize=4)
def root_keys(seed: int, block: int) -> list[int]:
    """The roots' keys of the trees KEYS_AT_ONCE * block and the following ones."""
    first = KEYS_AT_ONCE * block
    trees = hashing.tree_keys(np, seed, first, first + KEYS_AT_ONCE)
    keys: list[int] = hashing.hash_at(trees, hashing.ROOT).tolist()
    return keys


def has_rests(b: Boosting) -> bool:
    """Whether leaves' values need what rounding left of gradients and hessians, see
    kernels/gradients. Within monotonic bounds values follow from the sums that the splits had."""
    return b.loss.is_log and not b.signs.any()


def digits_of_hessians(b: Boosting) -> int:
    """The bits that hessians of a leaf's rows need in the mean, or the leaf looks for more; where
    many rows leave fewer, 8 less than the largest hessian has."""
    return max(0, min(ENOUGH_BITS, SUM_BITS - 2 * b.n_bits - 8))


def with_few_digits(b: Boosting, tree: GrownTree) -> np.ndarray:
    """The numbers i64[...] of the leaves whose hessians, or gradients, have too few digits."""
    if not has_rests(b):
        return np.zeros(0, np.int64)
    g, h, n = tree.sums.T
    return np.flatnonzero((h < n << digits_of_hessians(b)) | (np.abs(g) < n << ENOUGH_BITS))


def add_rests(tree: GrownTree, few: np.ndarray, rests: np.ndarray, rules: BoostRules) -> None:
    """Set the values of a few leaves from all digits of their sums; rests i64[n, 2]."""
    finer = 2.0 ** (rules.n_bits - REST_BITS)
    g, h = (tree.sums[few, i] + rests[:, i] * finer for i in (0, 1))
    bottom = h * rules.h + rules.l2
    values = np.where(bottom > 0, -(g * rules.g) / np.where(bottom > 0, bottom, 1.0), 0.0)
    tree.values[few] = np.minimum(np.maximum(values, -rules.most), rules.most)


def steps_of(
    b: Boosting, loss: LossNumbers, tree: GrownTree, raw: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """What each leaf adds to the raw predictions, f64[L]: minus the sum of the gradients by that of
    the hessians, times the learning rate; or of some losses the best constant in place of the
    first (Friedman 2001, algorithms 3 and 4)."""
    values = tree.values
    if b.loss.by_order:
        values = np.zeros(len(tree.values))
        for leaf, (begin, end) in enumerate(tree.ranges[:, :2]):
            if begin < end:
                held = rows[begin:end]
                weight = None if b.weight is None else b.weight[held]
                values[leaf] = b.loss.best_step(b.y[held] - raw[held], weight, loss.delta)
    steps = np.minimum(np.maximum(values * b.learning_rate, -MOST_STEP), MOST_STEP)
    return in_monotonic_order(tree, b.signs, steps) if b.loss.by_order else steps


def in_monotonic_order(tree: GrownTree, signs: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The leaves' values f64[L], cut off where the two sides of a split break its constraint: both
    at the middle between the leaves that break it most.

    Medians need it: the bounds within which trees grow are those of mean gradients.
    """
    if not signs.any():
        return values
    values = values.copy()
    feature, _, _, child = unpack(np, tree.nodes)
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
    some = slice(None, None, -(-b.n_rows // LOOK_ROWS))
    y, weight = b.y[some], np.zeros(0) if b.weight is None else b.weight[some]
    raw = np.repeat(baseline[:, None], len(y), axis=1)
    _, h = derivatives(LossNumbers(b.loss.number, b.loss.quantile, 0.0), y, raw, weight)
    if not (b.loss.is_log or b.loss.is_classes):  # a prediction is the raw one
        _warn_of_far_targets(b, np.abs(y - raw[0]), float(np.abs(baseline[0])))
    if b.n_rows < 2 * b.min_rows:
        return  # no split anyway
    # what hessians are divided by in the first round
    _, most = bounds_of(b) or (0.0, float(h.max()))
    if (h.mean(axis=1) * b.n_rows).max() < MIN_HESSIAN:
        warnings.warn(
            f"the hessians of all rows add up to less than {MIN_HESSIAN}, so no node is split: the "
            "weights, or the means of the target, are too small; multiply them by a constant",
            stacklevel=2,
        )
    elif (
        b.n_words == 2
        and (np.median(h, axis=1) < 1 / power_of_two(SUM_BITS - 2 * b.n_bits, most)).any()
    ):
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
    some = rest[rest > 0]
    typical, step = float(np.median(some)) if len(some) else 0.0, float(np.spacing(far))
    if far > typical and step > COARSE_STEP * b.learning_rate * typical:
        warnings.warn(
            f"y varies by about {typical:.2g} around {far:.2g}, where float64 has steps of "
            f"{step:.2g}: subtract a constant from y",
            stacklevel=2,
        )
