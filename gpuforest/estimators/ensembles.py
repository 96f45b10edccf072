"""Ensembles: their trees, leaves, paths and out-of-bag predictions."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from inspect import signature
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from gpuforest.backends.numpy import NumpyBackend
from gpuforest.common import arguments, hashing
from gpuforest.core.target import CheckedTarget
from gpuforest.data import arrays
from gpuforest.data.binned import FitInput
from gpuforest.estimators import (
    by_ids,
    foreign,
    forgetting,
    kept,
    methods,
    out_of_bag,
    settings,
    task,
)
from gpuforest.estimators.base import BaseTrees, Classifier, Regressor, grown_settings
from gpuforest.estimators.trees import DecisionTreeClassifier, DecisionTreeRegressor
from gpuforest.explain.paths import decision_paths, one_tree
from gpuforest.growing import predict as prediction
from gpuforest.growing.bags import tree_features

T = TypeVar("T")


def shared_params(kind: Any, params: dict[str, Any]) -> dict[str, Any]:
    """A forest's parameters that each of its trees is given. Class weights count in its bags."""
    names = set(kind._get_param_names()) - {"class_weight", "random_state"}
    return {name: value for name, value in params.items() if name in names}


def template(estimator: Any) -> Any:
    """The unfitted tree of a fitted forest, with the parameters that both know."""
    kind, grown_by = estimator._tree, estimator._tree_params() | vars(grown_settings(estimator))
    return kind(**shared_params(kind, grown_by), random_state=estimator.seed_)


class BaseForest(BaseTrees):
    """An ensemble of trees, whose class is `_tree`."""

    _tree: ClassVar[Any] = None
    _family = "forests"
    oob_score_: float
    oob_curve_: Bunch
    oob_max_features_: Bunch
    oob_parameters_: Bunch
    oob_shrinkage_: Bunch

    @property
    def estimator(self) -> Any:
        """A tree, not fitted, of the kind that the forest grows."""
        return self._tree(splitter=self._splitter)

    @property
    def estimator_params(self) -> tuple[str, ...]:
        """Names of the parameters that each tree takes from the forest."""
        own = self.get_params(deep=False)
        return (*shared_params(type(self.estimator), own), "random_state")

    @property
    def estimator_(self) -> Any:
        """The tree, not fitted, with the parameters that each was grown by."""
        check_is_fitted(self)
        return template(self)

    def _validate_params(self) -> None:
        super()._validate_params()
        settings.check_out_of_bag(vars(self))
        settings.check_by_class(vars(self))
        if (tree := vars(self).get("estimator")) is not None:
            foreign.check_tree(self._tree, tree)

    def _settings(self) -> settings.Settings:
        asked, words = vars(self), settings.BY_ERROR
        shared: dict[str, Any] = {"balanced_by_weight": True, "is_single": False}
        if "oob" in (asked.get("max_features"), asked.get("min_samples_leaf")):
            chosen = tuple(name for name in settings.PAIR if asked.get(name) == words[name])
            known = signature(type(self)).parameters
            shared |= {name: known[name].default for name in chosen}
            shared |= {"by_error": chosen, "trial_trees": out_of_bag.FIRST_TREES}
        return replace(super()._settings(), **shared)

    @property
    def _n_samples_bootstrap(self) -> int | None:
        """Rows or groups drawn for each tree, by scikit-learn's name; None: all rows are taken."""
        return self._sampling_.n_draws or None

    def __len__(self) -> int:
        """Number of trees."""
        return self.n_estimators_

    def __getitem__(self, index: Any) -> Any:
        """One of the trees, or some: `estimators_[index]`."""
        return self.estimators_[index]

    def __iter__(self) -> Iterator[Any]:
        """The trees one after another."""
        return iter(self.estimators_)

    @cached_property
    def estimators_(self) -> list[Any]:
        """The trees as fitted estimators, made when they are first asked for."""
        check_is_fitted(self)
        names = ("criterion_", "backend_", "n_features_in_", "feature_names_in_")
        shared = {name: getattr(self, name) for name in names if hasattr(self, name)}
        forest, trees = self.forest_.unweighted, []
        params = template(self).get_params(deep=False)
        for t in range(forest.n_trees):
            # this seed grows the same tree again from the rows of its bag, see `hashing`
            params["random_state"] = seed = (forest.seed + t * hashing.GOLDEN) % 2**64
            tree = self._tree(**params)
            vars(tree).update(shared)
            tree._keep(one_tree(forest, t))
            tree.seed_ = seed
            trees.append(tree)
        return trees

    @property
    def n_estimators_(self) -> int:
        """Trees."""
        check_is_fitted(self)
        return self.forest_.n_trees

    def apply(self, X: Any) -> Any:
        """The leaf that each row reaches in each tree."""
        return self._walk(X, prediction.apply)

    def decision_path(self, X: Any) -> Any:
        """The nodes that each row passes, from the root to its leaf.

        Returns
        -------
        indicator : sparse int64 matrix of shape (n_samples, n_nodes), ones where a row passes
            a node; the trees stand side by side
        n_nodes_ptr : int64 array of shape (n_estimators + 1,), where each tree begins
        """
        leaves = arrays.to_host(self._walk(X, prediction.apply))
        return decision_paths(self.forest_, leaves), self.forest_.tree_offsets.copy()


class ByIds:
    """What forests have whose bags may depend on the ids of rows."""

    def fit(
        self: T, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None,
        blocks: Any = None, row_ids: Any = None, keep_bytes: int | str = 0,
    ) -> T:  # fmt: skip
        """Grow the trees."""
        forest: Any = self
        if forest.bootstrap == by_ids.BY_IDS:
            by_ids.check(vars(forest))
        elif row_ids is not None or keep_bytes:
            raise ValueError(
                "row_ids say how often rows count in Poisson bags, whose forests can keep_bytes: "
                "set bootstrap='poisson', or pass neither"
            )
        most = arguments.byte_count(keep_bytes) or 0
        given = FitInput.of(X, y, sample_weight, groups, blocks, row_ids, most)
        BaseTrees.fit(forest, given)
        return self

    @property
    def row_ids_(self: Any) -> np.ndarray | None:
        """The ids that the fit was given."""
        check_is_fitted(self)
        return self._sampling_.ids if hasattr(self, "_sampling_") else None

    @property
    def kept_bytes_(self: Any) -> int:
        """Bytes that are kept so that rows can leave and join: of histograms, rows and codes."""
        check_is_fitted(self)
        return self._kept_.n_bytes if hasattr(self, "_kept_") else 0


def delete(self: Any, row_ids: Any, X: Any = None, y: Any = None, sample_weight: Any = None) -> Any:
    """Become the forest that a fit without some rows gives, bit for bit.

    Trees grow anew below the first split that these rows change, and all others stay. A warning
    says so where all trees grow anew, because the rows moved what a fit learns from chosen rows;
    see docs/learning.md.

    Parameters
    ----------
    row_ids : int or array-like of ints of shape (n,)
        The ids of the rows that leave.
    X, y, sample_weight : as of the last fit, with all its rows in the order of `row_ids_`
        None: the fit was told by `keep_bytes` to keep what is needed of them.

    Raises
    ------
    ValueError
        The bags are not of `bootstrap="poisson"`, parameters changed since the fit, ids are
        unknown, other numbers of rows, rows that do not match the digest in `proof_`, or no row of
        a class is left; or X is None, and it is needed. The forest is then as it was.
    """
    if X is None:
        kept.delete(self, row_ids)
        return self
    changed = forgetting.without(self, row_ids, X, [y, sample_weight])
    forgetting.check_digest(self, X, y, sample_weight)
    return _changed(self, *changed)


def insert(self: Any, row_ids: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Become the forest that a fit with more rows gives, bit for bit; see `delete`.

    Parameters
    ----------
    row_ids : int or array-like of ints of shape (n,)
        The ids of the rows that join.
    X, y, sample_weight : of these rows, if the fit was told to `keep_bytes`; or as of the last
        fit, with all its rows in the order of `row_ids_`, and the new rows after them
    """
    if hasattr(self, "_kept_") and arrays.count_rows(X) == np.size(row_ids):
        kept.insert(self, row_ids, X, y, sample_weight)
        return self
    changed = forgetting.with_more(self, row_ids, X)
    forgetting.check_digest(self, X, y, sample_weight)
    return _changed(self, X, y, sample_weight, *changed)


def _changed(self: Any, X: Any, y: Any, weight: Any, ids: np.ndarray, of: forgetting.Kept) -> Any:
    keep_bytes = self._kept_.most_bytes if hasattr(self, "_kept_") else 0
    return BaseTrees.fit(self, FitInput(X, y, weight, row_ids=ids, kept=of, keep_bytes=keep_bytes))


def drawn_features(self: Any) -> list[np.ndarray]:
    """Features that each tree splits on, ascending int64, one array for each tree.

    They are drawn again from the seed. The trees still take X with all features. Other
    estimators take these features only, in the order in which they were drawn.
    """
    asked, F, T = self._settings(), self.n_features_in_, self.forest_.n_trees
    keys = hashing.tree_keys(np, self.forest_.seed, 0, T)
    n, again = settings.features_of_tree(asked, F), asked.bootstrap_features
    allowed = tree_features(keys, n, again, F, NumpyBackend())
    return [np.arange(F)] * T if allowed is None else [np.flatnonzero(row) for row in allowed]


class ForestClassifier(BaseForest, Classifier):
    """Many trees for classes."""

    _tree, _takes_outputs = DecisionTreeClassifier, True
    oob_decision_function_: np.ndarray
    unbiased_importances: bool = False
    _keeps_draws = True
    proximity, neighbours, predict_set = methods.proximity, methods.neighbours, methods.predict_set
    unbiased_feature_importances_ = property(methods.unbiased_feature_importances_)
    estimators_samples_ = property(methods.estimators_samples_)

    def _validate_y_class_weight(
        self, y: np.ndarray, sample_weight: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """As in scikit-learn's forests: class codes i64[N, n_outputs] of labels, and the weights
        f64[N] that class_weight gives the rows; None: it gives none, or others in each bag."""
        pairs = [np.unique(labels, return_inverse=True) for labels in np.asarray(y).T]
        classes, codes = map(list, zip(*pairs, strict=True))
        weight, checked = self.class_weight, CheckedTarget(codes, classes)
        by_bag = weight is None or weight == settings.BALANCED
        by_bag = by_bag or (weight == "balanced_subsample" and self.bootstrap)
        factors = None if by_bag else settings.row_weights_of(weight, checked, sample_weight)
        return task.host_target(checked), factors


def fewest_rows(self: Any) -> int | float:
    """Rows that either side of a split must have; also where they were chosen, their number."""
    check_is_fitted(self)
    return grown_settings(self).min_samples_leaf


def shrinkage(self: Any) -> float:
    """Lambda of hierarchical shrinkage; for "oob" the number that the fit chose."""
    check_is_fitted(self)
    return float(grown_settings(self).shrinkage)


class ForestRegressor(BaseForest, Regressor):
    """Many trees for real numbers."""

    _tree, _takes_outputs = DecisionTreeRegressor, True
    oob_prediction_: np.ndarray
    unbiased_importances: bool = False
    _keeps_draws = True
    proximity, neighbours = methods.proximity, methods.neighbours
    unbiased_feature_importances_ = property(methods.unbiased_feature_importances_)
    estimators_samples_ = property(methods.estimators_samples_)
    predict, predict_interval = methods.predict, methods.predict_interval
    _products_ = cached_property(methods.products_of)


class UnsupervisedForest(BaseForest):
    """Trees of random cuts, which are grown for a random target."""

    _tree = DecisionTreeRegressor
    _splitter = "random"
    criterion = "squared_error"
    _task, _family = task.NO_TARGET, "isolation"
    estimators_samples_ = property(methods.estimators_samples_)

    def fit(  # type: ignore[override]  # rows that belong together are no matter here
        self, X: Any, y: Any = None, sample_weight: Any = None
    ) -> Self:
        """Grow the trees."""
        return super().fit(X, None, sample_weight)
