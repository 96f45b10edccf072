"""How the trees of a fit grow and are finished, by one process or several; out-of-bag errors may
decide how many grow, or how many features their splits try."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch

from gpuforest.backends.base import Backend
from gpuforest.backends.registry import run_on_backend
from gpuforest.common.arguments import draw_seed
from gpuforest.common.progress import counting_on
from gpuforest.data.binned import BinnedData, target_and_weight
from gpuforest.engine.assembly import merged
from gpuforest.engine.forest import Forest
from gpuforest.engine.grow import Prune, grow
from gpuforest.engine.records import Training
from gpuforest.engine.target import CheckedTarget
from gpuforest.estimators.settings import Settings
from gpuforest.explain.node_values import clip_leaves, with_leaf_impurity, with_node_values
from gpuforest.explain.oob import Curve, Error, OutOfBag, change, curve_points, sampled_rows
from gpuforest.explain.pruning import best_first, prune

# The fewest trees: tuneRF tries 50, and this is a point of every curve. Errors of fewer trees
# fall fast, and differ by chance.
FIRST_TREES = 48
IMPROVEMENT = 0.05  # of the error, as a part of it: tuneRF's
Passed = tuple[Any, Any, Any]  # X, y and sample_weight, as `fit` gets them


@dataclass(frozen=True, eq=False)
class TrainingPlan:
    """What the trees of a fit grow from, and how they are pruned and finished."""

    training: Training
    settings: Settings
    checked: CheckedTarget  # the target before it was encoded
    combine: str  # how the trees' predictions combine, see `Forest`

    @property
    def pruning(self) -> Prune | None:
        """What prunes the trees of a wave as soon as they have grown; None if nothing does, or if
        the gains of splits are only known when all trees have grown."""
        early = self.settings.prunes and not self.settings.values_from_rows
        return self.prune if early else None

    def prune(self, forest: Forest) -> Forest:
        """Cut the trees back as the parameters ask for it."""
        settings, criterion = self.settings, self.training.rules.criterion
        if settings.max_leaf_nodes is not None:
            forest = best_first(forest, criterion, settings.max_leaf_nodes)
        return prune(forest, criterion, settings.ccp_alpha) if settings.ccp_alpha > 0 else forest

    def finish(self, waves: list[Forest], first: int) -> Forest:
        """The forest of grown trees, as it predicts; `first`: the number of its first tree."""
        training, settings, y = self.training, self.settings, self.checked.values
        rules, forest = training.rules, merged(waves, training)
        if settings.values_from_rows:
            forest = self.prune(with_node_values(forest, training, y, first))
        forest = replace(forest, combine=self.combine)
        if len(rules.signs):
            forest = clip_leaves(forest, rules.signs, rules.criterion)
        if settings.is_single and rules.criterion.spread is not None and not forest.coding.several:
            forest = with_leaf_impurity(forest, training, y, rules.criterion)
        return forest

    def sample(self) -> np.ndarray | None:
        """Rows on which errors are computed while trees grow; None: all."""
        training = self.training
        return sampled_rows(training.seed, training.sampling, training.backend)

    def trying(self, n_tried: int) -> TrainingPlan:
        """The same plan with another number of features tried at a split."""
        rules = replace(self.training.rules, n_tried=n_tried)
        return replace(self, training=replace(self.training, rules=rules))


def n_trees_of(waves: list[Forest]) -> int:
    """The trees of all these waves."""
    return sum(wave.n_trees for wave in waves)


def tune_features(plan: TrainingPlan, error: Error) -> tuple[TrainingPlan, list[Forest], Curve]:
    """The number of features tried that gives the least out-of-bag error, in the manner of
    Breiman and Cutler's tuneRF (in R's randomForest).

    From the number that `plan` has it is halved for as long as that lowers the error of
    `FIRST_TREES` trees by `IMPROVEMENT`, then doubled. The same bags serve all numbers. The result
    is the plan with the best of the numbers (of equals the least), its trees, and all numbers,
    ascending, with their errors.
    """
    start, rows = plan.training.rules.n_tried, plan.sample()
    errors: dict[int, float] = {}
    best: tuple[float, int, list[Forest]] | None = None

    def trial(n_tried: int) -> float:
        nonlocal best
        waves = grow(plan.trying(n_tried).training, 0, FIRST_TREES, plan.pruning)
        oob = OutOfBag(plan.training, rows)
        ((_, errors[n_tried]),) = _follow(oob, plan, waves, [FIRST_TREES], error)
        if best is None or (errors[n_tried], n_tried) < best[:2]:
            best = errors[n_tried], n_tried, waves
        return errors[n_tried]

    least = trial(start)
    for halves in (True, False):
        n_tried = start
        while True:
            other = -(-n_tried // 2) if halves else min(2 * n_tried, plan.training.n_features)
            if other == n_tried or not trial(other) < least * (1 - IMPROVEMENT):
                break
            n_tried, least = other, errors[other]
    assert best is not None
    return plan.trying(best[1]), best[2], sorted(errors.items())


def grow_until_converged(
    plan: TrainingPlan, error: Error, tol: float, max_trees: int, first_waves: list[Forest]
) -> tuple[list[Forest], Curve]:
    """Grow trees until the out-of-bag error has converged.

    The error is computed at each of `curve_points` from `FIRST_TREES` on: it has converged
    when over the last half of the trees it lay within `tol`. An error of a + b / n at n trees
    is then above that of any number of them by no more than `tol`.

    first_waves : the first `FIRST_TREES` of the trees, where they grew before
    """
    oob, points = OutOfBag(plan.training, plan.sample()), curve_points(max_trees)
    grown: list[Forest] = []
    curve: Curve = []
    for end in (n for n in points if n >= min(FIRST_TREES, max_trees)):
        begin = oob.n_trees
        with counting_on(begin, max_trees):
            is_there = first_waves and end == FIRST_TREES
            waves = first_waves if is_there else grow(plan.training, begin, end, plan.pruning)
        grown += waves
        passed = [n for n in points if begin < n <= end]
        curve += _follow(oob, plan, waves, passed, error)
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


def _follow(
    oob: OutOfBag, plan: TrainingPlan, waves: list[Forest], points: list[int], error: Error
) -> Curve:
    """Errors at these numbers of trees; the last number is that of all. The trees need not be
    merged for it."""
    begin = accumulate((wave.n_trees for wave in waves), initial=oob.n_trees)
    forests = [plan.finish([wave], n) for wave, n in zip(waves, begin, strict=False)]
    return list(oob.follow(forests, points, error, oob.n_trees))


def as_bunch(curve: Curve, name: str) -> Bunch:
    """Numbers i64[n] under this name, and errors f64[n]."""
    numbers, errors = zip(*curve, strict=True)
    return Bunch(**{name: np.array(numbers, np.int64), "error": np.array(errors, np.float64)})


def grow_share(estimator: Any, data: BinnedData, begin: int, end: int) -> Forest:
    """The trees begin .. end - 1 of the forest that the estimator would grow of these data, not
    finished: what the estimator that becomes the forest has as `_grown`. `random_state` is a
    number."""
    estimator._validate_params()

    def work(backend: Backend) -> Forest:
        plan = share_plan(estimator, data, backend)
        return merged(grow(plan.training, begin, end, plan.pruning), plan.training)

    forest: Forest = run_on_backend(work, **estimator._chosen(data))
    return forest


def share_plan(estimator: Any, data: BinnedData, backend: Backend) -> TrainingPlan:
    """What the trees of a share grow from."""
    passed = data, *target_and_weight(data, None, None)
    plan: TrainingPlan = estimator._prepared(passed, draw_seed(estimator.random_state), backend)
    return plan
