"""Are scores and intervals right where rows come in time order?  python -m benchmarks.blocks

Three simulated tasks of equal periods, in which what the features mean drifts. A forest is fitted
to the periods so far, and what is asked is how good it is in the next one. Beside this score are
the out-of-bag score by blocks of time, the one by rows, and the mean over folds of scikit-learn's
`TimeSeriesSplit`, which needs a fit for each. Scores are parts of the variance of all targets that
is explained. Intervals that shall hold 0.9 of the targets are tried on the next period.

`past` is the score in the next period of the forest that judges, whose trees grow from earlier
blocks: what one would lose by taking it for the forest. `all_earlier` and `just_before` are scores
by blocks if a row were judged by all trees of earlier blocks, or by those alone that know all of
these, and `times` is how many times longer a fit with blocks takes.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import TimeSeriesSplit

import gpuforest
from benchmarks.record import by_task
from gpuforest.engine.sampling import cutoff

COLUMNS = [
    "next",
    "by_blocks",
    "by_rows",
    "by_folds",
    "all_earlier",
    "just_before",
    "past",
    "covered",
    "covered_rows",
    "times",
]


@dataclass(frozen=True)
class Task:
    """Periods of so many rows each, and how the target drifts.

    turn : by how much, in a period, the direction of the features that count turns (radians)
    step : the standard deviation of the change of the level from one period to the next
    break_at : the period at which the sign of a feature changes; 0: none
    """

    periods: int
    rows: int
    turn: float = 0.0
    step: float = 0.0
    break_at: int = 0


TASKS = {
    "turning": Task(24, 200, turn=0.1),
    "walking": Task(24, 200, step=0.5),
    "steady": Task(12, 400),
}


def drawn(task: Task, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """X, y and the periods, one more than the task has: the next one. A feature is the time."""
    n = task.periods + 1
    period = np.repeat(np.arange(n), task.rows)
    X, angle = rng.normal(size=(len(period), 6)), task.turn * period
    level = rng.normal(scale=task.step, size=n).cumsum()[period]
    signal = 2 * (np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1]) + np.sin(2 * X[:, 2])
    y = signal + level + rng.normal(scale=0.7, size=len(period))
    time = period + rng.uniform(size=len(period))
    return np.column_stack([X, time]), y, period


def mean_of(trees: np.ndarray, judge: np.ndarray) -> np.ndarray:
    """The mean of predictions [N, T] over the trees that judge, bool[N, T]; NaN if none does."""
    n = judge.sum(axis=1)
    return np.where(n > 0, (trees * judge).sum(axis=1) / np.maximum(n, 1), np.nan)


def measured(task: Task, options: argparse.Namespace, seed: int) -> dict[str, float]:
    """What the forests say of the data of a seed, and how good they are in the next period."""
    X, y, period = drawn(task, np.random.default_rng(seed))
    old = period < task.periods
    new = ~old
    forest = gpuforest.RandomForestRegressor(
        options.trees, oob_score=True, random_state=seed, n_jobs=options.threads
    )
    variance = y[old].var()

    def score(of: Any, rows: Any, predicted: np.ndarray) -> float:
        return float(1 - np.nanmean((of[rows] - predicted) ** 2) / variance)

    models, seconds = [], []
    for blocks in (period[old], None):
        begin = perf_counter()
        models.append(clone(forest).fit(X[old], y[old], blocks=blocks))
        seconds.append(perf_counter() - begin)
    by_blocks, by_rows = models
    folds = []
    for train, test in TimeSeriesSplit(5).split(X[old]):
        fold = clone(forest).set_params(oob_score=False).fit(X[train], y[train])
        folds.append(score(y, test, fold.predict(X[test])))
    judges = clone(forest).fit(X[old], y[old])
    judges.forest_ = by_blocks._judges_[0]
    trees = np.array([tree.predict(X[old]) for tree in judges.estimators_]).T
    known = np.array([cutoff(period[old], t) + 1 for t in range(options.trees)])
    before = period[old][:, None]
    others = {"all_earlier": known <= before, "just_before": known == before}
    inside = []
    for model in (by_blocks, by_rows):
        low, high = model.predict_interval(X[new]).T
        inside.append(float(((low <= y[new]) & (y[new] <= high)).mean()))
    return {
        "next": score(y, new, by_blocks.predict(X[new])),
        "by_blocks": score(y, old, by_blocks.oob_prediction_),
        "by_rows": score(y, old, by_rows.oob_prediction_),
        "by_folds": float(np.mean(folds)),
        **{name: score(y, old, mean_of(trees, judge)) for name, judge in others.items()},
        "past": score(y, new, judges.predict(X[new])),
        "covered": inside[0],
        "covered_rows": inside[1],
        "times": seconds[0] / seconds[1],
    }


def main() -> None:
    by_task("blocks", str(__doc__), TASKS, COLUMNS, measured)


if __name__ == "__main__":
    main()
