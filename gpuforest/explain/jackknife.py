"""Standard errors of a forest's predictions: the infinitesimal jackknife for bagging (Efron 2014),
with the correction for a finite number of trees (Wager, Hastie and Efron 2014).

    V = sum over training rows i of C_i^2 - v / T^2 * sum over trees t of d_t^2
    C_i = 1 / T * sum over trees t of N_ti d_t

N_ti is how often tree t drew row i, d_t the tree's prediction less the mean of all trees, and v the
sum over rows of the variance of N_ti, which is about the number of draws. The sum over rows needs
no row: it is d' G d / T^2, and G, the products of the trees' draws, is computed once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.backends.numpy import NumpyBackend
from gpuforest.engine.binning import encode_blocks
from gpuforest.engine.forest import Forest
from gpuforest.engine.sampling import Sampling, draw_bags
from gpuforest.explain.quantile_forest import WALKED_AT_ONCE, leaf_values_by_tree

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend

Array = Any

ROWS = 2**16  # of counts as float64 at once, which is what multiplies fast


def products(forest: Forest, sampling: Sampling) -> np.ndarray:
    """G, f64[T, T]: sums over rows of products of draws, each less its mean over all rows.

    Sums of integers, which float64 holds exactly; the means are subtracted at the end.
    """
    T, n = forest.n_trees, sampling.n_rows
    bags = draw_bags(sampling, forest.seed, 0, T, NumpyBackend())
    total = np.zeros((T, T))
    for i in range(0, n, ROWS):
        counts = bags[:, i : i + ROWS].astype(np.float64)
        total += counts @ counts.T
    return np.asarray(total - sampling.n_draws**2 / n)


def products_bytes(forest: Forest, sampling: Sampling) -> int:
    """The memory that `products` takes."""
    T, n = forest.n_trees, sampling.n_rows
    return 4 * T * n + 8 * T * min(n, ROWS) + 16 * T * T


def draws_variance(sampling: Sampling) -> float:
    """v: the sum over rows of the variance of their draws, of a multinomial distribution."""
    if sampling.weights is None:
        return sampling.n_draws * (1 - 1 / sampling.n_rows)
    share = sampling.weights / sampling.weights.sum(dtype=np.int64)
    return float(sampling.n_draws * (1 - (share**2).sum()))


def standard_errors(
    forest: Forest, sampling: Sampling, G: np.ndarray, X: Array, backend: Backend
) -> np.ndarray:
    """Standard errors f64[N, K] of predictions; 0 where the corrected variance is negative."""
    T, v = forest.n_trees, draws_variance(sampling)
    parts, step = [], max(1, WALKED_AT_ONCE // T)
    for begin, end, codes in encode_blocks(X, forest.edges, backend):
        for i in range(0, end - begin, step):
            trees = leaf_values_by_tree(forest, codes[i : i + step, ...], backend)
            d = np.moveaxis(trees - trees.mean(axis=1, keepdims=True), 2, 0)  # [K, n, T]
            variance = ((d @ G) * d).sum(axis=2) / T**2
            parts.append((variance - v / T**2 * (d * d).sum(axis=2)).T)
    return np.asarray(np.sqrt(np.maximum(np.concatenate(parts), 0.0)))
