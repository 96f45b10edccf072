"""The plan of a fit: what its trees grow from, and how they are pruned and finished."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from gpuforest.backends.base import Backend
from gpuforest.common import progress
from gpuforest.core.forest import Forest
from gpuforest.core.rules import Sampling
from gpuforest.core.target import CheckedTarget
from gpuforest.core.training import Training
from gpuforest.estimators.settings import Settings
from gpuforest.explain import node_values, oob, pruning
from gpuforest.explain.honest import with_honest_leaves
from gpuforest.growing.assemble import merged
from gpuforest.growing.grow import Prune, grow, keeping_scratch

Pair = tuple[int, int]  # features tried at a split, and the fewest rows of a leaf


@dataclass(frozen=True, eq=False)
class TrainingPlan:
    """What the trees of a fit grow from, and how they are pruned and finished.

    checked : the target before it was encoded
    drawn : how rows are drawn, with the weights that the user gives them
    exposures : f64[N], the hazards by which survival weighs rows, or None
    blocks : i32[N], the numbers of the blocks of time that judge rows, see `Sampling`, or None
    pool : i64[n], the rows of X that all trees draw from, or None: all rows
    """

    training: Training
    backend: Backend
    settings: Settings
    checked: CheckedTarget
    drawn: Sampling
    exposures: np.ndarray | None = None
    blocks: np.ndarray | None = None
    pool: np.ndarray | None = None

    @property
    def evaluation(self) -> Self:
        """The plan of the trees that judge rows: with blocks they grow from earlier blocks."""
        if self.blocks is None:
            return self
        sampling = replace(self.training.sampling, blocks=self.blocks)
        return replace(self, training=replace(self.training, sampling=sampling))

    @property
    def pruning(self) -> Prune | None:
        """What prunes the trees of a wave as soon as they have grown. None: trees are not pruned,
        or the gains of splits are known only when all trees have grown."""
        settings = self.settings
        return self.prune if settings.prunes and not settings.values_from_rows else None

    def grow(self, begin: int, n_trees: int) -> list[Forest]:
        """The trees begin .. n_trees - 1, wave by wave; `finish` makes one forest of them."""
        return grow(self.training, self.backend, begin, n_trees, self.pruning)

    def prune(self, forest: Forest) -> Forest:
        """Cut the trees back as the parameters ask."""
        settings, criterion = self.settings, self.training.rules.criterion
        if settings.max_leaf_nodes is not None:
            forest = pruning.best_first(forest, criterion, settings.max_leaf_nodes)
        if settings.ccp_alpha > 0:
            forest = pruning.prune(forest, criterion, settings.ccp_alpha)
        return forest

    def finish(self, waves: list[Forest], first: int) -> Forest:
        """The forest of grown trees, as it predicts; `first`: the number of its first tree."""
        training, settings, y = self.training, self.settings, self.checked.values
        backend, signs, criterion = self.backend, training.rules.signs, training.rules.criterion
        forest = merged(waves, training, backend.n_threads)
        if settings.values_from_rows:
            forest = self.prune(node_values.with_node_values(forest, training, backend, y, first))
        if training.sampling.parts is not None:
            forest = with_honest_leaves(forest, training, backend, first)
        forest = replace(forest, combine=settings.combine)
        if len(signs):
            forest = node_values.clip_leaves(forest, signs, criterion)
        if settings.is_single and criterion.spread is not None and not forest.coding.several:
            forest = node_values.with_leaf_impurity(forest, training, backend, y, criterion)
        return forest if settings.shrinkage == "oob" else self.shrink(forest, settings.shrinkage)

    def shrink(self, forest: Forest, shrinkage: float | str) -> Forest:
        """The forest with hierarchical shrinkage by this lambda."""
        amount = float(shrinkage) * self.training.sampling.mean_weight
        return node_values.shrink(forest, amount)

    def evaluation_forest(self, n_trees: int) -> Forest:
        """The trees that judge rows by blocks of time."""
        plan = replace(self, training=keeping_scratch(self.evaluation.training))
        with progress.stage("growing judges"):
            return plan.finish(plan.grow(0, n_trees), 0)

    def sample(self) -> np.ndarray | None:
        """Rows on which errors are computed while trees grow; None: all."""
        return oob.sampled_rows(self.training.seed, self.training.sampling)

    @property
    def pair(self) -> Pair:
        """The numbers that out-of-bag errors may choose."""
        return self.training.rules.n_tried, self.training.rules.min_rows_leaf

    def with_tuned(self, pair: Pair) -> Self:
        """The same plan with other numbers."""
        training, (n_tried, leaf) = self.training, pair
        rules = replace(training.rules, n_tried=n_tried, min_rows_leaf=leaf)
        matrix = replace(training.matrix, scratch=None)  # its size depends on the rules
        other = keeping_scratch(replace(training, matrix=matrix, rules=rules))
        return replace(self, training=other)
