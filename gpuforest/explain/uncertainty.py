"""How sure a forest is: calibrated intervals and sets of classes, and standard errors.

How wide intervals and sets must be follows from out-of-bag errors. A training row is predicted by
the trees that did not draw it, as a new row is by all, so the ranks of its errors say how large
those of new rows will be (split conformal prediction with out-of-bag rows in place of rows held
out: Johansson, Bostrom, Lofstrom and Linusson 2014).

Standard errors are those of the infinitesimal jackknife for bagging (Efron 2014), with the
correction for a finite number of trees (Wager, Hastie and Efron 2014).

    V = sum over training rows i of C_i^2 - v / T^2 * sum over trees t of d_t^2
    C_i = 1 / T * sum over trees t of N_ti d_t

N_ti is how often tree t drew row i, d_t the tree's prediction less the mean of all trees, and v the
sum over rows of the variance of N_ti, which is about the number of draws. Where groups are drawn, i
stands for a group. The sum over rows needs no row: it is d' G d / T^2, and G, the products of the
trees' draws, is computed once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from gpuforest.backends import base, numpy
from gpuforest.common.dtypes import Array
from gpuforest.core import nodes, rules
from gpuforest.core.forest import Forest
from gpuforest.explain.paths import leaf_blocks
from gpuforest.growing.bags import draw_bags

# Of the mean spread of the trees, added to each spread. On the housing and bicycle data none, a
# tenth, a quarter, a half and all of it gave mean widths of 1.35, 1.30, 1.29, 1.28, 1.30 and of
# 133, 123, 120, 120, 123
LEAST_SPREAD = 0.5
ROWS = 2**16  # of counts as float64 at once, which is what multiplies fast


@dataclass(frozen=True, eq=False)
class Calibration:
    """How wide intervals and sets of classes must be."""

    # f64[K, n], ascending: |y - prediction| / spread of trees; of classes 1 - probability
    scores: np.ndarray
    offset: np.ndarray  # f64[K], added to the spread of trees of each row; zero for classes

    def limit(self, coverage: float) -> np.ndarray:
        """The ceil((n + 1) coverage)-th score f64[K], which a new row does not exceed with
        this probability; inf for few n."""
        n = self.scores.shape[1]
        at = math.ceil((n + 1) * coverage - 1e-9)  # 0.9 * 10 is not above 9
        return np.full(len(self.scores), np.inf) if at > n else self.scores[:, at - 1]


def with_squares(forest: Forest) -> Forest:
    """The forest with leaf values and their squared distances from the target's centre."""
    values = forest.values
    squares = (values - forest.coding.centre) ** 2
    return replace(forest, leaf_values=np.concatenate([values, squares], axis=1), node_values=None)


def mean_and_spread(forest: Forest, predictions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations f64[n, K] over trees, from `with_squares` predictions."""
    mean, squares = np.split(predictions, 2, axis=1)
    return mean, np.sqrt(np.maximum(squares - (mean - forest.coding.centre) ** 2, 0.0))


def calibrated(y: np.ndarray, mean: np.ndarray, spread: np.ndarray) -> Calibration:
    """The calibration of rows with the targets y f64[n, K]."""
    offset = LEAST_SPREAD * spread.mean(axis=0)
    width = spread + offset
    error = np.abs(y - mean)
    with np.errstate(divide="ignore", invalid="ignore"):  # trees that all agree
        scores = np.where(width > 0, error / width, np.where(error > 0, np.inf, 0.0))
    return Calibration(np.sort(scores.T, axis=1), offset)


def calibrated_classes(codes: list[np.ndarray], shares: list[np.ndarray]) -> Calibration:
    """Calibration by class codes i64[n] and probabilities f64[n, C], one pair for each output."""
    of_truth = [p[np.arange(len(c)), c] for c, p in zip(codes, shares, strict=True)]
    return Calibration(np.sort(1 - np.stack(of_truth), axis=1), np.zeros(len(codes)))


def intervals(
    calibration: Calibration, mean: np.ndarray, spread: np.ndarray, coverage: float
) -> np.ndarray:
    """Intervals f64[n, K, 2] around means f64[n, K]."""
    limit = calibration.limit(coverage)
    with np.errstate(invalid="ignore"):
        half = np.nan_to_num(limit * (spread + calibration.offset), nan=0.0, posinf=np.inf)
    return np.stack([mean - half, mean + half], axis=2)


def sets(limit: float, shares: np.ndarray) -> np.ndarray:
    """Sets of classes bool[n, C]: those likely enough, and always the first of the likeliest."""
    members = 1 - shares <= limit
    members[np.arange(len(shares)), shares.argmax(axis=1)] = True
    return np.asarray(members)


def products(forest: Forest, sampling: rules.Sampling) -> np.ndarray:
    """G, f64[T, T]: sums over rows of products of draws less their means, which are subtracted
    at the end from exact sums."""
    sampling = sampling.units
    T, n = forest.n_trees, sampling.n_rows
    bags = draw_bags(sampling, forest.seed, 0, T, numpy.NumpyBackend())
    total = np.zeros((T, T))
    for i in range(0, n, ROWS):
        counts = bags[:, i : i + ROWS].astype(np.float64)
        total += counts @ counts.T
    return np.asarray(total - sampling.n_draws**2 / n)


def products_bytes(forest: Forest, sampling: rules.Sampling) -> int:
    """The memory that `products` takes."""
    T, n = forest.n_trees, sampling.units.n_rows
    return 4 * T * n + 8 * T * min(n, ROWS) + 16 * T * T


def standard_errors(
    forest: Forest, sampling: rules.Sampling, G: np.ndarray, X: Array, backend: base.Backend
) -> np.ndarray:
    """Standard errors f64[N, K] of predictions; 0 where the corrected variance is negative."""
    T, units, predictions, parts = forest.n_trees, sampling.units, node_predictions(forest), []
    weights = np.ones(units.n_rows, np.int64) if units.weights is None else units.weights
    share = weights / weights.sum(dtype=np.int64)
    v = units.n_draws * (1 - (share**2).sum())  # draws of a row have a multinomial distribution
    for _, leaves in leaf_blocks(forest, X, backend):
        trees = predictions[leaves]
        d = np.moveaxis(trees - trees.mean(axis=1, keepdims=True), 2, 0)  # [K, n, T]
        variance = ((d @ G) * d).sum(axis=2) / T**2
        parts.append((variance - v / T**2 * (d * d).sum(axis=2)).T)
    return np.asarray(np.sqrt(np.maximum(np.concatenate(parts), 0.0)))


def node_predictions(forest: Forest) -> np.ndarray:
    """What each leaf predicts, f64[M, K]; zero for other nodes."""
    values, leaf = np.zeros((forest.n_nodes, forest.values.shape[1])), nodes.is_leaf(forest.nodes)
    values[leaf] = forest.values[nodes.leaf_rows(forest.nodes[leaf])]
    return values
