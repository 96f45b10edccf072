"""Interventional SHAP values, with a background data set: features that are not known have the
values of its rows. The algorithm is that of kernels/shap_background.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.common.parallel import blocks, parallel_map
from gpuforest.engine.predict import predict
from gpuforest.explain.shap import MOST_ROWS, columns_of, combined, covers, host_codes, refuse
from gpuforest.kernels.shap_background import numba

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend
    from gpuforest.engine.forest import Forest

Array = Any


@dataclass(frozen=True, eq=False)
class BackgroundExplainer:
    """What interventional SHAP values need of a forest and of the background.

    codes : u8 or u16 [Z, F], the background
    shape : i64[T, 2], the most features on a path of each tree, and its depth
    columns : i64[T, 2], the outputs to which tree t adds are columns[t, 0] .. columns[t, 1] - 1
    weights : f64[D, D], see `weights_for`
    """

    forest: Forest
    codes: np.ndarray
    shape: np.ndarray
    columns: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(
        cls, forest: Forest, background: Array, backend: Backend, limit: int | None = None
    ) -> BackgroundExplainer:
        """
        Parameters
        ----------
        background : [Z, F]
        limit : bytes that the weights may take; None: any

        Raises
        ------
        ValueError : a forest whose predictions SHAP values of trees do not add up to; the limit
            is too little
        """
        refuse(forest)
        _, shape = covers(forest, np.ones(len(forest.values)), backend.n_threads)
        codes = host_codes(background, forest, backend)
        widest = int(shape[:, 0].max())
        if limit is not None and (needed := 8 * (widest + 1) ** 2) > limit:
            raise ValueError(
                f"interventional SHAP values take {needed / 1e6:.3g} MB for paths of "
                f"{widest} features, and there are {limit / 1e6:.3g} MB: raise memory_limit, leave "
                "background out, or train with a lower max_depth"
            )
        return cls(forest, codes, shape, columns_of(forest), weights_for(widest))

    def values(self, X: Array, backend: Backend) -> np.ndarray:
        """The SHAP values of the rows of X [N, F], f64[N, F, K]."""
        forest, codes = self.forest, host_codes(X, self.forest, backend)
        N, F = codes.shape
        trees, sums = forest.walked(), np.zeros((N, F, forest.values.shape[1]))
        columns, background = (np.ascontiguousarray(c.T, np.uint16) for c in (codes, self.codes))
        depth, most_nodes = int(self.shape[:, 1].max()), int(np.diff(trees.offsets).max())

        def explain(rows: slice) -> None:
            work = numba.new_work(F, depth, most_nodes)
            numba.background_values(
                trees, forest.values, self.columns, self.weights, columns, background, sums,
                rows.start, rows.stop, work,
            )  # fmt: skip

        parallel_map(explain, blocks(N, backend.n_threads, MOST_ROWS), backend.n_threads)
        return combined(forest, sums / len(self.codes))


def expected(forest: Forest, background: Array, backend: Backend) -> np.ndarray:
    """The mean prediction of the background's rows [Z, F], f64[K]."""
    refuse(forest)
    found = backend.asnumpy(predict(forest, background, backend))
    return np.asarray(found.mean(axis=0))


def weights_for(most: int) -> np.ndarray:
    """(a - 1)! b! / (a + b)! for a and b up to `most`, f64[most + 1, most + 1]; 0 where a is 0."""
    weights = np.zeros((most + 1, most + 1))
    a = np.arange(1, most + 1)
    weights[1:, 0] = 1.0 / a
    for b in range(1, most + 1):
        weights[1:, b] = weights[1:, b - 1] * b / (a + b)
    return weights
