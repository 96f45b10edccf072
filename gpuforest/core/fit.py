"""What is known about a fit before it begins, from which its memory is estimated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from gpuforest.core.bins import SAMPLE_ROWS
from gpuforest.core.kind import SplitKind
from gpuforest.core.rules import Rules, Sampling

MIB = 2**20
ROUNDING = 1e-12  # of sums of probabilities
# Bytes for a node of trees whose splits are chosen again: of several trees, besides their sums,
# and of a tree whose links are Python's numbers
CHOOSING, LINKS = 70, 250
CHOSEN_AT_ONCE = 2**22  # channel sums of these nodes in memory: forest.py's GROUP_VALUES
WALKED = 32  # bytes of a row and a tree that are walked for unbiased importances


@dataclass(frozen=True)
class Fit:
    """What is known about a fit before it begins."""

    n_rows: int
    n_features: int
    n_trees: int
    n_channels: int
    is_classes: bool
    max_bins: int
    target_bytes: int  # of a row
    value_bytes: int  # of a value of X
    copied: bool  # X is made row-major, float32 or float64, block by block
    scores_bytes: int  # of a row's out-of-bag prediction; 0: the fit makes no such predictions
    sampling: Sampling
    rules: Rules
    kind: SplitKind
    most_leaves: float = math.inf  # of a tree after pruning, if they are known
    prunes: bool = False
    links: bool = False  # trees are pruned by `ccp_alpha`
    reweighted: bool = False  # trees grow one after another, each from other weights of the rows
    walks: bool = False  # rows out of bag walk down the trees for unbiased importances
    survival: bool = False  # the risks of leaves follow from their rows

    @cached_property
    def code_bytes(self) -> int:
        return 1 if self.max_bins < 256 else 2

    @property
    def n_codes(self) -> int:
        """B."""
        return min(self.max_bins, self.n_rows) + 1

    @cached_property
    def sample_rows(self) -> int:
        """The most rows that bin edges are chosen from."""
        return min(self.n_rows, SAMPLE_ROWS)

    @cached_property
    def expected_bag_rows(self) -> int:
        """The expected number of distinct rows in a bag."""
        drawn, N = self.sampling.n_draws, self.n_rows
        if not drawn or self.sampling.distinct:
            return self.sampling.max_bag_rows
        return math.ceil(-N * math.expm1(-drawn / self.sampling.units.n_rows))

    @cached_property
    def leaves(self) -> tuple[int, int]:
        """The numbers of a tree's leaves: all, and those at `max_depth`."""
        R, rules = self.expected_bag_rows, self.rules
        most = R / max(rules.min_rows_leaf, rules.min_rows_split / 2)
        if self.is_classes:
            C = max(self.n_channels, 2)
            # what the best of cuts saves, where labels are random: leaves as parts of the rows
            # were 0.31, 0.65, 0.89, 0.98 of 2, 10, 100, 1,000 classes; where cuts are random too
            # 0.49 and 0.79 of 2 and 10
            saved = 0 if rules.random else 0.35 / (1 + C / 35)
            most = min(most, R * (1 - 1 / C) * (1 - saved))
        if rules.min_weight_leaf > 1:
            most = min(most, self.sampling.bag_weight / rules.min_weight_leaf)
        return truncated_tree(most, rules.max_depth)

    @cached_property
    def is_pure(self) -> bool:
        """Whether leaves above `max_depth` are of one class; their sums then are few."""
        rules = self.rules
        return self.is_classes and rules.min_rows_leaf == 1 and rules.min_rows_split == 2

    def leaf_rows(self, n_trees: float, growing: bool = False) -> float:
        """Rows of the leaf table of whole or growing trees. Pure leaves of equal class and weight
        share a row if weights count draws."""
        (leaves, deepest), drawn = self.leaves, self.sampling
        in_scratch = growing and (drawn.factors is not None or drawn.balance)
        if not self.is_pure or self.reweighted or drawn.multiplies or in_scratch:
            return leaves * n_trees
        # balanced weights are others in every tree
        times, together = (n_trees, 1.0) if drawn.balance else (1.0, n_trees)
        weights = 1 + math.log1p(leaves * together / self.n_channels)
        return min(leaves * n_trees, deepest * n_trees + times * weights * self.n_channels)

    def level_bytes(self, n_trees: int, n_words: int) -> float:
        """Bytes that a wave holds for nodes of at most n_words words each."""
        node = 150 + 24 * self.n_channels + 8 * n_words
        return n_trees * 2 * self.leaves[0] * node

    def pruning_bytes(self, n_trees: int) -> float:
        """Bytes of a wave's whole trees, and of choosing their splits again."""
        if not self.prunes:
            return 0
        C, n_nodes = self.n_channels, 2 * self.leaves[0]
        chosen = min(n_trees * n_nodes, max(n_nodes, CHOSEN_AT_ONCE / C)) * (CHOOSING + 8 * C)
        trees = n_trees * n_nodes * 8 + 8 * C * self.leaf_rows(n_trees)
        return trees + max(chosen, LINKS * n_nodes if self.links else 0)

    def walking_bytes(self, budget: int) -> float:
        """Bytes of the walk for unbiased importances, and of the sums of the trees' nodes."""
        if not self.walks:
            return 0
        n_trees = min(self.n_trees, walked_at_once(self.n_rows, budget))
        n_nodes = 2 * min(self.leaves[0], self.most_leaves)
        return n_trees * (WALKED * self.n_rows + n_nodes * (40 + 32 * self.n_channels))


def walked_at_once(n_rows: int, budget: int) -> int:
    """The number of trees that n_rows rows walk down at a time, for unbiased importances."""
    return max(1, budget // (WALKED * n_rows))


def truncated_tree(leaves: float, max_depth: int) -> tuple[int, int]:
    """Leaves of a random search tree of n leaves cut off at `max_depth`, and leaves at that depth.
    2**j P(Poisson(ln n) >= j) nodes lie j levels below the root. Trees of 40,000 rows, cut off 6 to
    20 levels below their roots, had 1.0 to 1.1 times as many nodes on data like HIGGS, and 0.6 to
    1.0 times in regression."""
    if leaves < 2:
        return 1, 1
    mean, above, chance = math.log(leaves), 0.0, 1.0
    term = 1 / leaves  # P(Poisson = level)
    for level in range(max_depth):
        above += term * 2.0**level
        chance -= term
        term *= mean / (level + 1)
        if chance < ROUNDING:
            return round(leaves), 0
    deepest = 2.0**max_depth * chance
    return min(round(above + deepest), round(leaves)), round(deepest)
