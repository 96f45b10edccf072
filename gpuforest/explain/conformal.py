"""Calibrated predictions: how wide intervals and sets must be, from out-of-bag errors.

A training row is predicted by the trees that did not draw it, as a new row is by all, so the ranks
of its errors say how large those of new rows will be (split conformal prediction with out-of-bag
rows in place of rows held out: Johansson, Bostrom, Lofstrom and Linusson 2014).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpuforest.engine.forest import Forest

Array = Any

# Of the mean spread of the trees, added to each spread. On the housing and bicycle data none, a
# tenth, a quarter, a half and all of it gave mean widths of 1.35, 1.30, 1.29, 1.28, 1.30 and of
# 133, 123, 120, 120, 123
LEAST_SPREAD = 0.5


@dataclass(frozen=True, eq=False)
class Calibration:
    """
    scores : f64[K, n], ascending: what sets a row's true target apart from its prediction. Of
        numbers |y - prediction| over the spread of its trees; of classes one less the class's
        probability
    offset : f64[K], added to the spread of trees of each row; zero for classes
    """

    scores: np.ndarray
    offset: np.ndarray

    def limit(self, coverage: float) -> np.ndarray:
        """The score f64[K] that a new row does not exceed with this probability: the
        ceil((n + 1) coverage)-th of n; infinite if there are too few."""
        n = self.scores.shape[1]
        at = math.ceil((n + 1) * coverage - 1e-9)  # 0.9 * 10 is not above 9
        return np.full(len(self.scores), np.inf) if at > n else self.scores[:, at - 1]


def with_squares(forest: Forest) -> Forest:
    """The forest whose leaves have twice as many values: theirs, and the squares of their
    distances from the centre of the target."""
    values = forest.values
    squares = (values - forest.coding.centre) ** 2
    return replace(forest, leaf_values=np.concatenate([values, squares], axis=1), node_values=None)


def mean_and_spread(forest: Forest, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The means f64[n, K] of the trees, and the standard deviations among these, from predictions
    f64[n, 2 K] of `with_squares(forest)`."""
    mean, squares = np.split(found, 2, axis=1)
    variance = squares - (mean - forest.coding.centre) ** 2
    return mean, np.sqrt(np.maximum(variance, 0.0))


def calibrated(y: np.ndarray, mean: np.ndarray, spread: np.ndarray) -> Calibration:
    """The calibration of rows with the targets y f64[n, K]."""
    offset = LEAST_SPREAD * spread.mean(axis=0)
    width = spread + offset
    error = np.abs(y - mean)
    with np.errstate(divide="ignore", invalid="ignore"):  # trees that all agree
        scores = np.where(width > 0, error / width, np.where(error > 0, np.inf, 0.0))
    return Calibration(np.sort(scores.T, axis=1), offset)


def calibrated_classes(codes: list[np.ndarray], shares: list[np.ndarray]) -> Calibration:
    """The calibration of rows of these classes i64[n], whose probabilities are f64[n, C]; one of
    each an output."""
    own = [
        np.take_along_axis(p, c[:, None], axis=1)[:, 0] for c, p in zip(codes, shares, strict=True)
    ]
    return Calibration(np.sort(1 - np.stack(own), axis=1), np.zeros(len(codes)))


def intervals(
    calibration: Calibration, mean: np.ndarray, spread: np.ndarray, coverage: float
) -> np.ndarray:
    """Intervals f64[n, K, 2] around means f64[n, K]."""
    limit = calibration.limit(coverage)
    with np.errstate(invalid="ignore"):
        half = np.nan_to_num(limit * (spread + calibration.offset), nan=0.0, posinf=np.inf)
    return np.stack([mean - half, mean + half], axis=2)


def sets(limit: float, shares: np.ndarray) -> np.ndarray:
    """Which classes belong to the sets of rows, bool[n, C]: those not too unlikely, and always
    the first of the likeliest."""
    found = 1 - shares <= limit
    found[np.arange(len(shares)), shares.argmax(axis=1)] = True
    return np.asarray(found)
