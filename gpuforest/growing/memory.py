"""An estimate of the memory of a fit besides X and y, and a way to stay within a limit.

Each stage has one formula, a bound for all kinds of split. The number of nodes depends on the data;
it is taken for labels that are random, which need the most leaves, see `truncated_tree`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import product
from operator import attrgetter
from typing import Any

import numpy as np

from gpuforest.backends.base import Backend, has
from gpuforest.core.bins import SAMPLE_ROWS
from gpuforest.core.rules import Rules, Sampling
from gpuforest.core.target import TargetCoding
from gpuforest.growing import edges
from gpuforest.kernels.grow_subtrees.scratch import CACHE_BYTES, block_rows
from gpuforest.splits.base import Kind

MIB = 2**20
ROUNDING = 1e-12  # of sums of probabilities
SORTED = 32  # bytes of a row, while a thread chooses the edges of a column
DEEP_ROWS = 2**16  # rows of the trees that a thread grows one after another in one scratch
# Bytes of a node besides its sums: in a level, while its split is chosen again, and of links that
# are Python's numbers
LEVEL, CHOSEN, LINK = 150, 70, 250
CHOSEN_AT_ONCE = 2**22  # channel sums of chosen nodes in memory: core/forest.py's GROUP_VALUES
KEYED = 288  # bytes of a row of leaf tables of classes: its key, order and numbers
# Bytes of a row: of AdaBoost besides integer weights, and after a tree has grown; of a tree that is
# walked for unbiased importances; ranked by time, and put in the order of a survival tree's leaves
# by a thread, which takes several small trees at a time
WEIGHING, JUDGING, WALKED, RANKED, BY_LEAF = 9, 24, 32, 50, 50
LEAST_BY_LEAF = 10 * MIB
FOREST_SIZE = "max_depth, n_estimators, max_samples or max_bins"  # what may be lowered


@dataclass(frozen=True)
class MemoryEstimate:
    """An estimate of the bytes that a fit takes besides X and y. `str` of it is a table.

    codes : the binned features
    target : the coded target, its labels, weights
    binning : for a while, before trees grow
    bags : the rows and weights of the trees that grow at the same time
    growing : scratch, histograms and unfinished trees; and waves while they are joined
    forest : the grown trees; this depends on the data most
    total : the most at once: codes, target, and binning or the rest
    """

    codes: int
    target: int
    binning: int
    bags: int
    growing: int
    forest: int

    @property
    def total(self) -> int:
        after = self.bags + self.growing + self.forest
        return self.codes + self.target + max(self.binning, after)

    def __str__(self) -> str:
        names = [*(f.name for f in fields(self)), "total"]
        return "\n".join(f"{name:<8}{getattr(self, name) / 1e6:>12,.1f} MB" for name in names)


@dataclass(frozen=True)
class Table:
    """What is known about a table before it is binned."""

    n_rows: int
    n_features: int
    max_bins: int
    dtype: np.dtype[Any]

    @property
    def row_bytes(self) -> int:
        """Of a row of codes."""
        return self.n_features * (1 if self.max_bins < 256 else 2)

    @property
    def n_codes(self) -> int:
        """B."""
        return min(self.max_bins, self.n_rows) + 1

    def binning_bytes(self, backend: Backend) -> int:
        """Bytes while edges are chosen from columns of a sample, or blocks of X are encoded."""
        F, n, size = self.n_features, min(self.n_rows, SAMPLE_ROWS), self.dtype.itemsize
        value, is_copied = min(8, max(4, size)), self.dtype not in (np.float32, np.float64)
        found = 8 * min(self.max_bins, n)  # of a column
        columns = min(F, max(1, backend.memory_budget // (n * value + found)))
        choosing = columns * n * value + 2 * F * found + min(backend.n_threads, F) * SORTED * n
        block = min(self.n_rows, edges.block_rows(F, backend))
        return max(choosing, block * (self.row_bytes + F * value * is_copied))


@dataclass(frozen=True)
class Fit:
    """What is known about a fit of a forest before it begins."""

    table: Table
    coding: TargetCoding
    sampling: Sampling
    rules: Rules
    kind: Kind
    n_trees: int
    target_bytes: int  # of a row
    scores_bytes: int  # of a row's out-of-bag prediction; 0: the fit makes no such predictions
    most_leaves: float = math.inf  # of a tree after pruning, if they are known
    prunes: bool = False
    links: bool = False  # trees are pruned by `ccp_alpha`
    reweighted: bool = False  # trees grow one after another, each from other weights of the rows
    walks: bool = False  # rows out of bag walk down the trees for unbiased importances

    @cached_property
    def bag_rows(self) -> int:
        """The expected number of distinct rows in a bag."""
        drawn, N = self.sampling.n_draws, self.table.n_rows
        if not drawn or self.sampling.distinct:
            return self.sampling.max_bag_rows
        return math.ceil(-N * math.expm1(-drawn / self.sampling.units.n_rows))

    @cached_property
    def leaves(self) -> tuple[int, int]:
        """The numbers of a tree's leaves: all, and those at `max_depth`."""
        R, rules = self.bag_rows, self.rules
        most = R / max(rules.min_rows_leaf, rules.min_rows_split / 2)
        if self.coding.is_classes:
            C = max(self.coding.n_channels, 2)
            # what the best of cuts saves, where labels are random: leaves as parts of the rows
            # were 0.31, 0.65, 0.89, 0.98 of 2, 10, 100, 1,000 classes; where cuts are random too
            # 0.49 and 0.79 of 2 and 10
            saved = 0 if rules.random else 0.35 / (1 + C / 35)
            most = min(most, R * (1 - 1 / C) * (1 - saved))
        if rules.min_weight_leaf > 1:
            most = min(most, self.sampling.bag_weight / rules.min_weight_leaf)
        return truncated_tree(most, rules.max_depth)

    @cached_property
    def words(self) -> float:
        """The mean number of 64-bit words of a split."""
        return self.kind.split_words(self.rules, self.table.n_features)

    def estimate(self, backend: Backend) -> MemoryEstimate:
        """The memory that the fit takes on this backend, as it is set up."""
        N, C, T, table = self.table.n_rows, self.coding.n_channels, self.n_trees, self.table
        at_once = 1 if self.reweighted else T
        bounded = len(self.rules.signs) > 0
        n_workers, worker, size = backend.waves(self.sampling, C, at_once, bounded=bounded)
        n_waves, at_once = -(-T // size), min(at_once, size * n_workers)
        n_leaves = min(self.leaves[0], self.most_leaves)
        nodes = T * 8 * (2 + self.words) * n_leaves
        rows = n_waves * min(self.leaf_rows(size), n_leaves * size)  # of the waves' leaf tables
        growing = n_workers * self.wave_bytes(worker, size) + MIB / 2  # threads, Python's objects
        if n_waves > 1 and backend.on_host:  # waves are copied into one forest
            joined = nodes + 8 * C * rows
            if self.coding.is_classes:  # whose sums are looked up by keys
                growing = max(growing, joined) + KEYED * rows
            else:
                growing += joined
        return MemoryEstimate(
            codes=N * table.row_bytes,
            target=N * (self.target_bytes + WEIGHING * self.reweighted),
            binning=table.binning_bytes(backend),
            bags=at_once * (4 * N + 8 * self.bag_rows),
            growing=math.ceil(max(growing, self.after_bytes(backend))),
            forest=math.ceil(nodes + 8 * (C + (C - 1) * self.is_survival) * rows),
        )

    @property
    def is_survival(self) -> bool:
        """True if the risks of leaves follow from their rows."""
        return self.rules.criterion.task == "survival"

    def leaf_rows(self, n_trees: float, growing: bool = False) -> float:
        """Rows of the leaf table of whole or growing trees. Leaves above `max_depth` of equal class
        and weight share a row if all leaves are of one class, and weights count draws."""
        (leaves, deepest), drawn, rules = self.leaves, self.sampling, self.rules
        is_pure = self.coding.is_classes and rules.min_rows_leaf == 1 and rules.min_rows_split == 2
        in_scratch = growing and (drawn.factors is not None or drawn.balance)
        if not is_pure or self.reweighted or drawn.multiplies or in_scratch:
            return leaves * n_trees
        # balanced weights are others in every tree
        times, together = (n_trees, 1.0) if drawn.balance else (1.0, n_trees)
        weights = 1 + math.log1p(leaves * together / self.coding.n_channels)
        return min(leaves * n_trees, deepest * n_trees + times * weights * self.coding.n_channels)

    def wave_bytes(self, backend: Backend, n_trees: int) -> float:
        """Bytes of a wave, without bags and grown trees."""
        rows, C, budget = n_trees * self.bag_rows, self.coding.n_channels, backend.memory_budget
        if not backend.on_host:
            return budget + rows * (48 + 12 * C)
        levels = 2 * n_trees * self.leaves[0] * (LEVEL + 24 * C + 16 * self.words) + 16 * rows
        if has(backend, "grow_subtrees"):
            whole = self.kind.grows_whole
            by_levels = self.rules.limited if whole is None else not whole
            return self._whole_trees(backend, n_trees) + levels * by_levels
        # histograms of a level or a chunk of it, both sides and scores of all cuts
        slot = 8 * self.rules.n_tried * self.table.n_codes * (C + 1)
        chunk = min(13 * max(budget, slot), 4.5 * slot * n_trees * self.leaves[0])
        return max(chunk + 110 * rows + levels / 3, levels, self._pruning(n_trees))

    def _whole_trees(self, backend: Backend, n_trees: int) -> float:
        """Bytes of the scratch of threads, of nodes and of leaves, while subtrees grow whole."""
        R, C, threads, table = self.bag_rows, self.coding.n_channels, backend.n_threads, self.table
        leaves, most = self.leaves[0], R
        if threads > 1:  # which share a tree
            most = max(n_trees * R // (4 * threads), min(R, MIB // table.n_features))
        # rows, targets and copies of codes; MIB has room for the copies that stay in a cache
        target = 8 if self.coding.is_classes else 8 * C
        copied = table.row_bytes * sum(block_rows(table.row_bytes, table.n_rows, int(most)))
        scratch: float = (2 * (4 + target) + self.kind.row_bytes) * most
        scratch += MIB + max(0, copied - CACHE_BYTES)
        # a thread's sums of leaves; nodes as threads grow them, together and in their places
        together = min(n_trees, max(1.0, DEEP_ROWS / R))
        sums = 8 * C * self.leaf_rows(together, growing=True)
        nodes = n_trees * (16 * (3 + self.words) * leaves + 2 * sums / together)
        scratch += (16 + 8 * C) * leaves * together if self.prunes else sums
        return threads * scratch + max(nodes, self._pruning(n_trees))

    def _pruning(self, n_trees: int) -> float:
        """Bytes of a wave's whole trees, and of choosing their splits again."""
        C, n_nodes = self.coding.n_channels, 2 * self.leaves[0]
        chosen = min(n_trees * n_nodes, max(n_nodes, CHOSEN_AT_ONCE / C)) * (CHOSEN + 8 * C)
        trees = 8 * n_trees * n_nodes + 8 * C * self.leaf_rows(n_trees)
        return self.prunes * (trees + max(chosen, LINK * n_nodes * self.links))

    def after_bytes(self, backend: Backend) -> float:
        """Bytes of what a fit does with the trees when they have grown."""
        N, n_nodes = self.table.n_rows, 2 * min(self.leaves[0], self.most_leaves)
        walked = min(self.n_trees, walked_at_once(N, backend.memory_budget)) * self.walks
        threads = min(backend.n_threads, self.n_trees) * self.is_survival
        return max(
            4 * self.scores_bytes * N,
            JUDGING * N * self.reweighted,
            walked * (WALKED * N + n_nodes * (40 + 32 * self.coding.n_channels)),
            RANKED * N * self.is_survival + threads * max(BY_LEAF * N, LEAST_BY_LEAF),
        )


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


def within(fit: Fit, backend: Backend, limit: int) -> Backend:
    """The backend, with less working memory and fewer threads where the limit needs it."""
    least = fit.estimate(backend)
    if least.total <= limit:
        return backend
    room = max(0, limit - least.codes - least.target - least.forest)

    def on(changed: Backend) -> MemoryEstimate:
        changed.room = room
        return fit.estimate(changed)

    return smaller(on, backend, limit, "one tree at a time", FOREST_SIZE)


def smaller(
    estimate_on: Callable[[Backend], MemoryEstimate], backend: Backend, limit: int, how: str,
    what: str,
) -> Backend:  # fmt: skip
    """The backend with less memory or fewer threads, so that the estimate fits the limit. If even
    the way `how` exceeds it, a ValueError says `what` to lower."""
    estimates, threads, budget = [], backend.n_threads, backend.memory_budget
    halves = [threads >> i for i in range(threads.bit_length())]
    quarters = [budget >> i for i in range(0, budget.bit_length(), 2)]
    for threads, budget in product(halves, quarters):
        changed = copy(backend)
        changed.n_threads, changed.memory_budget = threads, budget
        estimates.append(estimate_on(changed))
        if estimates[-1].total <= limit:
            return changed
    least = min(estimates, key=attrgetter("total"))
    raise ValueError(
        f"memory_limit={limit} bytes is too little: this fit takes about {least.total} bytes even "
        f"with {how}, {least.codes} of them for the binned features and {least.forest} for the "
        f"forest; lower {what}, or raise the limit"
    )
