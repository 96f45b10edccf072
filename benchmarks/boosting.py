"""Gradient boosting beside other libraries.  python -m benchmarks.boosting

Works: real data sets where they are (a quarter is for testing); adult with its categories as they
are; A (made data like HIGGS); C (400,000 x 90, regression); and 500, 1000 and 2000 made rows of 20
features. 100 rounds, learning rate 0.1, 31 leaves, 20 rows a leaf, no early stopping; XGBoost has
no least number of rows. Splits are drawn by the number of the repetition, the same for all
libraries. These take turns, each in a process of its own that has fitted before. Processor time is
that of all threads; memory is the highest during a fit above that before it. Differences and ratios
are to gpuforest.
"""

from __future__ import annotations

import argparse
from functools import lru_cache
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from benchmarks import data, public_data
from benchmarks.record import Log, options_of, show
from benchmarks.turns import Found, measured, take_turns

REAL = ("spambase", "letter", "adult", "covtype", "california", "bike")
SMALL = ("500", "1000", "2000")
NUMBERS = ("california", "bike", "C")  # works of regression
MOST_ROWS = 134_000  # of covtype: 100,000 to train on
ROWS_OF_C = 400_000
# the module, how the name of its estimators begins, and parameters
LIBRARIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "gpuforest": ("gpuforest", "HistGradientBoosting", {"early_stopping": False}),
    "scikit-learn": ("sklearn.ensemble", "HistGradientBoosting",
                     {"early_stopping": False, "categorical_features": "from_dtype"}),
    "LightGBM": ("lightgbm", "LGBM", {"verbose": -1}),
    "XGBoost": ("xgboost", "XGB", {
        "n_estimators": 100, "learning_rate": 0.1, "max_leaves": 31, "max_depth": 0, "max_bin": 255,
        "grow_policy": "lossguide", "tree_method": "hist", "enable_categorical": True}),
    "CatBoost": ("catboost", "CatBoost", {
        "n_estimators": 100, "learning_rate": 0.1, "max_leaves": 31, "min_data_in_leaf": 20,
        "grow_policy": "Lossguide", "verbose": False, "allow_writing_files": False}),
}  # fmt: skip


@lru_cache(2)
def load(name: str, rows: int, folder: Path | None) -> tuple[Any, Any] | None:
    """X and y of a work."""
    if name in SMALL:
        return make_classification(int(name) * 4 // 3, 20, n_informative=8, random_state=0)
    if name in data.SETS:
        made = data.make(name, ROWS_OF_C if name == "C" else rows, 50_000)
        X = np.concatenate([made.X_train, made.X_test])
        return X, np.concatenate([made.y_train, made.y_test])
    if name == "adult":
        found = public_data.load(name, folder, None)
        if found is None:
            return None
        words = dict.fromkeys(public_data.categories(found[0]), "category")
        return found[0].astype(words), found[1]
    return public_data.numbers(name, folder, MOST_ROWS if name == "covtype" else None)


def model_of(library: str, task: str, threads: int, **more: Any) -> Any:
    module, prefix, parameters = LIBRARIES[library]
    if module in ("gpuforest", "sklearn.ensemble"):
        more["random_state"] = 0
    if module != "sklearn.ensemble":
        more["thread_count" if module == "catboost" else "n_jobs"] = threads
    return getattr(import_module(module), prefix + task)(**parameters, **more)


def fit(work: str, repetition: int, library: str, options: argparse.Namespace) -> Found:
    """The figures of a fit; a library's first fit takes longer and is not measured."""
    found = load(work, options.rows, options.data)
    if found is None:
        return None
    task = "Regressor" if work in NUMBERS else "Classifier"
    if repetition == 0:
        rounds = "max_iter" if library in ("gpuforest", "scikit-learn") else "n_estimators"
        first = model_of(library, task, options.threads).set_params(**{rounds: 2})
        first.fit(found[0][:5000], found[1][:5000])
    parts = train_test_split(*found, test_size=0.25, random_state=repetition)
    return measured(model_of(library, task, options.threads), parts)


def main() -> None:
    works, rivals = [*REAL, "A", "C", *SMALL], list(LIBRARIES)[1:]
    # rows: for training, of A
    numbers = {"repetitions": 5, "rows": 200_000, "threads": 2}
    options = options_of(__doc__, works=works, rivals=rivals, **numbers)
    libraries = ["gpuforest", *options.rivals]
    jobs = product(options.works, range(options.repetitions), libraries)
    lines = take_turns(Log("boosting", threads=options.threads), jobs, fit, options)
    scores = dict.fromkeys(("accuracy", "log_loss", "r2"), ("mean", "difference"))
    times = dict.fromkeys(("fit_s", "fit_cpu_s", "predict_s"), ("median", "ratio"))
    show(lines, scores | times | dict.fromkeys(("peak_mb", "one_row_ms"), ("median",)))


if __name__ == "__main__":
    main()
