"""Scores of predictions, with intervals that hold them in 95 of 100 cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import binomtest

from gpuforest.common import hashing
from gpuforest.explain.survival import concordance_of
from gpuforest.tools.plot.survival import at_times, kaplan_meier
from gpuforest.tools.report.rows import SEED, Labels

MOST_DRAWS, FEWEST, MOST = 10_000_000, 50, 500  # draws in all, and samples of a bootstrap
DRAWS_OF_PAIRS = 2_000_000  # of concordances, which take longer
MOST_RANKED = 10  # classes up to which the ROC AUC is computed
# less of these is better
LESS = ("log loss", "Brier score", "mean absolute error", "root mean squared error")
Statistic = Callable[..., float]  # of the argument `weights` f64[N] of the rows


@dataclass(frozen=True)
class Score:
    """A score with its interval, if it has one, and how that was made: "Wilson" or "bootstrap"."""

    name: str
    value: float
    low: float = np.nan
    high: float = np.nan
    how: str = ""


def wilson(right: float, n: float) -> tuple[float, float]:
    """The interval of the share right / n, where n rows were counted (Wilson 1927)."""
    low, high = binomtest(int(right), int(n)).proportion_ci(method="wilson")
    return float(low), float(high)


def n_samples(n: int, draws: int = MOST_DRAWS) -> int:
    """Samples of a bootstrap of n rows."""
    return int(np.clip(draws // n, FEWEST, MOST))


def samples(n: int, draws: int = MOST_DRAWS) -> Iterator[np.ndarray]:
    """How often each of n rows is drawn into each sample f64[n], by the hash: always the same."""
    seed, at = np.full(1, SEED, np.uint64), np.arange(n, dtype=np.uint64)
    for i in range(n_samples(n, draws)):
        drawn = hashing.hash_at(hashing.hash_at(seed, i), at) % np.uint64(n)
        yield np.bincount(drawn.astype(np.int64), minlength=n).astype(np.float64)


def bootstrapped(statistics: dict[str, Statistic], n: int, draws: int = MOST_DRAWS) -> list[Score]:
    """Scores of n rows, each with the middle 95 % of what samples of the rows give."""
    drawn, scores = [], []
    if n > 1:
        drawn = [[of(weights=w) for of in statistics.values()] for w in samples(n, draws)]
    for i, (name, statistic) in enumerate(statistics.items()):
        value, ends = statistic(weights=np.ones(n)), tuple[Any, ...]()
        finite = [row[i] for row in drawn if np.isfinite(row[i])]
        if finite and np.isfinite(value):
            ends = *np.percentile(finite, [2.5, 97.5]).tolist(), "bootstrap"
        scores.append(Score(name, value, *ends))
    return scores


def class_scores(labels: Labels, proba: np.ndarray) -> list[Score]:
    """Scores of probabilities f64[N, C], in the order of the model's classes."""
    y, n, C = labels.codes, len(labels.codes), len(labels.known)
    right = y == labels.predicted(proba)
    statistics: dict[str, Statistic] = {"balanced accuracy": partial(balanced, y, right)}
    if len(np.unique(y)) > 1 and 2 <= C <= MOST_RANKED:
        ranked = [
            (np.unique(proba[:, k], return_inverse=True)[1], y == labels.known[k])
            for k in ([1] if C == 2 else range(C))
        ]
        name = "ROC AUC" if C == 2 else "ROC AUC, mean of one class against the others"
        statistics[name] = partial(_mean_auc, ranked)
    if not len(labels.unknown) and C > 1:
        of_truth = proba[np.arange(len(y)), np.argsort(labels.known)[y]]
        least = np.finfo(proba.dtype).eps  # as scikit-learn's log_loss
        losses = -np.log(np.clip(of_truth, least, 1 - least))
        statistics["log loss"] = partial(np.average, losses)
        squares = (proba**2).sum(axis=1) - 2 * of_truth + 1
        statistics["Brier score"] = partial(np.average, squares / (2 if C == 2 else 1))
    return [
        Score("accuracy", float(right.mean()), *wilson(right.sum(), n), "Wilson"),
        *bootstrapped(statistics, n),
        Score("accuracy of always the most frequent class", float(np.bincount(y).max() / n)),
    ]


def balanced(y: np.ndarray, right: np.ndarray, weights: np.ndarray) -> float:
    """The mean over the classes of rows with weights of the share of these that are right."""
    total = np.bincount(y, weights)
    good = np.bincount(y, weights * right, minlength=len(total))
    return float(np.mean(good[total > 0] / total[total > 0]))


def _mean_auc(ranked: list[tuple[np.ndarray, np.ndarray]], weights: np.ndarray) -> float:
    """The mean area under ROC curves: the chance that a positive row has the higher probability.
    Equal probabilities have equal numbers; classes without rows, or alone, do not count."""
    areas = []
    for tie, positive in ranked:
        n = int(tie.max()) + 1
        good, bad = (np.bincount(tie, weights * of, n) for of in (positive, ~positive))
        pairs = good.sum() * bad.sum()
        areas.append(float(np.sum(good * (np.cumsum(bad) - bad / 2)) / pairs) if pairs else np.nan)
    return mean_known(areas)


def mean_known(values: Iterable[float]) -> float:
    """The mean of the values that are no NaN; NaN if all are."""
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else np.nan


def risk_scores(y: np.ndarray, risks: np.ndarray) -> list[Score]:
    """The concordance of risks f64[N, K] by each of K causes, of targets [time, cause or 0]."""

    def by(cause: int, weights: np.ndarray) -> float:
        rows = np.repeat(np.arange(len(y)), weights.astype(np.int64))
        return concordance_of(y[rows], risks[rows], cause)

    n = risks.shape[1]
    names = ["concordance", *(f"concordance by cause {k}" for k in range(2, n + 1))]
    statistics: dict[str, Statistic] = {name: partial(by, k) for k, name in enumerate(names, 1)}
    return bootstrapped(statistics, len(y), DRAWS_OF_PAIRS)


def brier_scores(
    known: np.ndarray, y: np.ndarray, survival: np.ndarray, times: np.ndarray
) -> np.ndarray:
    """Brier scores f64[T] of probabilities f64[N, T] of survival at times f64[T], of targets y
    [time, cause or 0]. Rows count by the inverse of the chance of not being censored, which the
    training rows `known` say (Graf et al. 1999), as in scikit-survival."""
    died, later = known[:, 1] > 0, np.nextafter(known[:, 0], np.inf)
    # of equal times, events come before what is censored
    free = kaplan_meier(~died, np.where(died, known[:, 0], later))

    def weights(at: np.ndarray) -> np.ndarray:
        chance = at_times(*free, np.nextafter(at, np.inf))
        return np.asarray(np.divide(1.0, chance, out=np.zeros(at.shape), where=chance > 0))

    time, event = y[:, :1], y[:, 1:] > 0
    after, before = (1 - survival) ** 2 * weights(times), survival**2 * event * weights(time)
    return np.asarray(np.where(time > times, after, before).mean(axis=0))


def number_scores(y: np.ndarray, predicted: np.ndarray) -> list[Score]:
    """R², mean absolute and root mean squared error of predictions f64[N]."""
    unit = float(np.abs(y).max()) or 1.0  # so that no square is too large or too small
    errors = np.abs(y / unit - predicted / unit)
    statistics: dict[str, Statistic] = {
        "R²": partial(r_squared, y, predicted),
        "mean absolute error": partial(_mean_error, errors, unit, 1),
        "root mean squared error": partial(_mean_error, errors, unit, 2),
    }
    return bootstrapped(statistics, len(y))


def _mean_error(errors: np.ndarray, unit: float, power: int, weights: np.ndarray) -> float:
    """The mean of errors in units, or the root of the mean of their squares."""
    return float(unit * np.average(errors**power, weights=weights) ** (1 / power))


def r_squared(y: np.ndarray, predicted: np.ndarray, weights: np.ndarray | None = None) -> float:
    """R² of predictions f64[N] of rows of these weights; NaN where the targets do not vary."""
    unit = float(np.abs(y).max()) or 1.0
    y, predicted, w = y / unit, predicted / unit, np.ones(len(y)) if weights is None else weights
    spread = np.sum(w * (y - np.average(y, weights=w)) ** 2)
    return float(1 - np.sum(w * (y - predicted) ** 2) / spread) if spread > 0 else np.nan
