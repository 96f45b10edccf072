"""What is compared: our estimators and those of other libraries, and how each gets categories."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn import ensemble
from sklearn.model_selection import train_test_split

import gpuforest
from benchmarks.public_data import categories

Array = Any
THREADS = int(os.environ.get("OMP_NUM_THREADS", 2))
KINDS = {"forest": "RandomForest", "extra": "ExtraTrees", "boosting": "HistGradientBoosting"}
PRESETS = ("scikit-learn", "accurate", "fast")
# LGBM_TD of pytabkit 1.7.3 (models/sklearn/default_params.py), arXiv 2407.04491
TUNED = {
    "Classifier": {"learning_rate": 0.04, "num_leaves": 50, "subsample": 0.75,
                   "min_child_samples": 40},
    "Regressor": {"learning_rate": 0.05, "num_leaves": 100, "subsample": 0.7,
                  "min_child_samples": 3},
}  # fmt: skip
TUNED_BOTH = {"n_estimators": 1000, "subsample_freq": 1, "colsample_bytree": 1.0,
              "min_child_weight": 1e-7, "max_bin": 255}  # fmt: skip
TUNED_ROUNDS, TUNED_SHARE = 300, 0.2  # rounds without progress; rows that tell, without a refit


class AsItIs:
    """A model that takes the frame with its strings."""

    def __init__(self, model: Any, most_values: float = 0) -> None:
        self.model, self.most_values = model, most_values

    def fit(self, X: pd.DataFrame, y: Array) -> AsItIs:
        self.train(self.encoded(X), y)
        return self

    def train(self, X: pd.DataFrame, y: Array) -> None:
        self.model.fit(X, y)

    def encoded(self, X: pd.DataFrame) -> pd.DataFrame:
        return X

    def predict(self, X: pd.DataFrame) -> Array:
        return getattr(self.model, "predict_proba", self.model.predict)(self.encoded(X))


class Encoded(AsItIs):
    """A model of columns of numbers and of pandas' `category`; those of more values are codes."""

    def fit(self, X: pd.DataFrame, y: Array) -> AsItIs:
        self.values = {c: pd.Index(np.sort(X[c].dropna().unique())) for c in categories(X)}
        return super().fit(X, y)

    def encoded(self, X: pd.DataFrame) -> pd.DataFrame:
        columns: dict[str, Any] = {}
        for name, values in self.values.items():
            codes = values.get_indexer(X[name])
            if len(values) <= self.most_values:
                columns[name] = pd.Categorical.from_codes(codes, values)
            else:
                columns[name] = np.where(X[name].isna(), np.nan, codes)
        return X.assign(**columns)


class Tuned(Encoded):
    """LightGBM that stops early, by rows drawn from the training rows (of each class)."""

    def train(self, X: pd.DataFrame, y: Array) -> None:
        import lightgbm

        classes = isinstance(self.model, lightgbm.LGBMClassifier)
        X, X_told, y, y_told = train_test_split(
            X, y, test_size=TUNED_SHARE, random_state=self.model.random_state,
            stratify=y if classes else None,
        )  # fmt: skip
        stop = lightgbm.early_stopping(TUNED_ROUNDS, verbose=False)
        self.model.fit(X, y, eval_set=[(X_told, y_told)], callbacks=[stop])


class CatBoost(AsItIs):
    def train(self, X: pd.DataFrame, y: Array) -> None:
        self.model.fit(X, y, cat_features=categories(X))

    def encoded(self, X: pd.DataFrame) -> pd.DataFrame:
        return X.assign(**{c: X[c].astype(object).fillna("missing") for c in categories(X)})


def ours(kind: str, name: str | None, task: str, seed: int) -> AsItIs:
    """An estimator of a preset, or of defaults."""
    kind_of_task = getattr(gpuforest, KINDS[kind] + task)
    make = kind_of_task if name is None else partial(kind_of_task.preset, name)
    return AsItIs(make(random_state=seed, n_jobs=THREADS))


def sklearn_forest(task: str, seed: int) -> Encoded:
    kind = getattr(ensemble, f"RandomForest{task}")
    return Encoded(kind(random_state=seed, n_jobs=THREADS), 0)


def sklearn_boosting(task: str, seed: int) -> Encoded:
    kind = getattr(ensemble, f"HistGradientBoosting{task}")
    return Encoded(kind(random_state=seed, categorical_features="from_dtype"), 255)


def lightgbm(task: str, seed: int, tuned: bool = False) -> Encoded:
    import lightgbm

    more = {**TUNED_BOTH, **TUNED[task]} if tuned else {}
    kind = getattr(lightgbm, f"LGBM{task}")
    model = kind(n_jobs=THREADS, random_state=seed, verbose=-1, **more)
    return (Tuned if tuned else Encoded)(model, np.inf)


def catboost(task: str, seed: int) -> AsItIs:
    import catboost

    kind = getattr(catboost, f"CatBoost{task}")
    model = kind(thread_count=THREADS, random_seed=seed, verbose=0, allow_writing_files=False)
    return CatBoost(model)


# of a task ("Classifier" or "Regressor") and the number of the split
METHODS: dict[str, Callable[[str, int], AsItIs]] = {
    **{f"gpuforest-{kind}-{name}": partial(ours, kind, name)
       for kind in KINDS for name in PRESETS},
    "gpuforest-forest-default": partial(ours, "forest", None),
    "gpuforest-boosting-default": partial(ours, "boosting", None),
    "sklearn-forest": sklearn_forest,
    "sklearn-hgb": sklearn_boosting,
    "lightgbm": lightgbm,
    "lightgbm-tuned": partial(lightgbm, tuned=True),
    "catboost": catboost,
}  # fmt: skip
