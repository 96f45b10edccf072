"""Splits by combinations of features beside splits by one.  python -m benchmarks.oblique

- Test errors of Breiman's tasks, sparse parity and Friedman 1: few rows for training (300, 1,000
  and 200), 100 trees. Beside them YDF's sparse oblique forests, where it is installed (weights 1
  and -1), which try a combination for each feature in a node.
- Test errors of real sets: letter, covtype (30,000 rows), adult, california, bike.
- Time of fits and predictions, as ratios of neighbouring runs: --tasks A16,D16,letter
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split

from benchmarks import public_data, works
from benchmarks.libraries import LIBRARIES
from benchmarks.libraries.forest import Wanted
from benchmarks.record import Log, options_of, show
from benchmarks.synthetic import TASKS
from benchmarks.turns import Found, measured, take_turns
from gpuforest import RandomForestClassifier, RandomForestRegressor

TREES, SEED = 100, 1
ROWS = {**dict.fromkeys(TASKS, 300), "sparse parity": 1000}  # for training
REAL = ("letter", "covtype", "california", "bike", "adult")
TIMED = ("A16", "D16")
FEW = 3  # repetitions of large tasks
# "tried" are combinations in a node for each feature
SETTINGS: dict[str, dict[str, Any]] = {
    "one feature": {},
    "1.5": {"feature_combinations": 1.5},
    "2": {"feature_combinations": 2.0},
    "3": {"feature_combinations": 3.0},
    "1.5 (F tried)": {"feature_combinations": 1.5, "tried": 1.0},
    "2 (F tried)": {"feature_combinations": 2.0, "tried": 1.0},
    "1.5 (1.5 F tried)": {"feature_combinations": 1.5, "tried": 1.5},
    "2 integer (F tried)": {"feature_combinations": 2.0, "tried": 1.0,
                            "combination_weights": "integer"},
}  # fmt: skip


def parity(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Whether an odd number of the first 3 of 20 features is above zero (Tomita et al. 2020)."""
    X = rng.uniform(-1, 1, (n, 20))
    return X, (X[:, :3] > 0).sum(axis=1) % 2


def parts_of(task: str, repetition: int, folder: Path | None) -> Any:
    """X, X_test, y, y_test; None where the data are absent."""
    if task in ROWS:
        rng, make = np.random.default_rng([SEED, repetition]), {**TASKS, "sparse parity": parity}
        (X, y), (X_test, y_test) = (make[task](rng, n) for n in (ROWS[task], 3000))
        return X, X_test, y, y_test
    if task == "Friedman 1":
        X, y = make_friedman1(2200, noise=1.0, random_state=repetition)
        return X[:200], X[200:], y[:200], y[200:]
    if task in TIMED:
        made = works.load(works.WORKS[task], 1.0, None)
        return made and (made.X_train, made.X_test, made.y_train, made.y_test)
    load = public_data.load if task == "adult" else public_data.numbers
    found = load(task, folder, None)
    n = 30_000 if task == "covtype" else None
    return found and train_test_split(
        *found, test_size=0.3 if n is None else 50_000, train_size=n, random_state=repetition
    )


def fit(task: str, repetition: int, setting: str, options: argparse.Namespace) -> Found:
    parts = parts_of(task, repetition, options.data)
    if parts is None:
        return None
    n_features = parts[0].shape[1]
    classes = int(parts[2].max()) + 1 if parts[2].dtype.kind in "iu" else 0
    if setting == "YDF":
        ydf = Wanted(TREES, None, n_features, n_features, classes, options.threads, repetition)
        return measured(LIBRARIES["ydf-oblique"](ydf), parts)
    more = {"max_features": "sqrt" if classes else 1 / 3, **SETTINGS[setting]}
    if "tried" in more:
        more["max_features"] = round(more.pop("tried") * n_features)
    kind = RandomForestClassifier if classes else RandomForestRegressor
    depth = 16 if task in TIMED else None
    more |= {"random_state": repetition, "n_jobs": options.threads, "max_depth": depth}
    if repetition == 0:  # the first fit takes longer
        kind(2, **more).fit(parts[0][:2000], parts[2][:2000])
    return {"trees": TREES, **measured(kind(TREES, **more), parts)}


def main() -> None:
    tasks = [*ROWS, "Friedman 1", *REAL]
    given = {"repetitions": 20, "threads": 2, "tasks": tasks, "settings": [*SETTINGS, "YDF"]}
    options = options_of(__doc__, choices={"tasks": [*tasks, *TIMED]}, **given)
    jobs = [
        (task, i, setting)
        for task, i, setting in product(options.tasks, range(options.repetitions), options.settings)
        if (i < FEW or task not in REAL) and (task, setting) != ("adult", "YDF")
    ]
    lines = take_turns(Log("oblique"), jobs, fit, options)
    for line in lines:
        if "accuracy" in line:
            line["percent_wrong"] = 100 * (1 - line["accuracy"])
    show(lines, {"percent_wrong": ["mean"], "rmse": ["mean"]}, 2)
    show(lines, dict.fromkeys(("fit_cpu_s", "predict_s"), ("median", "ratio")))


if __name__ == "__main__":
    main()
