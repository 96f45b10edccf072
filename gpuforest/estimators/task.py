"""The rows of a fit, and its task, which checks and encodes the target and scores predictions out
of bag."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import compress
from typing import Any, Self

import numpy as np
from sklearn.metrics import r2_score

from gpuforest.backends.base import Backend, take_rows
from gpuforest.core import bins, criteria, rules
from gpuforest.core.forest import Forest
from gpuforest.core.target import CheckedTarget, TargetCoding
from gpuforest.data import arrays, binned, target_statistics, validation
from gpuforest.estimators.plan import TrainingPlan
from gpuforest.estimators.settings import RowWeights, bag_shares, known_classes, row_weights_of
from gpuforest.explain import importances, oob, uncertainty
from gpuforest.growing import bags, edges, targets

Array = Any
# The fewest points of the grid that an output should take, and that it must take
COARSE, LOST = 2**20, 2**10


@dataclass(frozen=True, eq=False)
class Rows:
    """The checked rows of a fit.

    X : table [N, F], or binned.BinnedData; None: it is no longer needed
    categories : of features, as `BinEdges` has them
    names : of the columns, or None
    weight : f64[N], or None: all are one
    groups, blocks : i32[N], the numbers of the rows' groups and of their blocks of time, or None
    ids : i64[N] or u64[N], all different, or None: the rows' numbers
    statistics : of the features whose values have become target statistics
    judged : the numbers f32[N] of these features by which rows are judged out of bag
    target : before it was encoded; None: not checked yet
    offset : f64[N, K], raw predictions before the first round of boosting, or None
    """

    X: Any
    categories: bins.Categories
    names: list[Any] | None
    weight: np.ndarray | None
    groups: np.ndarray | None
    blocks: np.ndarray | None
    statistics: bins.Statistics
    target: Any = None
    offset: np.ndarray | None = None
    ids: np.ndarray | None = None
    judged: target_statistics.Numbers = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @cached_property
    def integers(self) -> np.ndarray | None:
        """The weights as integers i32[N]."""
        return None if self.weight is None else targets.integer_weights(self.weight)

    @property
    def weights(self) -> RowWeights:
        """The weights as they are, and as integers."""
        integers = self.integers
        return None if self.weight is None or integers is None else (self.weight, integers)

    @cached_property
    def y(self) -> np.ndarray:
        """The target on the host: numbers f64[N] or f64[N, 2], or class codes i64[N]."""
        y = host_target(self.target)
        return y[:, 0] if y.shape[1] == 1 else y

    @property
    def classes(self) -> np.ndarray | None:
        """The labels of the classes of one output; None: numbers."""
        known: Any = self.target.classes
        return None if known is None else known[0]

    def take(self, rows: np.ndarray, backend: Backend) -> Self:
        """Rows of these numbers; X may lie on the backend's device."""
        is_binned = isinstance(self.X, binned.BinnedData)
        names, target = ("weight", "groups", "blocks", "offset"), self.target
        taken = {n: a[rows] for n in names if (a := getattr(self, n)) is not None}
        if target is not None:
            y = self.y[rows]
            taken["target"] = replace(target, values=y if target.classes is None else [y])
        X = self.X.take(rows) if is_binned else take_rows(self.X, rows, backend)
        return replace(self, X=X, **taken)

    def with_statistics(
        self, split: str, weights: np.ndarray | None, seed: int, judges: bool = False
    ) -> Self:
        """The rows with target statistics in place of categories where `split` says so; `judges`:
        with the numbers that judge rows."""
        if not self.categories:
            return self
        of_rows = self.target, weights, seed, self.groups, judges
        make, X = partial(target_statistics.OrderedTarget.of, *of_rows), self.X
        known, made, judged = target_statistics.replace_categories(X, self.categories, split, make)
        return replace(self, categories=known, statistics=made, judged=judged)

    def learned_from(
        self, chosen: Any, weights: np.ndarray | None, backend: Backend
    ) -> tuple[Self, np.ndarray | None]:
        """X of some rows i64[n] and their integer weights, which choose bins."""
        if isinstance(self.X, binned.BinnedData):
            return self, weights
        some = replace(self, X=take_rows(self.X, chosen, backend))
        return some, None if weights is None else weights[chosen]

    def edges(
        self, max_bins: int | str, weights: np.ndarray | None, seed: int, backend: Backend
    ) -> bins.BinEdges:
        """The bins of the features; weights : i32[N], or None."""
        if isinstance(self.X, binned.BinnedData):
            return self.X.edges
        of_rows: dict[str, Any] = {"weights": weights, "seed": seed, "categories": self.categories}
        found = edges.fit_edges(self.X, max_bins=max_bins, backend=backend, **of_rows)
        return replace(found, statistics=self.statistics)

    def uses(self, split: str) -> set[str]:
        """The capabilities that the rows and their target ask for."""
        is_binned = isinstance(self.X, binned.BinnedData)
        asked = {
            "groups": self.groups is not None, "blocks": self.blocks is not None,
            "outputs": n_outputs(self.target) > 1, "binned": is_binned,
            "ordered": is_binned and self.X.edges.statistics,
        }  # fmt: skip
        uses = set(compress(asked, asked.values()))
        for known in self.categories.values():
            other = "multiway" if split == "multiway" else "subset"
            uses.add("ordered" if target_statistics.has_statistics(split, len(known)) else other)
        return uses


@dataclass(frozen=True, eq=False)
class Encoded:
    """A target as trees take it: class codes i32[N, 1] or moments i64[N, K].

    sampling : with the weights that the task gives the rows
    exposures : f64[N], see `TrainingPlan`, or None
    times : see `Target`
    """

    coding: TargetCoding
    y: Array
    sampling: rules.Sampling
    exposures: np.ndarray | None = None
    times: np.ndarray | None = None


@dataclass(frozen=True)
class On:
    """What a target is checked and encoded for, and the backend that does it."""

    criterion: criteria.Criterion
    backend: Backend
    seed: int = 0


class Task:
    """What a fit predicts. There is one object of each subclass.

    fewest_rows : rows that a score of predictions needs
    out_of_bag_word : what a warning calls the estimates
    check : the target of so many rows; a ValueError if it has something wrong
    encode_target : the target as integers
    scorer : a function that scores predictions f64[n, n_values] of targets [n, n_outputs]
    judged : the attributes that follow from predictions out of bag f64[N, n_values]
    """

    fewest_rows = 1
    out_of_bag_word = "OOB"
    check: Callable[[Any, int, On], CheckedTarget]
    encode_target: Callable[[CheckedTarget, rules.Sampling, On], Encoded]
    scorer: Callable[[CheckedTarget], importances.Score]
    judged: Callable[[TrainingPlan, Forest, np.ndarray], dict[str, Any]]

    def shown(self, y: np.ndarray) -> np.ndarray:
        """Targets of numbers as users pass them, for their scorers."""
        return y

    def tree_score(self, checked: CheckedTarget) -> importances.Score:
        """A function that scores a tree's predictions for some rows; higher is better."""
        y, score = host_target(checked), self.scorer(checked)
        return lambda rows, values: score(y[rows], values)

    def error(self, checked: CheckedTarget, rows: np.ndarray | None) -> oob.Error:
        """A function of the predictions for these rows (None: all), which gives 1 - score; NaN if
        fewer than `fewest_rows` of them are out of some bag."""
        y, score = host_target(checked), self.scorer(checked)
        y = y if rows is None else y[rows]

        def error(means: np.ndarray) -> float:
            seen = ~np.isnan(means[:, 0])
            return 1 - score(y[seen], means[seen]) if seen.sum() >= self.fewest_rows else np.nan

        return error

    def loss(self, plan: TrainingPlan) -> oob.Loss:
        """The mean loss of the rows `plan.sample()`: by the criterion, or the log loss."""
        checked, rows = plan.checked, plan.sample()
        y, weights = host_target(checked), np.ones(plan.training.sampling.n_rows)
        settings = plan.settings
        if settings.by_class:  # trees predict classes of other shares
            codes, labels = known_classes(checked)
            held = bag_shares(plan.drawn, codes, len(labels))
            rows_of = np.maximum(np.bincount(codes, minlength=len(labels)), 1)
            weights = (held / rows_of)[codes]
        elif settings.class_weight is not None:  # trees predict shares of weighted rows
            weights = row_weights_of(settings.class_weight, checked)
        if rows is not None:
            y, weights = y[rows], weights[rows]
        classes, criterion = checked.classes, plan.training.rules.criterion
        return oob.loss_of(y, weights, criterion if classes is None else [*map(len, classes)])

    def predicting(self, forest: Forest) -> Forest:
        """The forest whose predictions `judged` takes."""
        return forest


class Classes(Task):
    """Class labels, of one output or several."""

    def check(self, y: Any, n_rows: int, on: On) -> CheckedTarget:
        return validation.check_labels(y, n_rows, on.backend)

    def encode_target(self, checked: CheckedTarget, sampling: rules.Sampling, on: On) -> Encoded:
        codes, classes = checked.values, checked.classes
        assert classes is not None
        if len(classes) == 1:
            return Encoded(*targets.encode_classes(codes[0], classes[0]), sampling)
        return Encoded(*targets.encode_several(codes, classes, on.backend), sampling)

    def scorer(self, checked: CheckedTarget) -> importances.Score:
        assert checked.classes is not None
        # where the outputs after the first begin among the values of a prediction
        ends = np.cumsum([len(labels) for labels in checked.classes])[:-1]
        return partial(accuracy, ends=ends)

    def judged(self, plan: TrainingPlan, forest: Forest, means: np.ndarray) -> dict[str, Any]:
        codes, coding, classes = host_target(plan.checked), forest.coding, plan.checked.classes
        assert classes is not None
        parts = coding.split(means)
        if coding.several:
            means = coding.stacked(means).swapaxes(1, 2)
        found = {"oob_decision_function_": means, "oob_score_": np.nan}
        seen = scored(parts[0], plan.training.sampling)
        if not seen.any():
            return found
        codes, parts = codes[seen], [part[seen] for part in parts]
        y = [labels[column] for labels, column in zip(classes, codes.T, strict=True)]
        best = [labels[part.argmax(axis=1)] for labels, part in zip(classes, parts, strict=True)]
        both = (np.stack(a, axis=1) if coding.several else a[0] for a in (y, best))
        score = scoring(plan, subset_accuracy)(*both)
        calibration = uncertainty.calibrated_classes(list(codes.T), parts)
        return found | {"oob_score_": float(score), "_calibration_": calibration}


class Numbers(Task):
    """Real numbers, of one output or several."""

    fewest_rows = 2

    def check(self, y: Any, n_rows: int, on: On) -> CheckedTarget:
        return validation.check_numbers(y, n_rows, on.criterion, on.backend)

    def encode_target(self, checked: CheckedTarget, sampling: rules.Sampling, on: On) -> Encoded:
        backend, y = on.backend, on.backend.asarray(checked.values)
        y = y[:, None] if y.ndim == 1 else y
        if sampling.weights is not None and not sampling.weights.all():
            # rows of no weight must not widen the range of the fixed point
            counts = sampling.weights > 0
            first = y[int(np.argmax(counts)), ...]
            y = backend.xp.where(backend.asarray(counts)[:, None], y, first)
        how: dict[str, Any] = {"centred": on.criterion.centred, "backend": backend}
        if sampling.rate:
            how["chosen"] = bags.learned_from(sampling, on.seed)
        coding, moments = targets.encode_moments(y, sampling.most_weight, **how)
        if y.shape[1] > 1:
            _check_grid(y, moments, backend)
        _warn_of_far_targets(y, coding, backend)
        return Encoded(coding, moments, sampling)

    def scorer(self, checked: CheckedTarget) -> importances.Score:
        return r_squared

    def tree_score(self, checked: CheckedTarget) -> importances.Score:
        y = host_target(checked)
        return lambda rows, values: -float(np.mean((y[rows] - values) ** 2))

    def predicting(self, forest: Forest) -> Forest:
        return uncertainty.with_squares(forest)

    def judged(self, plan: TrainingPlan, forest: Forest, means: np.ndarray) -> dict[str, Any]:
        seen = scored(means, plan.training.sampling)
        means, spread = uncertainty.mean_and_spread(forest, means)
        y, found = host_target(plan.checked), dict[str, Any]()
        if seen.any():
            found["_calibration_"] = uncertainty.calibrated(y[seen], means[seen], spread[seen])
        if means.shape[1] == 1:
            means, y = means[:, 0], y[:, 0]
        score = np.nan
        if seen.sum() > 1:  # R^2 of one row is undefined
            score = float(scoring(plan, r2_score)(y[seen], means[seen]))
        return found | {"oob_prediction_": means, "oob_score_": score}


class RandomTarget(Numbers):
    """No target: trees of random cuts grow for numbers drawn from the seed."""

    def check(self, y: Any, n_rows: int, on: On) -> CheckedTarget:
        return CheckedTarget(np.random.RandomState(on.seed % 2**32).uniform(size=n_rows))


CLASSES, NUMBERS, NO_TARGET = Classes(), Numbers(), RandomTarget()


def host_target(checked: CheckedTarget) -> np.ndarray:
    """Class codes, or numbers, [N, n_outputs] on the host."""
    if checked.classes is not None:
        return np.stack([arrays.to_host(codes) for codes in checked.values], axis=1)
    y = np.asarray(arrays.to_host(checked.values))
    return y.reshape(len(y), -1)


def n_outputs(checked: CheckedTarget) -> int:
    """The columns of the target."""
    if checked.classes is not None:
        return len(checked.classes)
    return 1 if checked.values.ndim == 1 else int(checked.values.shape[1])


def scoring(plan: TrainingPlan, default: Callable[..., float]) -> Callable[..., float]:
    """The function that scores predictions out of bag: the user's, or the default."""
    wanted: Any = plan.settings.oob_score
    return wanted if callable(wanted) else default


def scored(means: np.ndarray, sampling: rules.Sampling) -> np.ndarray:
    """Which rows are out of some bag and have some weight, bool[N]; means f64[N, n_values]."""
    seen = ~np.isnan(means[:, 0])
    return np.asarray(seen if sampling.weights is None else seen & (sampling.weights > 0))


def accuracy(y: np.ndarray, values: np.ndarray, ends: np.ndarray) -> float:
    """Share of the rows whose outputs all have their most likely class: codes y [n, n_outputs],
    and predictions, in which the outputs after the first begin at `ends`."""
    labels = [part.argmax(axis=1) for part in np.split(values, ends, axis=1)]
    return subset_accuracy(y, np.stack(labels, axis=1))


def subset_accuracy(y: np.ndarray, predicted: np.ndarray) -> float:
    """Share of the rows whose outputs are all right, as scikit-learn's `accuracy_score` has it,
    which refuses several outputs of more than two classes."""
    return float(np.mean((y == predicted).reshape(len(y), -1).all(axis=1)))


def r_squared(y: np.ndarray, values: np.ndarray) -> float:
    """R^2 of predictions of y f64[n, n_outputs] (their squares may follow in other columns), as
    scikit-learn's `r2_score` gives it, in a tenth of the time, because it is called often."""
    left = ((y - values[:, : y.shape[1]]) ** 2).sum(axis=0)
    spread = ((y - y.mean(axis=0)) ** 2).sum(axis=0)
    scores = 1 - left / np.where(spread > 0, spread, 1)
    return float(np.where(spread > 0, scores, left == 0).mean())


def _check_grid(y: Array, moments: Array, backend: Backend) -> None:
    """Warn if the grid of all outputs is coarse for one; a ValueError if that would be constant."""
    xp = backend.xp
    varies = backend.asnumpy(xp.max(y, axis=0) > xp.min(y, axis=0))
    spread = backend.asnumpy(xp.max(moments, axis=0) - xp.min(moments, axis=0))
    coarse = np.flatnonzero(varies & (spread < COARSE) & (spread.max() > COARSE**1.5))
    if (lost := coarse[spread[coarse] < LOST]).size:
        raise ValueError(
            f"output {lost[0]} of y has a range so small beside another's that it would be lost: "
            "scale the outputs to similar ranges, or fit them apart"
        )
    if len(coarse):
        warnings.warn(
            f"output {coarse[0]} of y has a range so small beside another's that its "
            "predictions are coarse: scale the outputs to similar ranges",
            stacklevel=2,
        )


def _warn_of_far_targets(y: Array, coding: TargetCoding, backend: Backend) -> None:
    """Warn if a few targets lie so far out that the grid is too coarse for all others."""
    middle, width = targets.typical_ranges(y, np.full(y.shape[1], LOST / coding.scale), backend)
    for k in np.flatnonzero(width * coding.scale < LOST).tolist():
        low, high = (float(find(y[:, k])) for find in (backend.xp.min, backend.xp.max))
        if high - low <= LOST * width[k]:
            continue  # other outputs are wider, or no target differs
        far = high if high - middle[k] > middle[k] - low else low
        warnings.warn(
            f"y has the value {far:.3g}, and half of its values lie within {width[k]:.3g}: beside "
            f"it they are rounded to steps of {1 / coding.scale:.3g}, and forests learn little "
            "from smaller differences. Remove or clip the values that lie far out, or take "
            "logarithms",
            stacklevel=2,
        )
