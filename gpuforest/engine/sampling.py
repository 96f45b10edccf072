"""The bag of each tree: the rows that it trains on, and their weights. Bags are recomputed from
the seed and never stored."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpuforest.common import hashing
from gpuforest.common.dtypes import MAX_TOTAL_WEIGHT
from gpuforest.engine.records import Training

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend
    from gpuforest.engine.target import Target

Array = Any

WEIGHED_AT_ONCE = 2**18  # elements of bags weighted at once, so that their scratch stays small


@dataclass(frozen=True, eq=False)
class Sampling:
    """The rules by which bags are drawn."""

    n_rows: int  # of the training data
    n_draws: int  # rows drawn for each tree; 0: a bag holds every row once
    # i32[N] or None. If rows are drawn, they are proportional to the chances of rows to be drawn,
    # as in scikit-learn >= 1.9 and ranger; if not, they multiply the statistics
    weights: np.ndarray | None
    factors: np.ndarray | None = None  # i32[N], the weight that a draw of each row adds to the bag
    # instead of factors, the classes of each bag are balanced: a draw of class c adds about
    # n_draws * balance / (classes in the bag * draws of c), and with several outputs `balance`
    # times the product of such ratios; 0: a draw adds one
    balance: int = 0
    draw_weight: float = 1.0  # the mean weight that a draw adds
    # rows of positive weight are drawn without replacement; then weights multiply the statistics
    distinct: bool = False

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
        if not self.distinct or self.weights is None:
            return round(self.most_weight * self.draw_weight)
        return round(self.most_weight * min(1.0, self.n_draws / self.n_counted))

    @property
    def most_weight(self) -> int:
        """The greatest total weight of a bag, if a draw adds one."""
        if self.weights is None or (self.n_draws and not self.distinct):
            return self.n_draws or self.n_rows
        return int(self.weights.sum(dtype=np.int64))

    @property
    def bag_rows(self) -> int:
        """The greatest number of rows that a bag can hold."""
        return min(self.n_rows, self.n_draws) if self.n_draws else self.n_rows

    @property
    def likely_rows(self) -> int:
        """A number of rows that a bag exceeds with a chance below 10**-15: the rows that are hit
        have a variance below n / 4, and draws of unequal weights hit fewer."""
        n, draws = self.n_rows, self.n_draws
        if not draws or self.distinct or n < 2:
            return self.bag_rows
        expected = -n * math.expm1(draws * math.log1p(-1 / n))
        return min(self.bag_rows, math.ceil(expected + 4.5 * math.sqrt(n)))


class WaveRequest(NamedTuple):
    """What trees are wanted, as far as their memory depends on it."""

    sampling: Sampling
    n_channels: int
    n_trees: int
    n_words: int = 0  # 64-bit words of a split set; 0: no feature is categorical
    bounded: bool = False  # trees are monotonic, so that nodes have bounds of their values


def draw_bags(sampling: Sampling, seed: int, first: int, last: int, backend: Backend) -> Array:
    """The weights of all rows in the bags of the trees first .. last - 1, i32[last - first, N].

    For draw j of a tree, the hash of (bag key, j), as a fraction of 2**64, is a point in the
    cumulative weights; the row whose share holds this point is drawn. Weight 0: out of bag.
    """
    xp, n = backend.xp, sampling.n_rows
    if not sampling.n_draws:
        row = np.ones(n, np.int32) if sampling.weights is None else sampling.weights
        return xp.broadcast_to(backend.asarray(row), (last - first, n))
    keys = hashing.tree_keys(np, seed, first, last)  # few: the host hashes them
    keys = backend.asarray(hashing.hash_at(keys, hashing.BAG))
    if sampling.distinct:
        if sampling.weights is None:
            return xp.astype(drawn_once(xp, keys, sampling.n_draws, n, backend), xp.int32)
        some = sampling.weights > 0  # rows of weight zero alone would make an empty bag
        drawn = drawn_once(xp, keys, sampling.n_draws, int(some.sum()), backend)
        position = backend.asarray(np.maximum(np.cumsum(some) - 1, 0))
        return xp.take(xp.astype(drawn, xp.int32), position, axis=1) * backend.asarray(
            sampling.weights
        )
    cumulative = None
    if sampling.weights is not None:
        cumulative = backend.asarray(np.cumsum(sampling.weights, dtype=np.int64))
    return backend.sampling.bag(backend, keys, n, sampling.n_draws, cumulative)


def tree_features(
    keys: np.ndarray, n_drawn: int, again: bool, n_features: int, backend: Backend
) -> Any:
    """The features drawn for the trees of these keys u64[T] on the host, with replacement if
    `again`: bool[T, F]. None if `n_drawn` is 0: trees have all features."""
    if not n_drawn:
        return None
    keys = backend.asarray(hashing.hash_at(keys, hashing.FEATURES))
    if again:
        return backend.sampling.bag(backend, keys, n_features, n_drawn, None) > 0
    return drawn_once(backend.xp, keys, n_drawn, n_features, backend)


def drawn_once(xp: Any, keys: Array, count: int, n: int, backend: Backend) -> Array:
    """Which items of range(n) are among the `count` that keys u64[T] draw without replacement,
    bool[T, n]: those at the first `count` positions of a random order."""
    if backend.on_host and count < n // 2:  # fewer hashes
        drawn = np.zeros((len(keys), n), bool)
        first = np.arange(count, dtype=np.uint64)[None]
        np.put_along_axis(
            drawn, hashing.positions_of(np, keys[:, None], first, n).astype(np.int64), True, axis=1
        )
        return drawn
    items = xp.arange(n, dtype=xp.uint64)
    return hashing.permute(xp, keys[:, None], items[None, :], n) < count


def tree_weights(training: Training, first: int, last: int) -> Array:
    """The weight of each row in the statistics of the trees first .. last - 1,
    i32[last - first, N]: the number of its draws times the weight that a draw adds."""
    sampling, target, backend = training.sampling, training.target, training.backend
    bags = draw_bags(sampling, training.seed, first, last, backend)
    if sampling.factors is None and not sampling.balance:
        return bags
    step = max(1, WEIGHED_AT_ONCE // sampling.n_rows)
    for t in range(0, last - first, step):
        some = bags[t : min(t + step, last - first), ...]
        if sampling.factors is not None:
            some *= backend.asarray(sampling.factors)[None, :]
        else:
            some *= _balanced(backend.xp, sampling, target, some)
    return bags


def _balanced(xp: Any, sampling: Sampling, target: Target, bags: Array) -> Array:
    """The weight that a draw of each row adds, i32[T, N], so that the classes of a bag have equal
    weights."""
    if target.coding.several:
        return _products(xp, sampling, target, bags)
    label = xp.astype(target.y[:, 0], xp.int64)
    total = sampling.n_draws * sampling.balance
    each = xp.floor(_shares(xp, total, label, target.coding.n_channels, bags) + 0.5)
    return xp.take(xp.astype(each, xp.int32), label, axis=1)


def most_draw_weight(sampling: Sampling) -> int:
    """The greatest weight that a draw may add without overflow of a sum."""
    return MAX_TOTAL_WEIGHT // (2 * sampling.n_draws)


def _shares(xp: Any, total: int, label: Array, n_classes: int, bags: Array) -> Array:
    """The weight that a draw of each class adds, f64[T, n_classes], if the classes in each bag
    i32[T, N] have equal weights that sum to `total`. label : i64[N]"""
    drawn = xp.stack(
        [xp.sum(xp.where(label == c, bags, 0), axis=1) for c in range(n_classes)], axis=1
    )
    share = total / xp.sum(xp.astype(drawn > 0, xp.float64), axis=1)
    return share[:, None] / xp.astype(xp.where(drawn > 0, drawn, 1), xp.float64)


def _products(xp: Any, sampling: Sampling, target: Target, bags: Array) -> Array:
    """As `_balanced`, for several outputs: each output is balanced, and the weights multiply."""
    product = xp.full(bags.shape, float(sampling.balance), dtype=xp.float64)
    for moments in target.coding.split(target.y):
        label = xp.argmax(moments, axis=1)
        shares = _shares(xp, sampling.n_draws, label, moments.shape[1], bags)
        product = product * xp.take(shares, label, axis=1)
    most = float(most_draw_weight(sampling))
    return xp.astype(xp.clip(xp.floor(product + 0.5), 1.0, most), xp.int32)
