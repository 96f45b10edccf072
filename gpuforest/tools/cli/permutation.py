"""Permutation importances of a saved model on a file: how much its score falls (Breiman 2001)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import r2_score
from sklearn.utils import Bunch

from gpuforest.common.progress import report, stage
from gpuforest.data.columns import Table

REPEATS = 5  # orders of each feature, as scikit-learn has by default
SHOWN = 10  # features in a summary; --json gives all


def permutation_importances(model: Any, table: Table) -> Bunch:
    """How much a model's accuracy, or R², falls when a feature's values are permuted among rows.

    As scikit-learn's `permutation_importance`, for the frames that files are read into. One seed
    draws the orders, which serve all features: the same model and file give the same importances.

    Returns
    -------
    Bunch
        importances : f64[F, REPEATS]
        importances_mean, importances_std : f64[F], over the orders
    """
    rng, frame, names = np.random.default_rng(0), table.frame, table.names
    orders = [rng.permutation(len(table.y)) for _ in range(REPEATS)]
    found = np.zeros((len(names), REPEATS))
    with stage("permuting"):
        before = _score(model, table.X, table)
        for f, name in enumerate(names):
            for i, order in enumerate(orders):
                moved = frame.with_columns(frame[name][order])
                found[f, i] = before - _score(model, moved.to_native(), table)
            report(f + 1, len(names))
    mean, std = found.mean(axis=1), found.std(axis=1)
    return Bunch(importances=found, importances_mean=mean, importances_std=std)


def _score(model: Any, X: Any, table: Table) -> float:
    predicted = model.predict(X)
    if is_classifier(model):
        return float(np.average(predicted == table.y, weights=table.weight))
    return float(r2_score(table.y, predicted, sample_weight=table.weight))


def permutation_facts(model: Any, table: Table) -> dict[str, dict[str, float]]:
    """The importances by name, largest first, each a mean and a standard deviation."""
    found = permutation_importances(model, table)
    mean, std = found.importances_mean.tolist(), found.importances_std.tolist()
    order = np.argsort(-found.importances_mean, kind="stable")
    return {table.names[f]: {"mean": mean[f], "std": std[f]} for f in order}


def permutation_rows(facts: dict[str, dict[str, float]]) -> list[tuple[str, str]]:
    """The features whose permutation costs most."""
    lines = [f"{own['mean']:.4f} ± {own['std']:.4f} {name}" for name, own in facts.items()]
    return [("permuted" if i == 0 else "", line) for i, line in enumerate(lines[:SHOWN])]
