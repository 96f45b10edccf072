"""A fitted model as exporters, files, reports and pictures take it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpuforest.core.criteria import Criterion
from gpuforest.core.forest import Forest


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted model. Estimators make it by their method `_model`."""

    forest: Forest  # the trees, the bins of the features and the coding of the target
    kind: str  # the name of the estimator's class
    task: str  # "classification", "regression", "survival", "effects" and others of `task_of`
    criterion: Criterion  # measures the impurity of nodes
    signs: Callable[[], np.ndarray]  # of monotonic constraints, i8[F]; i8[0]: without constraints
    parameters: dict[str, Any]  # of the estimator, by name
    facts: dict[str, Any]  # the attributes that a fit sets, by name
    is_public: bool  # True if gpuforest exports the class
    keeps_draws: bool  # True if model files keep how rows were drawn

    @property
    def feature_names(self) -> Any:
        """The names of the features in the training data; None: they had no names."""
        return self.facts.get("feature_names_in_")

    @property
    def predicts_quantiles(self) -> bool:
        """True if predictions are quantiles of the targets of training rows."""
        return self.task == "regression" and "_rows_" in self.facts


def is_public(kind: type) -> bool:
    """True if gpuforest exports this class, not only one from which it is derived."""
    homes = vars(import_module("gpuforest"))["_homes"]
    return kind.__module__ == f"gpuforest.{homes.get(kind.__name__)}"


def model_of(fitted: Any, lacks: str) -> Model:
    """The model of a fitted estimator, or a TypeError that says what another object lacks."""
    if isinstance(fitted, Model):
        return fitted
    if hasattr(fitted, "fit"):
        check_is_fitted(fitted)
    if not isinstance(getattr(fitted, "forest_", None), Forest):
        raise TypeError(f"a {type(fitted).__name__} {lacks}")
    model: Model = fitted._model()
    return model
