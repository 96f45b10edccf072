"""Causal forests: how the effect of a treatment differs from row to row."""

import warnings
from dataclasses import replace
from functools import cached_property
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, cross_val_predict
from sklearn.utils import Bunch
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from gpuforest.common import arguments
from gpuforest.core.forest import Forest
from gpuforest.core.rules import Sampling
from gpuforest.core.target import CheckedTarget, EffectCoding
from gpuforest.data import arrays, binned, validation
from gpuforest.estimators import capabilities, ensembles, fit_scope, params, settings
from gpuforest.estimators.forests import RandomForestRegressor
from gpuforest.estimators.plan import TrainingPlan
from gpuforest.estimators.task import Encoded, Numbers, On
from gpuforest.explain import effects, importances, oob
from gpuforest.growing import predict as prediction
from gpuforest.growing import targets

NUISANCE_TREES = 500  # of a forest that says what X lets expect, as in R's grf
FOLDS = 5  # of models that users pass for what X lets expect
SHARED = (
    "categorical_features", "min_category_frequency", "n_jobs", "max_bins", "backend",
    "memory_limit",
)  # fmt: skip

MODEL = [HasMethods(["fit", "predict"]), "array-like", Real, None]
OF_EFFECTS: params.Table = params.NO_CLASSES | params.PLAIN_LEAF | {
    "n_estimators": (2000, [params.at_least(2)],
        "Number of trees, by pairs that share half of the rows; intervals need many."),
    "model_y": (None, MODEL,
        "What X lets expect of y. None: a random forest, each row by the trees that did not draw "
        "it. An estimator is fitted to other folds than the row's. An array has it for each row.",
        "estimator, array-like of shape (n_samples,), float or None"),
    "model_t": (None, MODEL,
        "The same of the treatment: for 0 and 1 its probability, such as 0.5 in a trial that was "
        "drawn by a coin.", "estimator, array-like of shape (n_samples,), float or None"),
    "model_z": (None, MODEL, "The same of the instrument, if there is one.",
        "estimator, array-like of shape (n_samples,), float or None"),
    "discrete_treatment": (False, ["boolean"],
        "Whether the treatment must have two values, of which the greater one means treated. Two "
        "values 0 and 1 mean that anyway."),
    "honest": (True, ["boolean"],
        "Whether half of a tree's rows choose its splits, and the other half fill its leaves."),
    "min_samples_split": (10, *params.TABLE["min_samples_split"][1:]),
    "min_samples_leaf": (5, [params.at_least(1), params.INSIDE],
        "The fewest rows that choose splits on each side of a split; a float is a fraction."),
    "min_balancedness_tol": (0.45, [Interval(Real, 0.0, 0.5, closed="both")],
        "A split leaves at least the share 0.5 - min_balancedness_tol of a node's rows on each "
        "side (regular trees, Wager and Athey 2018). 0.5: any."),
    "max_features": ("auto", [*params.FEATURES, StrOptions({"auto", "sqrt", "log2"}), None],
        'Number of features that a split tries; a float is a fraction. "auto": the square root of '
        "their number and 20 more. None: all."),
    "max_samples": (0.5, [Interval(RealNotInt, 0.0, 0.5, closed="right")],
        "The share of the rows that each tree takes, out of the half that its pair draws."),
    "categorical_split": params.OF_SURVIVAL["categorical_split"],
    "oob_score_": ("float", "How much less of y's residuals is left by the effects of rows out of "
        "bag than by the average effect: 1 minus the ratio of the squares (Nie and Wager 2021)."),
    "oob_effect_": ("float64 ndarray of shape (n_samples,)",
        "Effects by the trees that did not draw the row."),
    "feature_importances_": ("float64 ndarray of shape (n_features_in_,)",
        "Shares of the features in the splits of the first four levels; a level d counts d**-2."),
    "example": None,
}  # fmt: skip
CAUSAL = f"""n_estimators * model_y model_t model_z discrete_treatment honest max_depth
min_samples_split min_samples_leaf min_balancedness_tol max_features max_samples
{params.CATEGORIES} random_state n_jobs verbose {params.MACHINE} {params.OF_FIT} n_estimators_
oob_score_ oob_curve_ oob_effect_ feature_importances_ max_features_"""


class Effect(Numbers):
    """The effect of a treatment. Targets are the columns of `effects.EffectRows`."""

    def encode_target(self, checked: CheckedTarget, sampling: Sampling, on: On) -> Encoded:
        moments = effects.EffectRows(np.asarray(checked.values)).moments
        if sampling.weights is not None:  # rows of no weight must not widen the fixed point
            moments = np.where((sampling.weights > 0)[:, None], moments, 0.0)
        backend = on.backend
        coding, y = targets.encode_moments(
            backend.asarray(moments), sampling.most_weight, centred=False, backend=backend
        )
        return Encoded(EffectCoding(None, coding.centre, coding.scale), y, sampling)

    def scorer(self, checked: CheckedTarget) -> importances.Score:
        raise NotImplementedError

    def error(self, checked: CheckedTarget, rows: np.ndarray | None) -> oob.Error:
        """The squares that remain of y's residuals after the effects of rows, as a part of what
        the average effect leaves (the R-loss of Nie and Wager 2021)."""
        known = effects.EffectRows(np.asarray(checked.values))
        y, w, z = known.residuals if rows is None else (r[rows] for r in known.residuals)
        unit, slope = known.unit, float((z * y).sum() / (z * w).sum())

        def error(means: np.ndarray) -> float:
            effect = effects.effects_of(means) * unit
            seen = ~np.isnan(effect)
            left = ((y - w * effect)[seen] ** 2).sum()
            return float(left / ((y - w * slope)[seen] ** 2).sum()) if seen.any() else np.nan

        return error

    def predicting(self, forest: Forest) -> Forest:
        return forest

    def judged(self, plan: TrainingPlan, forest: Forest, means: np.ndarray) -> dict[str, Any]:
        rows = effects.EffectRows(np.asarray(plan.checked.values))
        found = rows.with_effects(effects.effects_of(means) * rows.unit)
        counted = plan.training.sampling.counted
        seen = means if counted is None else means[counted]
        return {"oob_score_": 1 - self.error(plan.checked, counted)(seen), "_rows_": found}


@params.parameters(CAUSAL, OF_EFFECTS)
class CausalForest(ensembles.BaseForest):
    """A causal forest: effects of a treatment that differ from row to row.

    What the features let expect of the outcome and of the treatment is predicted by forests, each
    row by the trees that did not draw it, and taken from both ("local centring"). Splits then set
    rows apart by the effect that is left: the change of y with the treatment by one (or from 0 to
    1). Honest trees fill their leaves with rows that chose no split. With an instrument the effect
    is on those whom it moves. Effects mean causes only where X holds all that both the treatment
    and the outcome depend on; see docs/causal.md.

    References
    ----------
    S. Athey, J. Tibshirani and S. Wager, "Generalized random forests", Annals of Statistics 47,
    2019. X. Nie and S. Wager, "Quasi-oracle estimation of heterogeneous treatment effects",
    Biometrika 108, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from gpuforest import CausalForest
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> treated = np.arange(400) % 2
    >>> y = X[:, 1] + treated * (X[:, 0] > 0)
    >>> forest = CausalForest(200, random_state=0).fit(X, y, treatment=treated)
    >>> low, high = forest.effect([[-1.0, 0.0], [1.0, 0.0]])
    >>> bool(low < 0.3 < 0.7 < high)
    True
    """

    _task, _family, criterion = Effect(), "effects", "effect"
    _keeps_draws = True
    _rows_: effects.EffectRows

    @property
    def estimators_(self) -> Any:
        """A causal forest has no trees that predict: effects are ratios of means over all."""
        raise AttributeError("the trees of a causal forest predict nothing alone: see forest_")

    estimator_ = estimator = estimator_params = estimators_

    def _settings(self) -> settings.Settings:
        asked = super()._settings()
        return replace(
            asked,
            honest=self.honest,
            without_replacement=True,
            oob_score=True,
            least_share=0.5 - self.min_balancedness_tol,
        )

    def fit(  # type: ignore[override]
        self, X: Any, y: Any = None, treatment: Any = None, *, instrument: Any = None,
        sample_weight: Any = None, groups: Any = None, blocks: Any = None,
    ) -> Self:  # fmt: skip
        """Grow the trees."""
        if isinstance(X, binned.FitInput):  # grown elsewhere from the same rows
            return super().fit(X)
        self._validate_params()
        given = binned.FitInput.of(X, y, sample_weight, groups, blocks)
        rows = self._expected(given, treatment, instrument)
        return super().fit(given.X, rows.values, given.sample_weight, groups=given.groups)

    def _expected(self, given: binned.FitInput, treatment: Any, instrument: Any) -> Any:
        """The training rows, with what X lets expect of them; of no weight: with no residuals."""
        if given.blocks is not None:
            capabilities.refuse(self._family, {"blocks"})
        n = arrays.count_rows(given.X)
        if given.y is None or treatment is None:
            raise ValueError("y and the treatment are needed: pass fit(X, y, treatment=...)")
        weight = validation.check_weights(given.sample_weight, n)
        counts = np.ones(n, bool) if weight is None else weight > 0
        y, w = numbers_of(given.y, n, "y"), numbers_of(treatment, n, "treatment")
        z = w if instrument is None else numbers_of(instrument, n, "instrument")
        if self.discrete_treatment:
            w = as_arms(w, counts)
        need_values(w, counts, "treatment", "two values are needed")
        if instrument is None or np.array_equal(z, w):  # which is its own instrument
            z, instrument = w, None
        need_values(z, counts, "instrument", "it must move the treatment")
        if np.array_equal(y[counts], w[counts]):
            raise ValueError("y equals the treatment: pass an outcome that may differ from it")
        if given.groups is not None:
            warn_of_groups(w, validation.check_groups(given.groups, n))
        seed, given = arguments.draw_seed(self.random_state), given._replace(sample_weight=weight)
        y_hat = self._expect(self.model_y, given, y, seed, "y")
        w_hat = z_hat = self._expect(self.model_t, given, w, seed + 1, "treatment")
        if instrument is not None:
            z_hat = self._expect(self.model_z, given, z, seed + 2, "instrument")
        if instrument is not None:  # those of rows are too rough to divide by
            spread = np.full(n, np.average((w - w_hat) * (z - z_hat), weights=weight))
        elif np.isin(w[counts], (0, 1)).all():
            check_shares(w_hat[counts])
            spread = w_hat * (1 - w_hat)
        else:
            spread = self._expect(None, given, (w - w_hat) ** 2, seed + 3, "spread")
        pairs = ((y, y_hat, "y"), (w, w_hat, "treatment"), (z, z_hat, "instrument"))
        expected = [np.where(counts, hat, actual) for actual, hat, _ in pairs]
        for (actual, _, name), hat in zip(pairs, expected, strict=True):
            if np.array_equal(actual, hat):
                raise ValueError(f"X and its model tell the {name} of every row: nothing is left")
        return effects.EffectRows(np.column_stack([y, w, z, *expected, spread, np.zeros(n)]))

    def _expect(
        self, model: Any, given: binned.FitInput, target: np.ndarray, seed: int, name: str
    ) -> np.ndarray:
        """What X lets expect of a target f64[N], of each row without itself."""
        if model is not None and not hasattr(model, "fit"):
            known = np.broadcast_to(np.asarray(arrays.to_host(model), np.float64), target.shape)
            if not np.isfinite(known).all():
                raise ValueError(f"the expected {name} has values that are no finite numbers")
            return known
        X, weight, groups = given.X, given.sample_weight, given.groups
        if model is None:
            shared = {key: getattr(self, key) for key in SHARED}
            # as R's grf: with fewer features, or whole bootstraps, more of what X tells is left
            n_columns = arrays.count_columns(X)  # 1 for lists
            n_tried = 1.0 if n_columns < 26 else settings.features_tried("auto", n_columns)
            counted = np.arange(len(target)) if weight is None else np.flatnonzero(weight)
            n = len(counted) if groups is None else len(np.unique(np.asarray(groups)[counted]))
            forest = RandomForestRegressor(
                NUISANCE_TREES, min_samples_leaf=5, max_features=n_tried, max_samples=-(-n // 2),
                oob_score=True, random_state=seed % 2**64, **shared,
            )  # fmt: skip
            found: np.ndarray = self._judged(forest, X, target, weight, groups)
            return np.where(np.isnan(found), np.average(target, weights=weight), found)
        folds: Any = KFold(FOLDS, shuffle=True, random_state=seed % 2**32)
        folds = folds if groups is None else GroupKFold(FOLDS)
        fits = {} if weight is None else {"params": {"sample_weight": weight}}
        method = "predict_proba" if hasattr(model, "predict_proba") else "predict"
        found = cross_val_predict(
            clone(model), X, target, cv=folds, groups=groups, method=method, **fits
        )
        return np.asarray(found[:, 1] if found.ndim == 2 else found, np.float64)

    def _judged(self, forest: Any, X: Any, *of_rows: Any) -> Any:
        """Predictions of a fitted forest, each row by the trees that did not draw it, f64[N]."""
        y, weight, groups = of_rows
        return forest.fit(X, y, weight, groups=groups).oob_prediction_

    # predictions

    def effect(self, X: Any) -> Any:
        """The effect of the treatment on each row: of one unit, or from 0 to 1."""
        model = fit_scope.snapshot(self)
        return effects.effects_of(model._walk(X, prediction.predict)) * model._rows_.unit

    def predict(self, X: Any) -> Any:
        """As `effect`."""
        return self.effect(X)

    def effect_interval(self, X: Any, alpha: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
        """Ends of intervals that hold the effect of a row like it with the chance 1 - alpha."""
        if not 0 < alpha < 1:
            raise ValueError(f"alpha={alpha} must lie between 0 and 1")
        effect, std = self.effect_and_std(X)
        found = effects.interval_of(effect, std, alpha)
        return found.low, found.high

    def effect_and_std(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Effects, and their standard errors by pairs of trees that share half of the rows."""
        check_is_fitted(self)
        found = self._effect_and_std(X)
        return found[:, 0], found[:, 1]

    def _effect_and_std(self, X: Any) -> np.ndarray:
        model = fit_scope.snapshot(self)
        found = arrays.to_host(model._walk(X, effects.variances))
        return np.column_stack([found[:, 0], np.sqrt(found[:, 1])]) * model._rows_.unit

    @property
    def oob_effect_(self) -> np.ndarray:
        """Effects by the trees that did not draw the row, float64 of shape (n_samples,)."""
        check_is_fitted(self)
        return self._rows_.effect

    @cached_property
    def feature_importances_(self) -> np.ndarray:
        """Shares of the features in the splits of the first four levels; a level d counts d**-2."""
        check_is_fitted(self)
        return effects.importances(self.forest_)

    # averages and tests

    def ate(self, target: str = "all") -> Bunch:
        """The average effect on the training rows, doubly robust, with its standard error."""
        rows = self._known_rows()
        if target not in ("all", "treated", "control", "overlap"):
            raise ValueError(f"target={target!r} is unknown: pass all, treated, control or overlap")
        if target in ("treated", "control") and not rows.is_binary:
            raise ValueError(f"target={target!r} is for a treatment of 0 and 1 without instrument")
        clipped = int((effects.steady(rows.spread) != rows.spread).sum())
        if clipped and target == "all":
            warnings.warn(
                f"in {clipped} rows the treatment hardly varies, so the average effect leans on "
                "few rows: target='overlap' weighs rows by how much it varies",
                stacklevel=2,
            )
        return effects.average(rows, target, *self._weighed())

    def best_linear_projection(self, A: Any = None) -> Bunch:
        """How the effect changes with features of the training rows: a regression on them."""
        rows = self._known_rows()
        ones, names = np.ones((len(rows.values), 1)), ["intercept"]
        if A is not None:
            table = arrays.to_host(A)
            if hasattr(A, "columns"):
                names += [str(name) for name in A.columns]
            table = np.asarray(table, np.float64).reshape(len(table), -1)
            if len(table) != len(ones):
                raise ValueError(
                    f"A has {len(table)} rows, and the forest was fitted to {len(ones)}"
                )
            names += [f"A{i}" for i in range(table.shape[1])] if len(names) == 1 else []
            ones = np.column_stack([ones, table])
        found = effects.regression(ones, effects.scores(rows), *self._weighed())
        return Bunch(names=names, **found)

    def calibration_test(self) -> Bunch:
        """Whether effects are right on average, and differ as much as they are predicted to."""
        return effects.calibration(self._known_rows(), *self._weighed())

    def _known_rows(self) -> effects.EffectRows:
        check_is_fitted(self)
        return self._rows_

    def _weighed(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Weights f64[N] and groups i32[N] of the training rows."""
        drawn = self._sampling_
        n = drawn.n_rows
        return np.ones(n) if drawn.weights is None else drawn.weights * 1.0, drawn.groups


def numbers_of(values: Any, n_rows: int, name: str) -> np.ndarray:
    """A column of finite numbers f64[N]."""
    found = arrays.host_array(arrays.to_host(values, name), name)
    if found.dtype.kind not in "biuf" or found.size != n_rows:
        raise ValueError(
            f"{name} must hold a real number for each of {n_rows} rows, and has the type "
            f"{found.dtype} and the shape {found.shape}"
        )
    found = found.reshape(-1).astype(np.float64)
    if n := int((~np.isfinite(found)).sum()):
        raise ValueError(f"{name} is missing or infinite in {n} rows: leave these rows out")
    return found


def as_arms(treatment: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """A treatment of two values as 0 and 1, f64[N]; counts : bool[N], rows of some weight"""
    values = np.unique(treatment[counts])
    if len(values) > 2:
        raise ValueError(
            f"discrete_treatment=True takes two values, and the treatment has {len(values)}: pass "
            "rows of two of them, or discrete_treatment=False for an effect by unit"
        )
    return np.where(treatment == values[-1], 1.0, 0.0)


def need_values(column: np.ndarray, counts: np.ndarray, name: str, why: str) -> None:
    """Raise a ValueError if a column f64[N] has one value in all rows that count."""
    values = np.unique(column[counts])
    if len(values) < 2:
        raise ValueError(f"the {name} is {values[0]:g} in all rows of some weight: {why}")


def check_shares(w_hat: np.ndarray) -> None:
    """Refuse what are no probabilities of a treatment f64[n], and warn of rare ones."""
    if w_hat.min() < 0 or w_hat.max() > 1 or not (w_hat * (1 - w_hat)).any():
        raise ValueError("the probabilities of the treatment must lie within 0 and 1: see model_t")
    if n := int(((w_hat < effects.RARE) | (w_hat > 1 - effects.RARE)).sum()):
        warnings.warn(
            f"{n} rows have a probability of treatment below {effects.RARE} or above "
            f"{1 - effects.RARE}, so others like them hardly tell its effect: do not believe the "
            "effects there, or leave these rows out",
            stacklevel=4,
        )


def warn_of_groups(w: np.ndarray, groups: Any) -> None:
    """Warn of groups i32[N] in which the treatment never varies."""
    least, most = np.full((2, int(groups.max()) + 1), [[np.inf], [-np.inf]])
    np.minimum.at(least, groups, w)
    np.maximum.at(most, groups, w)
    if n := int((least == most).sum()):
        warnings.warn(
            f"{n} of {len(least)} groups have one value of the treatment alone: the effect is seen "
            "between groups there",
            stacklevel=4,
        )
