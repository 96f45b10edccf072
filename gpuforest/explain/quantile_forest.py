"""Quantile forests (Meinshausen 2006): which training rows a row shares leaves with, and the
distribution of their targets.

The forest keeps the codes and targets of its training rows. The members of all leaves follow from
these: bags are drawn again from the seed, and one walk down the trees finds the leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, cast

import numpy as np

from gpuforest.backends import numpy, registry
from gpuforest.backends.base import Array, Backend
from gpuforest.common import hashing
from gpuforest.common.parallel import blocks, parallel_map
from gpuforest.core.bins import BinEdges
from gpuforest.core.forest import Forest
from gpuforest.core.rules import Sampling
from gpuforest.explain import quantile_kernels as kernels
from gpuforest.explain.paths import leaf_blocks, one_tree
from gpuforest.explain.quantile_kernels import Members, new_members, new_scratch
from gpuforest.growing.bags import draw_bags, was_drawn

# interpolations, in the order of the kernel's numbers
WAYS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")
WALK_ALL = 4  # where fewer than one in this number of rows were drawn, these alone walk down a tree
SUM_BITS = 52  # weights of all trees together stay below 2**52, which float64 holds exactly
LEAST_BITS = 31  # a leaf weighs at least as much as it can have draws
TASK_ROWS = 1024  # of a task of a thread at most, so that threads end together
FEWEST_ROWS = 64  # of a task at least: its scratch takes some microseconds


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Training rows of a quantile forest."""

    codes: np.ndarray  # u8 or u16 [N, F], on the host
    y: np.ndarray  # f64[N, K]
    sampling: Sampling  # how bags were drawn
    judged: dict[int, np.ndarray] | None = None  # see `BinnedMatrix`; older files have none

    @cached_property
    def order(self) -> np.ndarray:
        """The rows in the order of their targets, i64[K, N]; equal ones by their number."""
        return np.argsort(self.y.T, axis=1, kind="stable")

    @cached_property
    def ascending(self) -> np.ndarray:
        """The targets in their order, f64[K, N]."""
        return np.take_along_axis(np.ascontiguousarray(self.y.T), self.order, axis=1)

    def members(self, forest: Forest, most: int | float | None, backend: Backend) -> Members:
        """See `leaf_members`. Those of the last call are kept for the next one."""
        kept_forest, kept_most, members = self.__dict__.get("_last", (None, None, None))
        if kept_forest is not forest or kept_most != most:
            members = leaf_members(forest, self, most, backend)
            self.__dict__["_last"] = (forest, most, members)
        return cast(Members, members)

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone."""
        return {name: getattr(self, name) for name in ("codes", "y", "sampling", "judged")}

    def judging(self, X: np.ndarray, rows: np.ndarray, edges: BinEdges) -> np.ndarray:
        """A table [n, F] with numbers by which these training rows i64[n] are judged out of bag;
        -1: no training row."""
        X, known = X.copy(), rows >= 0
        for f, column in (self.judged or {}).items():
            ends = edges.rounded[edges.offsets[f] : edges.offsets[f + 1]]  # each in the bin it ends
            code, table = column[rows[known]], np.append(ends, np.inf)
            missing = code == edges.missing_code
            X[known, f] = np.where(missing, np.nan, table[np.where(missing, 0, code)])
        return X


def leaf_members(
    forest: Forest, rows: TrainingRows, most: int | float | None, backend: Backend
) -> Members:
    """The members of all leaves, at most `most` draws a leaf, chosen by hash. A float is a fraction
    of the rows, rounded up; None: all. Without bootstrap it counts rows."""
    T, N = forest.n_trees, len(rows.y)
    if isinstance(most, float):
        most = int(np.ceil(most * N))
    first = np.empty(N, np.int32)  # the number of each row, by its first target
    first[rows.order[0]] = np.arange(N, dtype=np.int32)

    def of_tree(t: int) -> tuple[np.ndarray, np.ndarray]:
        bag, _, row, leaf = drawn_leaves(one_tree(forest, t), rows, t)
        count = bag[0, row]
        if most is not None:
            key = hashing.hash_at(hashing.tree_keys(np, forest.seed, t, t + 1), hashing.KEPT)
            drawn = bool(rows.sampling.n_draws) and not rows.sampling.multiplies
            row, leaf, count = _fewer_members(row, leaf, count, int(most), key, drawn)
        row = first[row]
        by_leaf = np.lexsort((row, leaf))
        size = int(forest.tree_offsets[t + 1] - forest.tree_offsets[t])
        return np.stack([row, count], axis=1)[by_leaf], np.bincount(leaf, minlength=size)

    parts = parallel_map(of_tree, range(T), backend.n_threads)
    row_count, sizes = (np.concatenate(part) for part in zip(*parts, strict=True))
    rank = np.empty(rows.order.shape, np.int32)
    np.put_along_axis(rank, first[rows.order], np.arange(N, dtype=np.int32)[None], axis=1)
    weight = 2 ** max(LEAST_BITS, SUM_BITS - T.bit_length())
    return new_members(sizes, row_count, rank, weight)


def drawn_leaves(
    part: Forest, rows: TrainingRows, first: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Bags i32[T, N] of trees from number `first` on; tree, row and leaf of each draw, i64[n]."""
    (N, _), T, backend = rows.codes.shape, part.n_trees, registry.get_host_backend()
    bags = draw_bags(rows.sampling, part.seed, first, first + T, backend)
    tree, row = np.divmod(np.flatnonzero(bags > 0), N)
    if WALK_ALL * len(row) > bags.size:
        return bags, tree, row, backend.apply(part, rows.codes)[row, tree]
    drawn = np.split(row, np.searchsorted(tree, np.arange(1, T)))
    leaves = [
        backend.apply(one_tree(part, t), rows.codes[row])[:, 0] for t, row in enumerate(drawn)
    ]
    return bags, tree, row, np.concatenate(leaves)


def _fewer_members(
    row: np.ndarray, leaf: np.ndarray, count: np.ndarray, most: int, key: np.ndarray, drawn: bool
) -> tuple[np.ndarray, ...]:
    """Members of a tree's leaves, at most `most` draws (rows, unless `drawn`) a leaf, by hash."""
    copies = count.astype(np.int64) if drawn else np.ones(len(row), np.int64)
    at = np.repeat(np.arange(len(row)), copies)
    copy = np.arange(len(at)) - np.repeat(np.cumsum(copies) - copies, copies)
    priority = hashing.hash_at(hashing.hash_at(key, row[at].astype(np.uint64)), copy.astype("u8"))
    order = np.lexsort((priority, leaf[at]))
    ordered = leaf[at][order]
    first = np.searchsorted(ordered, ordered, side="left")
    left = np.bincount(at[order[np.arange(len(order)) - first < most]], minlength=len(row))
    kept = left > 0
    return row[kept], leaf[kept], (left.astype(np.int32) if drawn else count)[kept]


def leaf_quantiles(
    members: Members, leaves: np.ndarray, y: np.ndarray, q: np.ndarray, how: int, n_threads: int
) -> np.ndarray:
    """Weighted quantiles f64[n, K, Q] of targets in leaves i64[n, T]; with MEAN their means."""
    out = np.empty((len(leaves), len(y), 1 if how == kernels.MEAN else len(q)))
    if how == kernels.INVERTED and not members.weight:
        q = q * (1 - 2.0**-50)  # q times a number of draws may have been rounded up

    def task(rows: slice) -> None:
        scratch = new_scratch(members.rank.shape[1])
        kernels.quantiles(members, leaves[rows], y, q, how, scratch, out[rows])

    parallel_map(task, blocks(len(out), 4 * n_threads, TASK_ROWS, FEWEST_ROWS), n_threads)
    return out


def weights_below(
    members: Members, leaves: np.ndarray, low: np.ndarray, high: np.ndarray, n_threads: int
) -> np.ndarray:
    """Weights of ranks below low and high i64[n, K], of all ranks, and draws: i64[n, K, 4]."""
    out = np.zeros((*low.shape, 5), np.int64)

    def task(rows: slice) -> None:
        scratch = new_scratch(members.rank.shape[1])
        kernels.weights_below(members, leaves[rows], low[rows], high[rows], scratch, out[rows])

    parallel_map(task, blocks(len(out), 4 * n_threads, TASK_ROWS, FEWEST_ROWS), n_threads)
    return out[..., :4]


@dataclass(frozen=True, eq=False)
class Distribution:
    """Targets of training rows in the leaves that rows reach; skipped : bool[N, T] or None"""

    forest: Forest
    rows: TrainingRows
    members: Members
    skipped: np.ndarray | None

    def quantiles(
        self, X: Array, q: np.ndarray | None, interpolation: str, backend: Backend,
        by_tree: bool = False, by_leaf: bool = True,
    ) -> np.ndarray:  # fmt: skip
        """Quantiles f64[N, K, Q], or the mean f64[N, K, 1] if `q` is None; `by_tree` averages those
        of each tree's leaf. `by_leaf` leaves weigh the same, else draws do."""
        y, how = self.rows.ascending, kernels.MEAN if q is None else WAYS.index(interpolation)
        levels = np.zeros(1) if q is None else q
        members = self.members if by_leaf else self.members._replace(weight=0)

        def of(leaves: np.ndarray) -> np.ndarray:
            return leaf_quantiles(members, leaves, y, levels, how, backend.n_threads)

        answer = partial(_mean_of_trees, of=of) if by_tree else of
        return np.concatenate([answer(leaves) for _, leaves in self._blocks(X, backend)])

    def ranks(
        self, X: Array, y: np.ndarray, kind: str, backend: Backend, by_tree: bool = False
    ) -> np.ndarray:
        """Ranks f64[N, K] of y f64[N, K] among the targets; NaN for a row without a leaf. `by_tree`
        averages the ranks in each tree's leaf."""
        columns = list(zip(self.rows.ascending, y.T, strict=True))
        ends = [
            np.stack([np.searchsorted(targets, values, side) for targets, values in columns], 1)
            for side in ("left", "right")
        ]

        def of(leaves: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
            weights = weights_below(self.members, leaves, low, high, backend.n_threads)
            below, upto, total, draws = np.moveaxis(weights, 2, 0)
            with np.errstate(invalid="ignore", divide="ignore"):
                strict, weak, step = below / total, upto / total, 1 / draws
                mean = (strict + weak) / 2
                rank = mean + (weak > strict) * step / 2  # half a draw more if it is among them
            return np.asarray({"weak": weak, "strict": strict, "mean": mean, "rank": rank}[kind])

        parts = []
        for rows, leaves in self._blocks(X, backend):
            low, high = (np.ascontiguousarray(end[rows]) for end in ends)
            answer = partial(of, low=low, high=high)
            parts.append(_mean_of_trees(leaves, answer) if by_tree else answer(leaves))
        return np.concatenate(parts)

    def proximity_counts(self, X: Array, backend: Backend) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each row the training rows in its leaves, ascending, and the draws of each there."""
        members, order = self.members._replace(weight=0), self.rows.order[0]
        scratch, counts, end = new_scratch(len(order)), [], np.zeros((1, 1), np.int64)
        for _, leaves in self._blocks(X, backend):
            for one in leaves[:, None]:
                found = np.zeros((1, 1, 5), np.int64)
                kernels.weights_below(members, one, end, end, scratch, found)
                n = found[0, 0, 4]
                row, draws = order[scratch.at[:n]], np.diff(scratch.upto[:n], prepend=0)
                ascending = np.argsort(row)
                counts.append((row[ascending], draws[ascending]))
        return counts

    def _blocks(self, X: Array, backend: Backend) -> Iterator[tuple[slice, np.ndarray]]:
        """Blocks of rows, and their leaves i64[n, T] as nodes of the forest; -1: skipped."""
        for rows, leaves in leaf_blocks(self.forest, X, backend):
            if self.skipped is not None:
                leaves[self.skipped[rows]] = -1
            yield rows, leaves


def _mean_of_trees(leaves: np.ndarray, of: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """The mean over the trees that count for a row of what `of` says of their leaves i64[n, 1]."""
    total: Any = 0.0
    for t in range(leaves.shape[1]):
        answer = of(np.ascontiguousarray(leaves[:, t : t + 1]))
        total = total + np.where(np.isnan(answer), 0.0, answer)
    n = (leaves >= 0).sum(axis=1).reshape(-1, *[1] * (total.ndim - 1))
    with np.errstate(invalid="ignore"):
        return np.asarray(total / n)


def in_bag(forest: Forest, sampling: Sampling) -> np.ndarray:
    """Which training rows each tree drew, bool[N, T]."""
    drawn = partial(was_drawn, sampling, forest.seed, backend=numpy.NumpyBackend())
    return np.stack([drawn(t, t + 1)[0] for t in range(forest.n_trees)], axis=1)
