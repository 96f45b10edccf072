"""SHAP values: what each feature adds to each prediction (Lundberg et al. 2020).

The definition and the algorithm are in kernels/shap/numpy.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.binning import bin_matrix
from gpuforest.kernels.shared.records import Points
from gpuforest.nodes import is_leaf, leaf_rows

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend
    from gpuforest.forest import Forest

Array = Any


@dataclass(frozen=True, eq=False)
class Explainer:
    """What SHAP values need of a forest, and of no row.

    cover : f64[M], the weight of the training rows in each node
    shape : i64[T, 2], the most features on a path of each tree, and its depth
    columns : i64[T, 2], the outputs to which tree t adds are columns[t, 0] .. columns[t, 1] - 1
    points : of each tree
    """

    forest: Forest
    cover: np.ndarray
    shape: np.ndarray
    columns: np.ndarray
    points: Points

    @classmethod
    def of(cls, forest: Forest, backend: Backend) -> Explainer:
        """
        Raises
        ------
        ValueError : a forest whose predictions SHAP values of trees do not add up to
        """
        refuse(forest)
        sums = forest.leaf_sums
        weight = sums.sum(axis=1) if forest.coding.is_classes else sums[:, 0]
        if weight.min() <= 0:
            raise ValueError(
                "the forest has leaves without training rows, of which no share is known"
            )
        cover, shape = backend.covers(forest, weight.astype(np.float64))
        return cls(forest, cover, shape, columns_of(forest), points_for(shape[:, 0]))

    def expected(self) -> np.ndarray:
        """The prediction with no feature known, f64[K]: the mean over the cover of each tree."""
        forest, begin = self.forest, self.forest.tree_offsets[:-1]
        leaf = is_leaf(forest.nodes)
        share = self.cover / np.repeat(self.cover[begin], np.diff(forest.tree_offsets)) * leaf
        rows = np.where(leaf, leaf_rows(forest.nodes), 0)
        means = np.stack(
            [np.add.reduceat(share * values[rows], begin) for values in forest.values.T], axis=1
        )
        found = forest.combined(means.sum(axis=0))
        return np.asarray(found if forest.baseline is None else found + forest.baseline)

    def values(self, X: Array, backend: Backend) -> np.ndarray:
        """The SHAP values of the rows of X [N, F], f64[N, F, K]."""
        return combined(self.forest, backend.shap_values(self, self._codes(X, backend)))

    def interactions(self, X: Array, backend: Backend) -> np.ndarray:
        """The SHAP interaction values of the rows of X [N, F], f64[N, F, F, K].

        They are symmetric, and add up over one of the features to the SHAP values.
        """
        found = combined(self.forest, backend.shap_interactions(self, self._codes(X, backend)))
        (N, _, K), F = found.shape, self.forest.edges.n_features
        found = found.reshape(N, F, F, K)
        own, f = np.einsum("nffk->nfk", found).copy(), np.arange(F)
        found = (found + found.transpose(0, 2, 1, 3)) / 2.0
        found[:, f, f] = 0.0
        found[:, f, f] = own - found.sum(axis=2)
        return np.asarray(found)

    def _codes(self, X: Array, backend: Backend) -> Array:
        return bin_matrix(X, self.forest.edges, backend).codes


def refuse(forest: Forest) -> None:
    """Raise ValueError for a forest that has no SHAP values here."""
    if forest.oblique:
        raise ValueError(
            "SHAP values are not defined for splits by combinations of features: train with "
            "feature_combinations=None, or use permutation importances"
        )
    if forest.combine == "median":
        raise ValueError(
            "the prediction is a median of trees, to which no SHAP values of trees add up: explain "
            "a RandomForestRegressor or HistGradientBoostingRegressor instead"
        )


def combined(forest: Forest, sums: np.ndarray) -> np.ndarray:
    """SHAP values of a forest f64[..., K] from their sums over its trees."""
    if forest.coding.is_classes:  # the shares of all classes add up to a constant
        sums[..., 0] = -sums[..., 1:].sum(axis=-1)
    return np.asarray(forest.combined(sums))


def columns_of(forest: Forest) -> np.ndarray:
    """The range of the outputs to which each tree adds, i64[T, 2]. The first class is left out: its
    values are minus the sum of the others'."""
    t, K = np.arange(forest.n_trees), forest.coding.n_values
    if forest.baseline is not None:  # boosted: a tree for each output in turn
        return np.stack([t % K, t % K + 1], axis=1)
    return np.stack([0 * t + int(forest.coding.is_classes), 0 * t + K], axis=1)


def points_for(widths: np.ndarray) -> Points:
    """Points between 0 and 1 for trees with so many features on a path, i64[T].

    Gauss-Legendre quadrature with n points is exact for polynomials of degree 2n - 1.
    """
    counts = np.maximum(1, -(-widths // 2))
    sizes = np.unique(counts)
    tables = [np.polynomial.legendre.leggauss(int(n)) for n in sizes]
    begin = np.concatenate([[0], np.cumsum(sizes)])
    return Points(
        begin[np.searchsorted(sizes, counts)],
        counts,
        np.concatenate([(x + 1.0) / 2.0 for x, _ in tables]),
        np.concatenate([w / 2.0 for _, w in tables]),
    )
