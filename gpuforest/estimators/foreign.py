"""Estimators inside Bagging* and AdaBoost*: a tree of gpuforest, or another that scikit-learn fits.

Other estimators, and subclasses of the trees, are fitted by scikit-learn's class of the same name.
Its model shares the attributes of the ensemble, and members of the ensemble give the model's.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import cache, cached_property, wraps
from importlib import import_module
from inspect import signature
from operator import attrgetter
from typing import Any, TypeVar

from sklearn.base import clone

from gpuforest.estimators import fit_scope, trees

T = TypeVar("T", bound=type)


def fits_other(ensemble: Any) -> bool:
    """True if scikit-learn fits the estimator. Subclasses of the trees may do anything else."""
    kinds = type(None), trees.DecisionTreeClassifier, trees.DecisionTreeRegressor
    return type(vars(ensemble).get("estimator")) not in kinds


def fitted_by_sklearn(ensemble: Any) -> bool:
    """True if scikit-learn has fitted the ensemble."""
    return "estimators_" in vars(ensemble) and "forest_" not in vars(ensemble)


def sklearn_model(ensemble: Any) -> Any:
    """scikit-learn's estimator of the same name, which shares the ensemble's attributes."""
    # from the module that defines it: users put gpuforest's in its place in sklearn.ensemble
    module, name = ensemble._sklearn_class
    kind = getattr(import_module(f"sklearn.ensemble.{module}"), name)
    model = kind.__new__(kind)
    model.__dict__ = ensemble.__dict__
    return model


@contextmanager
def fitting(ensemble: Any) -> Iterator[Any]:
    """scikit-learn's model for a fit inside, whose attributes the ensemble gets afterwards."""
    with fit_scope.replacing(ensemble) as fitted:
        if fitted_by_sklearn(ensemble) and getattr(ensemble, "warm_start", False):
            for name, value in vars(ensemble).items():  # lists are added to in place
                fitted.__dict__[name] = copy(value) if isinstance(value, list) else value
        model = sklearn_model(fitted)
        for name, parameter in signature(type(model)).parameters.items():
            fitted.__dict__.setdefault(name, parameter.default)  # they differ before 1.8
        fitted.__dict__.setdefault("estimator_params", ())  # which its constructor sets
        yield model


def or_sklearn(module: str, members: str) -> Callable[[T], T]:
    """A class decorator for ensembles whose parameter `estimator` may be of any class. `module`, in
    `sklearn.ensemble`, has the class of the same name, and `members` its methods and properties."""

    def decorate(cls: Any) -> Any:
        cls._sklearn_class = module, cls.__name__
        cls._fitted_by_sklearn, cls._made_from = property(fitted_by_sklearn), property(tree_of)
        for name in PARAMETERS:
            if name not in vars(cls) and name not in cls._parameter_constraints:
                setattr(cls, name, property(attrgetter(f"_made_from.{name}"), doc=""))
        for name in ("__len__", *members.split()):
            setattr(cls, name, _either(getattr(cls, name), name, fitted_by_sklearn))
        for name in ("__sklearn_tags__", "get_metadata_routing"):
            setattr(cls, name, _either(getattr(cls, name), name, fits_other))
        return cls

    return decorate


def _either(member: Any, name: str, by_sklearn: Callable[[Any], bool]) -> Any:
    """A method or property, which is that of scikit-learn's model if `by_sklearn(ensemble)`."""
    if isinstance(member, property | cached_property):

        def value(self: Any) -> Any:
            return getattr(sklearn_model(self), name) if by_sklearn(self) else member.__get__(self)

        return property(value, doc=member.__doc__)

    @wraps(member)
    def call(self: Any, *args: Any, **params: Any) -> Any:
        if by_sklearn(self):
            return getattr(sklearn_model(self), name)(*args, **params)
        return member(self, *args, **params)

    return call


def check_tree(kind: Any, tree: Any) -> None:
    """Raise a ValueError if an ensemble cannot grow trees as this estimator."""
    if type(tree) is not kind:
        raise ValueError(
            f"estimator must be a gpuforest.{kind.__name__} here, not a {type(tree).__name__}"
        )
    tree._validate_params()
    if tree.ccp_alpha == "cv":
        why = "estimator has ccp_alpha='cv', which is for a tree fitted by itself"
        raise ValueError(f"{why}: give the trees of an ensemble a number")


def estimator_(self: Any) -> Any:
    """The unfitted estimator that each member of the ensemble is made from."""
    return clone(tree_of(self))


def tree_of(ensemble: Any) -> Any:
    """The unfitted tree whose parameters the trees of an ensemble have; not to be changed."""
    given = ensemble.estimator
    return _default_tree(ensemble._tree, ensemble._default_depth) if given is None else given


# parameters that an ensemble has from its tree, unless they are its own
PARAMETERS = (
    "criterion", "class_weight", "categorical_features", "min_category_frequency",
    "categorical_split", "max_bins", "backend", "memory_limit",
)  # fmt: skip


@cache  # because a fit reads many parameters
def _default_tree(kind: Any, max_depth: int | None) -> Any:
    """The tree of this depth that `estimator=None` means."""
    return kind(max_depth=max_depth)
