"""SHAP values on a CUDA device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.backends.cuda_kernels import codes_for
from gpuforest.backends.cuda_traverse import CudaTraverse, traverse_macros
from gpuforest.kernels.shared import structs
from gpuforest.kernels.shared.constants import THREADS

if TYPE_CHECKING:
    from gpuforest.inspection.shap import Explainer

Array = Any

MOST_ROWS = 1024  # of a launch
MOST_RESIDENT = 2048  # threads of a multiprocessor


class CudaShap(CudaTraverse):
    """Path-dependent SHAP values; those of pairs, and those beside a background, are the CPU's."""

    def shap_values(self, explainer: Explainer, codes: Array) -> np.ndarray:
        """Points are divided among launches so that what they find fits half of the budget."""
        xp, forest, N = self.xp, explainer.forest, codes.shape[0]
        F, K = forest.edges.n_features, forest.coding.n_values
        nodes, offsets, values, set_at, sets, _ = self.forest_here(forest)
        trees = structs.Trees(nodes, offsets, set_at, sets, None, forest.n_trees)
        cover = self.asarray(explainer.cover)
        most = int(explainer.points.count.max())
        n = max(1, min(N, MOST_ROWS, self.memory_budget // (16 * F * most)))
        room = max(most, self.memory_budget // (16 * F * n))
        out = self.zeros((N, F, K), xp.float64)
        found = self.empty((min(room, n_points(explainer)), F, n), xp.float64)
        paths, threads = self._paths(found.shape[0] * n, F, int(explainer.shape[:, 1].max()))
        macros = traverse_macros(forest, codes)
        macros.pop("SUMS")
        for points in points_of(explainer, room):
            tree, column, at, weight, is_first = map(self.asarray, points)
            own = structs.Points(tree, column, at, weight, is_first, len(points[0]))
            for first in range(0, N, n):
                here = min(n, N - first)
                arguments: tuple[Any, ...] = (
                    trees, cover, values, K, own, codes_for(forest.edges, codes), first, here,
                    paths, found,
                )  # fmt: skip
                self.launch("shap", "shap_values", (threads // THREADS,), arguments, macros=macros)
                arguments = own, found, F, K, first, here, out
                grid = (self.blocks(F * here, THREADS),)
                self.launch("shap", "add_points", grid, arguments, macros=macros)
        return self.asnumpy(out)

    def _paths(self, items: int, F: int, depth: int) -> tuple[structs.Paths, int]:
        """Scratch for threads that share so many walks, and the number of threads."""
        xp, levels = self.xp, depth + 1
        each = 38 * levels + 9 * F  # bytes
        most = min(self.n_processors * MOST_RESIDENT, self.memory_budget // (4 * each))
        threads = max(1, min(most // THREADS, -(-items // THREADS))) * THREADS
        i8, f64 = xp.int8, xp.float64
        dtypes = [f64, f64, f64, f64, xp.int32, i8, i8, f64, xp.bool]
        sizes = [levels] * 7 + [F] * 2
        paths = structs.Paths(
            *(self.empty((n, threads), dtype) for n, dtype in zip(sizes, dtypes, strict=True))
        )
        return paths, threads


def n_points(explainer: Explainer) -> int:
    """The number of points of all trees and outputs."""
    columns = explainer.columns
    return int((explainer.points.count * (columns[:, 1] - columns[:, 0])).sum())


def points_of(explainer: Explainer, most: int) -> Iterator[tuple[np.ndarray, ...]]:
    """Points of trees in their order, and of outputs in theirs: tree, output, where, weight, and
    whether it is the first of these; at most so many at once, but for one tree and output."""
    points, columns = explainer.points, explainer.columns
    outputs = columns[:, 1] - columns[:, 0]
    tree = np.repeat(np.arange(len(columns)), outputs)  # of each group of points
    column = np.concatenate([np.arange(begin, end) for begin, end in columns])
    counts = points.count[tree]
    group, begin, done = 0, np.concatenate([[0], np.cumsum(counts)]), 0
    while group < len(tree):
        end = max(group + 1, int(np.searchsorted(begin, done + most, side="right")) - 1)
        own, size = slice(group, end), counts[group:end]
        place = np.arange(begin[end] - begin[group]) - np.repeat(begin[own] - begin[group], size)
        at = np.repeat(points.first[tree[own]], size) + place
        yield (
            np.repeat(tree[own], size).astype(np.int32),
            np.repeat(column[own], size).astype(np.int32),
            points.at[at],
            points.weight[at],
            place == 0,
        )
        group, done = end, int(begin[end])
