"""Are scores and intervals right where rows come in groups?  python -m benchmarks.groups

Six simulated tasks with random effects: rows of a group share features and an effect that no
feature explains, as those of a patient do. In one of them each group also brings two ids of its
own, a category that becomes a target statistic. What is asked is how good predictions are for new
groups. Ten folds of whole groups say that, with their standard error. Beside them are the
out-of-bag scores of a forest that draws whole groups, and of one that draws rows; their distance
from the folds is counted in standard errors. Intervals that shall hold 0.9 of the targets (of
classes, sets) are tried on rows of new groups.

Scores are parts of the variance of all targets that is explained, of classes that of labels 0 and
1, so that those of folds add up to that of all rows.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GroupKFold

import gpuforest
from benchmarks.record import by_task

NEW_GROUPS = 500  # that intervals are tried on
FOLDS = 10
COLUMNS = [
    "folds",
    "error",
    "by_groups",
    "by_rows",
    "off_groups",
    "off_rows",
    "covered",
    "covered_rows",
]


@dataclass(frozen=True)
class Task:
    """n_groups of `sizes` rows each, whose effect has the standard deviation `effect`.

    shared, own : features of the group, and of the row
    slopes : the effect also multiplies a feature of the row
    ids : the last feature is one of two ids of the group, a category
    """

    n_groups: int
    sizes: tuple[int, int]  # from and up to
    effect: float
    shared: int = 3
    own: int = 4
    slopes: bool = False
    classes: bool = False
    ids: bool = False


TASKS = {
    "patients": Task(400, (12, 12), 2.0),
    "families": Task(1000, (6, 6), 3.0),
    "sites": Task(150, (1, 60), 1.0),
    "slopes": Task(1000, (12, 12), 2.0, slopes=True),
    "classes": Task(400, (8, 8), 3.0, classes=True),
    "ids": Task(400, (12, 12), 2.0, ids=True),
}


def drawn(task: Task, n_groups: int, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """X, y and the groups of so many new groups."""
    sizes = rng.integers(task.sizes[0], task.sizes[1] + 1, n_groups)
    groups = np.repeat(np.arange(n_groups), sizes)
    N = len(groups)
    shared, own = rng.normal(size=(n_groups, task.shared))[groups], rng.normal(size=(N, task.own))
    effect = rng.normal(scale=task.effect, size=n_groups)[groups]
    signal = shared[:, 0] + np.sin(2 * own[:, 0]) + own[:, 1] * (own[:, 2] > 0)
    y = signal + effect * (1 + 0.5 * own[:, 3] * task.slopes) + rng.normal(scale=0.5, size=N)
    order = rng.permutation(N)
    X = np.concatenate([shared, own], axis=1)
    if task.ids:
        ids = rng.random((n_groups, 2))[groups, rng.integers(0, 2, N)]
        X = np.column_stack([X, ids])
    y = (y > 0) * 1.0 if task.classes else y
    return X[order], y[order], groups[order]


def forest_of(task: Task, options: argparse.Namespace, seed: int) -> Any:
    kind = gpuforest.RandomForestRegressor
    kind = gpuforest.RandomForestClassifier if task.classes else kind
    forest = kind(options.trees, oob_score=True, random_state=seed, n_jobs=options.threads)
    if task.ids:
        last = [task.shared + task.own]
        forest.set_params(categorical_features=last, categorical_split="auto")
    return forest


def means(task: Task, forest: Any, X: Any) -> np.ndarray:
    """Predictions, or probabilities of class 1."""
    return np.asarray(forest.predict_proba(X)[:, 1] if task.classes else forest.predict(X))


def out_of_bag(task: Task, forest: Any) -> np.ndarray:
    return np.asarray(
        forest.oob_decision_function_[:, 1] if task.classes else forest.oob_prediction_
    )


def covered(task: Task, forest: Any, X: Any, y: np.ndarray) -> float:
    """The share of rows whose interval, or set of classes, has their target."""
    if task.classes:
        return float(forest.predict_set(X)[np.arange(len(y)), y.astype(int)].mean())
    low, high = forest.predict_interval(X).T
    return float(((low <= y) & (y <= high)).mean())


def measured(task: Task, options: argparse.Namespace, seed: int) -> dict[str, float]:
    """What both forests say of the data of a seed, beside the folds."""
    rng = np.random.default_rng(seed)
    X, y, groups = drawn(task, task.n_groups, rng)
    X_new, y_new, _ = drawn(task, NEW_GROUPS, rng)
    forest, variance = forest_of(task, options, seed), y.var()
    of_folds, weights = [], []
    for train, test in GroupKFold(FOLDS).split(X, y, groups):
        given = {"groups": groups[train]} if task.ids else {}  # they have a part in the model
        fold = clone(forest).set_params(oob_score=False).fit(X[train], y[train], **given)
        of_folds.append(1 - np.mean((y[test] - means(task, fold, X[test])) ** 2) / variance)
        weights.append(len(test))
    folds, error = np.average(of_folds, weights=weights), np.std(of_folds, ddof=1) / FOLDS**0.5
    by_groups, by_rows = (clone(forest).fit(X, y, groups=g) for g in (groups, None))
    scores = [
        1 - np.mean((y - out_of_bag(task, model)) ** 2) / variance for model in (by_groups, by_rows)
    ]
    return {
        "folds": float(folds),
        "error": float(error),
        "by_groups": float(scores[0]),
        "by_rows": float(scores[1]),
        "off_groups": float((scores[0] - folds) / error),
        "off_rows": float((scores[1] - folds) / error),
        "covered": covered(task, by_groups, X_new, y_new),
        "covered_rows": covered(task, by_rows, X_new, y_new),
    }


def main() -> None:
    by_task("groups", str(__doc__), TASKS, COLUMNS, measured)


if __name__ == "__main__":
    main()
