"""Ensembles around an estimator that the user passes: bags of it, or rounds of boosting."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

from sklearn.base import clone

from gpuforest.estimators.base import BaseTrees
from gpuforest.estimators.trees import DecisionTreeClassifier, DecisionTreeRegressor


def of_tree(name: str) -> Any:
    """A property: the parameter of this name of the tree that an ensemble is made from."""
    return property(lambda self: getattr(self._tree_given, name))


class AroundAnEstimator(BaseTrees):
    """An ensemble of the trees that `estimator` describes, or of any other estimator.

    An ensemble of others is scikit-learn's: `_theirs` makes an estimator of its class that
    shares this one's attributes, and calls are passed on to it.

    _tree : the class of the trees
    _home, _kind : the module in `sklearn.ensemble` and the name of scikit-learn's class
    _mark : an attribute that only a fit by scikit-learn sets
    """

    estimator: Any = None
    estimator_params: tuple[str, ...] = ()
    _tree: ClassVar[type[BaseTrees]]
    _home: ClassVar[str]
    _kind: ClassVar[str]
    _mark: ClassVar[str]

    class_weight, categorical_features, min_category_frequency = map(
        of_tree, ("class_weight", "categorical_features", "min_category_frequency")
    )

    def _default_tree(self) -> Any:
        """The tree, not fitted, that `estimator=None` stands for."""
        return self._tree()

    @property
    def _tree_given(self) -> Any:
        """The tree, not fitted, that each is grown as."""
        return self._default_tree() if self.estimator is None else self.estimator

    @property
    def _grows_trees(self) -> bool:
        """Whether a fit grows our trees. A subclass may do anything, so it is not one of them."""
        ours = type(None), DecisionTreeClassifier, DecisionTreeRegressor
        return type(self.estimator) in ours

    @property
    def _is_theirs(self) -> bool:
        """Whether the last fit was scikit-learn's."""
        return self._mark in vars(self)

    def _theirs(self) -> Any:
        """scikit-learn's estimator of the same name, which shares this one's attributes."""
        # where it is defined: users put ours in its place in sklearn.ensemble. It is slow to import
        kind = getattr(import_module(f"sklearn.ensemble.{self._home}"), self._kind)
        found = kind.__new__(kind)
        found.__dict__ = self.__dict__
        return found

    def _validate_params(self) -> None:
        super()._validate_params()
        if self.estimator is None:
            return
        if type(self.estimator) is not self._tree:
            raise ValueError(
                f"estimator must be a gpuforest.{self._tree.__name__} here, not a "
                f"{type(self.estimator).__name__}"
            )
        self.estimator._validate_params()
        if self.estimator.ccp_alpha == "cv":
            why = "estimator has ccp_alpha='cv', which is for a tree fitted by itself"
            raise ValueError(f"{why}: give the trees of an ensemble a number")

    def save(self, path: Any) -> None:
        """Save as a forest is saved.

        Raises
        ------
        ValueError : an ensemble of other estimators, which are not saved
        """
        if self._is_theirs:
            raise ValueError(
                f"an ensemble of {type(self.estimator).__name__} is no forest, and not saved by "
                "gpuforest: use pickle or joblib"
            )
        super().save(path)

    def get_metadata_routing(self) -> Any:
        """What metadata goes to which method, see scikit-learn's metadata routing."""
        if self._grows_trees:
            return super().get_metadata_routing()
        return self._theirs().get_metadata_routing()

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()
        return state | {"estimators_": self.estimators_} if self._is_theirs else state

    def __sklearn_is_fitted__(self) -> bool:
        return self._is_theirs or super().__sklearn_is_fitted__()

    def __sklearn_tags__(self) -> Any:
        if self._grows_trees:
            return super().__sklearn_tags__()
        return self._theirs().__sklearn_tags__()

    @property
    def estimator_(self) -> Any:
        """The estimator, not fitted, that each one is made from."""
        if self._is_theirs:
            return vars(self)["estimator_"]
        return self._default_tree() if self.estimator is None else clone(self.estimator)
