"""Ensembles: their trees, leaves, paths and out-of-bag predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import RandomState
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from gpuforest.backends.base import Backend
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.common import hashing, progress
from gpuforest.core.forest import Forest
from gpuforest.core.rules import Sampling
from gpuforest.core.target import CheckedTarget
from gpuforest.data import arrays, binned
from gpuforest.estimators import bagged, growing, tasks
from gpuforest.estimators.base import BaseTrees
from gpuforest.estimators.settings import (
    BY_ERROR,
    Settings,
    check_out_of_bag,
    features_of_tree,
    row_weights_of,
)
from gpuforest.estimators.trees import DecisionTreeClassifier, DecisionTreeRegressor
from gpuforest.explain import uncertainty
from gpuforest.explain.importances import Score
from gpuforest.explain.oob import Error, Loss, OutOfBag, curve_points, loss_of
from gpuforest.explain.paths import decision_paths, one_tree
from gpuforest.growing import grow
from gpuforest.growing import predict as prediction
from gpuforest.growing.bags import tree_features


def accuracy(y: np.ndarray, values: np.ndarray, ends: np.ndarray) -> float:
    """Share of the rows of which all outputs have their most likely class: codes y [n, n_outputs],
    and predictions, in which the outputs after the first begin at `ends`."""
    labels = [part.argmax(axis=1) for part in np.split(values, ends, axis=1)]
    return subset_accuracy(y, np.stack(labels, axis=1))


def subset_accuracy(y: np.ndarray, predicted: np.ndarray) -> float:
    """Share of the rows whose outputs are all right, as scikit-learn's `accuracy_score` where it
    takes the outputs: it refuses several of more than two classes."""
    return float(np.mean((y == predicted).all(axis=1)))


def r_squared(y: np.ndarray, values: np.ndarray) -> float:
    """R^2 of predictions of y f64[n, n_outputs] (their squares may follow in other columns), as
    scikit-learn's `r2_score` gives it, in a tenth of the time, because it is called often."""
    left = ((y - values[:, : y.shape[1]]) ** 2).sum(axis=0)
    spread = ((y - y.mean(axis=0)) ** 2).sum(axis=0)
    scores = 1 - left / np.where(spread > 0, spread, 1)
    return float(np.where(spread > 0, scores, left == 0).mean())


def members(estimator: Any) -> list[Any]:
    """`estimators_` of a fitted forest: its trees as fitted estimators.

    They share the forest's edges, its leaf table and what follows from them. Each has the
    `random_state` that grows the same tree again from the rows of its bag.
    """
    unfitted, forest = template(estimator), estimator.forest_.unweighted
    names = ("criterion_", "backend_", "n_features_in_", "feature_names_in_")
    shared = {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}
    params, kind = unfitted.get_params(deep=False), type(unfitted)
    trees = []
    for t in range(forest.n_trees):
        # a single tree's key under this seed is that of the forest's tree t, see `hashing`
        tree = kind(**{**params, "random_state": (forest.seed + t * hashing.GOLDEN) % 2**64})
        vars(tree).update(shared)  # there are no feature names without a frame
        tree._keep(one_tree(forest, t))
        tree.seed_ = tree.random_state
        trees.append(tree)
    return trees


def shared_params(kind: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Those of a forest's parameters that each of its trees is given. Class weights count in the
    forest's bags."""
    names = set(kind._get_param_names()) - {"class_weight", "random_state"}
    return {name: value for name, value in params.items() if name in names}


def template(estimator: Any) -> Any:
    """The DecisionTreeClassifier or DecisionTreeRegressor, not fitted, of a fitted forest's trees.

    It has the parameters that both know but `class_weight`, which counts in the forest's bags.
    """
    kind, grown_by = estimator._tree, estimator._tree_params() | vars(estimator._settings())
    return kind(**shared_params(kind, grown_by), random_state=estimator.seed_)


class BaseForest(BaseTrees):
    """An ensemble of trees, whose class is `_tree`."""

    _tree: ClassVar[Any] = None
    _fewest_rows = 1  # of whose predictions there is a score
    _out_of_bag = "OOB"  # the word of a warning
    _judges_: tuple[Forest, Sampling] | None  # see `bagged.judges`
    oob_curve_: Bunch
    oob_max_features_: Bunch
    oob_parameters_: Bunch
    bootstrap: bool
    oob_score: bool | Callable[..., float]
    oob_tol: float
    class_weight: Any
    max_estimators: int
    warm_start: bool
    n_jobs: int | None

    @property
    def estimator(self) -> Any:
        """A tree, not fitted, of the kind that the forest grows."""
        return self._tree(splitter=self._splitter)

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
        return int(self.max_estimators if self.n_estimators == "auto" else self.n_estimators)

    def _validate_params(self) -> None:
        super()._validate_params()
        check_out_of_bag(vars(self))

    def _check_target(self, y: Any, n_rows: int, backend: Backend) -> CheckedTarget:
        if hasattr(y, "toarray"):  # another error and other words than of single trees, as there
            raise ValueError("sparse multilabel-indicator for y is not supported.")
        return super()._check_target(y, n_rows, backend)

    def _settings(self) -> Settings:
        settings = replace(super()._settings(), balanced_by_weight=True, is_single=False)
        if "oob" not in (settings.max_features, settings.min_samples_leaf):
            return settings
        best = {name: self._best(name) for name in self._by_error}
        return replace(settings, trial_trees=growing.FIRST_TREES, **best)

    @property
    def _by_error(self) -> list[str]:
        """The parameters of trees that out-of-bag errors choose."""
        return [name for name in growing.PAIR if getattr(self, name, None) == BY_ERROR[name]]

    def _best(self, name: str) -> Any:
        """The number that was found; before the fit the one that it begins with."""
        tried = vars(self).get("oob_parameters_", vars(self).get("oob_max_features_", {}))
        if name not in tried:
            return signature(type(self)).parameters[name].default
        return int(tried[name][np.argmin(tried["error"])])

    def _first_waves(
        self, plan: growing.TrainingPlan, waves: list[Forest], n_trees: int
    ) -> tuple[growing.TrainingPlan, list[Forest], int]:
        """Out-of-bag errors may choose the number of trees and those that say how they grow."""
        by_error = self._by_error
        converges = self.n_estimators == "auto"
        is_grown = growing.n_trees_of(waves) == n_trees and plan.blocks is None
        if is_grown or not (by_error or converges):
            return plan, waves, n_trees
        plan = replace(plan, training=grow.keeping_scratch(plan.training))
        error, first_waves = self._oob_error(plan.checked, plan.sample()), list[Forest]()
        judging = plan.judging
        if "min_samples_leaf" in by_error:
            trials = growing.tune_leaves(judging, self._oob_loss(plan), "max_features" in by_error)
            self.oob_parameters_ = trials.tried(*growing.PAIR)
            judging, first_waves = trials.plan, trials.waves
        elif by_error:
            trials = growing.tune_features(judging, error)
            self.oob_max_features_ = trials.tried(*by_error)
            judging, first_waves = trials.plan, trials.waves
        if converges:
            limits = self.oob_tol, self.max_estimators
            first_waves, curve = growing.grow_until_converged(judging, error, *limits, first_waves)
            self.oob_curve_ = growing.as_bunch(curve, "n_estimators")
            n_trees = growing.n_trees_of(first_waves)
        if plan.blocks is not None:  # the trees so far judge, and are none of the forest
            if converges:
                self._judges_ = judging.finish(first_waves, 0), judging.training.sampling
            return plan.trying(judging.pair), waves, n_trees
        if converges or (not waves and n_trees >= growing.FIRST_TREES):
            waves = first_waves
        return judging, waves, n_trees

    def _oob_error(self, checked: CheckedTarget, rows: np.ndarray | None) -> Error:
        """A function that takes predictions for these rows (None: all), and gives 1 - score; NaN
        where too few of them are out of some bag."""
        y, score = tasks.host_target(checked), self._oob_scorer(checked)
        y = y if rows is None else y[rows]

        def error(means: np.ndarray) -> float:
            seen = ~np.isnan(means[:, 0])
            return 1 - score(y[seen], means[seen]) if seen.sum() >= self._fewest_rows else np.nan

        return error

    def _oob_scorer(self, checked: CheckedTarget) -> Score:
        """A function that scores predictions f64[n, n_values] of the targets [n, n_outputs]."""
        raise NotImplementedError

    def _oob_loss(self, plan: growing.TrainingPlan) -> Loss:
        """The mean loss of `plan.sample()`, by the criterion, or the log loss."""
        y, labels, rows = tasks.host_target(plan.checked), self._labels(plan.checked), plan.sample()
        weights = np.ones(len(y))
        if labels is not None:  # trees predict the shares of rows that are weighted so
            by_name = isinstance(self.class_weight, str)
            weights = row_weights_of("balanced" if by_name else self.class_weight, labels)
        if rows is not None:
            y, weights = y[rows], weights[rows]
        classes, criterion = plan.checked.classes, plan.training.rules.criterion
        return loss_of(y, weights, criterion if classes is None else [*map(len, classes)])

    def _tree_score(self, checked: CheckedTarget) -> Score:
        """A function that scores a tree's predictions for rows of these numbers, the higher the
        better: the accuracy, or minus the mean squared error."""
        raise NotImplementedError

    def _oob_forest(self, forest: Forest) -> Forest:
        """The forest whose out-of-bag predictions are computed for one that judges."""
        return forest

    def _oob_means(self, plan: growing.TrainingPlan) -> np.ndarray:
        """Out-of-bag predictions f64[N, n_values]; NaN, with a warning, for rows that every
        tree drew. The errors on the way are kept, unless they are known."""
        forest, rows = self._oob_forest(bagged.judges(self)[0]), plan.sample()
        oob = OutOfBag(plan.training, plan.backend, n_values=forest.values.shape[1])
        error, curve = self._oob_error(plan.checked, rows), []
        for point in oob.follow([forest], curve_points(forest.n_trees), error, rows=rows):
            curve.append(point)
            progress.report(point[0], forest.n_trees)
        if not hasattr(self, "oob_curve_"):
            self.oob_curve_ = growing.as_bunch(curve, "n_estimators")
        means = oob.means()
        if plan.blocks is None and np.isnan(means).any():
            bagged.warn_of_rows_in_all_bags(stacklevel=2, word=self._out_of_bag)
        return means

    def _look_out_of_bag(self, plan: growing.TrainingPlan) -> None:
        score = getattr(self, "oob_score", False)
        importances = getattr(self, "unbiased_importances", False)
        plan = plan.judging
        if plan.blocks is not None and not hasattr(self, "_judges_"):
            judged = score or importances
            self._judges_ = growing.judges(plan, self.n_estimators_) if judged else None
        if score:
            with progress.stage("out of bag"):
                self._set_oob_score_and_attributes(plan)
        if importances:
            bagged.keep_unbiased_importances(self, plan.training, plan.backend)

    def _set_oob_score_and_attributes(self, plan: growing.TrainingPlan) -> None:
        raise NotImplementedError

    def _scoring(self, default: Callable[..., float]) -> Callable[..., float]:
        """The function that scores out-of-bag predictions."""
        return self.oob_score if callable(self.oob_score) else default

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
        leaves = arrays.to_host(self._walk(X, prediction.apply))
        return decision_paths(self.forest_, leaves), self.forest_.tree_offsets.copy()


def drawn_features(self: Any) -> list[np.ndarray]:
    """Features that each tree splits on, ascending int64, one array for each tree.

    They are drawn again from the seed. The trees still take X with all features. Other
    estimators take these features only, in the order in which they were drawn.
    """
    settings, F, T = self._settings(), self.n_features_in_, self.forest_.n_trees
    keys = hashing.tree_keys(np, self.forest_.seed, 0, T)
    n, again = features_of_tree(settings, F), settings.bootstrap_features
    allowed = tree_features(keys, n, again, F, NumpyBackend())
    return [np.arange(F)] * T if allowed is None else [np.flatnonzero(row) for row in allowed]


class ForestClassifier(BaseForest, tasks.Classifier):
    """Many trees for classes."""

    _tree, _takes_outputs = DecisionTreeClassifier, True
    unbiased_importances: bool = False
    _keeps_draws = True
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
        classes, codes = map(list, zip(*pairs, strict=True))
        weight, checked = self.class_weight, CheckedTarget(codes, classes)
        if weight == "balanced_subsample":
            weight = None if self.bootstrap else "balanced"
        factors = None if weight is None else row_weights_of(weight, checked, sample_weight)
        return tasks.host_target(checked), factors

    def _set_oob_score_and_attributes(self, plan: growing.TrainingPlan) -> None:
        assert plan.checked.classes is not None
        codes, coding = tasks.host_target(plan.checked), self.forest_.coding
        means = self.oob_decision_function_ = self._oob_means(plan)
        parts = coding.split(means) if coding.several else [means]
        if coding.several:
            widest = max(part.shape[1] for part in parts)
            padded = [np.pad(part, [(0, 0), (0, widest - part.shape[1])]) for part in parts]
            self.oob_decision_function_ = np.stack(padded, axis=2)
        self.oob_score_ = np.nan
        seen = scored(means, plan.training.sampling)
        if not seen.any():
            return
        codes, parts = codes[seen], [part[seen] for part in parts]
        classes, likeliest = plan.checked.classes, [part.argmax(axis=1) for part in parts]
        y, predicted = (
            np.stack([labels[k] for labels, k in zip(classes, columns, strict=True)], axis=1)
            for columns in (codes.T, likeliest)
        )
        default = subset_accuracy
        if not coding.several:
            y, predicted, default = y[:, 0], predicted[:, 0], accuracy_score
        self.oob_score_ = float(self._scoring(default)(y, predicted))
        self._calibration_ = uncertainty.calibrated_classes(list(codes.T), parts)

    def _oob_scorer(self, checked: CheckedTarget) -> Score:
        assert checked.classes is not None
        # where the outputs after the first begin among the values of a prediction
        ends = np.cumsum([len(labels) for labels in checked.classes])[:-1]
        return partial(accuracy, ends=ends)

    def _tree_score(self, checked: CheckedTarget) -> Score:
        y, score = tasks.host_target(checked), self._oob_scorer(checked)
        return lambda rows, values: score(y[rows], values)


def fewest_rows(self: Any) -> int | float:
    """Rows that either side of a split must have; also where they were chosen, their number."""
    check_is_fitted(self)
    number: int | float = self._settings().min_samples_leaf
    return number


def scored(means: np.ndarray, sampling: Sampling) -> np.ndarray:
    """Which rows are out of some bag and have some weight, bool[N]; means f64[N, n_values]."""
    seen = ~np.isnan(means[:, 0])
    if sampling.weights is not None:
        seen &= sampling.weights > 0
    return np.asarray(seen)


class ForestRegressor(BaseForest, tasks.Regressor):
    """Many trees for real numbers."""

    _tree, _takes_outputs = DecisionTreeRegressor, True
    unbiased_importances: bool = False
    _fewest_rows = 2  # of whose predictions there is a score
    _keeps_draws = True
    proximity, neighbours = bagged.proximity, bagged.neighbours
    unbiased_feature_importances_ = property(bagged.unbiased_feature_importances_)
    estimators_samples_ = property(bagged.estimators_samples_)
    predict, predict_interval = bagged.predict, bagged.predict_interval
    _products_ = cached_property(bagged.products_of)

    def _oob_forest(self, forest: Forest) -> Forest:
        return uncertainty.with_squares(forest)

    def _set_oob_score_and_attributes(self, plan: growing.TrainingPlan) -> None:
        predicted = self._oob_means(plan)
        seen = scored(predicted, plan.training.sampling)
        means, spread = uncertainty.mean_and_spread(self.forest_, predicted)
        y = tasks.host_target(plan.checked)
        if seen.any():
            self._calibration_ = uncertainty.calibrated(y[seen], means[seen], spread[seen])
        if means.shape[1] == 1:
            means, y = means[:, 0], y[:, 0]
        self.oob_prediction_ = means
        self.oob_score_ = np.nan
        if seen.sum() > 1:  # R^2 of one row is undefined
            self.oob_score_ = float(self._scoring(r2_score)(y[seen], means[seen]))

    def _oob_scorer(self, checked: CheckedTarget) -> Score:
        return r_squared

    def _tree_score(self, checked: CheckedTarget) -> Score:
        y = tasks.host_target(checked)
        return lambda rows, values: -float(np.mean((y[rows] - values) ** 2))


class UnsupervisedForest(BaseForest):
    """Trees of random cuts, which are grown for a random target."""

    _tree = DecisionTreeRegressor
    _splitter = "random"
    criterion = "squared_error"
    _encode_target = tasks.encode_numbers
    estimators_samples_ = property(bagged.estimators_samples_)

    def fit(  # type: ignore[override]  # rows that belong together are no matter here
        self, X: Any, y: Any = None, sample_weight: Any = None
    ) -> Self:
        """Grow the trees.

        Parameters
        ----------
        y : ignored
        """
        return super().fit(X, None, sample_weight)

    def _prepared(self, data: binned.Passed, seed: int, backend: Backend) -> growing.TrainingPlan:
        return super()._prepared(binned.Passed(data.X, seed, data.sample_weight), seed, backend)

    def _check_target(self, y: Any, n_rows: int, backend: Backend) -> CheckedTarget:
        return CheckedTarget(RandomState(y % 2**32).uniform(size=n_rows))  # y is the seed
