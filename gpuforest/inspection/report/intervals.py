"""Intervals that hold a score in 95 of 100 cases: Wilson's, and those of a bootstrap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from gpuforest.common import hashing

Z = 1.959963984540054  # of the normal distribution, 95 % within
MOST_DRAWS, FEWEST, MOST = 10_000_000, 50, 500  # draws in all, and samples of a bootstrap
SEED = 0
Statistic = Callable[[np.ndarray], float]  # of weights f64[N] of the rows


@dataclass(frozen=True)
class Score:
    """A score with its interval.

    low, high : None: there is none
    how : "Wilson", "bootstrap" or ""
    per_cent : whether it is a share
    less : whether less is better
    """

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    how: str = ""
    less: bool = False


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


def bootstrapped(statistics: dict[str, Statistic], n: int, less: frozenset[str]) -> list[Score]:
    """Scores of n rows, each with the middle 95 % of what samples of the rows give.

    less : the names of those of which less is better
    """
    values = {name: statistic(np.ones(n)) for name, statistic in statistics.items()}
    drawn: dict[str, list[float]] = {name: [] for name in statistics}
    if n > 1:
        for weights in samples(n):
            for name, statistic in statistics.items():
                drawn[name].append(statistic(weights))
    found = []
    for name, value in values.items():
        known = np.array(drawn[name])
        known = known[np.isfinite(known)]
        ends: tuple[float | None, float | None] = (None, None)
        if len(known) and np.isfinite(value):
            ends = float(np.percentile(known, 2.5)), float(np.percentile(known, 97.5))
        how = "" if ends[0] is None else "bootstrap"
        found.append(Score(name, value, *ends, how, name in less))
    return found
