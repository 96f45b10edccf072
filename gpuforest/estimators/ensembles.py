"""Ensembles: their trees, leaves, paths and out-of-bag predictions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property, wraps
from importlib import import_module
from inspect import signature
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from gpuforest.backends.base import Backend
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.common import hashing, progress
from gpuforest.common.hashing import GOLDEN
from gpuforest.common.progress import report
from gpuforest.data.arrays import to_host
from gpuforest.engine import predict as prediction
from gpuforest.engine.forest import Forest
from gpuforest.engine.grow import keeping_scratch
from gpuforest.engine.records import Sampling, Training
from gpuforest.engine.sampling import tree_features
from gpuforest.engine.target import CheckedTarget
from gpuforest.estimators import bagged
from gpuforest.estimators.base import BaseTrees
from gpuforest.estimators.growing import (
    FIRST_TREES,
    FitData,
    TrainingPlan,
    as_bunch,
    grow_until_converged,
    tune_features,
)
from gpuforest.estimators.settings import Settings, check_out_of_bag, row_weights_of
from gpuforest.estimators.tasks import Classifier, Regressor
from gpuforest.estimators.trees import DecisionTreeClassifier, DecisionTreeRegressor
from gpuforest.explain.importances import Score
from gpuforest.explain.oob import Error, OutOfBag, curve_points, sampled_rows
from gpuforest.explain.paths import decision_paths, one_tree
from gpuforest.explain.uncertainty import (
    calibrated,
    calibrated_classes,
    mean_and_spread,
    with_squares,
)


def stacked(checked: CheckedTarget) -> tuple[np.ndarray, np.ndarray]:
    """Class codes [N, n_outputs], and where the outputs after the first begin among the values
    of a prediction."""
    assert checked.classes is not None
    y = np.stack([to_host(codes) for codes in checked.values], axis=1)
    return y, np.cumsum([len(c) for c in checked.classes])[:-1]


def accuracy(y: np.ndarray, values: np.ndarray, ends: np.ndarray) -> float:
    """Share of the rows of which all outputs have their most likely class."""
    labels = [part.argmax(axis=1) for part in np.split(values, ends, axis=1)]
    return float(np.mean((np.stack(labels, axis=1) == y).all(axis=1)))


def subset_accuracy(y: np.ndarray, found: np.ndarray) -> float:
    """Share of the rows whose outputs are all right, as scikit-learn's `accuracy_score` where it
    takes the outputs: it refuses several of more than two classes."""
    return float(np.mean((y == found).all(axis=1)))


def columns_of(y: Any) -> np.ndarray:
    """Targets f64[N, n_outputs] on the host."""
    return np.asarray(to_host(y)).reshape(len(y), -1)


def r_squared(y: np.ndarray, found: np.ndarray) -> float:
    """R^2 of values f64[n, n_outputs] as scikit-learn's `r2_score` gives it, in a tenth of the
    time, because it is called often."""
    left = ((y - found) ** 2).sum(axis=0)
    spread = ((y - y.mean(axis=0)) ** 2).sum(axis=0)
    scores = 1 - left / np.where(spread > 0, spread, 1)
    return float(np.where(spread > 0, scores, left == 0).mean())


OWN = {"class_weight", "random_state"}  # class weights count in the forest's bags


def members(estimator: Any) -> list[Any]:
    """`estimators_` of a fitted forest: its trees as fitted estimators.

    They share the forest's edges, its leaf table and what follows from them. Each has a
    `random_state` by which the same tree grows again from the rows of its bag.
    """
    unfitted, forest = template(estimator), estimator.forest_.unweighted
    names = ("criterion_", "backend_", "n_features_in_", "feature_names_in_")
    shared = {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}
    params, kind = unfitted.get_params(deep=False), type(unfitted)
    trees = []
    for t in range(forest.n_trees):
        # a single tree's key under this seed is that of the forest's tree t, see `hashing`
        tree = kind(**{**params, "random_state": (forest.seed + t * GOLDEN) % 2**64})
        vars(tree).update(shared)  # there are no feature names without a frame
        tree._keep(one_tree(forest, t))
        tree.seed_ = tree.random_state
        trees.append(tree)
    return trees


def shared_params(kind: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Those of a forest's parameters that each of its trees is given."""
    known = set(kind._get_param_names()) - OWN
    return {name: value for name, value in params.items() if name in known}


def kind_of(is_classes: bool) -> Any:
    """The class of a forest's trees."""
    return DecisionTreeClassifier if is_classes else DecisionTreeRegressor


def template(estimator: Any) -> Any:
    """The DecisionTreeClassifier or DecisionTreeRegressor, not fitted, of a fitted forest's trees.

    It has the parameters that both know but `class_weight`, which counts in the forest's bags.
    """
    coding = estimator.forest_.coding
    kind = kind_of(bool(coding.is_classes or coding.several))
    grown_by = estimator._tree_params() | vars(estimator._settings(estimator.n_features_in_))
    return kind(**shared_params(kind, grown_by), random_state=estimator.seed_)


class BaseForest(BaseTrees):
    """An ensemble: its trees, or scikit-learn's ensemble of other estimators (Bagging*, AdaBoost*).

    `_theirs` makes an estimator of scikit-learn's class that shares the attributes of this one, and
    calls are passed on to it.

    _tree : the class of the trees that `estimator` may describe
    _home, _kind : the module in `sklearn.ensemble` and the name of scikit-learn's class
    _mark : an attribute that only a fit by scikit-learn sets
    """

    _tree: ClassVar[Any] = None
    _home: ClassVar[str] = ""
    _kind: ClassVar[str] = ""
    _mark: ClassVar[str] = ""
    oob_curve_: Bunch
    oob_max_features_: Bunch
    bootstrap: bool
    oob_score: bool | Callable[..., float]
    oob_tol: float
    max_estimators: int

    @property
    def estimator(self) -> Any:
        """A tree, not fitted, of the kind that the forest grows."""
        return kind_of(is_classifier(self))(splitter=self._splitter)

    @property
    def estimator_params(self) -> tuple[str, ...]:
        """Names of the parameters that each tree takes from the forest."""
        names = self.get_params(deep=False)
        return (*shared_params(type(self.estimator), names), "random_state")

    @property
    def estimator_(self) -> Any:
        """The tree, not fitted, with the parameters that each was grown by."""
        check_is_fitted(self)
        return template(self)

    @property
    def _most_trees(self) -> int:
        """The most trees that a fit may grow."""
        return int(self.max_estimators if self.n_estimators == "auto" else self.n_estimators)

    def _validate_params(self) -> None:
        super()._validate_params()
        check_out_of_bag(vars(self))
        tree = vars(self).get("estimator")
        if tree is None:
            return
        if type(tree) is not self._tree:
            raise ValueError(
                f"estimator must be a gpuforest.{self._tree.__name__} here, not a "
                f"{type(tree).__name__}"
            )
        tree._validate_params()
        if tree.ccp_alpha == "cv":
            why = "estimator has ccp_alpha='cv', which is for a tree fitted by itself"
            raise ValueError(f"{why}: give the trees of an ensemble a number")

    def _check_target(self, y: Any, n_rows: int, backend: Backend) -> CheckedTarget:
        if hasattr(y, "toarray"):  # another error and other words than of single trees, as there
            raise ValueError("sparse multilabel-indicator for y is not supported.")
        return super()._check_target(y, n_rows, backend)

    def _settings(self, n_features: int) -> Settings:
        settings = super()._settings(n_features)
        of_forest = replace(settings, balanced_by_weight=True, is_single=False)
        if of_forest.max_features == "oob":
            return replace(of_forest, max_features=self._best_features())
        return of_forest

    def _best_features(self) -> Any:
        """The number that max_features="oob" found; before the fit the one that it begins with."""
        if not hasattr(self, "oob_max_features_"):
            return signature(type(self)).parameters["max_features"].default
        tried = self.oob_max_features_
        return int(tried.max_features[np.argmin(tried.error)])

    def _first_waves(
        self, plan: TrainingPlan, checked: CheckedTarget, data: FitData
    ) -> tuple[TrainingPlan, list[Forest], int]:
        """Out-of-bag errors may choose the number of trees and that of features tried."""
        plan, waves, n_trees = super()._first_waves(plan, checked, data)
        by_error = getattr(self, "max_features", None) == "oob"
        if sum(wave.n_trees for wave in waves) == n_trees:
            return plan, waves, n_trees  # only their out-of-bag errors are asked for
        if not by_error and self.n_estimators != "auto":
            return plan, waves, n_trees
        training = plan.training
        plan = replace(plan, training=keeping_scratch(training))
        error, first_waves = self._oob_error(checked, plan.sample()), list[Forest]()
        if by_error:
            plan, first_waves, tried = tune_features(plan, error)
            self.oob_max_features_ = as_bunch(tried, "max_features")
        if self.n_estimators == "auto":
            limits = self.oob_tol, self.max_estimators
            waves, curve = grow_until_converged(plan, error, *limits, first_waves)
            self.oob_curve_ = as_bunch(curve, "n_estimators")
            return plan, waves, sum(wave.n_trees for wave in waves)
        if not waves and n_trees >= FIRST_TREES:
            waves = first_waves
        return plan, waves, n_trees

    def _oob_error(self, checked: CheckedTarget, rows: np.ndarray | None) -> Error:
        """A function that takes predictions for these rows (None: all), and gives 1 - score."""
        raise NotImplementedError

    def _tree_score(self, checked: CheckedTarget) -> Score:
        """A function that scores a tree's predictions for some rows, the higher the better: the
        accuracy, or minus the mean squared error."""
        raise NotImplementedError

    def _oob_forest(self) -> Forest:
        """The forest whose out-of-bag predictions are computed."""
        return self.forest_

    def _oob_means(self, training: Training, checked: CheckedTarget) -> np.ndarray:
        """Out-of-bag predictions f64[N, n_values]; NaN, with a warning, for rows that every
        tree drew. The errors on the way are kept, unless they are known."""
        forest = self._oob_forest()
        rows = sampled_rows(forest.seed, training.sampling, training.backend)
        oob = OutOfBag(training, n_values=forest.values.shape[1])
        error, curve = self._oob_error(checked, rows), []
        for point in oob.follow([forest], curve_points(forest.n_trees), error, rows=rows):
            curve.append(point)
            report(point[0], forest.n_trees)
        if not hasattr(self, "oob_curve_"):
            self.oob_curve_ = as_bunch(curve, "n_estimators")
        means = oob.means()
        if np.isnan(means).any():
            warnings.warn(
                "Some inputs do not have OOB scores. This probably means too few trees were "
                "used to compute any reliable OOB estimates.",
                UserWarning,
                stacklevel=2,
            )
        return means

    def _has_out_of_bag(self) -> bool:
        asked = {"oob_score": "oob_score_", "unbiased_importances": "_unbiased_importances_"}
        return all(hasattr(self, of) for name, of in asked.items() if getattr(self, name, False))

    def _look_out_of_bag(self, training: Training, checked: CheckedTarget) -> None:
        if getattr(self, "oob_score", False):
            with progress.stage("out of bag"):
                self._set_oob_score_and_attributes(training, checked)
        if getattr(self, "unbiased_importances", False):
            bagged.keep_unbiased_importances(self, training)

    def _set_oob_score_and_attributes(self, training: Training, checked: CheckedTarget) -> None:
        raise NotImplementedError

    def _scoring(self, default: Callable[..., float]) -> Callable[..., float]:
        """The function that scores out-of-bag predictions."""
        return self.oob_score if callable(self.oob_score) else default

    @property
    def _n_samples_bootstrap(self) -> int | None:
        """Rows drawn for each tree, under scikit-learn's name; None: every row is taken."""
        return self._sampling_.n_draws or None

    def __len__(self) -> int:
        """Trees."""
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
        return members(self)

    @property
    def n_estimators_(self) -> int:
        """Trees."""
        check_is_fitted(self)
        return self.forest_.n_trees

    def apply(self, X: Any) -> Any:
        """The leaf that each row reaches in each tree.

        Returns
        -------
        int64 array of shape (n_samples, n_estimators), numbers of nodes in their tree;
        on a GPU where X is on one
        """
        return self._walk(X, prediction.apply)

    def decision_path(self, X: Any) -> Any:
        """The nodes that each row passes, from the root to its leaf.

        Returns
        -------
        indicator : sparse int64 matrix of shape (n_samples, n_nodes), ones where a row passes
            a node; the trees stand side by side
        n_nodes_ptr : int64 array of shape (n_estimators + 1,), where each tree begins
        """
        leaves = to_host(self._walk(X, prediction.apply))
        return decision_paths(self.forest_, leaves), self.forest_.tree_offsets.copy()

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
        return type(vars(self).get("estimator")) in ours

    @property
    def _is_theirs(self) -> bool:
        """Whether the last fit was scikit-learn's."""
        return self._mark in vars(self)

    def _theirs(self) -> Any:
        """scikit-learn's estimator of the same name, which shares this one's attributes."""
        # where it is defined: users put ours in its place in sklearn.ensemble. It is slow to import
        kind = getattr(import_module(f"sklearn.ensemble.{self._home}"), self._kind)
        estimator = kind.__new__(kind)
        estimator.__dict__ = self.__dict__
        return estimator

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


def or_theirs(method: Callable[..., Any]) -> Any:
    """A method of ours, or after a fit by scikit-learn that of its estimator, which alone takes
    other parameters."""

    @wraps(method)
    def call(self: Any, X: Any, **params: Any) -> Any:
        if self._is_theirs:
            return getattr(self._theirs(), method.__name__)(X, **params)
        return method(self, X, **params)

    return call


def n_drawn_features(max_features: Any, n_features: int) -> int:
    """Features drawn for a tree, of a number or a share of them."""
    is_number = isinstance(max_features, Integral)
    drawn = int(max_features) if is_number else max(1, int(max_features * n_features))
    if drawn > n_features:
        raise ValueError(f"max_features={max_features} must be <= n_features={n_features}")
    return drawn


def drawn_features(self: Any) -> list[np.ndarray]:
    """Features drawn for each tree, int64, ascending, each once; drawn again from the seed.

    A tree looks at no others, but takes and counts them all. Other estimators take these
    features and no others, in the order in which they were drawn.
    """
    if self._is_theirs:
        return list(vars(self)["estimators_features_"])
    settings, F, T = self._settings(self.n_features_in_), self.n_features_in_, self.forest_.n_trees
    keys = hashing.tree_keys(np, self.forest_.seed, 0, T)
    again, host = settings.bootstrap_features, NumpyBackend()
    allowed = tree_features(keys, settings.features_drawn, again, F, host)
    return [np.arange(F)] * T if allowed is None else [np.flatnonzero(each) for each in allowed]


def described_tree(self: Any) -> Any:
    """The estimator, not fitted, that each one is made from."""
    if self._is_theirs:
        return vars(self)["estimator_"]
    return self._default_tree() if self.estimator is None else clone(self.estimator)


def of_tree(name: str) -> Any:
    """A property: the parameter of this name of the tree that an ensemble is made from."""
    return property(lambda self: getattr(self._tree_given, name))


class ForestClassifier(BaseForest, Classifier):
    """Many trees for classes."""

    unbiased_importances: bool = False
    proximity, neighbours, predict_set = bagged.proximity, bagged.neighbours, bagged.predict_set
    unbiased_feature_importances_ = property(bagged.unbiased_feature_importances_)
    estimators_samples_ = property(bagged.estimators_samples_)

    def _validate_y_class_weight(
        self, y: np.ndarray, sample_weight: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """The same as this method of scikit-learn's forests: class codes i64[N, n_outputs] of the
        labels y [N, n_outputs], and the weight f64[N] that class_weight gives each row; None:
        there is none, or another one in each bag."""
        pairs = [np.unique(labels, return_inverse=True) for labels in np.asarray(y).T]
        codes, weight = [of_output for _, of_output in pairs], self.class_weight
        if weight == "balanced_subsample":
            weight = None if self.bootstrap else "balanced"
        if weight is None:
            return np.stack(codes, axis=1), None
        classes = [labels for labels, _ in pairs]
        labels = CheckedTarget(codes, classes)
        return np.stack(codes, axis=1), row_weights_of(weight, labels, sample_weight)

    def _set_oob_score_and_attributes(self, training: Training, checked: CheckedTarget) -> None:
        assert checked.classes is not None
        codes = [to_host(each) for each in checked.values]
        means, coding = self._oob_means(training, checked), self.forest_.coding
        seen, several = _scored(means, training.sampling), len(codes) > 1
        parts = coding.split(means) if several else [means]
        labels = [
            (classes[each[seen]], classes[part[seen].argmax(axis=1)])
            for each, classes, part in zip(codes, checked.classes, parts, strict=True)
        ]
        (y, predicted), default = labels[0], accuracy_score
        self.oob_decision_function_ = means
        if several:
            y, predicted = (np.stack(each, axis=1) for each in zip(*labels, strict=True))
            default, widest = subset_accuracy, max(p.shape[1] for p in parts)
            padded = [np.pad(p, [(0, 0), (0, widest - p.shape[1])]) for p in parts]
            self.oob_decision_function_ = np.stack(padded, axis=2)
        self.oob_score_ = np.nan
        if seen.any():
            self.oob_score_ = float(self._scoring(default)(y, predicted))
            known = [each[seen] for each in codes]
            self._calibration_ = calibrated_classes(known, [part[seen] for part in parts])

    def _oob_error(self, checked: CheckedTarget, rows: np.ndarray | None) -> Error:
        y, ends = stacked(checked)
        y = y if rows is None else y[rows]

        def error(means: np.ndarray) -> float:
            seen = ~np.isnan(means[:, 0])
            return 1 - accuracy(y[seen], means[seen], ends) if seen.any() else np.nan

        return error

    def _tree_score(self, checked: CheckedTarget) -> Score:
        y, ends = stacked(checked)
        return lambda rows, values: accuracy(y[rows], values, ends)


def _scored(means: np.ndarray, sampling: Sampling) -> np.ndarray:
    """Which rows are out of some bag and have some weight, bool[N]; means f64[N, n_values]."""
    seen = ~np.isnan(means[:, 0])
    if sampling.weights is not None:
        seen &= sampling.weights > 0
    return np.asarray(seen)


class ForestRegressor(BaseForest, Regressor):
    """Many trees for real numbers."""

    unbiased_importances: bool = False
    proximity, neighbours = bagged.proximity, bagged.neighbours
    unbiased_feature_importances_ = property(bagged.unbiased_feature_importances_)
    estimators_samples_ = property(bagged.estimators_samples_)
    predict, predict_interval = bagged.predict, bagged.predict_interval
    _products_ = cached_property(bagged.products_of)

    def _oob_forest(self) -> Forest:
        return with_squares(self.forest_)

    def _set_oob_score_and_attributes(self, training: Training, checked: CheckedTarget) -> None:
        predicted = self._oob_means(training, checked)
        seen = _scored(predicted, training.sampling)
        means, spread = mean_and_spread(self.forest_, predicted)
        if seen.any():
            y = columns_of(checked.values)
            self._calibration_ = calibrated(y[seen], means[seen], spread[seen])
        means = means[:, 0] if means.shape[1] == 1 else means
        self.oob_prediction_ = means
        self.oob_score_ = np.nan
        if seen.sum() > 1:  # R^2 of one row is undefined
            self.oob_score_ = float(
                self._scoring(r2_score)(to_host(checked.values)[seen], means[seen])
            )

    def _oob_error(self, checked: CheckedTarget, rows: np.ndarray | None) -> Error:
        y = columns_of(checked.values)
        y = y if rows is None else y[rows]

        def error(means: np.ndarray) -> float:
            seen = ~np.isnan(means[:, 0])
            own = means[seen, : y.shape[1]]  # there may be squares beside them
            return 1 - r_squared(y[seen], own) if seen.sum() > 1 else np.nan

        return error

    def _tree_score(self, checked: CheckedTarget) -> Score:
        y = columns_of(checked.values)
        return lambda rows, values: -float(np.mean((y[rows] - values) ** 2))
