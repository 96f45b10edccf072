"""SHAP values on the CPU: how threads share the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.backends.numpy import NumpyBackend
from gpuforest.common.parallel import parallel_map
from gpuforest.kernels.shap.edges import new_work
from gpuforest.kernels.shap.numba import covers, shap_interactions, shap_values
from gpuforest.kernels.shap.pairs import new_pairs
from gpuforest.kernels.shap_background.numba import background_values
from gpuforest.kernels.shap_background.numba import new_work as background_work

if TYPE_CHECKING:
    from gpuforest.forest import Forest
    from gpuforest.inspection.shap import Explainer
    from gpuforest.inspection.shap_background import BackgroundExplainer

Array = Any

MOST_ROWS = 256  # rows of a task: some seconds of work, which no interrupt can end


class ShapOnCpu(NumpyBackend):
    """SHAP values by compiled kernels; the rest of the backend is in numba.py."""

    def covers(self, forest: Forest, leaf_cover: Array) -> tuple[Array, Array]:
        M, F = forest.n_nodes, forest.edges.n_features
        cover, parent = np.empty(M), np.empty(M, np.int64)
        shape = np.empty((forest.n_trees, 2), np.int64)

        def part(t: slice) -> None:
            trees = forest.walked(range(t.start, t.stop))
            covers(trees, leaf_cover, cover, shape[t], parent, np.zeros(F, np.int64))

        parallel_map(part, blocks(forest.n_trees, self.n_threads, forest.n_trees), self.n_threads)
        return cover, shape

    def shap_values(self, e: Explainer, codes: Array) -> Array:
        return self._explained(shap_values, codes.shape[1], e, codes)

    def shap_interactions(self, e: Explainer, codes: Array) -> Array:
        F, count = codes.shape[1], int(e.points.count.max())

        def kernel(*arguments: Any) -> None:
            shap_interactions(*arguments, new_pairs(F, count))

        return self._explained(kernel, F * F, e, codes)

    def _explained(
        self, kernel: Callable[..., None], width: int, e: Explainer, codes: Array
    ) -> Array:
        """What a kernel adds for all rows, f64[N, width, K]."""
        (N, F), trees, values = codes.shape, e.forest.walked(), e.forest.values
        out = np.zeros((N, width, values.shape[1]))
        lines = np.ascontiguousarray(codes.T, np.uint16)
        depth, count = int(e.shape[:, 1].max()), int(e.points.count.max())

        def part(rows: slice) -> None:
            work, (begin, end) = new_work(F, depth, count), (rows.start, rows.stop)
            kernel(trees, e.cover, values, e.columns, e.points, lines, out, begin, end, work)

        parallel_map(part, blocks(N, self.n_threads, MOST_ROWS), self.n_threads)
        return out

    def background_values(self, e: BackgroundExplainer, codes: Array) -> Array:
        (N, F), trees, values = codes.shape, e.forest.walked(), e.forest.values
        out = np.zeros((N, F, values.shape[1]))
        lines, background = (np.ascontiguousarray(rows.T, np.uint16) for rows in (codes, e.codes))
        depth, most_nodes = int(e.shape[:, 1].max()), int(np.diff(trees.offsets).max())

        def part(rows: slice) -> None:
            work, (begin, end) = background_work(F, depth, most_nodes), (rows.start, rows.stop)
            background_values(
                trees, values, e.columns, e.weights, lines, background, out, begin, end, work
            )

        parallel_map(part, blocks(N, self.n_threads, MOST_ROWS), self.n_threads)
        return out


def blocks(n: int, n_threads: int, most: int) -> list[slice]:
    """Blocks of at most `most` of n things, for the threads."""
    size = max(1, min(most, -(-n // n_threads)))
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]
