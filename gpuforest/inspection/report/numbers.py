"""Scores and residuals of predicted numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuforest.binning import draw_rows
from gpuforest.inspection.report.intervals import SEED, Score, bootstrapped, mean

MOST_POINTS = 400  # rows that a picture shows
BANDS = 10  # of predictions, each of as many rows
LESS = frozenset(("mean absolute error", "root mean squared error"))


@dataclass(frozen=True, eq=False)
class NumberResults:
    """How well numbers are predicted.

    points : f64[2, n], predictions and residuals (target - prediction) of some rows
    quantiles : f64[7], of the residuals of all rows: at 0, 0.05, 0.25, 0.5, 0.75, 0.95 and 1
    residuals : f64[N]
    bands : f64[4, b], of rows in the order of their predictions: the mean prediction, the mean
        target, and an interval of it by its standard error
    """

    scores: list[Score]
    points: np.ndarray
    quantiles: np.ndarray
    residuals: np.ndarray
    bands: np.ndarray


QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def number_results(y: np.ndarray, found: np.ndarray) -> NumberResults:
    """The results of predictions f64[N] of the targets f64[N]."""
    n, residuals = len(y), y - found
    rows = np.arange(n) if n <= MOST_POINTS else draw_rows(SEED, n, MOST_POINTS)
    return NumberResults(
        number_scores(y, found),
        np.stack([found[rows], residuals[rows]]),
        np.quantile(residuals, QUANTILES),
        residuals,
        _bands(y, found),
    )


def number_scores(y: np.ndarray, found: np.ndarray) -> list[Score]:
    """R², mean absolute and root mean squared error of predictions f64[N]."""
    unit = float(np.abs(y).max()) or 1.0  # so that no square is too large or too small
    y, found = y / unit, found / unit
    error, square = np.abs(y - found), (y - found) ** 2

    def r2(w: np.ndarray) -> float:
        spread = np.sum(w * (y - mean(y, w)) ** 2)
        return float(1 - np.sum(w * square) / spread) if spread > 0 else np.nan

    statistics = {
        "R²": r2,
        "mean absolute error": lambda w: unit * mean(error, w),
        "root mean squared error": lambda w: unit * float(np.sqrt(mean(square, w))),
    }
    return bootstrapped(statistics, len(y), LESS)


def _bands(y: np.ndarray, found: np.ndarray) -> np.ndarray:
    """See `NumberResults`; fewer bands of few rows."""
    order = np.argsort(found, kind="stable")
    parts = np.array_split(order, max(1, min(BANDS, len(y) // 5)))
    mean = np.array([[found[p].mean(), y[p].mean()] for p in parts]).T
    unit = float(np.abs(y).max()) or 1.0
    error = unit * np.array([(y[p] / unit).std() / np.sqrt(len(p)) for p in parts])
    return np.stack([*mean, mean[1] - 1.96 * error, mean[1] + 1.96 * error])
