"""Facts about a fitted estimator, for scripts, summaries and reports."""

from __future__ import annotations

import hashlib
import json
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector, is_regressor

from gpuforest.forest import Forest
from gpuforest.inspection.round_facts import rounds_facts
from gpuforest.inspection.shape import tree_depths
from gpuforest.nodes import is_leaf

WHERE_IT_RUNS = ("backend", "n_jobs", "memory_limit")  # parameters that are the reader's own matter
DIGESTED = (  # arrays of a forest
    *("nodes", "tree_offsets", "leaf_sums", "leaf_impurity", "leaf_values"),
    *("node_values", "node_errors", "sets", "tree_weights"),
)


def model_facts(estimator: Any) -> dict[str, Any]:
    """Facts about a fitted estimator, for JSON (NumPy's numbers may be among them)."""
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


def changed_settings(estimator: Any) -> dict[str, Any]:
    """The parameters that are not the defaults, but for those that say where it runs."""
    return {
        name: getattr(estimator, name)
        for name, parameter in signature(type(estimator)).parameters.items()
        if name not in WHERE_IT_RUNS and getattr(estimator, name) != parameter.default
    }


def feature_names(estimator: Any) -> list[str]:
    """The features' names, or feature_0, feature_1, ... where the training data had none."""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"feature_{i}" for i in range(estimator.n_features_in_)] if names is None else [*names]


def finite(score: float | None) -> float | None:
    """A score, or None where there is none (of too few rows): JSON has no NaN."""
    return float(score) if score is not None and np.isfinite(score) else None


def forest_digest(forest: Forest) -> str:
    """The SHA-256 of a forest's trees, bins and classes: equal for models that predict the same
    from the same trees, on whatever backend they grew and whether they were saved between."""
    found = hashlib.sha256()
    edges, coding = forest.edges, forest.coding
    arrays = {name: getattr(forest, name) for name in DIGESTED}
    arrays |= {"edge_values": edges.values, "edge_offsets": edges.offsets}
    arrays |= {"centre": coding.centre, "baseline": forest.baseline}
    for name, array in arrays.items():
        if array is not None:
            kind = "<f8" if array.dtype.kind == "f" else "<i8" if array.dtype.kind == "i" else "<u8"
            found.update(f"{name}{array.shape}".encode())
            found.update(array.astype(kind).tobytes())
    classes = [c.tolist() for c in coding.several]
    if coding.classes is not None:
        classes = [coding.classes.tolist()]
    names = {str(f): list(c) for f, c in sorted(edges.categories.items())}
    told = [classes, names, forest.combine, coding.scale]
    found.update(json.dumps(told, default=str).encode())
    return found.hexdigest()
