"""Quantile forests (Meinshausen 2006): which training rows a row shares leaves with, and the
distribution of their targets.

Kept are the codes and targets of the training rows, from which the members of all leaves follow:
bags are drawn again from the seed, and one walk down the trees finds the leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from gpuforest.backends.base import Backend
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.common import hashing
from gpuforest.common.parallel import blocks, parallel_map
from gpuforest.common.progress import report
from gpuforest.engine.binning import encode_blocks, new_codes
from gpuforest.engine.forest import Forest
from gpuforest.engine.records import Sampling
from gpuforest.engine.sampling import draw_bags
from gpuforest.explain import quantile_kernels
from gpuforest.explain.quantile_kernels import (
    COUNT,
    HIGHER,
    INVERTED,
    LINEAR,
    LOWER,
    MEAN,
    Members,
    new_members,
)
from gpuforest.explain.uncertainty import WALKED_AT_ONCE

Array = Any

# what the kernel is asked for an interpolation; `_one_of` makes one answer of several
WAYS = {
    "linear": (LINEAR,),
    "lower": (LOWER,),
    "higher": (HIGHER,),
    "midpoint": (LOWER, HIGHER),
    "nearest": (LOWER, HIGHER, LINEAR),
    "inverted_cdf": (INVERTED,),
}
SUM_BITS = 52  # weights of all trees together stay below 2**52, which float64 holds exactly
LEAST_BITS = 31  # a leaf weighs at least as much as it can have draws
LISTED_AT_ONCE = 2**20  # members of leaves that are listed: some 100 MB
TASK_ROWS = 1024  # of a task of a thread at most, so that threads end together
FEWEST_ROWS = 64  # of a task at least: its scratch takes some microseconds


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """What a quantile forest keeps of its training rows.

    codes : u8 or u16 [N, F], on the host
    y : f64[N, K]
    sampling : how their bags were drawn
    """

    codes: np.ndarray
    y: np.ndarray
    sampling: Sampling

    @cached_property
    def order(self) -> np.ndarray:
        """The rows in the order of their targets, i64[K, N]; equal ones by their number."""
        return np.argsort(self.y.T, axis=1, kind="stable")

    @cached_property
    def ascending(self) -> np.ndarray:
        """The targets in their order, f64[K, N]."""
        return np.take_along_axis(np.ascontiguousarray(self.y.T), self.order, axis=1)

    def members(self, forest: Forest, most: int | float | None, backend: Backend) -> Members:
        """See `leaf_members`; kept from call to call."""
        last = self.__dict__.get("_last")
        if last is None or last[0] is not forest or last[1] != most:
            last = (forest, most, leaf_members(forest, self, most, backend))
            self.__dict__["_last"] = last
        members: Members = last[2]
        return members

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone."""
        return {"codes": self.codes, "y": self.y, "sampling": self.sampling}


def leaf_members(
    forest: Forest, rows: TrainingRows, most: int | float | None, backend: Backend
) -> Members:
    """The members of all leaves, of which each keeps at most so many draws, chosen by hash.

    most : a float is a fraction of the rows, rounded up; None: all. Without bootstrap it counts
        rows
    """
    T, N = forest.n_trees, len(rows.y)
    if isinstance(most, float):
        most = int(np.ceil(most * N))
    first = np.empty(N, np.int32)  # the number of each row, by its first target
    first[rows.order[0]] = np.arange(N, dtype=np.int32)
    leaves = _leaves(forest, rows.codes, backend)

    def of_tree(t: int) -> tuple[np.ndarray, np.ndarray]:
        bag = draw_bags(rows.sampling, forest.seed, t, t + 1, NumpyBackend())[0]
        row = np.flatnonzero(bag).astype(np.int32)
        leaf, count = leaves[row, t], bag[row]
        if most is not None:
            seed, drawn = forest.seed, bool(rows.sampling.n_draws)
            row, leaf, count = _some(row, leaf, count, int(most), seed, t, drawn)
        row = first[row]
        by_leaf = np.lexsort((row, leaf))
        size = int(forest.tree_offsets[t + 1] - forest.tree_offsets[t])
        return np.stack([row, count], axis=1)[by_leaf], np.bincount(leaf, minlength=size)

    parts = parallel_map(of_tree, range(T), backend.n_threads)
    row_count, sizes = (np.concatenate(each) for each in zip(*parts, strict=True))
    rank = np.empty((len(rows.order), N), np.int32)
    for k, order in enumerate(rows.order):
        rank[k, first[order]] = np.arange(N, dtype=np.int32)
    weight = 2 ** max(LEAST_BITS, SUM_BITS - T.bit_length())
    return new_members(sizes, row_count, rank, weight)


def _leaves(forest: Forest, codes: np.ndarray, backend: Backend) -> np.ndarray:
    """The leaf of each row in each tree, i32[N, T]."""
    N, T = len(codes), forest.n_trees
    leaves, step = np.empty((N, T), np.int32), max(1, WALKED_AT_ONCE // T)
    for i in range(0, N, step):
        block = rows = codes[i : i + step]
        if not backend.on_host:  # whose rows may be longer
            rows = new_codes(block.shape[0], block.shape[1], block.dtype, backend)
            rows[:, : block.shape[1]] = backend.asarray(np.ascontiguousarray(block))
        leaves[i : i + step] = backend.asnumpy(backend.apply(forest, rows))
    return leaves


def _some(
    row: np.ndarray, leaf: np.ndarray, count: np.ndarray, most: int, seed: int, t: int, drawn: bool
) -> tuple[np.ndarray, ...]:
    """The members that are left of a tree where each leaf keeps at most so many draws: those of
    the least hashes. `drawn`: each draw counts; else each row."""
    copies = count.astype(np.int64) if drawn else np.ones(len(row), np.int64)
    at = np.repeat(np.arange(len(row)), copies)
    copy = np.arange(len(at)) - np.repeat(np.cumsum(copies) - copies, copies)
    key = hashing.hash_at(hashing.tree_keys(np, seed, t, t + 1), hashing.KEPT)
    priority = hashing.hash_at(hashing.hash_at(key, row[at].astype(np.uint64)), copy.astype("u8"))
    order = np.lexsort((priority, leaf[at]))
    ordered = leaf[at][order]
    first = np.searchsorted(ordered, ordered, side="left")
    left = np.bincount(at[order[np.arange(len(order)) - first < most]], minlength=len(row))
    some = left > 0
    return row[some], leaf[some], (left.astype(np.int32) if drawn else count)[some]


def leaf_quantiles(
    members: Members, leaves: np.ndarray, y: np.ndarray, q: np.ndarray, how: int, n_threads: int
) -> np.ndarray:
    """Weighted quantiles f64[n, K, Q] of the targets of the rows in leaves i64[n, T], or with MEAN
    their means f64[n, K, 1]; see quantile_kernels.py."""
    out = np.empty((len(leaves), len(y), 1 if how == MEAN else len(q)))

    def task(rows: slice) -> None:
        scratch = quantile_kernels.new_scratch(y.shape[1])
        quantile_kernels.quantiles(members, leaves[rows], y, q, how, scratch, out[rows])

    parallel_map(task, blocks(len(leaves), 4 * n_threads, TASK_ROWS, FEWEST_ROWS), n_threads)
    return out


def weights_below(
    members: Members, leaves: np.ndarray, low: np.ndarray, high: np.ndarray, n_threads: int
) -> np.ndarray:
    """The weights of the rows in leaves whose ranks are below low i64[n, K], and below high
    i64[n, K]; of all; and the number of draws: i64[n, K, 4]."""
    out = np.zeros((*low.shape, 4), np.int64)

    def task(rows: slice) -> None:
        quantile_kernels.weights_below(members, leaves[rows], low[rows], high[rows], out[rows])

    parallel_map(task, blocks(len(leaves), 4 * n_threads, TASK_ROWS, FEWEST_ROWS), n_threads)
    return out


class Distribution:
    """What is asked of the targets in the leaves that rows reach, but for the pairs of row and
    tree that are `skipped`, bool[N, T] or None."""

    def __init__(
        self, forest: Forest, rows: TrainingRows, members: Members, skipped: np.ndarray | None
    ) -> None:
        self.forest, self.rows, self.members, self.skipped = forest, rows, members, skipped

    def quantiles(
        self,
        X: Array,
        q: np.ndarray | None,
        interpolation: str,
        backend: Backend,
        by_tree: bool = False,
        by_leaf: bool = True,
    ) -> np.ndarray:
        """Quantiles f64[N, K, Q], or where `q` is None the mean f64[N, K, 1].

        by_tree : whether they are means over the trees of quantiles in one leaf
        by_leaf : whether each leaf weighs the same; False: each draw
        """
        y, ways = self.rows.ascending, (MEAN,) if q is None else WAYS[interpolation]
        levels = np.zeros(1) if q is None else q

        def of(leaves: np.ndarray) -> np.ndarray:
            if by_leaf or by_tree:  # draws in one leaf weigh the same
                return _one_of(
                    [
                        leaf_quantiles(self.members, leaves, y, levels, how, backend.n_threads)
                        for how in ways
                    ]
                )
            return np.concatenate(
                [
                    quantiles_of_draws(len(some), listed, self.members.rank, y, levels, ways)
                    for some, listed in self._listed(leaves)
                ]
            )

        answer = partial(_mean_of_trees, of=of) if by_tree else of
        return np.concatenate([answer(leaves) for _, leaves in self._blocks(X, backend)])

    def ranks(
        self, X: Array, y: np.ndarray, kind: str, backend: Backend, by_tree: bool = False
    ) -> np.ndarray:
        """The ranks f64[N, K] of y f64[N, K] among the targets; NaN for a row without a leaf.

        by_tree : whether they are means over the trees of the ranks in one leaf
        """
        both = list(zip(self.rows.ascending, y.T, strict=True))
        ends = [
            np.stack([np.searchsorted(a, b, side) for a, b in both], axis=1)
            for side in ("left", "right")
        ]

        def of(leaves: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
            weights = weights_below(self.members, leaves, low, high, backend.n_threads)
            below, upto, total, draws = np.moveaxis(weights, 2, 0)
            with np.errstate(invalid="ignore", divide="ignore"):
                return _rank(below / total, upto / total, 1 / draws, kind)

        parts = []
        for rows, leaves in self._blocks(X, backend):
            low, high = (np.ascontiguousarray(end[rows]) for end in ends)
            answer = partial(of, low=low, high=high)
            parts.append(_mean_of_trees(leaves, answer) if by_tree else answer(leaves))
        return np.concatenate(parts)

    def proximity_counts(self, X: Array, backend: Backend) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each row the training rows in its leaves, ascending, and the draws of each there."""
        counted: list[tuple[np.ndarray, np.ndarray]] = []
        for _, leaves in self._blocks(X, backend):
            for some, (at, row, count) in self._listed(leaves):
                key = at * len(self.rows.y) + self.rows.order[0][row]
                pairs, place = np.unique(key, return_inverse=True)
                counts = np.zeros(len(pairs), np.int64)
                np.add.at(counts, place, count)
                at, row = np.divmod(pairs, len(self.rows.y))
                cuts = np.searchsorted(at, np.arange(1, len(some)))
                counted += zip(np.split(row, cuts), np.split(counts, cuts), strict=True)
        return counted

    def _listed(self, leaves: np.ndarray) -> Iterator[tuple[np.ndarray, tuple[np.ndarray, ...]]]:
        """Parts of leaves i64[n, T], and the members of their leaves, one after the other: the
        number in the part of the row that reaches the leaf, that of the member, and its draws."""
        members, counted = self.members, leaves >= 0
        leaf = np.where(counted, members.leaf[leaves], 0)
        sizes = counted.astype(np.int64)
        sizes[leaf < 0] = members.lists[~leaf[leaf < 0], 0]
        upto = np.cumsum(sizes.sum(axis=1))
        cuts = np.flatnonzero(np.diff(upto // LISTED_AT_ONCE)) + 1
        for part in np.split(np.arange(len(leaves)), cuts):
            size, words = sizes[part].reshape(-1), leaf[part].reshape(-1)
            each = np.repeat(np.arange(len(size)), size)
            place = np.arange(len(each)) - np.repeat(np.cumsum(size) - size, size)
            row, count = words[each] & 2**COUNT - 1, words[each] >> COUNT
            many = words[each] < 0
            row[many], count[many] = members.lists[~words[each[many]] + 1 + place[many]].T
            yield part, (each // leaves.shape[1], row, count)

    def _blocks(self, X: Array, backend: Backend) -> Any:
        """Blocks of rows, and their leaves i64[n, T] as nodes of the forest; -1: left out."""
        first, step = self.forest.tree_offsets[:-1], max(1, WALKED_AT_ONCE // self.forest.n_trees)
        for begin, end, codes in encode_blocks(X, self.forest.edges, backend):
            for i in range(begin, end, step):
                rows = slice(i, min(i + step, end))
                leaves = backend.apply(self.forest, codes[i - begin : rows.stop - begin, ...])
                leaves = backend.asnumpy(leaves) + first
                if self.skipped is not None:
                    leaves[self.skipped[rows]] = -1
                yield rows, leaves
            report(end, X.shape[0])


def _one_of(parts: list[np.ndarray]) -> np.ndarray:
    """The answer to an interpolation: the only one, the middle of two, or of the first two the one
    that is nearer to the third."""
    if len(parts) == 1:
        return parts[0]
    low, high = parts[:2]
    if len(parts) == 2:
        return np.asarray((low + high) / 2)
    return np.asarray(np.where(parts[2] - low <= high - parts[2], low, high))


def _mean_of_trees(leaves: np.ndarray, of: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """The mean of what is said of the leaves i64[n, 1] of each tree, of those that count."""
    total: Any = 0.0
    for t in range(leaves.shape[1]):
        answer = of(np.ascontiguousarray(leaves[:, t : t + 1]))
        total = total + np.where(np.isnan(answer), 0.0, answer)
    n = (leaves >= 0).sum(axis=1).reshape(-1, *[1] * (total.ndim - 1))
    with np.errstate(invalid="ignore"):
        return np.asarray(total / n)


def quantiles_of_draws(
    n_rows: int,
    listed: tuple[np.ndarray, ...],
    rank: np.ndarray,
    y: np.ndarray,
    q: np.ndarray,
    ways: tuple[int, ...],
) -> np.ndarray:
    """Quantiles f64[n_rows, K, Q] of lists of draws, as `numpy.quantile` has them, or with MEAN
    the mean f64[n_rows, K, 1]; NaN for a row without a draw.

    listed : i64[E] each, the list, the training row, and how often it is in the list
    rank : i32[K, N], the position of each training row in the order of the targets
    y : f64[K, N], the targets in this order
    """
    at, row, count = listed
    draws = np.zeros(n_rows, np.int64)
    np.add.at(draws, at, count)
    none, first = draws == 0, np.cumsum(draws) - draws
    if none.all():
        return np.full((n_rows, len(y), len(q)), np.nan)
    parts = []
    for k in range(len(y)):
        order = np.lexsort((rank[k][row], at))
        values, upto = y[k][rank[k][row[order]]], np.cumsum(count[order])
        if ways == (MEAN,):
            sums = np.bincount(at[order], values * count[order], n_rows)
            parts.append((sums / np.where(none, 1, draws))[:, None])
            continue

        def value(number: np.ndarray, upto: Any = upto, values: Any = values) -> np.ndarray:
            """The targets of draws i64[n_rows, Q], by their numbers in the lists."""
            place = np.searchsorted(upto, first[:, None] + number, side="right")
            return np.asarray(values[np.minimum(place, len(values) - 1)])

        index = q * np.maximum(draws - 1, 0)[:, None]
        low, high = (value(f(index).astype(np.int64)) for f in (np.floor, np.ceil))
        least = np.ceil(q * draws[:, None] * (1 - 2.0**-50)).astype(np.int64) - 1
        answers = {
            LOWER: low,
            HIGHER: high,
            LINEAR: low + (index - np.floor(index)) * (high - low),
            INVERTED: value(np.maximum(least, 0)),
        }
        parts.append(_one_of([answers[how] for how in ways]))
    return np.where(none[:, None, None], np.nan, np.stack(parts, axis=1))


def _rank(below: np.ndarray, upto: np.ndarray, step: np.ndarray, kind: str) -> np.ndarray:
    """Ranks from the weight of lesser targets, that of targets not greater, and the mean weight
    of a draw."""
    if kind == "weak":
        return upto
    if kind == "strict":
        return below
    middle = (below + upto) / 2
    return middle if kind == "mean" else np.asarray(middle + (upto > below) * step / 2)


def in_bag(forest: Forest, sampling: Sampling, rows: np.ndarray | None = None) -> np.ndarray:
    """Which training rows each tree drew, bool[n, T]; of all rows, or of i64[n], where -1 is a row
    that no tree drew."""
    backend, seed = NumpyBackend(), forest.seed
    trees = range(forest.n_trees)
    bags = np.stack([draw_bags(sampling, seed, t, t + 1, backend)[0] > 0 for t in trees], axis=1)
    return bags if rows is None else np.asarray(bags[rows] & (rows >= 0)[:, None])
