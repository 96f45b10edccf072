"""Scores of predictions with intervals that hold them in 95 of 100 cases, and curves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn import metrics

from gpuforest.common import hashing
from gpuforest.engine.binning import draw_rows
from gpuforest.tools.report.rows import SEED, Labels

Z = 1.959963984540054  # of the normal distribution, 95 % within
MOST_DRAWS, FEWEST, MOST = 10_000_000, 50, 500  # draws in all, and samples of a bootstrap
MOST_CURVES = 4  # classes whose curves are drawn
MOST_RANKED = 10  # classes up to which the ROC AUC is computed
BINS = 10  # of a calibration curve
MOST_POINTS, MOST_RESIDUALS = 150, 400  # of a curve, and rows, that a picture can show
BANDS = 10  # of predictions, each of as many rows
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
LESS = frozenset(("log loss", "Brier score", "mean absolute error", "root mean squared error"))
Statistic = Callable[[np.ndarray], float]  # of weights f64[N] of the rows


@dataclass(frozen=True)
class Score:
    """A score with its interval, if it has one, and how that was made: "Wilson" or "bootstrap"."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    how: str = ""

    @property
    def less(self) -> bool:
        """Whether less is better."""
        return self.name in LESS


def wilson(right: float, n: float) -> tuple[float, float]:
    """The interval of a share of n rows, of which so many are right (Wilson 1927)."""
    if n <= 0:
        return 0.0, 1.0
    share, extra = right / n, Z * Z / n
    middle = (share + extra / 2) / (1 + extra)
    half = Z * np.sqrt(share * (1 - share) / n + extra / (4 * n)) / (1 + extra)
    return max(0.0, float(middle - half)), min(1.0, float(middle + half))


def mean(values: np.ndarray, weights: np.ndarray) -> float:
    """The mean of values f64[N] of rows of these weights."""
    return float(np.sum(values * weights) / weights.sum())  # BLAS would add in an order of its own


def n_samples(n: int) -> int:
    """Samples of a bootstrap of n rows."""
    return int(np.clip(MOST_DRAWS // max(n, 1), FEWEST, MOST))


def samples(n: int) -> Iterator[np.ndarray]:
    """How often each of n rows is drawn into each sample of n rows, f64[n]: by the hash, so that
    the same rows have the same intervals."""
    seed, at = np.full(1, SEED, np.uint64), np.arange(n, dtype=np.uint64)
    for i in range(n_samples(n)):
        drawn = hashing.hash_at(hashing.hash_at(seed, i), at) % np.uint64(n)
        yield np.bincount(drawn.astype(np.int64), minlength=n).astype(np.float64)


def bootstrapped(statistics: dict[str, Statistic], n: int) -> list[Score]:
    """Scores of n rows, each with the middle 95 % of what samples of the rows give."""
    values = {name: statistic(np.ones(n)) for name, statistic in statistics.items()}
    drawn: dict[str, list[float]] = {name: [] for name in statistics}
    if n > 1:
        for weights in samples(n):
            for name, statistic in statistics.items():
                drawn[name].append(statistic(weights))
    scores = []
    for name, value in values.items():
        finite = np.array(drawn[name])
        finite = finite[np.isfinite(finite)]
        score = Score(name, value)
        if len(finite) and np.isfinite(value):
            low, high = np.percentile(finite, [2.5, 97.5]).tolist()
            score = Score(name, value, low, high, "bootstrap")
        scores.append(score)
    return scores


@dataclass(frozen=True, eq=False)
class Curve:
    """The curves of one class against all others.

    positive, n : rows of the class, and all
    roc : f64[2, n], false and true positive rates; precision : f64[2, m], recall and precision
    calibration : f64[5, b], mean probability, share of the class, its interval, and the rows of
        each bin that has some
    """

    name: object
    positive: int
    n: int
    auc: float
    average_precision: float
    roc: np.ndarray
    precision: np.ndarray
    calibration: np.ndarray

    @property
    def calibration_error(self) -> float:
        """The mean distance of the calibration from the diagonal, over the rows."""
        mean, share, *_, n = self.calibration
        return float((np.abs(mean - share) * n).sum() / n.sum())


@dataclass(frozen=True, eq=False)
class ClassResults:
    """How well classes are predicted: i64[L, L] rows of each class (first axis) that were predicted
    as each, and the curves of the classes of most rows."""

    labels: Labels
    scores: list[Score]
    confusion: np.ndarray
    curves: list[Curve]


def class_results(labels: Labels, proba: np.ndarray) -> ClassResults:
    """The results of probabilities f64[N, C], in the order of the model's classes."""
    y, n, L = labels.codes, len(labels.codes), len(labels.names)
    predicted = labels.known[proba.argmax(axis=1)]
    confusion = np.bincount(y * L + predicted, minlength=L * L).reshape(L, L)
    right, most = int(confusion.trace()), int(np.bincount(y).max())
    scores = [
        Score("accuracy", right / n, *wilson(right, n), "Wilson"),
        *bootstrapped(_statistics(labels, proba, predicted), n),
        Score("accuracy of always the most frequent class", most / n),
    ]
    drawn = [_curve(labels, proba, k) for k in _shown(labels)]
    return ClassResults(labels, scores, confusion, [c for c in drawn if c is not None])


def _statistics(labels: Labels, proba: np.ndarray, predicted: np.ndarray) -> dict[str, Statistic]:
    """Scores as functions of the rows' weights."""
    y, C = labels.codes, len(labels.known)
    statistics: dict[str, Statistic] = {"balanced accuracy": partial(balanced, y, y == predicted)}
    if len(np.unique(y)) > 1 and 2 <= C <= MOST_RANKED:
        which = [1] if C == 2 else range(C)
        ranked = [
            (np.unique(proba[:, k], return_inverse=True)[1], y == labels.known[k]) for k in which
        ]
        name = "ROC AUC" if C == 2 else "ROC AUC, mean of one class against the others"
        statistics[name] = partial(_mean_auc, ranked)
    if not len(labels.unknown) and C > 1:
        of_truth = proba[np.arange(len(y)), np.argsort(labels.known)[y]]
        least = np.finfo(proba.dtype).eps  # as scikit-learn's log_loss
        losses = -np.log(np.clip(of_truth, least, 1 - least))
        statistics["log loss"] = partial(mean, losses)
        squares = (proba**2).sum(axis=1) - 2 * of_truth + 1
        statistics["Brier score"] = partial(mean, squares / (2 if C == 2 else 1))
    return statistics


def balanced(y: np.ndarray, right: np.ndarray, weights: np.ndarray) -> float:
    """The mean over the classes of rows with weights of the share of these that are right."""
    total = np.bincount(y, weights)
    good = np.bincount(y, weights * right, minlength=len(total))
    return float(np.mean(good[total > 0] / total[total > 0]))


def _auc(tie: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> float:
    """The area under the ROC curve, which is the chance that a positive row has the higher
    probability, of which equal ones have a number; NaN without rows of both."""
    n = int(tie.max()) + 1
    good, bad = (np.bincount(tie, weights * of, n) for of in (positive, ~positive))
    pairs = good.sum() * bad.sum()
    return float(np.sum(good * (np.cumsum(bad) - bad / 2)) / pairs) if pairs else np.nan


def _mean_auc(ranked: list[tuple[np.ndarray, np.ndarray]], weights: np.ndarray) -> float:
    """The mean over the classes that have rows and are not alone; NaN if there is no such class."""
    areas = [area for pair in ranked if not np.isnan(area := _auc(*pair, weights))]
    return float(np.mean(areas)) if areas else np.nan


def _shown(labels: Labels) -> list[int]:
    """The numbers of the classes whose curves are drawn: of two, the second."""
    if len(labels.known) == 2:
        return [1]
    counts = np.bincount(labels.codes, minlength=len(labels.names))[labels.known]
    order = np.argsort(-counts, kind="stable")[:MOST_CURVES]
    return [int(k) for k in np.sort(order) if counts[k]]


def _curve(labels: Labels, proba: np.ndarray, k: int) -> Curve | None:
    """The curves of the class k; None unless both the class and others occur."""
    truth, score = labels.codes == labels.known[k], proba[:, k]
    if truth.all() or not truth.any():
        return None
    fpr, tpr, _ = metrics.roc_curve(truth, score)
    precision, recall, _ = metrics.precision_recall_curve(truth, score)
    return Curve(
        labels.names[labels.known[k]],
        int(truth.sum()),
        len(truth),
        float(metrics.roc_auc_score(truth, score)),
        float(metrics.average_precision_score(truth, score)),
        _thinned(np.stack([fpr, tpr])),
        _thinned(np.stack([recall, precision])[:, ::-1]),
        _calibration(truth, score),
    )


def _thinned(points: np.ndarray) -> np.ndarray:
    """Some of many points, evenly along the curve, both ends among them."""
    if points.shape[1] <= MOST_POINTS:
        return points
    way = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(points)).sum(axis=0))])
    at = np.searchsorted(way, np.linspace(0, way[-1], MOST_POINTS))
    return points[:, np.unique(np.minimum(at, points.shape[1] - 1))]


def _calibration(truth: np.ndarray, score: np.ndarray) -> np.ndarray:
    """Of ten bins of equal width, those with rows: see `Curve`."""
    bin = np.minimum((score * BINS).astype(np.int64), BINS - 1)
    filled = np.unique(bin)
    n, sums, good = (np.bincount(bin, v, BINS)[filled] for v in (None, score, truth))
    ends = np.array([wilson(*pair) for pair in zip(good, n, strict=True)]).T
    return np.stack([sums / n, good / n, *ends, n])


@dataclass(frozen=True, eq=False)
class NumberResults:
    """How well numbers are predicted.

    points : f64[2, n], predictions and residuals (target - prediction) of some rows
    quantiles : f64[7], of the residuals of all rows at `QUANTILES`
    bands : f64[4, b], of rows in the order of their predictions: the mean prediction, the mean
        target, and an interval of it by its standard error
    """

    scores: list[Score]
    points: np.ndarray
    quantiles: np.ndarray
    residuals: np.ndarray
    bands: np.ndarray


def number_results(y: np.ndarray, predicted: np.ndarray) -> NumberResults:
    """The results of predictions f64[N] of the targets f64[N]."""
    n, residuals = len(y), y - predicted
    rows = np.arange(n) if n <= MOST_RESIDUALS else draw_rows(SEED, n, MOST_RESIDUALS)
    return NumberResults(
        number_scores(y, predicted),
        np.stack([predicted[rows], residuals[rows]]),
        np.quantile(residuals, QUANTILES),
        residuals,
        _bands(y, predicted),
    )


def number_scores(y: np.ndarray, predicted: np.ndarray) -> list[Score]:
    """R², mean absolute and root mean squared error of predictions f64[N]."""
    unit = float(np.abs(y).max()) or 1.0  # so that no square is too large or too small
    y, predicted = y / unit, predicted / unit
    error, square = np.abs(y - predicted), (y - predicted) ** 2

    def r2(w: np.ndarray) -> float:
        spread = np.sum(w * (y - mean(y, w)) ** 2)
        return float(1 - np.sum(w * square) / spread) if spread > 0 else np.nan

    statistics = {
        "R²": r2,
        "mean absolute error": lambda w: unit * mean(error, w),
        "root mean squared error": lambda w: unit * float(np.sqrt(mean(square, w))),
    }
    return bootstrapped(statistics, len(y))


def _bands(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """See `NumberResults`; fewer bands of few rows."""
    order = np.argsort(predicted, kind="stable")
    parts = np.array_split(order, max(1, min(BANDS, len(y) // 5)))
    mean = np.array([[predicted[p].mean(), y[p].mean()] for p in parts]).T
    unit = float(np.abs(y).max()) or 1.0
    error = unit * np.array([(y[p] / unit).std() / np.sqrt(len(p)) for p in parts])
    return np.stack([*mean, mean[1] - 1.96 * error, mean[1] + 1.96 * error])
