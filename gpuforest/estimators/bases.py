"""scikit-learn's base classes; bases.pyi says what they have, so that type checkers know all
attributes of an estimator."""

from typing import Any

from sklearn.base import BaseEstimator as BaseEstimator
from sklearn.base import ClassifierMixin as ClassifierMixin
from sklearn.base import MetaEstimatorMixin as MetaEstimatorMixin
from sklearn.base import OutlierMixin as OutlierMixin
from sklearn.base import RegressorMixin as RegressorMixin
from sklearn.base import TransformerMixin as TransformerMixin

try:
    from sklearn import callback
except ImportError:  # scikit-learn before 1.9
    callback = None


class NoCallbacks:
    """A base class instead of the mixin: `object` itself cannot be a base before another."""


CallbackSupport: Any = NoCallbacks if callback is None else callback.CallbackSupportMixin
