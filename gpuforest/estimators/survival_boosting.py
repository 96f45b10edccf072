"""Gradient boosting for times that may be censored: Cox's model, and accelerated failure times."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpuforest.common import elementary
from gpuforest.core.target import CheckedTarget
from gpuforest.data import arrays
from gpuforest.data import survival as data
from gpuforest.estimators import fit_scope, params, presets
from gpuforest.estimators.boosting import HistGradientBoosting
from gpuforest.estimators.task import On, Task
from gpuforest.explain import survival
from gpuforest.kernels.gradients.host_losses import AFT, ProportionalHazards

NOT_CONVERTED = "scikit-learn has no boosting of survival: use gpuforest.load where the model runs"
NO_REPORT = "reports are of survival forests: plot_survival and score are for boosting as well"


class Times(Task):
    """Times of rows in two columns, named and checked as a loss takes them."""

    def __init__(self, check: Callable[[Any, int], np.ndarray], *columns: tuple[str, type]) -> None:
        self.check_times, self.columns = check, columns

    def check(self, y: Any, n_rows: int, on: On) -> CheckedTarget:
        return CheckedTarget(self.check_times(y, n_rows))

    def shown(self, y: np.ndarray) -> np.ndarray:
        found = np.empty(len(y), sorted(self.columns))  # the event before the time
        for (name, _), values in zip(self.columns, y.T, strict=True):
            found[name] = values
        return found


EVENTS = Times(data.check_events, ("time", float), ("event", bool))
INTERVALS = Times(data.check_intervals, ("lower", float), ("upper", float))


@params.parameters(params.BOOSTING_SURVIVAL, params.BOOSTING_OF_SURVIVAL, params.OF_BOOSTING)
class HistGradientBoostingSurvival(HistGradientBoosting):
    """Gradient boosting for times that may be censored, on histograms of integers.

    The loss "coxph" is Cox's partial likelihood, with Breslow's treatment of ties. The accelerated
    failure times of "aft_logistic" and "aft_extreme" have ln T = raw prediction + scale * noise,
    and take intervals as well: y with columns named lower and upper, where an upper end that is
    infinite means that the event had not come at the lower one.

    Notes
    -----
    `predict` gives the log of the hazard ratio for "coxph", higher where the event comes sooner,
    and a time for the other losses, exp(raw prediction): the median for "aft_logistic", and for
    "aft_extreme" the time at which a share exp(-1) has had no event, whose median is
    exp(raw prediction) * ln(2)**scale. Curves of "coxph" follow from Breslow's estimate of the
    baseline hazard, exp(-exp(raw prediction) * sum of `baseline_hazard_` up to a time); with
    z = (ln t - raw prediction) / scale, survival is 1 / (1 + exp(z)) for "aft_logistic", and
    exp(-exp(z)) for "aft_extreme".

    References
    ----------
    Ridgeway, "The state of boosting", Computing Science and Statistics 31, 1999. Breslow,
    discussion of Cox, "Regression models and life-tables", JRSS B 34, 1972. Barnwal, Cho and
    Hocking, "Survival regression with accelerated failure time model in XGBoost", Journal of
    Computational and Graphical Statistics 31, 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from gpuforest import HistGradientBoostingSurvival
    >>> X = np.arange(80.0).reshape(-1, 1)
    >>> y = np.array([(i % 3 > 0, 90.0 - i) for i in range(80)], [("event", bool), ("time", float)])
    >>> model = HistGradientBoostingSurvival(random_state=0).fit(X, y)
    >>> low, high = model.predict([[2.0], [77.0]])
    >>> bool(low < high)
    True
    """

    _family, _presets = "hazards", presets.BOOSTING_OF_ONE
    multi_strategy: ClassVar[str] = "one_output_per_tree"
    scale: float
    event_times_: np.ndarray
    baseline_hazard_: np.ndarray  # of "coxph"

    @property
    def _task(self) -> Task:  # type: ignore[override]  # the target depends on the loss
        return INTERVALS if self.loss in AFT else EVENTS

    @property
    def unique_times_(self) -> np.ndarray:
        """The times of curves, float64, ascending."""
        return self.event_times_

    def predict(self, X: Any, init_score: Any = None) -> np.ndarray:
        """The log of the hazard ratio, higher where the event comes sooner; for accelerated failure
        times a time. A model that was fitted with `init_score` needs that of these rows."""
        return self._predictions(self._raw_predict(X, init_score))

    def predict_cumulative_hazard_function(
        self, X: Any, return_array: bool = False, init_score: Any = None
    ) -> np.ndarray:
        """The cumulative hazard of rows."""
        return self._curves(X, init_score, return_array, False)

    def predict_survival_function(
        self, X: Any, return_array: bool = False, init_score: Any = None
    ) -> np.ndarray:
        """The probability that the event comes later than a time."""
        return self._curves(X, init_score, return_array, True)

    def _curves(self, X: Any, init_score: Any, return_array: bool, survives: bool) -> np.ndarray:
        check_is_fitted(self)
        model: Any = fit_scope.snapshot(self)
        first = arrays.to_host(model._raw_predict(X, init_score))[:, 0]
        loss, grid = model.forest_.coding.loss, model.event_times_
        if isinstance(loss, ProportionalHazards):
            values = elementary.exp(first)[:, None] * np.cumsum(model.baseline_hazard_)
        else:
            values = loss.cumulative_hazard(first, grid)
        values = elementary.exp(-values) if survives else values
        if return_array:
            return np.asarray(values)
        functions = np.empty(len(values), object)
        before = float(survives)
        functions[:] = [survival.StepFunction(grid, row, before) for row in values]
        return functions

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The concordance of predictions with times (Harrell's C): 1 if the order is always right,
        0.5 by chance. A row whose time is not known counts as known up to its lower end."""
        if sample_weight is not None:
            raise ValueError("concordance has no weights: leave sample_weight out")
        found = self.predict(X)
        if self.loss not in AFT:
            return survival.concordance_of(data.check_events(y, len(found)), found[:, None], 1)
        events = data.events_of(data.check_intervals(y, len(found)))
        return survival.concordance_of(events, -found[:, None], 1)

    def _learned(self, stopping: Any) -> dict[str, Any]:
        boosting, weight = stopping.plan.boosting, stopping.plan.train.weight
        if self.loss in AFT:
            ends = boosting.y[:, 1]
            return {"event_times_": np.unique(ends[np.isfinite(ends)])}
        found = boosting.loss.baseline_hazard(boosting.y, stopping.raw, weight)
        return dict(zip(("event_times_", "baseline_hazard_"), found, strict=True))

    def _validate_params(self) -> None:
        super()._validate_params()
        if self.scale != 1 and self.loss not in AFT:
            raise ValueError(f"scale={self.scale} is for accelerated failure times: leave it out")

    def to_sklearn(self) -> Any:
        """A TypeError: scikit-learn has no such estimator."""
        raise TypeError(NOT_CONVERTED)

    def report(self, X: Any = None, y: Any = None, path: Any = None) -> Any:
        """A TypeError: reports are of survival forests."""
        raise TypeError(NO_REPORT)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
