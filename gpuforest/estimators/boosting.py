"""Histogram gradient boosting for classes and for numbers."""

from collections.abc import Iterator
from functools import cached_property, partial
from itertools import islice
from operator import attrgetter
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.metrics import d2_pinball_score
from sklearn.utils.validation import _check_monotonic_cst, check_is_fitted

from gpuforest.backends import booster, registry
from gpuforest.backends.base import Backend
from gpuforest.common import arguments, imports, progress
from gpuforest.core.forest import Forest
from gpuforest.data.arrays import to_host
from gpuforest.data.binned import FitInput
from gpuforest.estimators import (
    base,
    bases,
    boosting_fit,
    fit_scope,
    params,
    prepare,
    presets,
    refilling,
)
from gpuforest.estimators.settings import Settings
from gpuforest.estimators.task import CLASSES, NUMBERS
from gpuforest.explain.model_facts import best_round
from gpuforest.growing import boosted, predict, rounds

partial_dependence = imports.deferred("gpuforest.export.sklearn_boosting", "partial_dependence")


class HistGradientBoosting(base.BaseTrees, presets.HasPresets):
    """Runs the rounds. The two estimators add the target."""

    quantile: Any = None
    min_category_frequency = 1  # each category is one by itself
    _presets, _family = presets.BOOSTING, "boosting"
    _takes_infinities = True  # see data/validation.py
    _predicting = boosting_fit.replace_predictions
    _to_sklearn = staticmethod(imports.deferred("gpuforest.export.sklearn_boosting", "to_sklearn"))

    @fit_scope.with_callbacks
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, X_val: Any = None,
        y_val: Any = None, sample_weight_val: Any = None, groups: Any = None,
        blocks: Any = None, init_score: Any = None, init_score_val: Any = None,
        exposure: Any = None, exposure_val: Any = None,
    ) -> Self:  # fmt: skip
        """Grow the trees, round after round.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Real numbers, or categories (see `categorical_features`); NaN means missing. Or
            `BinnedData`, which may bring y and weights. Its bins come from all rows, also
            those on which early stopping judges.
        y : array-like of shape (n_samples,)
            Class labels, or real numbers; for survival see `HistGradientBoostingSurvival`.
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
            early stopping sets the last blocks aside that hold `validation_fraction` of the rows.
            See docs/blocks.md.
        init_score : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            Raw predictions before the first round, instead of a constant. Predictions of the model
            need those of their rows.
        exposure : array-like of shape (n_samples,), default=None
            What counts or amounts are proportional to, such as the time that a row was insured:
            positive numbers. Predictions are per unit of it, unless they get `exposure`. For the
            losses "poisson", "gamma" and "tweedie". It is as if y were divided by it, and weights
            multiplied by exposure^(2 - power), where the power of "poisson" is 1, of "gamma" 2.
        init_score_val, exposure_val : as init_score and exposure, default=None
            Of X_val.
        """
        self._validate_params()
        given = FitInput.of(X, y, sample_weight, groups, blocks)
        given = given._replace(init_score=init_score, exposure=exposure)
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
        earlier = fit_scope.snapshot(self) if goes_on else None
        before = self.n_iter_ if goes_on else 0
        if self.max_iter < before:
            raise ValueError(
                f"max_iter={self.max_iter} must be larger than or equal to "
                f"n_iter_={before} when warm_start==True"
            )
        seed = self.forest_.seed if goes_on else arguments.draw_seed(self.random_state)
        given_val = None
        if X_val is not None:
            before_val = {"init_score": init_score_val, "exposure": exposure_val}
            given_val = FitInput(X_val, y_val, sample_weight_val, **before_val)
        with fit_scope.fitting(self, self.max_iter - before, given) as fitted:
            work = partial(fitted._boost, given, given_val, seed, earlier)
            registry.run_on_backend(work, **self._chosen(X))
        return self

    def _boost(
        self, given: FitInput, given_val: FitInput | None, seed: int, earlier: Any, backend: Backend
    ) -> None:
        """Grow the rounds and, with `refit`, those up to the best one anew; `earlier`: the
        estimator whose model gets more rounds, or None."""
        plan = prepare.prepare_rounds(self, given, given_val, seed, backend)
        self._fitted_with_sw = given.sample_weight is not None
        stopping, grown = boosting_fit.EarlyStopping(self, plan, earlier), list[booster.Round]()
        boosting, backend = plan.boosting, plan.backend
        begin = 0 if earlier is None else earlier.n_iter_
        self.do_early_stopping_, self.backend_ = plan.stops, backend.name
        del plan  # its rows make room
        if earlier is None:
            stopping.stops(grown)
        n_new = self.max_iter - begin
        with progress.stage("growing"):
            for done in islice(rounds.rounds(boosting, backend, stopping.raw, begin), n_new):
                grown.append(done)
                ends = stopping.stops(grown)
                progress.report(len(grown), n_new, partial(stopping.note, grown, begin))
                if ends:
                    break
        forest = stopping.forest(grown)
        self.train_score_ = np.array(stopping.train_scores)
        self.validation_score_ = np.array(stopping.validation_scores)
        learned = self._learned(stopping)
        if self.refit and self.do_early_stopping_:
            best = max(1, best_round(self.validation_score_, False))
            del stopping, boosting, grown, forest  # makes room
            anew = clone(self).set_params(early_stopping=False, refit=False, max_iter=best)
            with progress.stage("refitting"):
                anew._boost(given, None, seed, None, backend)
            forest, learned = anew.forest_, {name: vars(anew)[name] for name in learned}
        vars(self).update(learned)
        self._keep(forest)

    def _learned(self, stopping: boosting_fit.EarlyStopping) -> dict[str, Any]:
        """The attributes that follow from training rows and their last raw predictions."""
        return {}

    def _keep(self, forest: Forest, plan: Any = None) -> None:
        self.forest_, self.seed_ = forest, forest.seed
        coding: Any = forest.coding
        # of the forests' criteria the one that is nearest
        self.criterion_ = "log_loss" if coding.loss.is_classes else "squared_error"
        self.n_outputs_ = coding.loss.n_outputs
        self.n_trees_per_iteration_ = coding.round_trees
        if coding.classes is not None:
            self.classes_ = coding.classes

    def _settings(self) -> Settings:
        signs = self.monotonic_cst
        signs = None if signs is None else _check_monotonic_cst(self, signs)
        given = {"criterion": "squared_error", "monotonic_cst": signs}
        return Settings.of(self.get_params(deep=False) | given)

    @property
    def n_iter_(self) -> int:
        """The number of rounds."""
        check_is_fitted(self)
        coding: Any = self.forest_.coding
        return self.forest_.n_trees // int(coding.round_trees)

    @cached_property
    def feature_importances_(self) -> np.ndarray:
        """The gain of the splits by each feature as a share of all gains, f64[n_features]."""
        check_is_fitted(self)
        return boosted.gain_importances(self.forest_)

    def _raw_predict(self, X: Any, init_score: Any = None) -> Any:
        """Raw predictions f64[N, K], where X is."""
        raw = self._walk(X, predict.predict)
        offset = boosting_fit.offset_of(self.forest_.coding, init_score, len(raw))
        return raw if offset is None else to_host(raw) + offset

    def _predictions(self, raw: Any) -> np.ndarray:
        """What raw predictions stand for: probabilities of classes, or numbers."""
        coding: Any = self.forest_.coding
        return np.asarray(coding.loss.predictions(to_host(raw)))

    def _staged_raw_predict(self, X: Any, init_score: Any = None) -> Iterator[np.ndarray]:
        """Raw predictions f64[N, K] after each round."""
        check_is_fitted(self)
        model = fit_scope.snapshot(self)
        forest: Any = model.forest_
        codes, backend = model._coded(X)
        N, K = codes.shape[0], forest.coding.round_trees
        total = np.tile(forest.baseline, (N, 1))
        offset = boosting_fit.offset_of(forest.coding, init_score, N)
        total = backend.asarray(total if offset is None else total + offset)
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

    _task = CLASSES
    refit_leaves = refilling.refit_leaves

    def predict(self, X: Any, init_score: Any = None) -> np.ndarray:
        """The most probable class; the first among equals."""
        return self._labels_of(self._raw_predict(X, init_score))

    def predict_proba(self, X: Any, init_score: Any = None) -> np.ndarray:
        """Probabilities of the classes, float64 array of shape (n_samples, n_classes)."""
        return self._predictions(self._raw_predict(X, init_score))

    predict_log_proba = base.Classifier.predict_log_proba

    def decision_function(self, X: Any, init_score: Any = None) -> np.ndarray:
        """Raw predictions: log odds of the second of two classes, float64 array of shape
        (n_samples,); of several classes (n_samples, n_classes)."""
        return np.asarray(predict.flat(to_host(self._raw_predict(X, init_score))))

    def staged_predict(self, X: Any, init_score: Any = None) -> Iterator[np.ndarray]:
        """`predict(X)` after each round."""
        return map(self._labels_of, self._staged_raw_predict(X, init_score))

    def staged_predict_proba(self, X: Any, init_score: Any = None) -> Iterator[np.ndarray]:
        """`predict_proba(X)` after each round."""
        return map(self._predictions, self._staged_raw_predict(X, init_score))

    def staged_decision_function(self, X: Any, init_score: Any = None) -> Iterator[np.ndarray]:
        """`decision_function(X)` after each round."""
        return map(predict.flat, self._staged_raw_predict(X, init_score))

    def _labels_of(self, raw: np.ndarray) -> np.ndarray:
        raw = to_host(raw)
        best = raw[:, 0] > 0 if raw.shape[1] == 1 else raw.argmax(axis=1)
        return np.asarray(self.classes_[best.astype(np.int64)])


@params.parameters(params.BOOSTING, params.BOOSTING_OF_NUMBERS, params.OF_BOOSTING)
class HistGradientBoostingRegressor(bases.RegressorMixin, HistGradientBoosting):
    """Gradient boosting for numbers, on histograms of integers.

    Each round grows a tree from the gradients of the loss, and adds the values of its leaves
    (Friedman 2001). The last six parameters are not scikit-learn's.
    """

    _task = NUMBERS
    refit_leaves = refilling.refit_leaves

    def predict(self, X: Any, init_score: Any = None, exposure: Any = None) -> np.ndarray:
        """Predictions, float64 array of shape (n_samples,), or (n_samples, n) of several
        quantiles, ascending, or of several outputs."""
        found = self._predictions(self._raw_predict(X, init_score))
        if exposure is not None:
            found = found * boosting_fit.numbers_of_rows(exposure, len(found), "exposure")[:, 0]
        return found

    def staged_predict(self, X: Any, init_score: Any = None) -> Iterator[np.ndarray]:
        """`predict(X)` after each round."""
        return map(self._predictions, self._staged_raw_predict(X, init_score))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R2 of predictions. Of several quantiles, the mean share of the pinball loss of constant
        quantiles that the model saves (`d2_pinball_score`)."""
        if not np.ndim(self.quantile):
            return super().score(X, y, sample_weight)
        found = self.predict(X)
        scores = [
            d2_pinball_score(y, found[:, k], sample_weight=sample_weight, alpha=q)
            for k, q in enumerate(self.quantile)
        ]
        return float(np.mean(scores))

    def _validate_params(self) -> None:
        super()._validate_params()
        if self.loss == "quantile" and self.quantile is None:
            raise ValueError("loss='quantile' needs quantile: a number between 0 and 1, or several")
        if np.ndim(self.quantile) and self.loss != "quantile":
            raise ValueError("several quantiles are for loss='quantile'")
