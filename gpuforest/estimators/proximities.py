"""The proximities of a fitted forest, and missing values filled by them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from gpuforest.backends.numpy import NumpyBackend
from gpuforest.data.arrays import to_host
from gpuforest.engine import predict as prediction
from gpuforest.engine.sampling import draw_bags
from gpuforest.explain.proximities import impute_step, nearest, proximity_matrix


def proximity(self: Any, X: Any, Y: Any = None, oob: bool = False) -> Any:
    """The share of trees in which two rows reach the same leaf.

    Only pairs that share some leaf take memory, 12 bytes each. The larger the leaves, the more
    pairs there are.

    Parameters
    ----------
    X : array-like or frame of shape (n_samples, n_features)
    Y : array-like or frame of shape (n_others, n_features); None: X
    oob : bool, default=False
        Of the training rows, count only the trees that drew neither row: those in which both
        are as new ones. Rows of a bag are nearer to each other and further from the rest.

    Returns
    -------
    float64 csr_array of shape (n_samples, n_others), from 0 to 1; no zeros are stored

    Raises
    ------
    ValueError
        oob=True with Y, without bags, with other data than in training, or of a `Bagging*`
        that was loaded from a file, which does not know its bags.

    References
    ----------
    L. Breiman, "Random forests", Machine Learning 45, 2001; L. Breiman and A. Cutler, "Manual
    on setting up, using, and understanding random forests V4.0", 2003.
    """
    leaves, out = _leaves(self, X), None
    if oob:
        if Y is not None:
            raise ValueError("oob=True is for the training rows among themselves: omit Y")
        out = _out_of_bag(self, len(leaves))
    return proximity_matrix(leaves, leaves if Y is None else _leaves(self, Y), out)


def neighbours(self: Any, X: Any, k: int = 5, Y: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """The k most similar of other rows, such as those of the training data, by proximity.

    Proximities are computed by blocks of rows, and only the highest are kept.

    Parameters
    ----------
    X : array-like or frame of shape (n_samples, n_features)
    k : int
    Y : array-like or frame of shape (n_others, n_features), the rows to look among; None: the
        other rows of X

    Returns
    -------
    proximities : float64 array of shape (n_samples, k), falling
    indices : int64 array of shape (n_samples, k), rows of Y; -1, with a proximity of 0, where
        fewer rows share a leaf
    """
    if k < 1:
        raise ValueError(f"k={k} neighbours are none: pass 1 or more")
    leaves = _leaves(self, X)
    return nearest(leaves, leaves if Y is None else _leaves(self, Y), k, same=Y is None)


def _leaves(self: Any, X: Any) -> np.ndarray:
    """The leaf of each row in each tree, i64[N, T], as numbers among the nodes of all trees."""
    leaves = to_host(self._walk(X, prediction.apply))
    return np.asarray(leaves + self.forest_.tree_offsets[:-1])


def _out_of_bag(self: Any, n_rows: int) -> np.ndarray:
    """Which trees did not draw a row, bool[N, T]."""
    if not hasattr(self, "_sampling_"):
        raise ValueError(
            "the bags are not known to Bagging* that were loaded, older files and converted "
            "forests: fit it again, the same random_state gives the same trees"
        )
    sampling = self._sampling_
    if not sampling.n_draws:
        raise ValueError("no row is out of bag without bags: fit with bootstrap=True")
    if n_rows != sampling.n_rows:
        raise ValueError(
            f"X has {n_rows} rows, but the forest was fitted to {sampling.n_rows}: pass the "
            "data that it was fitted to"
        )
    host, seed = NumpyBackend(), self.forest_.seed
    found = np.empty((n_rows, self.forest_.n_trees), bool)
    for t in range(found.shape[1]):
        found[:, t] = draw_bags(sampling, seed, t, t + 1, host)[0] == 0
    return found


def impute_by_proximity(forest: Any, X: Any, y: Any, *, max_iter: int = 5) -> np.ndarray:
    """Fill missing values by the known values of similar rows (Breiman and Cutler).

    Missing values are medians at first, or most frequent values. Then, `max_iter` times, the
    forest is fitted, and each missing value becomes the mean of the column's known values,
    weighted by proximity; of categorical features the value of the highest total proximity.

    Parameters
    ----------
    forest : RandomForest* or ExtraTrees*, which need not be fitted and is not changed
        Its `categorical_features`, a mask or numbers, are filled by votes.
    X : array-like of shape (n_samples, n_features), numbers, with NaN for missing values
    y : array-like of shape (n_samples,), the target
    max_iter : int

    Returns
    -------
    float64 array of shape (n_samples, n_features), without NaN but in columns of nothing else
    """
    X = np.asarray(X, np.float64)
    mask, wanted = np.zeros(X.shape[1], bool), forest.categorical_features
    if wanted is not None and not isinstance(wanted, str):
        mask[np.asarray(wanted)] = True
    filled = X.copy()
    for f in range(X.shape[1]):
        known = X[~np.isnan(X[:, f]), f]
        if len(known):
            values, counts = np.unique(known, return_counts=True)
            start = values[counts.argmax()] if mask[f] else np.median(known)
            filled[np.isnan(X[:, f]), f] = start
    for _ in range(max_iter if np.isnan(X).any() else 0):
        near = clone(forest).fit(filled, y).proximity(filled)
        filled = impute_step(near, X, filled, mask)
    return np.asarray(filled)
