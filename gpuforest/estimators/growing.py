"""How the trees of a fit grow and are finished, by one process or several; out-of-bag errors may
decide how many grow, how many features their splits try, and how many rows their leaves have."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch

from gpuforest.backends import base, registry
from gpuforest.common import arguments, progress
from gpuforest.core.forest import Forest
from gpuforest.core.rules import Sampling
from gpuforest.core.target import CheckedTarget
from gpuforest.core.training import Training
from gpuforest.data.binned import BinnedData, Passed
from gpuforest.estimators.settings import Settings, features_tried
from gpuforest.explain.node_values import clip_leaves, with_leaf_impurity, with_node_values
from gpuforest.explain.oob import Curve, Error, Loss, OutOfBag, change, curve_points, sampled_rows
from gpuforest.explain.pruning import best_first, prune
from gpuforest.growing.assemble import merged
from gpuforest.growing.grow import Prune, grow, keeping_scratch

# The fewest trees: tuneRF tries 50, and this is a point of every curve. Errors of fewer trees
# fall fast, and differ by chance.
FIRST_TREES = 48
IMPROVEMENT = 0.05  # of the error, as a part of it: tuneRF's
Pair = tuple[int, int]  # features tried at a split, and the fewest rows of a leaf
PAIR = ("max_features", "min_samples_leaf")
# What both are chosen from
SHARES, LEAVES = ("sqrt", 1 / 3, 1 / 2, 3 / 4, None), (1, 2, 5, 10, 20)


@dataclass(frozen=True, eq=False)
class TrainingPlan:
    """What the trees of a fit grow from, and how they are pruned and finished."""

    training: Training
    backend: base.Backend
    settings: Settings
    checked: CheckedTarget  # the target before it was encoded
    combine: str  # how the trees' predictions combine, see `Forest`
    blocks: np.ndarray | None = None  # of time, by which rows are judged, see `Sampling`

    @property
    def judging(self) -> TrainingPlan:
        """What the trees grow from that judge rows: these trees or, with blocks, others."""
        if self.blocks is None:
            return self
        sampling = replace(self.training.sampling, blocks=self.blocks)
        return replace(self, training=replace(self.training, sampling=sampling))

    @property
    def pruning(self) -> Prune | None:
        """What prunes the trees of a wave as soon as they have grown; None if nothing does, or if
        the gains of splits are only known when all trees have grown."""
        early = self.settings.prunes and not self.settings.values_from_rows
        return self.prune if early else None

    def grow(self, begin: int, end: int) -> list[Forest]:
        """Grow the trees begin .. end - 1, wave by wave."""
        return grow(self.training, self.backend, begin, end, self.pruning)

    def prune(self, forest: Forest) -> Forest:
        """Cut the trees back as the parameters ask for it."""
        settings, criterion = self.settings, self.training.rules.criterion
        if settings.max_leaf_nodes is not None:
            forest = best_first(forest, criterion, settings.max_leaf_nodes)
        return prune(forest, criterion, settings.ccp_alpha) if settings.ccp_alpha > 0 else forest

    def finish(self, waves: list[Forest], first: int) -> Forest:
        """The forest of grown trees, as it predicts; `first`: the number of its first tree."""
        training, settings, y = self.training, self.settings, self.checked.values
        rules, forest = training.rules, merged(waves, training, self.backend.n_threads)
        if settings.values_from_rows:
            forest = self.prune(with_node_values(forest, training, self.backend, y, first))
        forest = replace(forest, combine=self.combine)
        if len(rules.signs):
            forest = clip_leaves(forest, rules.signs, rules.criterion)
        if settings.is_single and rules.criterion.spread is not None and not forest.coding.several:
            forest = with_leaf_impurity(forest, training, self.backend, y, rules.criterion)
        return forest

    def sample(self) -> np.ndarray | None:
        """Rows on which errors are computed while trees grow; None: all."""
        training = self.training
        return sampled_rows(training.seed, training.sampling, self.backend)

    @property
    def pair(self) -> Pair:
        """The numbers that out-of-bag errors may choose."""
        return self.training.rules.n_tried, self.training.rules.min_rows_leaf

    def trying(self, pair: Pair) -> TrainingPlan:
        """The same plan with other numbers."""
        training, (n_tried, leaf) = self.training, pair
        rules = replace(training.rules, n_tried=n_tried, min_rows_leaf=leaf)
        matrix = replace(training.matrix, scratch=None)  # its size depends on the rules
        other = keeping_scratch(replace(training, matrix=matrix, rules=rules))
        return replace(self, training=other)


def judges(plan: TrainingPlan, n_trees: int) -> tuple[Forest, Sampling]:
    """The trees that judge rows by blocks of time, and how they draw rows."""
    plan = replace(plan, training=keeping_scratch(plan.training))
    with progress.stage("growing judges"):
        forest = plan.finish(plan.grow(0, n_trees), 0)
    return forest, plan.training.sampling


def n_trees_of(waves: list[Forest]) -> int:
    """The trees of all these waves."""
    return sum(wave.n_trees for wave in waves)


class Trials:
    """Forests of `FIRST_TREES` trees from the same bags, which differ in two numbers.

    measure : of an empty sum over rows out of bag and the finished trees: their error
    errors : of all pairs of numbers that were tried
    plan, waves : of the pair of the least error, of equals the least pair
    """

    def __init__(
        self, plan: TrainingPlan, measure: Callable[[OutOfBag, list[Forest]], float]
    ) -> None:
        self.errors: dict[Pair, float] = {}
        self.plan, self.waves = plan, list[Forest]()
        self._measure, self._rows = measure, plan.sample()

    def error(self, pair: Pair) -> float:
        """The error of these numbers, which are tried once."""
        if pair not in self.errors:
            plan = self.plan.trying(pair)
            waves = plan.grow(0, FIRST_TREES)
            oob = OutOfBag(plan.training, plan.backend, self._rows)
            error = self._measure(oob, _finished(plan, waves))
            if not self.waves or (error, pair) < (self.errors[self.plan.pair], self.plan.pair):
                self.plan, self.waves = plan, waves
            self.errors[pair] = error
        return self.errors[pair]

    def tried(self, *names: str) -> Bunch:
        """All pairs that were tried, ascending: those of their numbers that have these names,
        i64[n], and errors f64[n]."""
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
    """The number of features tried that gives the least out-of-bag error, in the manner of
    Breiman and Cutler's tuneRF (in R's randomForest).

    From the number that `plan` has it is halved for as long as that lowers the error of
    `FIRST_TREES` trees by `IMPROVEMENT`, then doubled.
    """

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
    """The fewest rows of a leaf that give the least out-of-bag loss; and the features tried.

    The leaf and then the features are led along their candidates, up or else down, for as long as
    the loss falls. That is the loss of infinitely many trees: with few, small leaves would seem
    worse than they are in a forest.
    """

    def measure(oob: OutOfBag, forests: list[Forest]) -> float:
        # a loss of a + b / n at n trees: a, from both halves of the trees, because that varies less
        oob.add(forests, FIRST_TREES // 2)
        sums, counts = (np.array(total) for total in oob.on_host())
        oob.add(forests, FIRST_TREES)
        all_sums, all_counts = oob.on_host()
        halves = loss(sums, counts), loss(all_sums - sums, all_counts - counts)
        return 2 * loss(all_sums, all_counts) - sum(halves) / 2

    training = plan.training
    trials, n_tried = Trials(plan, measure), training.rules.n_tried
    most = training.sampling.n_counted // 2
    leaves = sorted({plan.pair[1], *(n for n in LEAVES if n == 1 or n <= most)})
    shares = SHARES if with_features else ()
    numbers = sorted({n_tried, *(features_tried(share, training.n_features) for share in shares)})
    pair = plan.pair
    trials.error(pair)  # there may be no other
    pair = trials.downhill([(pair[0], leaf) for leaf in leaves], pair)
    trials.downhill([(n_tried, pair[1]) for n_tried in numbers], pair)
    return trials


def grow_until_converged(
    plan: TrainingPlan, error: Error, tol: float, max_trees: int, first_waves: list[Forest]
) -> tuple[list[Forest], Curve]:
    """Grow trees until the out-of-bag error has converged.

    The error is computed at each of `curve_points` from `FIRST_TREES` on: it has converged
    when over the last half of the trees it lay within `tol`. An error of a + b / n at n trees
    is then above that of any number of them by no more than `tol`.

    first_waves : the first `FIRST_TREES` of the trees, where they grew before
    """
    oob, points = OutOfBag(plan.training, plan.backend, plan.sample()), curve_points(max_trees)
    grown: list[Forest] = []
    curve: Curve = []
    for end in (n for n in points if n >= min(FIRST_TREES, max_trees)):
        begin = oob.n_trees
        with progress.counting_on(begin, max_trees):
            is_there = first_waves and end == FIRST_TREES
            waves = (
                first_waves
                if is_there
                else grow(plan.training, plan.backend, begin, end, plan.pruning)
            )
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
    """The waves as they predict; they need not be merged for errors. `first`: the number of the
    first tree."""
    begin = accumulate((wave.n_trees for wave in waves), initial=first)
    return [plan.finish([wave], n) for wave, n in zip(waves, begin, strict=False)]


def as_bunch(curve: Curve, name: str) -> Bunch:
    """Numbers i64[n] under this name, and errors f64[n]."""
    numbers, errors = zip(*curve, strict=True)
    return Bunch(**{name: np.array(numbers, np.int64), "error": np.array(errors, np.float64)})


def grow_share(estimator: Any, data: BinnedData, begin: int, end: int) -> Forest:
    """The trees begin .. end - 1 of the forest that the estimator would grow of these data, not
    finished: what the estimator that becomes the forest has as `_grown`. `random_state` is a
    number."""
    estimator._validate_params()

    def work(backend: base.Backend) -> Forest:
        plan = share_plan(estimator, data, backend)
        return merged(
            grow(plan.training, plan.backend, begin, end, plan.pruning),
            plan.training,
            backend.n_threads,
        )

    forest: Forest = registry.run_on_backend(work, **estimator._chosen(data))
    return forest


def share_plan(estimator: Any, data: BinnedData, backend: base.Backend) -> TrainingPlan:
    """What the trees of a share grow from."""
    seed = arguments.draw_seed(estimator.random_state)
    plan: TrainingPlan = estimator._prepared(Passed.of(data), seed, backend)
    return plan
