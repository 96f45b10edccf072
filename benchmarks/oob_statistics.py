"""Whether rows out of bag are judged as new rows are where categories have target statistics.
python -m benchmarks.oob_statistics

Simulated tasks: a category has an effect of a normal distribution, times 0, 0.3 or 1.5 of the noise
("none", "weak", "strong"), beside one number that matters and two that do not. Classes are cuts of
the sum. In groups eight rows share an effect, and new rows are of new groups. A score is 1 - the
squared error over that of the mean: of numbers R2, and of the shares of classes. "ordered" judges
rows by the numbers that trees grew from, and "left out" by their categories' numbers without
themselves, as fits do. New rows are predicted by 37 % of the trees, as many as judge a row out of
bag. Forests of one seed are the same.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from benchmarks.record import Log, options_of, show

STRENGTH = {"none": 0.0, "weak": 0.3, "strong": 1.5}
CUTS = {"two": [0.0], "several": [-1.5, 0.0, 1.5]}
GROUP, NEW = 8, 20_000  # rows of a group, and new rows
OUT = 0.368  # of the trees did not draw a row, and judge it
TASKS = {  # the target, categories, their effect, rows, and whether rows are of groups
    "numbers, 5 weak": ("numbers", 5, "weak", 2000, False),
    "numbers, 100 none": ("numbers", 100, "none", 2000, False),
    "numbers, 100 strong": ("numbers", 100, "strong", 2000, False),
    "numbers, 1000 weak": ("numbers", 1000, "weak", 2000, False),
    "numbers, 1000 strong": ("numbers", 1000, "strong", 2000, False),
    "numbers, 5000 strong": ("numbers", 5000, "strong", 10_000, False),
    "two, 1000 none": ("two", 1000, "none", 2000, False),
    "two, 300 weak": ("two", 300, "weak", 2000, False),
    "two, 1000 strong": ("two", 1000, "strong", 2000, False),
    "several, 300 none": ("several", 300, "none", 2000, False),
    "several, 300 strong": ("several", 300, "strong", 2000, False),
    "numbers, 100 strong, groups": ("numbers", 100, "strong", 2000, True),
    "two, 300 none, groups": ("two", 300, "none", 2000, True),
    "several, 300 weak, groups": ("several", 300, "weak", 2000, True),
}


def rows_of(task: str, seed: int) -> tuple[Any, np.ndarray, np.ndarray | None, int]:
    """The features of old and new rows, their targets, groups of the old ones or None, and the
    number of old ones."""
    import pandas as pd

    target, n_categories, strength, n, grouped = TASKS[task]
    rng, N = np.random.default_rng(seed), n + NEW
    effect = STRENGTH[strength] * rng.normal(size=n_categories)
    category, numbers = rng.integers(0, n_categories, N), rng.normal(size=(N, 3))
    y = effect[category] + numbers[:, 0] + rng.normal(size=N)
    groups = np.arange(N) // GROUP
    if grouped:
        y += rng.normal(size=len(groups))[groups]
    X = pd.DataFrame(numbers, columns=list("abc"))
    X = X.assign(category=np.char.add("no ", category.astype(str)).astype(object))
    y = y if target == "numbers" else np.digitize(y, CUTS[target])
    return X, y, groups[:n] if grouped else None, n


def score(y: np.ndarray, found: np.ndarray, y_new: np.ndarray) -> float:
    """1 - the squared error over that of the new rows' mean, of numbers or shares of classes."""
    if found.ndim == 1:
        return float(1 - ((y - found) ** 2).mean() / y_new.var())
    one = np.eye(found.shape[1])
    shares = one[y_new].mean(axis=0)
    errors = ((one[y] - found) ** 2).sum(axis=1).mean()
    return float(1 - errors / (shares * (1 - shares)).sum())


def scores_of(task: str, seed: int, n_trees: int) -> dict[str, float]:
    import gpuforest

    X, y, groups, n = rows_of(task, seed)
    how = {"categorical_split": "ordered_target", "random_state": seed}
    given = [X[:n], y[:n], None, *([] if groups is None else [groups])]
    data = gpuforest.BinnedData.from_blocks([tuple(given)], **how)
    kind = gpuforest.RandomForestRegressor
    kind = kind if TASKS[task][0] == "numbers" else gpuforest.RandomForestClassifier
    found = {}
    for method, judged in (("ordered", {}), ("left out", data.judged)):
        model = kind(n_trees, min_samples_leaf=5, oob_score=True, n_jobs=1, **how)
        model.fit(replace(data, judged=judged))
        is_numbers = not hasattr(model, "classes_")
        values = model.oob_prediction_ if is_numbers else model.oob_decision_function_
        found[method] = score(y[:n], values, y[n:])
    fewer = model.set_params(n_estimators=round(OUT * n_trees), oob_score=False).fit(data)
    new = fewer.predict(X[n:]) if is_numbers else fewer.predict_proba(X[n:])
    return {"new rows": score(y[n:], new, y[n:]), **found}


def main() -> None:
    options = options_of(__doc__, sets=[*TASKS], seeds=20, trees=100)
    log, lines = Log("oob_statistics", trees=options.trees), []
    for task, seed in product(options.sets, range(options.seeds)):
        for method, value in scores_of(task, seed, options.trees).items():
            lines.append(log.add(set=task, split=seed, method=method, score=value))
    show(lines, {"score": ("mean", "difference")})


if __name__ == "__main__":
    main()
