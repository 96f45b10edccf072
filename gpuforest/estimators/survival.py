"""Survival forests: a row whose event has not come yet counts for as long as it is known."""

from dataclasses import replace
from functools import cached_property
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpuforest.backends import base, registry
from gpuforest.common import arguments, dtypes
from gpuforest.core.forest import Forest
from gpuforest.core.rules import Sampling
from gpuforest.core.target import CheckedTarget
from gpuforest.data import arrays
from gpuforest.data.survival import check_survival
from gpuforest.estimators import ensembles, fit_scope, methods, params, trees
from gpuforest.estimators.plan import TrainingPlan
from gpuforest.estimators.task import Encoded, On, Task, scored
from gpuforest.explain import importances, oob, quantile_forest, survival
from gpuforest.growing import bags, targets
from gpuforest.growing import predict as prediction


class EventTimes(Task):
    """Times of events that may be censored. A row weighs the hazard that it went through, and its
    targets are its events over that weight."""

    fewest_rows = 2
    out_of_bag_word = "oob"

    def check(self, y: Any, n_rows: int, on: On) -> CheckedTarget:
        return CheckedTarget(check_survival(y, n_rows))

    def encode_target(self, checked: CheckedTarget, sampling: Sampling, on: On) -> Encoded:
        y, times = checked.values, None
        weights = np.ones(len(y)) if sampling.weights is None else sampling.weights
        counts = (y[:, 1] > 0) & (weights > 0)
        if not counts.any():
            raise ValueError("all rows of y are censored: at least one must have had its event")
        if not (y[counts, 0] > 0).any():
            raise ValueError("all events of y are at time 0: at least one must be later")
        whole = exposures(y, sampling)
        rates = on.backend.asarray(rates_of(y, sampling, whole))
        most = dtypes.MAX_TOTAL_WEIGHT
        coding, moments = targets.encode_moments(rates, most, centred=False, backend=on.backend)
        if on.criterion.at_risk:
            rank = np.unique(y[:, 0], return_inverse=True)[1]
            times = np.stack([rank, y[:, 1], whole], axis=1).astype(np.int64)
        return Encoded(coding, moments, weighed(sampling, whole), whole, times)

    def scorer(self, checked: CheckedTarget) -> importances.Score:
        return lambda y, risks: survival.concordance_of(y, risks, 1)

    def loss(self, plan: TrainingPlan) -> oob.Loss:
        whole, rows = plan.exposures, plan.sample()
        assert whole is not None
        rates = rates_of(plan.checked.values, plan.drawn, whole)
        if rows is not None:
            rates, whole = rates[rows], whole[rows]
        return oob.loss_of(rates, whole, plan.training.rules.criterion)

    def judged(self, plan: TrainingPlan, forest: Forest, means: np.ndarray) -> dict[str, Any]:
        y, seen = plan.checked.values, scored(means, plan.training.sampling)
        score = survival.concordance_of(y[seen], means[seen], 1)
        return {"oob_prediction_": prediction.flat(means), "oob_score_": score}


def rates_of(y: np.ndarray, sampling: Sampling, whole: np.ndarray) -> np.ndarray:
    """Events of rows by each of K causes over their exposures, f64[N, K]; 0 of no weight."""
    event = y[:, 1:]
    causes = np.arange(1, max(1, int(event.max())) + 1)
    weights = 1 if sampling.weights is None else sampling.weights[:, None]
    return np.asarray(((event == causes) & (weights > 0)) / whole[:, None])


class SurvivalForest(ensembles.BaseForest):
    """Many trees for times that may be censored."""

    _task, _family = EventTimes(), "survival"
    oob_prediction_: np.ndarray
    _rows_: quantile_forest.TrainingRows  # whose targets are [time, cause of the event or 0]
    proximity, neighbours = methods.proximity, methods.neighbours
    estimators_samples_ = property(methods.estimators_samples_)
    _keeps_draws = True
    min_samples_leaf_ = property(ensembles.fewest_rows)
    shrinkage_ = property(ensembles.shrinkage)

    def _keep(self, forest: Forest, plan: TrainingPlan | None = None) -> None:
        if plan is not None:
            training, backend = plan.training, plan.backend
            codes = backend.asnumpy(training.matrix.codes)[:, : training.n_features]
            self._rows_ = quantile_forest.TrainingRows(codes, plan.checked.values, plan.drawn)
            forest = survival.with_risks(forest, self._rows_, backend)
            if self.low_memory:
                self._rows_ = replace(self._rows_, codes=codes[:, :0].copy())
        super()._keep(forest, plan)

    @cached_property
    def _steps_(self) -> survival.Steps:
        """When events come in each leaf; not in pickles, where it follows from the rest."""
        backend = registry.get_host_backend(arguments.thread_count(self.n_jobs))
        steps = survival.steps_of(self.forest_, self._rows_, backend)
        if not steps.fit(self.forest_):
            raise ValueError(
                "the risks of this model do not follow from the training rows that its file holds, "
                "so its curves would contradict them: fit the model again"
            )
        return steps

    # predictions

    @property
    def unique_times_(self) -> np.ndarray:
        """The times of curves, float64, ascending."""
        return survival.time_grid(self._rows_, self.n_times)

    event_times_ = unique_times_

    def predict(self, X: Any) -> Any:
        """The risk of rows by each cause: the sum of the cumulative hazard over all times of
        events, as the mean over the trees.
        """
        return prediction.flat(self._walk(X, prediction.predict))

    def predict_cumulative_hazard_function(
        self, X: Any, return_array: bool = False, cause: int = 1
    ) -> np.ndarray:
        """The cumulative hazard of rows: the mean over the trees of the Nelson-Aalen estimates of
        their leaves."""
        self._check_cause(cause)
        return self._curves("cumulative_hazard", X, return_array, cause)

    def predict_cumulative_incidence_function(
        self, X: Any, return_array: bool = False, cause: int = 1
    ) -> np.ndarray:
        """The probability that the event has come until a time, by this cause: the mean over the
        trees of the Aalen-Johansen estimates of the rows' leaves. The probabilities of all causes
        and the survival function add up to one.
        """
        self._check_cause(cause)
        return self._curves("cumulative_incidence", X, return_array, cause)

    def predict_survival_function(self, X: Any, return_array: bool = False) -> np.ndarray:
        """The probability that the event comes later than a time, by any cause: the mean over the
        trees of the Kaplan-Meier estimates of the rows' leaves."""
        return self._curves("survival", X, return_array)

    def _curves(self, curve: str, X: Any, return_array: bool, cause: int = 0) -> np.ndarray:
        """For each row the mean over the trees of the sums, until each time, of what changes at
        the steps of leaves by a cause; 0: by all."""
        check_is_fitted(self)
        model = fit_scope.snapshot(self)
        if not model._rows_.codes.shape[1]:
            raise NotImplementedError(
                f"predict_{curve}_function is not implemented in low memory mode. run fit with "
                "low_memory=False to disable low memory mode."
            )
        grid = model.unique_times_

        def stage(forest: Forest, table: Any, backend: base.Backend) -> np.ndarray:
            steps = model._steps_
            changes = steps.hazard if curve == "cumulative_hazard" else steps.fall
            change = changes[:, cause - 1] if cause else changes.sum(axis=1)
            return survival.curves(forest, steps, table, grid, backend, change)

        values: np.ndarray = arrays.to_host(model._walk(X, stage))
        values = values if cause else np.maximum(1.0 - values, 0.0)
        if return_array:
            return values
        before, functions = 0.0 if cause else 1.0, np.empty(len(values), object)
        functions[:] = [survival.StepFunction(grid, row, before) for row in values]
        return functions

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _check_cause(self, cause: int) -> None:
        check_is_fitted(self)
        is_whole = isinstance(cause, Integral) and not isinstance(cause, bool)
        if not is_whole or not 1 <= cause <= self.n_outputs_:
            raise ValueError(f"cause={cause!r} must be an integer from 1 to {self.n_outputs_}")

    def score(self, X: Any, y: Any, sample_weight: Any = None, cause: int = 1) -> float:
        """The concordance of risks with times (Harrell's C): 1 if the order is always right, 0.5 by
        chance.
        """
        self._check_cause(cause)
        if sample_weight is not None:
            raise ValueError("concordance has no weights: leave sample_weight out")
        risks = arrays.to_host(self._walk(X, prediction.predict))
        return survival.concordance_of(check_survival(y, len(risks)), risks, cause)


@params.parameters(params.SINGLE_TREE, params.OF_SURVIVAL, params.OF_A_TREE)
class SurvivalTree(trees.DecisionTreeRegressor):
    """A tree of a survival forest. A fit grows the tree of a forest of one tree, from all rows,
    with the parameters that both have."""

    _check_cause, score = SurvivalForest._check_cause, SurvivalForest.score

    def fit(  # type: ignore[override]  # as of single trees
        self, X: Any, y: Any = None, sample_weight: Any = None, check_input: bool = True
    ) -> Self:
        """Grow the tree."""
        kind = ExtraSurvivalTrees if self.splitter == "random" else RandomSurvivalForest
        given = ensembles.shared_params(kind, self.get_params(deep=False))
        forest = kind(1, bootstrap=False, random_state=self.random_state, **given)
        tree = vars(forest.fit(X, y, sample_weight).estimators_[0])
        learned = {name: value for name, value in tree.items() if name.endswith("_")}
        self.__dict__ = fit_scope.unfitted(self) | learned
        return self


SurvivalForest._tree = SurvivalTree


def exposures(y: np.ndarray, sampling: Sampling) -> np.ndarray:
    """The hazard that each row went through, f64[N], whole and >= 1; a bag has less than 2**31."""
    weight = np.ones(len(y)) if sampling.weights is None else sampling.weights.astype(np.float64)
    hazard = survival.person_time(y[:, 1] > 0, y[:, 0], weight)
    most = bags.most_draw_weight(sampling)
    if most < 1:
        raise ValueError("the rows have too much weight in all: lower sample_weight or max_samples")
    return np.asarray(np.maximum(np.rint(hazard * (most / hazard.max())), 1.0))


def weighed(sampling: Sampling, whole: np.ndarray) -> Sampling:
    """The sampling whose rows count as often as they are drawn, times their exposures."""
    if sampling.n_draws:
        mean = float(np.average(whole, weights=sampling.weights))
        return replace(sampling, factors=whole.astype(dtypes.WEIGHT), draw_weight=mean)
    counts = 1 if sampling.weights is None else sampling.weights
    return replace(sampling, weights=(whole * counts).astype(dtypes.WEIGHT))


@params.parameters(params.SURVIVAL, params.OF_SURVIVAL)
class RandomSurvivalForest(SurvivalForest):
    """A random forest for times that may be censored.

    Notes
    -----
    The estimator keeps the bin codes and the targets of its training rows, also in model files:
    about n_samples * (n_features + 16) bytes. It computes curves from these when they are asked
    for.

    References
    ----------
    H. Ishwaran, U. B. Kogalur, E. H. Blackstone and M. S. Lauer, "Random survival forests", Annals
    of Applied Statistics 2, 2008. M. LeBlanc and J. Crowley, "Relative risk trees for censored
    survival data", Biometrics 48, 1992.

    Examples
    --------
    >>> import numpy as np
    >>> from gpuforest import RandomSurvivalForest
    >>> X = np.arange(40.0).reshape(-1, 1)
    >>> y = np.array([(i % 3 > 0, 50.0 - i) for i in range(40)], [("event", bool), ("time", float)])
    >>> forest = RandomSurvivalForest(random_state=0).fit(X, y)
    >>> low, high = forest.predict([[2.0], [37.0]])
    >>> bool(low < high)
    True
    """


@params.parameters(params.SURVIVAL, params.OF_SURVIVAL)
class ExtraSurvivalTrees(SurvivalForest):
    """Extremely randomized trees for times that may be censored.

    Each tree grows as in `ExtraTreesRegressor`, by the criterion of `RandomSurvivalForest`, and
    predicts like that class.
    """

    _splitter = "random"
