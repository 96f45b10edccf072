"""Histogram gradient boosting for classes and for numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property, partial
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _check_monotonic_cst, check_is_fitted

from gpuforest.backends.base import Backend
from gpuforest.backends.booster import Boosting, Round
from gpuforest.backends.registry import for_boosting, run_on_backend
from gpuforest.backends.rows import on_host
from gpuforest.common import progress
from gpuforest.common.arguments import draw_seed
from gpuforest.common.imports import deferred
from gpuforest.core import criteria
from gpuforest.core.bins import Categories, Statistics
from gpuforest.core.forest import Forest
from gpuforest.core.target import CheckedTarget
from gpuforest.data import validation as checks
from gpuforest.data.arrays import to_host
from gpuforest.data.binned import BinnedData, Passed, edges_of
from gpuforest.data.target_statistics import (
    OrderedTarget,
    refuse_statistics,
    replace_categories,
    with_numbers,
)
from gpuforest.estimators import bases, boosting_fit, fits, params, presets, settings, tasks
from gpuforest.estimators.base import BaseTrees
from gpuforest.estimators.boosting_fit import Rows, Watch
from gpuforest.estimators.memory import boosted_fit_of, boosting_fitted_to_memory
from gpuforest.estimators.trees import first_weights
from gpuforest.explain.model_facts import best_round
from gpuforest.growing import rounds
from gpuforest.growing.boosted import BoostedCoding, gain_importances
from gpuforest.growing.edges import bin_matrix
from gpuforest.growing.predict import predict
from gpuforest.growing.rounds import refuse_overflow, warn_of_lost_precision
from gpuforest.growing.targets import integer_weights
from gpuforest.kernels.gradients import losses

partial_dependence = deferred("gpuforest.export.sklearn_boosting", "partial_dependence")


class HistGradientBoosting(BaseTrees, presets.HasPresets):
    """Runs the rounds. The two estimators add the target."""

    loss: str
    learning_rate: float
    max_iter: int
    min_samples_leaf: int
    min_hessian: float
    l2_regularization: float
    max_features: float
    subsample: float
    categorical_split: str
    monotonic_cst: Any
    warm_start: bool
    early_stopping: Any
    scoring: Any
    validation_fraction: Any
    refit: bool
    quantile: float | None = None
    min_category_frequency = 1  # each category is one by itself
    _presets = presets.BOOSTING
    _takes_infinities = True  # see data/validation.py
    _predicting = boosting_fit.replace_predictions
    _to_sklearn = staticmethod(deferred("gpuforest.export.sklearn_boosting", "to_sklearn"))

    @fits.with_callbacks
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, X_val: Any = None,
        y_val: Any = None, sample_weight_val: Any = None, groups: Any = None,
        blocks: Any = None,
    ) -> Self:  # fmt: skip
        """Grow the trees, round after round.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Real numbers, or categories (see `categorical_features`); NaN means missing. Or
            `BinnedData`, which may bring y and weights. Its bins come from all rows, also
            those on which early stopping judges.
        y : array-like of shape (n_samples,)
            Class labels, or real numbers.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0. A row of weight zero is as if it were not there.
        X_val, y_val, sample_weight_val : as X, y, sample_weight, default=None
            The rows on which early stopping judges, instead of a part of X.
        groups : array-like of shape (n_samples,), default=None
            Labels of groups of rows that belong together, such as those of a patient: early
            stopping sets whole groups aside, each round draws whole groups (on the CPU), and
            `validation_fraction` and `subsample` count groups. See docs/groups.md.
        blocks : array-like of shape (n_samples,), default=None
            Labels of the rows' blocks of time, such as months, which sort in the order of time:
            early stopping sets the last ones aside, as many as have `validation_fraction` of the
            rows. See docs/blocks.md.

        Raises
        ------
        ValueError
            A parameter out of its range; a loss that does not allow y; X or y that do not fit.
        """
        self._validate_params()
        data = Passed.of(X, y, sample_weight, groups, blocks)
        if (X_val is None) != (y_val is None):
            passed, other = ("X_val", "y_val") if y_val is None else ("y_val", "X_val")
            raise ValueError(f"{passed} is provided, but {other} was not provided.")
        if X_val is not None and self.early_stopping is False:
            raise ValueError(
                "X_val and y_val are passed to fit while at the same time early_stopping is "
                "False. When passing X_val and y_val to fit, early_stopping should be set to "
                "either 'auto' or True."
            )
        if self.refit:
            boosting_fit.refuse_refit(self, X_val)
        goes_on = self.warm_start and hasattr(self, "forest_")
        earlier = fits.as_it_is(self) if goes_on else None
        if earlier is not None and self.max_iter < self.n_iter_:
            raise ValueError(
                f"max_iter={self.max_iter} must be larger than or equal to "
                f"n_iter_={self.n_iter_} when warm_start==True"
            )
        seed = draw_seed(self.random_state) if earlier is None else self.forest_.seed
        n_new = self.max_iter - (0 if earlier is None else self.n_iter_)
        validation = None if X_val is None else Passed(X_val, y_val, sample_weight_val)
        with fits.fitting(self, n_new, data) as fitted:
            work = partial(fitted._grow, data, validation, seed, earlier)
            run_on_backend(work, **self._chosen(X))
        return self

    def _grow(
        self, passed: Passed, passed_val: Passed | None, seed: int, earlier: Any, backend: Backend
    ) -> None:
        """Grow the rounds and, with `refit`, those up to the best one anew; see `_boost`."""
        self._boost(passed, passed_val, seed, earlier, backend)
        if not (self.refit and self.do_early_stopping_):
            return
        best = max(1, best_round(self.validation_score_, False))
        del self.forest_  # makes room
        anew = clone(self).set_params(early_stopping=False, max_iter=best)
        with progress.stage("refitting"):
            anew._boost(passed, None, seed, None, backend)
        self._keep(anew.forest_)

    def _boost(
        self, passed: Passed, passed_val: Passed | None, seed: int, earlier: Any, backend: Backend
    ) -> None:
        """Check the data, bin them, and grow the rounds.

        passed, passed_val : X, y and weights, to train on and to validate on
        earlier : the estimator with the model that more rounds are added to, or None
        """
        with progress.stage("checking"):
            backend = for_boosting(backend, passed.groups is not None and self.subsample < 1)
            weights = to_host(passed.sample_weight, "sample_weight")
            split = self.categorical_split
            X, categories = checks.learn_table(self, passed.X, backend, weights, split)
            self._fitted_with_sw = weights is not None
            y, classes = self._check_y(passed.y, X.shape[0], backend)
            weight = self._weigh(y, classes, first_weights(weights, X.shape[0]))
            train = Rows(X, y, weight, *boosting_fit.labels_of_rows(passed, X.shape[0]))
            if weight is not None and not weight.all():
                train = train.take(np.flatnonzero(weight), backend)
            loss = losses.Loss.of(self.loss, self.quantile, 0 if classes is None else len(classes))
            loss.check(train.y)
            refuse_overflow(train.y, train.weight)
            signs = self._monotonic_signs()
            interacting = boosting_fit.interacting(self, X.shape[1])
            if signs.any() and loss.n_raw > 1:
                raise ValueError(
                    "monotonic constraints are not supported for multiclass classification."
                )
            self.do_early_stopping_ = boosting_fit.stops_early(self.early_stopping, len(train.y))
            validation: Rows | None = None
            if passed_val is not None:
                self.do_early_stopping_ = True
            else:
                train, validation = self._split(train, loss, seed, backend)
            categories, statistics = self._use_statistics(train, categories, classes, seed)
            self._refuse_many_categories(categories)
            if passed_val is not None:
                now = {**categories, **statistics}
                validation = self._validation(passed_val, classes, loss, now, backend)
            elif validation is not None and statistics:
                validation = replace(validation, X=with_numbers(validation.X, statistics))
            held = 0 if validation is None else len(validation.y)
            fit_of = partial(
                boosted_fit_of, self, X, loss, weighted=weight is not None,
                most_categories=max(map(len, categories.values()), default=0),
            )  # fmt: skip
            fit = fit_of((len(train.y), held), self.do_early_stopping_)
            # a limit that is too little for `refit` is refused before the first round
            later = [fit_of((len(train.y) + held, 0), False)] if self.refit else []
            backend, memory = boosting_fitted_to_memory(fit, backend, self.memory_limit, *later)
        with progress.stage("binning"):
            integers = None if train.weight is None else integer_weights(train.weight)
            learned = categories, statistics
            edges = edges_of(train.X, self.max_bins, integers, seed, backend, *learned)
            matrix = bin_matrix(train.X, edges, backend)
            if earlier is None and self.scoring == "loss":
                train = replace(train, X=None)  # it may be a copy, which nothing needs any more
        boosting = Boosting(
            matrix=matrix, y=np.ascontiguousarray(train.y, np.float64), weight=train.weight,
            loss=loss, signs=signs, groups=interacting, memory=memory, seed=seed,
            row_groups=train.numbers() if self.subsample < 1 else None, **self._rules(),
        )  # fmt: skip
        self._run(boosting, backend, train, validation, classes, earlier)
        self.backend_ = backend.name

    def _use_statistics(
        self, train: Rows, categories: Categories, classes: np.ndarray | None, seed: int
    ) -> tuple[Categories, Statistics]:
        """Replace categories by target statistics, see `replace_categories`."""

        def target() -> OrderedTarget:
            integers = None if train.weight is None else integer_weights(train.weight)
            n_classes = 0 if classes is None else len(classes)
            return OrderedTarget(train.y, n_classes, integers, seed, train.groups)

        return replace_categories(train.X, categories, self.categorical_split, target)

    def _split(
        self, train: Rows, loss: losses.Loss, seed: int, backend: Backend
    ) -> tuple[Rows, Rows | None]:
        """The rows to train on, and those to validate on; None: there are no such rows."""
        if not self.do_early_stopping_ or self.validation_fraction is None:
            return train, None
        if train.blocks is not None:
            parts = boosting_fit.blocks_aside(train.blocks, self.validation_fraction)
            if isinstance(train.X, BinnedData) and train.X.edges.statistics:
                refuse_statistics()
        elif train.groups is not None:
            parts = boosting_fit.groups_aside(train.groups, self.validation_fraction, seed)
        else:
            labels = train.y if loss.is_classes else None
            parts = boosting_fit.set_aside(len(train.y), self.validation_fraction, labels, seed)
        first, second = (train.take(rows, backend) for rows in parts)
        return first, second

    def _validation(
        self, passed: Passed, classes: np.ndarray | None, loss: losses.Loss, known: dict[int, Any],
        backend: Backend,
    ) -> Rows:  # fmt: skip
        """The rows to validate on that were passed, checked."""
        X = checks.check_table(self, passed.X, backend, known)
        y, labels = self._check_y(passed.y, X.shape[0], backend)
        if classes is not None and labels is not None:
            seen = set(classes.tolist())
            if unknown := [label for label in labels.tolist() if label not in seen]:
                raise ValueError(f"y contains previously unseen labels: {unknown}")
            y = np.asarray(np.searchsorted(classes, labels)[y])
        loss.check(y)
        return Rows(
            X, y, first_weights(to_host(passed.sample_weight, "sample_weight_val"), X.shape[0])
        )

    def _rules(self) -> dict[str, Any]:
        """The parameters as `Boosting` takes them."""
        depth, leaves = boosting_fit.most_leaves(self)
        stops, by_loss = bool(self.do_early_stopping_), self.scoring == "loss"
        by_loss = by_loss if stops else bool(self.verbose)  # a note of a round says the loss
        return {
            "learning_rate": float(self.learning_rate), "l2": float(self.l2_regularization),
            "min_rows": int(self.min_samples_leaf), "min_hessian": float(self.min_hessian),
            "max_depth": depth, "max_leaves": leaves,
            "share": float(self.max_features), "subsample": float(self.subsample),
            "watched": stops and not by_loss, "by_loss": by_loss,
        }  # fmt: skip

    def _run(
        self, b: Boosting, backend: Backend, train: Rows, validation: Rows | None,
        classes: np.ndarray | None, earlier: Any,
    ) -> None:  # fmt: skip
        """Grow the rounds, and keep the forest."""
        baseline = b.loss.baseline(train.y, train.weight)
        coding: Any = BoostedCoding(
            classes, np.zeros(1), 1.0, loss=b.loss, l2=b.l2, baseline=baseline
        )
        raw = np.empty((b.loss.n_raw, b.n_rows))
        if earlier is None:
            warn_of_lost_precision(b, baseline)
            raw[:], begin = baseline[:, None], 0
        else:
            fits.check_same(earlier.forest_, b.matrix.edges, coding)
            coding, begin = earlier.forest_.coding, earlier.n_iter_
            values = predict(earlier.forest_, train.X, backend)
            raw[:] = (values if on_host(values) else backend.asnumpy(values)).T
        watch = Watch(self, b, backend, train, validation, coding, raw, earlier)
        grown: list[Round] = []
        if earlier is None:
            watch.stops(grown)
        n_new = self.max_iter - begin
        with progress.stage("growing"):
            # the range comes first, so that no round is grown for nothing
            for _, done in zip(range(n_new), rounds.rounds(b, backend, raw, begin), strict=False):
                grown.append(done)
                ends = watch.stops(grown)
                progress.report(len(grown), n_new, partial(watch.note, grown, begin))
                if ends:
                    break
        self._keep(watch.forest(grown))
        self.train_score_ = np.array(watch.train_scores)
        self.validation_score_ = np.array(watch.validation_scores)

    def _keep(self, forest: Forest) -> None:
        self.forest_, self.seed_ = forest, forest.seed
        coding: Any = forest.coding
        # of the forests' criteria the one that is nearest
        self.criterion_ = "log_loss" if coding.loss.is_classes else "squared_error"
        self.n_outputs_ = 1
        self.n_trees_per_iteration_ = coding.n_values
        if coding.classes is not None:
            self.classes_ = coding.classes

    def _settings(self) -> Any:
        signs = None if self.monotonic_cst is None else self._monotonic_signs()
        return SimpleNamespace(monotonic_cst=signs)  # what `learn_table` asks for

    def _monotonic_signs(self) -> np.ndarray:
        """Signs i8[F] of monotonic constraints; 0 where there is none."""
        return np.asarray(_check_monotonic_cst(self, self.monotonic_cst), np.int8)

    def _refuse_many_categories(self, categories: Categories) -> None:
        for f, values in categories.items():
            if len(values) > int(self.max_bins):
                names = getattr(self, "feature_names_in_", None)
                name = f"at index {f}" if names is None else repr(names[f])
                raise ValueError(
                    f"Categorical feature {name} is expected to have a cardinality <= "
                    f"{self.max_bins} but actually has a cardinality of {len(values)}."
                )

    def _check_y(
        self, y: Any, n_rows: int, backend: Backend
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """The target as the loss takes it, and the classes; None: numbers."""
        checked = self._check_target(y, n_rows, backend)
        target = tasks.host_target(checked)
        if target.shape[1] > 1:
            raise ValueError("y should be a 1d array: boosting has one output")
        return target[:, 0], None if checked.classes is None else checked.classes[0]

    def _weigh(
        self, y: np.ndarray, classes: np.ndarray | None, weight: np.ndarray | None
    ) -> np.ndarray | None:
        """Weights of rows, by those that were passed and those of their classes."""
        by_class = getattr(self, "class_weight", None)
        if by_class is None or classes is None:
            return weight
        by_class = settings.class_weights_of(by_class, y, classes)[y]
        return settings.check_some_weight(by_class, weight)

    @property
    def n_iter_(self) -> int:
        """The number of rounds."""
        check_is_fitted(self)
        return self.forest_.n_trees // self.forest_.coding.n_values

    @cached_property
    def feature_importances_(self) -> np.ndarray:
        """The gain of the splits by each feature as a share of all gains, f64[n_features]."""
        check_is_fitted(self)
        return gain_importances(self.forest_)

    def _raw_predict(self, X: Any) -> Any:
        """Raw predictions f64[N, K], where X is."""
        return self._walk(X, predict)

    def _predictions(self, raw: Any) -> np.ndarray:
        """What raw predictions stand for: probabilities of classes, or numbers."""
        coding: Any = self.forest_.coding
        return np.asarray(coding.loss.predictions(to_host(raw)))

    def _staged_raw_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Raw predictions f64[N, K] after each round."""
        check_is_fitted(self)
        model = fits.as_it_is(self)
        forest: Any = model.forest_
        codes, backend = model._coded(X)
        N, K = codes.shape[0], len(forest.baseline)
        total = backend.asarray(np.tile(forest.baseline, (N, 1)))
        for i in range(model.n_iter_):
            total = backend.accumulate(forest, codes, range(i * K, (i + 1) * K), None, total)
            yield backend.asnumpy(total).copy()

    # what tools read of scikit-learn's gradient boosting

    _fitted_with_sw = False  # scikit-learn's name: whether rows were weighted

    @cached_property
    def _converted_(self) -> Any:
        check_is_fitted(self)
        return self.to_sklearn()

    _predictors, _baseline_prediction, _bin_mapper = (
        property(attrgetter(f"_converted_.{name}"))
        for name in ("_predictors", "_baseline_prediction", "_bin_mapper")
    )

    def _compute_partial_dependence_recursion(self, grid: Any, target_features: Any) -> np.ndarray:
        """Called by `sklearn.inspection.partial_dependence(method="recursion")`."""
        if self._fitted_with_sw:
            raise NotImplementedError(
                f"{type(self).__name__} does not support partial dependence plots with the "
                "'recursion' method when sample weights were given during fit time: pass "
                "method='brute'."
            )
        return np.asarray(partial_dependence(self.forest_, grid, target_features))


@params.parameters(params.BOOSTING, params.OF_BOOSTING)
class HistGradientBoostingClassifier(bases.ClassifierMixin, HistGradientBoosting):
    """Gradient boosting for classes, on histograms of integers.

    Each round grows one tree for two classes, or a tree for each of more classes, from the
    gradients of the log loss, and adds the values of their leaves (Friedman 2001). The last six
    parameters are not scikit-learn's.

    References
    ----------
    Friedman, "Greedy function approximation: a gradient boosting machine", Annals of Statistics
    29(5), 2001; "Stochastic gradient boosting", Computational Statistics and Data Analysis 38(4),
    2002. Ke et al., "LightGBM: a highly efficient gradient boosting decision tree", NIPS 2017.
    """

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class; the first among equals.

        Returns
        -------
        array of shape (n_samples,)
        """
        return self._labels_of(self._raw_predict(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, float64 array of shape (n_samples, n_classes)."""
        return self._predictions(self._raw_predict(X))

    predict_log_proba = tasks.Classifier.predict_log_proba

    def decision_function(self, X: Any) -> np.ndarray:
        """Raw predictions: log odds of the second of two classes, float64 array of shape
        (n_samples,); of several classes (n_samples, n_classes)."""
        return _flat(to_host(self._raw_predict(X)))

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """`predict(X)` after each round."""
        return map(self._labels_of, self._staged_raw_predict(X))

    def staged_predict_proba(self, X: Any) -> Iterator[np.ndarray]:
        """`predict_proba(X)` after each round."""
        return map(self._predictions, self._staged_raw_predict(X))

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """`decision_function(X)` after each round."""
        return map(_flat, self._staged_raw_predict(X))

    def _labels_of(self, raw: np.ndarray) -> np.ndarray:
        raw = to_host(raw)
        best = raw[:, 0] > 0 if raw.shape[1] == 1 else raw.argmax(axis=1)
        return np.asarray(self.classes_[best.astype(np.int64)])

    def _check_target(self, y: Any, n_rows: int, backend: Backend) -> CheckedTarget:
        return checks.check_labels(y, n_rows, backend)


@params.parameters(params.BOOSTING, params.BOOSTING_OF_NUMBERS, params.OF_BOOSTING)
class HistGradientBoostingRegressor(bases.RegressorMixin, HistGradientBoosting):
    """Gradient boosting for numbers, on histograms of integers.

    Each round grows a tree from the gradients of the loss, and adds the values of its leaves
    (Friedman 2001). The last six parameters are not scikit-learn's.
    """

    def predict(self, X: Any) -> np.ndarray:
        """Predictions, float64 array of shape (n_samples,)."""
        return self._predictions(self._raw_predict(X))

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """`predict(X)` after each round."""
        return map(self._predictions, self._staged_raw_predict(X))

    def _check_target(self, y: Any, n_rows: int, backend: Backend) -> CheckedTarget:
        checked = checks.check_numbers(y, n_rows, criteria.CRITERIA["squared_error"], backend)
        if self.loss == "quantile" and self.quantile is None:
            raise ValueError("loss='quantile' needs quantile: a number between 0 and 1")
        return checked


def _flat(raw: np.ndarray) -> np.ndarray:
    return raw[:, 0] if raw.shape[1] == 1 else raw
