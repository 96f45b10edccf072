"""Estimators whose target is classes, and estimators whose target is real numbers."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from sklearn.metrics import accuracy_score, r2_score

from gpuforest.backends.base import Backend
from gpuforest.core import criteria
from gpuforest.core.forest import Forest
from gpuforest.core.rules import Sampling
from gpuforest.core.target import CheckedTarget, TargetCoding
from gpuforest.data import arrays, validation
from gpuforest.estimators import bases, fits
from gpuforest.estimators.base import BaseTrees
from gpuforest.growing import predict as prediction
from gpuforest.growing.targets import encode_classes, encode_moments, encode_several, typical_ranges

Array = Any

# The fewest points of the grid that an output should take, and that it must take
COARSE, LOST = 2**20, 2**10


def encode_numbers(
    self: Any, checked: CheckedTarget, sampling: Sampling, backend: Backend
) -> tuple[TargetCoding, Array]:
    """The coding of a target of real numbers, and its moments: a method of estimators."""
    y = backend.asarray(checked.values)
    y = y[:, None] if y.ndim == 1 else y
    if sampling.weights is not None and not sampling.weights.all():
        # rows that never count must not widen the range of the fixed point
        counts = sampling.weights > 0
        y = backend.xp.where(backend.asarray(counts)[:, None], y, y[int(np.argmax(counts)), ...])
    centred = criteria.CRITERIA[self.criterion].centred
    coding, moments = encode_moments(y, sampling.most_weight, centred=centred, backend=backend)
    if y.shape[1] > 1:
        _check_grid(y, moments, backend)
    _warn_of_far_targets(y, coding, backend)
    return coding, moments


def host_target(checked: CheckedTarget) -> np.ndarray:
    """Class codes, or numbers, [N, n_outputs] on the host."""
    if checked.classes is not None:
        return np.stack([arrays.to_host(codes) for codes in checked.values], axis=1)
    y = np.asarray(arrays.to_host(checked.values))
    return y.reshape(len(y), -1)


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

    class_weight: Any
    voting: str = "soft"
    classes_: Any
    n_classes_: Any
    score = score

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
        model = fits.as_it_is(self)
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

    def _check_target(self, y: Any, n_rows: int, backend: Backend) -> CheckedTarget:
        return validation.check_labels(y, n_rows, backend)

    def _labels(self, checked: CheckedTarget) -> CheckedTarget | None:
        if self.class_weight is None:
            return None
        return replace(checked, values=[arrays.to_host(codes) for codes in checked.values])

    def _encode_target(
        self, checked: CheckedTarget, sampling: Sampling, backend: Backend
    ) -> tuple[TargetCoding, Array]:
        codes, classes = checked.values, checked.classes
        assert classes is not None
        if len(classes) == 1:
            return encode_classes(codes[0], classes[0])
        return encode_several(codes, classes, backend)

    def _combine(self) -> str:
        return "votes" if self.voting == "hard" else "mean"

    def _keep(self, forest: Forest) -> None:
        super()._keep(forest)
        coding = forest.coding
        self.classes_ = list(coding.several) if coding.several else coding.classes
        self.n_classes_ = [len(c) for c in coding.several] or len(self.classes_)


class Regressor(bases.RegressorMixin, BaseTrees):
    """Adds real targets."""

    score = score

    def predict(self, X: Any) -> Any:
        """What the trees predict together, where X is."""
        values = self._walk(X, prediction.predict)
        return values[:, 0] if self.n_outputs_ == 1 else values

    def _check_target(self, y: Any, n_rows: int, backend: Backend) -> CheckedTarget:
        return validation.check_numbers(y, n_rows, criteria.CRITERIA[self.criterion], backend)

    _encode_target = encode_numbers


def _check_grid(y: Array, moments: Array, backend: Backend) -> None:
    """Warn if the grid, which all outputs share, is coarse for one of them; raise a ValueError if
    its predictions would be as good as constant."""
    xp = backend.xp
    varies = backend.asnumpy(xp.max(y, axis=0) > xp.min(y, axis=0))
    spread = backend.asnumpy(xp.max(moments, axis=0) - xp.min(moments, axis=0))
    coarse = np.flatnonzero(varies & (spread < COARSE) & (spread.max() > COARSE**1.5))
    if (lost := coarse[spread[coarse] < LOST]).size:
        raise ValueError(
            f"output {lost[0]} of y has a range so small beside another's that it would be lost: "
            "scale the outputs to similar ranges, or fit them apart"
        )
    if len(coarse):
        warnings.warn(
            f"output {coarse[0]} of y has a range so small beside another's that its "
            "predictions are coarse: scale the outputs to similar ranges",
            UserWarning,
            stacklevel=2,
        )


def _warn_of_far_targets(y: Array, coding: TargetCoding, backend: Backend) -> None:
    """Warn if a few targets lie so far out that the grid is too coarse for all others."""
    middle, width = typical_ranges(y, np.full(y.shape[1], LOST / coding.scale), backend)
    for k in np.flatnonzero(width * coding.scale < LOST).tolist():
        low, high = (float(find(y[:, k])) for find in (backend.xp.min, backend.xp.max))
        if high - low <= LOST * width[k]:
            continue  # other outputs are wider, or no target differs
        far = high if high - middle[k] > middle[k] - low else low
        warnings.warn(
            f"y has the value {far:.3g}, and half of its values lie within {width[k]:.3g}: beside "
            f"it they are rounded to steps of {1 / coding.scale:.3g}, and forests learn little "
            "from smaller differences. Remove or clip the values that lie far out, or take "
            "logarithms",
            UserWarning,
            stacklevel=2,
        )
