"""Quantile forests (Meinshausen 2006): which training rows a row shares leaves with, and the
distribution of their targets.

Kept are the codes and targets of the training rows, from which the members of all leaves follow:
bags are drawn again from the seed, and one walk down the trees finds the leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.backends.numpy import NumpyBackend
from gpuforest.binning import encode_blocks
from gpuforest.common import hashing
from gpuforest.common.parallel import parallel_map
from gpuforest.common.progress import report
from gpuforest.kernels.quantiles.members import Members, new_members
from gpuforest.nodes import is_leaf, leaf_rows
from gpuforest.sampling import Sampling, draw_bags

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend
    from gpuforest.forest import Forest

Array = Any

SUM_BITS = 52  # weights of all trees together stay below 2**52, which float64 holds exactly
LEAST_BITS = 31  # a leaf weighs at least as much as it can have draws
WALKED_AT_ONCE = 2**20  # leaves i64 of a block of rows and all trees: 8 MB


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
        """See `leaf_members`; found when they are first asked for."""
        known = self.__dict__.get("_known")
        if known is None or known[0] is not forest or known[1] != most:
            known = (forest, most, leaf_members(forest, self, most, backend))
            self.__dict__["_known"] = known
        found: Members = known[2]
        return found

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone."""
        return {"codes": self.codes, "y": self.y, "sampling": self.sampling}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def leaf_members(
    forest: Forest, rows: TrainingRows, most: int | float | None, backend: Backend
) -> Members:
    """The members of all leaves.

    Parameters
    ----------
    most : the most draws that a leaf keeps, chosen by hash: an int; as a float a fraction of the
        rows, rounded up; None: all. Without bootstrap it counts rows
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
    found, step = np.empty((N, T), np.int32), max(1, WALKED_AT_ONCE // T)
    for i in range(0, N, step):
        block = own = codes[i : i + step]
        if not backend.on_host:  # whose rows may be longer
            own = backend.new_codes(block.shape[0], block.shape[1], block.dtype)
            own[:, : block.shape[1]] = backend.asarray(np.ascontiguousarray(block))
        found[i : i + step] = backend.asnumpy(backend.apply(forest, own))
    return found


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
    kept = np.bincount(at[order[np.arange(len(order)) - first < most]], minlength=len(row))
    some = kept > 0
    return row[some], leaf[some], (kept.astype(np.int32) if drawn else count)[some]


class Distribution:
    """What is asked of the targets in the leaves that rows reach.

    Parameters
    ----------
    skipped : bool[N, T], the pairs of row and tree that are left out, or None
    """

    def __init__(
        self, forest: Forest, rows: TrainingRows, members: Members, skipped: np.ndarray | None
    ) -> None:
        self.forest, self.rows, self.members, self.skipped = forest, rows, members, skipped

    def quantiles(self, X: Array, q: np.ndarray, how: int, backend: Backend) -> np.ndarray:
        """Quantiles f64[N, K, Q], or with MEAN the mean f64[N, K, 1]; see kernels/quantiles."""
        y = self.rows.ascending
        parts = [
            backend.quantiles(self.members, leaves, y, q, how)
            for _, leaves in self._blocks(X, backend)
        ]
        return np.concatenate(parts)

    def ranks(self, X: Array, y: np.ndarray, kind: str, backend: Backend) -> np.ndarray:
        """The ranks f64[N, K] of y f64[N, K] among the targets; NaN for a row without a leaf."""
        known = self.rows.ascending
        ends = [
            np.stack([np.searchsorted(known[k], y[:, k], side) for k in range(len(known))], axis=1)
            for side in ("left", "right")
        ]
        parts = []
        for rows, leaves in self._blocks(X, backend):
            low, high = (np.ascontiguousarray(end[rows]) for end in ends)
            found = backend.weights_below(self.members, leaves, low, high)
            below, upto, total, draws = np.moveaxis(found, 2, 0)
            with np.errstate(invalid="ignore", divide="ignore"):
                parts.append(_rank(below / total, upto / total, 1 / draws, kind))
        return np.concatenate(parts)

    def _blocks(self, X: Array, backend: Backend) -> Any:
        """Blocks of rows, and their leaves i64[n, T] as nodes of the forest; -1: left out."""
        first, step = self.forest.tree_offsets[:-1], max(1, WALKED_AT_ONCE // self.forest.n_trees)
        for begin, end, codes in encode_blocks(X, self.forest.edges, backend):
            for i in range(begin, end, step):
                rows = slice(i, min(i + step, end))
                found = backend.apply(self.forest, codes[i - begin : rows.stop - begin, ...])
                leaves = backend.asnumpy(found) + first
                if self.skipped is not None:
                    leaves[self.skipped[rows]] = -1
                yield rows, leaves
            report(end, X.shape[0])


def _rank(below: np.ndarray, upto: np.ndarray, step: np.ndarray, kind: str) -> np.ndarray:
    """Ranks from the weight of lesser targets, that of targets not greater, and the mean weight
    of a draw."""
    if kind == "weak":
        return upto
    if kind == "strict":
        return below
    middle = (below + upto) / 2
    return middle if kind == "mean" else np.asarray(middle + (upto > below) * step / 2)


def encoded(X: Array, forest: Forest, backend: Backend) -> np.ndarray:
    """The codes [N, F] of X, on the host."""
    blocks = [backend.asnumpy(codes) for _, _, codes in encode_blocks(X, forest.edges, backend)]
    return np.concatenate(blocks)[:, : forest.edges.n_features]


def in_bag(forest: Forest, sampling: Sampling, rows: np.ndarray | None = None) -> np.ndarray:
    """Which training rows each tree drew, bool[n, T]; of all rows, or of i64[n], where -1 is a row
    that no tree drew."""
    found = [
        draw_bags(sampling, forest.seed, t, t + 1, NumpyBackend())[0] > 0
        for t in range(forest.n_trees)
    ]
    bags = np.stack(found, axis=1)
    return bags if rows is None else np.asarray(bags[rows] & (rows >= 0)[:, None])


def leaf_values_by_tree(forest: Forest, codes: Array, backend: Backend) -> np.ndarray:
    """What each tree predicts for each row, f64[n, T, K], on the host."""
    values = np.zeros((forest.n_nodes, forest.values.shape[1]))
    leaf = is_leaf(forest.nodes)
    values[leaf] = forest.values[leaf_rows(forest.nodes[leaf])]
    at = backend.asnumpy(backend.apply(forest, codes)) + forest.tree_offsets[:-1]
    return np.asarray(values[at])
