"""SHAP values beside a background: features that are not known have the values of its rows.

The definition and the algorithm are in kernels/shap_background/numpy.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.binning import bin_matrix
from gpuforest.inspection.shap import columns_of, combined, refuse
from gpuforest.predict import predict

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend
    from gpuforest.forest import Forest

Array = Any


@dataclass(frozen=True, eq=False)
class BackgroundExplainer:
    """What SHAP values beside a background need of a forest and of the background.

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
        _, shape = backend.covers(forest, np.ones(len(forest.values)))
        codes = backend.asnumpy(bin_matrix(background, forest.edges, backend).codes)
        widest = int(shape[:, 0].max())
        if limit is not None and (needed := 8 * (widest + 1) ** 2) > limit:
            raise ValueError(
                f"SHAP values beside a background take {needed / 1e6:.3g} MB for paths of "
                f"{widest} features, and there are {limit / 1e6:.3g} MB: raise memory_limit, leave "
                "background out, or train with a lower max_depth"
            )
        return cls(forest, codes, shape, columns_of(forest), weights_for(widest))

    def values(self, X: Array, backend: Backend) -> np.ndarray:
        """The SHAP values of the rows of X [N, F], f64[N, F, K]."""
        codes = bin_matrix(X, self.forest.edges, backend).codes
        sums = backend.background_values(self, codes)
        return combined(self.forest, sums / len(self.codes))


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
