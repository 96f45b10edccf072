"""Bagging of trees (Breiman 1996), on rows and features drawn for each tree."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt

from gpuforest import hashing
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.estimators.base import Trees
from gpuforest.estimators.ensembles import ForestClassifier, ForestRegressor
from gpuforest.estimators.settings import FOREST_CONSTRAINTS, VOTING, keep, plain
from gpuforest.estimators.trees import DecisionTreeClassifier, DecisionTreeRegressor
from gpuforest.frontier import Rules
from gpuforest.sampling import tree_features

CONSTRAINTS: dict[str, list[Any]] = {
    **FOREST_CONSTRAINTS,
    "estimator": [HasMethods(["fit", "predict"]), None],
    "max_features": [
        Interval(Integral, 1, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="right"),
    ],
    "bootstrap_features": ["boolean"],
    "random_state": ["random_state"],
}


class Bagging(Trees):
    """What bags of trees share: the tree says how each is grown, the bag from what."""

    estimator: Any
    max_features: int | float
    bootstrap: bool
    bootstrap_features: bool
    _tree: ClassVar[type[Trees]]

    @property
    def estimator_(self) -> Any:
        """The tree that tells how each one is grown."""
        return self._tree() if self.estimator is None else clone(self.estimator)

    def _of_tree(name: str) -> Any:
        return property(lambda self: getattr(self.estimator or self._tree(), name))

    criterion, max_bins, backend, memory_limit = map(
        _of_tree, ("criterion", "max_bins", "backend", "memory_limit")
    )
    class_weight, categorical_features = map(_of_tree, ("class_weight", "categorical_features"))

    def _validate_params(self) -> None:
        super()._validate_params()
        if self.estimator is None:
            return
        if not isinstance(self.estimator, self._tree):
            raise ValueError(
                f"estimator must be a gpuforest.{self._tree.__name__}, not a "
                f"{type(self.estimator).__name__}: only trees are bagged here"
            )
        self.estimator._validate_params()
        if self.estimator.ccp_alpha == "cv":
            raise ValueError(
                "estimator has ccp_alpha='cv', which is for a tree fitted by itself: give the "
                "trees of a bag a number"
            )

    def _growing(self, n_features: int) -> dict[str, Any]:
        drawn = self._features_drawn(n_features)
        own = (
            "n_estimators", "max_estimators", "max_samples", "bootstrap", "bootstrap_features",
            "oob_score",
        )  # fmt: skip
        params = {
            **(self.estimator or self._tree()).get_params(deep=False),
            **{name: getattr(self, name) for name in own},
            "draws_once": not self.bootstrap,
            "features_drawn": 0 if drawn == n_features and not self.bootstrap_features else drawn,
        }
        return plain(params)

    def _features_drawn(self, n_features: int) -> int:
        """Features drawn for a tree."""
        n = self.max_features
        drawn = int(n) if isinstance(n, Integral) else max(1, int(n * n_features))
        if drawn > n_features:
            raise ValueError(f"max_features={n} must be <= n_features={n_features}")
        return drawn

    @property
    def estimators_features_(self) -> list[np.ndarray]:
        """Features drawn for each tree, int64, ascending, each once; drawn again from the seed.

        A tree looks at no others, but takes and counts them all.
        """
        forest, F = self.forest_, self.n_features_in_
        host, drawn = NumpyBackend(), self._features_drawn(F)
        if drawn == F and not self.bootstrap_features:
            return [np.arange(F)] * forest.n_trees
        rules = Rules(
            0, F, 1, 2, 1, 0.0, n_features_tree=drawn, features_again=self.bootstrap_features
        )
        keys = hashing.tree_keys(np, forest.seed, 0, forest.n_trees)
        allowed = tree_features(keys, rules, F, host)
        assert allowed is not None
        return [np.flatnonzero(some) for some in allowed]


class BaggingClassifier(Bagging, ForestClassifier):
    """Bagged decision trees for classes.

    Parameters
    ----------
    estimator : DecisionTreeClassifier or None, default=None
        How each tree is grown, on which backend, in what memory; None:
        `DecisionTreeClassifier()`. Its random_state is not looked at.
    n_estimators : int or "auto", default=10
        Trees; "auto": as many as it takes until the out-of-bag error has converged.
    max_samples : int, float or None, default=None
        Rows drawn for a tree; a float is a fraction of the total weight, or of the rows where
        they are drawn without replacement; None: as many as there are rows.
    max_features : int or float, default=1.0
        Features drawn for a tree; a float is a fraction of them.
    bootstrap : bool, default=True
        Rows are drawn with replacement; False: without.
    bootstrap_features : bool, default=False
        Features are drawn with replacement.
    voting : {"soft", "hard"}, default="soft"
        The mean of the trees' class proportions, or the share of trees that vote for a class.
    oob_score, oob_tol, max_estimators, warm_start, n_jobs, random_state, verbose
        As for `RandomForestClassifier`.

    Attributes
    ----------
    estimator_ : DecisionTreeClassifier, not fitted
    estimators_features_ : list of int64 ndarray, the features drawn for each tree
    others : as of `RandomForestClassifier`

    References
    ----------
    L. Breiman, "Bagging predictors", Machine Learning 24, 1996; T. Ho, "The random subspace
    method for constructing decision forests", IEEE TPAMI 20, 1998; G. Louppe and P. Geurts,
    "Ensembles on random patches", ECML 2012.
    """

    _tree = DecisionTreeClassifier
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**CONSTRAINTS, "voting": VOTING}

    def __init__(
        self,
        estimator: DecisionTreeClassifier | None = None,
        n_estimators: int | str = 10,
        *,
        max_samples: int | float | None = None,
        max_features: int | float = 1.0,
        bootstrap: bool = True,
        bootstrap_features: bool = False,
        voting: str = "soft",
        oob_score: bool | Callable[..., float] = False,
        oob_tol: float = 0.005,
        max_estimators: int = 1000,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        keep(self, locals())


class BaggingRegressor(Bagging, ForestRegressor):
    """Bagged decision trees for real numbers.

    Parameters
    ----------
    estimator : DecisionTreeRegressor or None, default=None
        How each tree is grown, on which backend, in what memory; None:
        `DecisionTreeRegressor()`. Its random_state is not looked at.
    n_estimators, max_samples, max_features, bootstrap, bootstrap_features
        As for `BaggingClassifier`.
    oob_score, oob_tol, max_estimators, warm_start, n_jobs, random_state, verbose
        As for `RandomForestRegressor`.

    Attributes
    ----------
    estimator_ : DecisionTreeRegressor, not fitted
    estimators_features_ : list of int64 ndarray, the features drawn for each tree
    others : as of `RandomForestRegressor`
    """

    _tree = DecisionTreeRegressor
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS

    def __init__(
        self,
        estimator: DecisionTreeRegressor | None = None,
        n_estimators: int | str = 10,
        *,
        max_samples: int | float | None = None,
        max_features: int | float = 1.0,
        bootstrap: bool = True,
        bootstrap_features: bool = False,
        oob_score: bool | Callable[..., float] = False,
        oob_tol: float = 0.005,
        max_estimators: int = 1000,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        keep(self, locals())
