"""Classifiers and regressors: their predictions and scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace
from sklearn.metrics import accuracy_score, r2_score

from gpuforest.core.forest import Forest
from gpuforest.data import arrays
from gpuforest.estimators import bases, fit_scope, task
from gpuforest.estimators.base import BaseTrees
from gpuforest.estimators.plan import TrainingPlan
from gpuforest.growing import predict as prediction


def score(self: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """How good `predict(X)` is: the accuracy for classes, R^2 for real numbers.

    Parameters
    ----------
    y : array-like of shape (n_samples,), the true targets
    sample_weight : array-like of shape (n_samples,), default=None

    Returns
    -------
    float
    """
    metric = accuracy_score if isinstance(self, bases.ClassifierMixin) else r2_score
    y, predicted, weight = (arrays.to_host(a) for a in (y, self.predict(X), sample_weight))
    return float(metric(y, predicted, sample_weight=weight))


class Classifier(bases.ClassifierMixin, BaseTrees):
    """Adds class targets."""

    voting: str = "soft"
    classes_: Any
    n_classes_: Any
    score = score
    _task = task.CLASSES

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = tags.target_tags.multi_output
        return tags

    def predict(self, X: Any) -> Any:
        """The class of the highest mean probability; the first among equals.

        Returns
        -------
        Array of shape (n_samples,) or (n_samples, n_outputs), of the dtype of `classes_` and
        of the kind of X: where X is on a GPU, a result on it; but strings and several outputs
        are in a NumPy array always

        Raises
        ------
        ValueError
            Other features than in training, infinities, no numbers; X on another GPU
            than the current one.
        """
        return self._walk(X, prediction.predict_classes)

    def predict_proba(self, X: Any) -> Any:
        """Mean over the trees of the class proportions in the leaves, or of their votes.

        Returns
        -------
        float64 array of shape (n_samples, n_classes), in the order of `classes_`, or a list
        of them, one for each of several outputs; on a GPU where X is on one
        """
        model = fit_scope.snapshot(self)
        shares, coding = model._walk(X, prediction.predict), model.forest_.coding
        return coding.split(shares) if coding.several else shares

    def predict_log_proba(self: Any, X: Any) -> Any:
        """The logarithm of `predict_proba(X)`, -inf where that is 0.

        Returns
        -------
        float64 array of shape (n_samples, n_classes), or a list of them; on a GPU where X is
        on one
        """
        shares = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            if isinstance(shares, list):
                return [array_namespace(f).log(f) for f in shares]
            return array_namespace(shares).log(shares)

    def _keep(self, forest: Forest, plan: TrainingPlan | None = None) -> None:
        super()._keep(forest, plan)
        coding = forest.coding
        self.classes_ = list(coding.several) if coding.several else coding.classes
        self.n_classes_ = [len(c) for c in coding.several] or len(self.classes_)


class Regressor(bases.RegressorMixin, BaseTrees):
    """Adds real targets."""

    score = score
    _task = task.NUMBERS

    def predict(self, X: Any) -> Any:
        """What the trees predict together, where X is."""
        values = self._walk(X, prediction.predict)
        return values[:, 0] if self.n_outputs_ == 1 else values
