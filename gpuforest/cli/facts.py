"""Facts about a model: values for a script, lines for a reader."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector, is_regressor

from gpuforest.inspection.round_facts import rounds_facts
from gpuforest.inspection.shape import tree_depths
from gpuforest.nodes import is_leaf

SHOWN_CATEGORIES = 20
SHOWN_IMPORTANCES = 10  # in a summary; --json gives all


def model_facts(estimator: Any) -> dict[str, Any]:
    """Facts about a fitted estimator, for JSON (see `plain`)."""
    forest = estimator.forest_
    depths = tree_depths(forest)
    is_classes, several = is_classifier(estimator), forest.coding.several
    task = "anomalies" if is_outlier_detector(estimator) else "embedding"
    if is_classes or is_regressor(estimator):
        task = "classification" if is_classes else "regression"
    names = feature_names(estimator)
    found = getattr(estimator, "feature_importances_", None)  # isolation forests have none
    importances = [] if found is None else zip(names, found, strict=True)
    boosting = {"boosting": rounds_facts(estimator)} if forest.baseline is not None else {}
    return {
        "estimator": type(estimator).__name__,
        "seed": estimator.seed_,
        "task": task,
        "outputs": estimator.n_outputs_,
        "features": estimator.n_features_in_,
        "categories": {names[f]: len(c) for f, c in forest.edges.categories.items()},
        "classes": list(map(list, several)) or (list(estimator.classes_) if is_classes else None),
        "trees": forest.n_trees,
        "nodes": forest.n_nodes,
        "leaves": int(is_leaf(forest.nodes).sum()),
        "depth": int(depths.max()),
        "min_depth": int(depths.min()),
        "mean_depth": float(depths.mean()),
        "score": "accuracy" if is_classes else "R2",
        "oob_score": finite(getattr(estimator, "oob_score_", None)),
        "importances": dict(sorted(importances, key=lambda item: -item[1])),
        **boosting,
    }


def feature_names(estimator: Any) -> list[str]:
    """The features' names, or feature_0, feature_1, ... where the training data had none."""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"feature_{i}" for i in range(estimator.n_features_in_)] if names is None else [*names]


def category_rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """The categorical features and how many categories each has, if there are some."""
    found = [f"{n:,} {name}" for name, n in facts["categories"].items()]
    shown = ", ".join(found[:SHOWN_CATEGORIES])
    more = len(found) - SHOWN_CATEGORIES
    return [("categories", shown + f" and {more:,} more" * (more > 0))] if found else []


def oob_rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """The out-of-bag score, if there is one."""
    if facts["oob_score"] is None:
        return []
    return [(f"out-of-bag {facts['score']}", f"{facts['oob_score']:.4f}")]


def importance_rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """The most important features, those of no importance left out."""
    largest = list(facts["importances"].items())[:SHOWN_IMPORTANCES]
    shown = [f"{value:.3f} {name}" for name, value in largest if value > 0]
    return [("importance" if i == 0 else "", line) for i, line in enumerate(shown)]


def named(classes: list[Any] | None, most: int = 6) -> str:
    """Classes in brackets, the first few by name."""
    if classes is None:
        return ""
    if isinstance(classes[0], list):
        return f" ({len(classes)} outputs of {', '.join(str(len(c)) for c in classes)} classes)"
    names = ", ".join(str(c) for c in classes[:most])
    return f" ({len(classes)} classes: {names}{', ...' if len(classes) > most else ''})"


def finite(score: float | None) -> float | None:
    """A score, or None where there is none (of too few rows): JSON has no NaN."""
    return float(score) if score is not None and np.isfinite(score) else None


def plain(value: Any) -> Any:
    """A NumPy value as a Python one, for JSON."""
    return value.item() if isinstance(value, np.generic) else str(value)
