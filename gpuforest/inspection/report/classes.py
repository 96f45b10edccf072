"""Scores and curves of predicted classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.metrics import (
    average_precision_score,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)

from gpuforest.inspection.report.intervals import Score, Statistic, bootstrapped, mean, wilson
from gpuforest.inspection.report.labels import Labels

MOST_CURVES = 4  # classes whose curves are drawn
MOST_RANKED = 10  # classes up to which the ROC AUC is computed
BINS = 10  # of a calibration curve
MOST_POINTS = 150  # of a curve, which a picture can show
LESS = frozenset(("log loss", "Brier score"))


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


@dataclass(frozen=True, eq=False)
class ClassResults:
    """How well classes are predicted.

    confusion : i64[L, L], rows of each class (first axis) that were predicted as each
    curves : of the classes of most rows
    """

    labels: Labels
    scores: list[Score]
    confusion: np.ndarray
    curves: list[Curve]


def class_results(labels: Labels, proba: np.ndarray) -> ClassResults:
    """The results of probabilities f64[N, C], in the order of the model's classes."""
    y, n, L = labels.codes, len(labels.codes), len(labels.names)
    found = labels.known[proba.argmax(axis=1)]
    confusion = np.bincount(y * L + found, minlength=L * L).reshape(L, L)
    right, most = int(confusion.trace()), int(np.bincount(y).max())
    scores = [
        Score("accuracy", right / n, *wilson(right, n), "Wilson"),
        *bootstrapped(_statistics(labels, proba, found), n, LESS),
        Score("accuracy of always the most frequent class", most / n),
    ]
    drawn = [_curve(labels, proba, k) for k in _shown(labels)]
    return ClassResults(labels, scores, confusion, [c for c in drawn if c is not None])


def _statistics(labels: Labels, proba: np.ndarray, found: np.ndarray) -> dict[str, Statistic]:
    """Scores as functions of the rows' weights."""
    y, C = labels.codes, len(labels.known)
    statistics: dict[str, Statistic] = {"balanced accuracy": partial(_balanced, y, y == found)}
    if len(np.unique(y)) > 1 and 2 <= C <= MOST_RANKED:
        which = [1] if C == 2 else range(C)
        ranked = [_Ranking(proba[:, k], y == labels.known[k]) for k in which]
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


def _balanced(y: np.ndarray, right: np.ndarray, weights: np.ndarray) -> float:
    """The mean over the classes of the share of their rows that are right."""
    total = np.bincount(y, weights)
    good = np.bincount(y, weights * right, minlength=len(total))
    return float(np.mean(good[total > 0] / total[total > 0]))


class _Ranking:
    """Rows in the order of a probability, for areas under ROC curves of weighted rows."""

    def __init__(self, score: np.ndarray, positive: np.ndarray) -> None:
        self._tie = np.unique(score, return_inverse=True)[1]
        self._positive = positive

    def auc(self, weights: np.ndarray) -> float:
        """The chance that a positive row has the higher probability; NaN: there are not both."""
        n = int(self._tie.max()) + 1
        good = np.bincount(self._tie, weights * self._positive, n)
        bad = np.bincount(self._tie, weights * ~self._positive, n)
        pairs = good.sum() * bad.sum()
        return float(np.sum(good * (np.cumsum(bad) - bad / 2)) / pairs) if pairs else np.nan


def _mean_auc(ranked: list[_Ranking], weights: np.ndarray) -> float:
    """The mean over the classes that have rows, and are not alone; NaN: none is so."""
    found = [auc for each in ranked if not np.isnan(auc := each.auc(weights))]
    return float(np.mean(found)) if found else np.nan


def _shown(labels: Labels) -> list[int]:
    """The numbers of the classes whose curves are drawn: of two, the second."""
    if len(labels.known) == 2:
        return [1]
    counts = np.bincount(labels.codes, minlength=len(labels.names))[labels.known]
    order = np.argsort(-counts, kind="stable")[:MOST_CURVES]
    return [int(k) for k in np.sort(order) if counts[k]]


def _curve(labels: Labels, proba: np.ndarray, k: int) -> Curve | None:
    """The curves of the class k; None: not both, it and others, are there."""
    truth, score = labels.codes == labels.known[k], proba[:, k]
    if truth.all() or not truth.any():
        return None
    fpr, tpr, _ = roc_curve(truth, score)
    precision, recall, _ = precision_recall_curve(truth, score)
    return Curve(
        labels.names[labels.known[k]],
        int(truth.sum()),
        len(truth),
        float(roc_auc_score(truth, score)),
        float(average_precision_score(truth, score)),
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
    at = np.minimum((score * BINS).astype(np.int64), BINS - 1)
    n = np.bincount(at, minlength=BINS)
    some = n > 0
    sums, good = (np.bincount(at, v, BINS)[some] for v in (score, truth))
    ends = np.array([wilson(g, m) for g, m in zip(good, n[some], strict=True)]).T
    return np.stack([sums / n[some], good / n[some], *ends, n[some]])
