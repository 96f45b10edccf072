"""What rows out of bag tell a fit: how many trees grow, how many features their splits try and how
many rows their leaves have; scores, predictions and importances; and the trees that judge."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch

from gpuforest.common import progress
from gpuforest.core.forest import Forest, tree_groups
from gpuforest.core.nodes import is_leaf
from gpuforest.core.rules import Sampling
from gpuforest.estimators.plan import Pair, TrainingPlan
from gpuforest.estimators.settings import PAIR, features_tried
from gpuforest.estimators.task import Task
from gpuforest.explain.importances import unbiased_importances
from gpuforest.explain.node_values import own_rows
from gpuforest.explain.oob import Curve, Error, Loss, OutOfBag, change, curve_points
from gpuforest.explain.paths import some_trees
from gpuforest.growing.grow import keeping_scratch

# The fewest trees: tuneRF tries 50, and this is a point of every curve. Errors of fewer trees
# fall fast, and differ by chance.
FIRST_TREES = 48
IMPROVEMENT = 0.05  # of the error, as a part of it: tuneRF's
# The candidates of both numbers
SHARES, LEAVES = ("sqrt", 1 / 3, 1 / 2, 3 / 4, None), (1, 2, 5, 10, 20)
# of lambda; classes have no 0, so that each has a share in every tree that drew one of its rows
SHRINKAGES = (0.0, *(2.0**i for i in range(-5, 8, 2)))


Attributes = dict[str, Any]
Tuned = tuple[TrainingPlan, list[Forest], int, Attributes]
Judged = tuple[Forest, Attributes]
Measure = Callable[[OutOfBag, list[Forest]], float]


def tuned(plan: TrainingPlan, task: Task, waves: list[Forest], n_trees: int) -> Tuned:
    """The plan after errors out of bag have chosen what the settings leave to them, the waves that
    have grown (at first `waves`), the number of trees, and the attributes that are known."""
    asked, learned = plan.settings, dict[str, Any]()
    converges = asked.n_estimators == "auto"
    if not (asked.by_error or converges) or (n_trees_of(waves) == n_trees and plan.blocks is None):
        return plan, waves, n_trees, learned
    plan = replace(plan, training=keeping_scratch(plan.training))
    error, first_waves = task.error(plan.checked, plan.sample()), list[Forest]()
    evaluation = plan.evaluation
    if asked.by_error:
        if "min_samples_leaf" in asked.by_error:
            trials = tune_leaves(evaluation, task.loss(plan), "max_features" in asked.by_error)
            learned["oob_parameters_"] = trials.tried(*PAIR)
        else:
            trials = tune_features(evaluation, error)
            learned["oob_max_features_"] = trials.tried("max_features")
        evaluation, first_waves = trials.plan, trials.waves
    if converges:
        first_waves, curve = grow_until_converged(evaluation, error, first_waves)
        learned["oob_curve_"] = as_bunch(curve, "n_estimators")
        n_trees = n_trees_of(first_waves)
    if plan.blocks is not None:  # the trees so far judge, and the forest has none of them
        if converges:
            learned["_judges_"] = evaluation.finish(first_waves, 0), evaluation.training.sampling
        return plan.with_tuned(evaluation.pair), waves, n_trees, learned
    if converges or (not waves and n_trees >= FIRST_TREES):
        waves = first_waves
    return evaluation, waves, n_trees, learned


def n_trees_of(waves: list[Forest]) -> int:
    """The trees of all waves."""
    return sum(wave.n_trees for wave in waves)


class Trials:
    """Forests of `FIRST_TREES` trees from the same bags, which differ in two numbers.

    measure : returns the error of finished trees; gets an empty OutOfBag and these trees
    errors : of all pairs of numbers that were tried
    plan, waves : of the pair of the least error; ties go to the least pair
    """

    def __init__(self, plan: TrainingPlan, measure: Measure) -> None:
        self.errors: dict[Pair, float] = {}
        self.plan, self.waves = plan, list[Forest]()
        self._measure, self._rows = measure, plan.sample()

    def error(self, pair: Pair) -> float:
        """The error of these numbers, which are tried once."""
        if pair not in self.errors:
            plan = self.plan.with_tuned(pair)
            waves = plan.grow(0, FIRST_TREES)
            oob = OutOfBag(plan.training, plan.backend, self._rows)
            error = self._measure(oob, _finished(plan, waves))
            if not self.waves or (error, pair) < (self.errors[self.plan.pair], self.plan.pair):
                self.plan, self.waves = plan, waves
            self.errors[pair] = error
        return self.errors[pair]

    def tried(self, *names: str) -> Bunch:
        """The tried pairs, ascending: the numbers of these names i64[n], and errors f64[n]."""
        pairs, errors = zip(*sorted(self.errors.items()), strict=True)
        columns = dict(zip(PAIR, np.array(pairs, np.int64).T, strict=True))
        return Bunch(**{name: columns[name] for name in names}, error=np.array(errors, np.float64))

    def downhill(self, pairs: list[Pair], start: Pair) -> Pair:
        """The one of these pairs at which steps up, or else down, no longer lower the error."""
        for step in (1, -1):
            at = begin = pairs.index(start)
            while 0 <= at + step < len(pairs):
                if not self.error(pairs[at + step]) < self.error(pairs[at]):
                    break
                at += step
            if at != begin:
                return pairs[at]
        return start


def tune_features(plan: TrainingPlan, error: Error) -> Trials:
    """The number of features tried that gives the least out-of-bag error, in the manner of Breiman
    and Cutler's tuneRF (in R's randomForest): from the number that `plan` has it is halved for as
    long as that lowers the error of `FIRST_TREES` trees by `IMPROVEMENT`, then doubled."""

    def measure(oob: OutOfBag, forests: list[Forest]) -> float:
        ((_, found),) = oob.follow(forests, [FIRST_TREES], error)
        return found

    trials, (start, leaf) = Trials(plan, measure), plan.pair
    least = trials.error((start, leaf))
    for halves in (True, False):
        n_tried = start
        while True:
            other = -(-n_tried // 2) if halves else min(2 * n_tried, plan.training.n_features)
            if other == n_tried or not trials.error((other, leaf)) < least * (1 - IMPROVEMENT):
                break
            n_tried, least = other, trials.error((other, leaf))
    return trials


def tune_leaves(plan: TrainingPlan, loss: Loss, with_features: bool) -> Trials:
    """The fewest rows of a leaf that give the least out-of-bag loss; and the features tried. Rows
    and then features step along their candidates, up or else down, for as long as the loss falls.
    It is extrapolated to infinitely many trees: with few, small leaves would seem worse."""

    def measure(oob: OutOfBag, forests: list[Forest]) -> float:
        # a loss of a + b / n at n trees: a, from both halves of the trees, because that varies less
        oob.add(forests, FIRST_TREES // 2)
        sums, counts = (np.array(total) for total in oob.on_host())
        oob.add(forests, FIRST_TREES)
        all_sums, all_counts = oob.on_host()
        halves = loss(sums, counts) + loss(all_sums - sums, all_counts - counts)
        return 2 * loss(all_sums, all_counts) - halves / 2

    training, trials, pair = plan.training, Trials(plan, measure), plan.pair
    most, shares = training.sampling.n_counted // 2, SHARES if with_features else ()
    leaves = sorted({pair[1], *(n for n in LEAVES if n == 1 or n <= most)})
    numbers = sorted({pair[0], *(features_tried(share, training.n_features) for share in shares)})
    trials.error(pair)  # there may be no other
    pair = trials.downhill([(pair[0], leaf) for leaf in leaves], pair)
    trials.downhill([(n_tried, pair[1]) for n_tried in numbers], pair)
    return trials


def shrink(plan: TrainingPlan, task: Task, forest: Forest, known: Attributes) -> Judged:
    """The forest with the shrinkage that has the least out-of-bag loss, and what is `known`."""
    of, judges = plan.evaluation, forest
    if plan.blocks is not None:
        judges, sampling = known.get("_judges_", (None, of.training.sampling))
        judges = judges or plan.evaluation_forest(forest.n_trees)
    with progress.stage("out of bag"):
        found = tune_shrinkage(of, judges, task.loss(of))
    best, known = best_shrinkage(found), known | {"oob_shrinkage_": found}
    if plan.blocks is not None:
        known["_judges_"] = of.shrink(judges, best), sampling
    return plan.shrink(forest, best), known


def tune_shrinkage(plan: TrainingPlan, forest: Forest, loss: Loss) -> Bunch:
    """The out-of-bag losses of the trees shrunk by each of the candidates. Rows go down each tree
    once, and its leaves have the values of all candidates."""
    coding, rows = forest.coding, plan.sample()
    tried = np.array([n for n in SHRINKAGES if n or not coding.labels])
    oob = OutOfBag(plan.training, plan.backend, rows, coding.n_values * len(tried))
    for first, last in tree_groups(forest, 4 * len(tried)):
        part = replace(some_trees(forest, first, last), leaf_values=None, combine="mean")
        by = tried * plan.training.sampling.mean_weight
        values = part.node_means(0, last - first, by)[is_leaf(part.nodes)]
        values = forest.counted(values.reshape(-1, coding.n_values)).reshape(len(values), -1)
        part = replace(own_rows(part), leaf_values=values, node_values=None)
        oob.add([part], last, first)
    sums, counts = oob.on_host()
    errors = [loss(part, counts) for part in np.split(sums, len(tried), axis=1)]
    return Bunch(shrinkage=tried, error=np.array(errors, np.float64))


def best_shrinkage(tried: Bunch) -> float:
    """The candidate of the least error, the least of equals."""
    return float(tried.shrinkage[np.argmin(tried.error)])


def grow_until_converged(
    plan: TrainingPlan, error: Error, first_waves: list[Forest]
) -> tuple[list[Forest], Curve]:
    """Trees until the out-of-bag error has converged, and the errors on the way; `first_waves`: the
    first `FIRST_TREES` of the trees, where they grew before. The error has converged when over the
    last half of the trees it lay within oob_tol. An error of a + b / n at n trees is then at most
    oob_tol above the error of any number of trees."""
    tol, max_trees = plan.settings.oob_tol, plan.settings.max_estimators
    oob, points = OutOfBag(plan.training, plan.backend, plan.sample()), curve_points(max_trees)
    grown, curve = list[Forest](), Curve()
    for end in (n for n in points if n >= min(FIRST_TREES, max_trees)):
        begin = oob.n_trees
        with progress.counting_on(begin, max_trees):
            is_there = first_waves and end == FIRST_TREES
            waves = first_waves if is_there else plan.grow(begin, end)
        grown += waves
        passed = [n for n in points if begin < n <= end]
        curve += oob.follow(_finished(plan, waves, begin), passed, error, begin)
        if change(curve) <= tol:
            break
    else:
        warnings.warn(
            f"the out-of-bag error has not converged: over the last half of max_estimators="
            f"{max_trees} trees it changed by {change(curve):.2g}, more than oob_tol={tol}. "
            "Raise either",
            ConvergenceWarning,
            stacklevel=2,
        )
    return grown, curve


def _finished(plan: TrainingPlan, waves: list[Forest], first: int = 0) -> list[Forest]:
    """The waves as they predict, one by one; `first`: the number of the first tree."""
    begin = accumulate((wave.n_trees for wave in waves), initial=first)
    return [plan.finish([wave], n) for wave, n in zip(waves, begin, strict=False)]


def as_bunch(curve: Curve, name: str) -> Bunch:
    """Numbers i64[n] under this name, and errors f64[n]."""
    numbers, errors = zip(*curve, strict=True)
    return Bunch(**{name: np.array(numbers, np.int64), "error": np.array(errors, np.float64)})


def learned(plan: TrainingPlan, task: Task, forest: Forest, known: Attributes) -> Attributes:
    """The attributes that a forest learns from rows out of bag; `known`: those of `tuned`."""
    plan, found, asked = plan.evaluation, dict(known), plan.settings
    wanted, judges = bool(asked.oob_score) or asked.unbiased_importances, forest
    if plan.blocks is not None and "_judges_" not in found:
        grown = plan.evaluation_forest(forest.n_trees) if wanted else None
        found["_judges_"] = (grown, plan.training.sampling) if wanted else None
    if plan.blocks is not None and wanted:
        judges = found["_judges_"][0]
    if asked.oob_score:
        with progress.stage("out of bag"):
            means, curve = predictions(plan, task, judges)
            found = {"oob_curve_": as_bunch(curve, "n_estimators")} | found
            found |= task.judged(plan, forest, means)
    if asked.unbiased_importances:
        found["_unbiased_importances_"] = importances(plan, judges)
    return found


def predictions(plan: TrainingPlan, task: Task, judges: Forest) -> tuple[np.ndarray, Curve]:
    """Out-of-bag predictions f64[N, n_values] (NaN if every tree drew the row), and the errors."""
    forest, rows, curve = task.predicting(judges), plan.sample(), Curve()
    oob = OutOfBag(plan.training, plan.backend, n_values=forest.values.shape[1])
    error = task.error(plan.checked, rows)
    for point in oob.follow([forest], curve_points(forest.n_trees), error, rows=rows):
        curve.append(point)
        progress.report(point[0], forest.n_trees)
    means = oob.means()
    if plan.blocks is None and np.isnan(means).any():
        warn_of_rows_in_all_bags(stacklevel=2, word=task.out_of_bag_word)
    return means, curve


def importances(plan: TrainingPlan, judges: Forest) -> np.ndarray:
    """The mean unbiased importances f64[n_features] of the trees."""
    given = plan.training.matrix, plan.training.target.y, plan.training.sampling
    with progress.stage("importances"):
        of_trees = unbiased_importances(judges, *given, plan.backend)
    known = of_trees[:, ~np.isnan(of_trees[0])]
    if known.shape[1]:
        return np.asarray(known.mean(axis=1))
    why = "No row is out of any bag, so unbiased importances are unknown (NaN): lower max_samples"
    warnings.warn(why, stacklevel=2)
    return np.full(len(of_trees), np.nan)


def warn_of_rows_in_all_bags(stacklevel: int, word: str = "OOB") -> None:
    """Warn as scikit-learn does that some rows have no out-of-bag predictions."""
    warnings.warn(
        "Some inputs do not have OOB scores. This probably means too few trees were used to "
        f"compute any reliable {word} estimates.",
        stacklevel=stacklevel + 1,
    )


def evaluation_forest(estimator: Any) -> tuple[Forest, Sampling]:
    """The trees of a fitted forest that judge rows, and how they drew rows. With blocks of time
    the forest itself does not judge. A ValueError if these trees are not known."""
    if not hasattr(estimator, "_judges_"):
        return estimator.forest_, known_bags(estimator)
    if estimator._judges_ is None:
        raise ValueError(
            "rows are judged by blocks, and the trees that do so are known only to the estimator "
            "that was fitted with oob_score=True: fit it so"
        )
    return estimator._judges_  # type: ignore[no-any-return]


def known_bags(forest: Any) -> Sampling:
    """How the bags of a fitted forest were drawn; a ValueError if it has none or does not know."""
    if not hasattr(forest, "_sampling_"):
        raise ValueError(
            "the bags are not known to Bagging* that were loaded, older files, converted forests, "
            "and after refit, add_rows, +, keep_trees and prune_trees: "
            "fit it again, the same random_state gives the same trees"
        )
    if not forest._sampling_.n_draws:
        raise ValueError("no row is out of bag without bags: fit with bootstrap=True")
    return forest._sampling_  # type: ignore[no-any-return]


def check_rows(sampling: Sampling, n_rows: int) -> None:
    """Refuse another number of rows than that of the training data."""
    if n_rows != sampling.n_rows:
        raise ValueError(
            f"X has {n_rows} rows, but the forest was fitted to {sampling.n_rows}: pass the "
            "data that it was fitted to"
        )
