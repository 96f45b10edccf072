"""An estimate of the memory that a fit will take besides X and y, and a way to stay within a limit.

An estimate, not a bound: how many nodes a tree has depends on the data. It assumes as many leaves
of a tree as random labels need, which have nothing to do with the features, see `truncated_tree`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, fields
from functools import cached_property

from gpuforest.backends.base import Backend
from gpuforest.engine.binning import SAMPLE_ROWS, block_rows
from gpuforest.engine.records import Rules, Sampling
from gpuforest.splits.base import NUMERIC, Kind

MIB = 2**20
LARGE = 32 * MIB  # bytes of an array that goes back to the system as soon as it is free
ROUNDING = 1e-12  # of sums of probabilities
# Bytes for a node of trees whose splits are chosen again: of several trees, besides their sums,
# and of a tree whose links are Python's numbers
CHOOSING, LINKS = 70, 250
CHOSEN_AT_ONCE = 2**22  # sums of such nodes at a time: forest.py's GROUP_VALUES
# Bytes for a row of AdaBoost besides integer weights, and after a tree has grown
WEIGHING, JUDGING = 9, 24
# Bytes of a row of survival forests that is ranked by time, and put in the order of a tree's leaves
# by a thread, which takes several small trees at a time
RANKED, BY_LEAF, LEAST_BY_LEAF = 40, 40, 10 * MIB
WALKED = 32  # bytes of a row and a tree that are walked for unbiased importances


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
    kind: Kind = NUMERIC
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
    def bag_rows(self) -> int:
        """The expected number of distinct rows in a bag."""
        drawn, N = self.sampling.n_draws, self.n_rows
        if not drawn or self.sampling.distinct:
            return self.sampling.bag_rows
        return math.ceil(-N * math.expm1(-drawn / self.sampling.units.n_rows))

    @cached_property
    def leaves(self) -> tuple[int, int]:
        """The numbers of a tree's leaves: all, and those at `max_depth`."""
        R, rules = self.bag_rows, self.rules
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
        """Rows of the leaf table of n_trees whole trees, or of growing ones: pure leaves of a class
        and a weight share a row, if the weights are counts of draws."""
        (leaves, deepest), drawn = self.leaves, self.sampling
        in_scratch = growing and (drawn.factors is not None or drawn.balance)
        if not self.is_pure or self.reweighted or drawn.multiplies or in_scratch:
            return leaves * n_trees
        # balanced weights are others in every tree
        times, together = (n_trees, 1.0) if drawn.balance else (1.0, n_trees)
        weights = 1 + math.log1p(leaves * together / self.n_channels)
        return min(leaves * n_trees, deepest * n_trees + times * weights * self.n_channels)

    def level_bytes(self, n_trees: int) -> float:
        """Bytes that a wave holds for its nodes until its trees are put together."""
        node = 150 + 24 * self.n_channels + 8 * self.kind.split_words(self)[1]
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
    """Leaves of a random binary search tree of n leaves, cut off at `max_depth`, and those there:
    2**j P(Poisson(ln n) >= j) nodes lie j levels below the root.

    Trees of 40,000 rows, cut off 6 to 20 levels below their roots, had 1.0 to 1.1 times as many
    nodes on data like HIGGS, and 0.6 to 1.0 times as many in regression.
    """
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


def estimate(fit: Fit, backend: Backend) -> MemoryEstimate:
    """The memory that `fit` takes on this backend, as it is set up."""
    N, R, C, T = fit.n_rows, fit.bag_rows, fit.n_channels, fit.n_trees
    n_leaves = min(fit.leaves[0], fit.most_leaves)
    at_once = 1 if fit.reweighted else T
    bounded = len(fit.rules.signs) > 0
    n_workers, worker, size = backend.waves(fit.sampling, C, at_once, bounded=bounded)
    n_waves, at_once = -(-T // size), min(at_once, size * n_workers)
    nodes = 8 * (2 + fit.kind.split_words(fit)[0]) * n_leaves
    # rows of the leaf tables, of a wave
    rows = min(fit.leaf_rows(size), n_leaves * size)
    wave = worker.nodes.wave_bytes(worker, fit, size)
    growing = n_workers * wave + MIB / 2  # threads, Python's objects
    if n_waves > 1 and backend.on_host:
        # what the waves made is copied, and sums are looked up by keys. What grew is free then,
        # but of moments, whose tables are as large as the nodes, only large arrays go back to the
        # system; the last of the tables come after it
        joined = min(n_waves * rows, fit.leaf_rows(T)) if fit.is_classes else n_waves * rows
        joining = T * nodes + 8 * C * joined + (48 * n_waves * rows if fit.is_classes else 0)
        last = 8 * C * rows * min(n_workers, n_waves)
        large = fit.is_classes or 8 * C * rows > LARGE
        growing = max(growing - last, joining) if large else growing + joining
        growing += 240 * n_waves * rows * fit.is_classes  # their keys, orders and numbers
    # what a fit does with the trees when they have grown
    walking = fit.walking_bytes(backend.memory_budget)
    risks = RANKED * N + min(backend.n_threads, T) * max(BY_LEAF * N, LEAST_BY_LEAF)
    # the allocator keeps a part of what large trees grew in
    kept = risks / 4 if fit.survival and BY_LEAF * N > LEAST_BY_LEAF else 0
    after = 4 * fit.scores_bytes * N, JUDGING * N * fit.reweighted, walking, risks * fit.survival
    return MemoryEstimate(
        codes=N * fit.n_features * fit.code_bytes,
        target=N * (fit.target_bytes + WEIGHING * fit.reweighted),
        binning=binning_bytes(fit, backend),
        bags=at_once * (4 * N + 8 * R),
        growing=math.ceil(max(growing, *after) + kept),
        forest=math.ceil(T * nodes + 8 * (C + (C - 1) * fit.survival) * n_waves * rows),
    )


def binning_bytes(fit: Fit, backend: Backend) -> int:
    """Bytes while edges are chosen, or a block of X is copied and encoded."""
    F = fit.n_features
    block = min(fit.n_rows, block_rows(F, backend)) * F
    edges = backend.sampling.edge_bytes(backend, fit) + 8 * F * min(fit.max_bins, fit.sample_rows)
    return max(edges, block * (fit.code_bytes + fit.value_bytes * fit.copied))


def within(fit: Fit, backend: Backend, limit: int | None) -> Backend:
    """The backend, with less working memory and fewer threads where the limit needs it."""
    if limit is None:
        return backend
    least = estimate(fit, backend)
    if least.total <= limit:
        return backend
    room = max(0, limit - least.codes - least.target - least.forest)

    def of(changed: Backend) -> MemoryEstimate:
        changed.room = room
        return estimate(fit, changed)

    how = "one tree at a time", "max_depth, n_estimators, max_samples or max_bins"
    return smaller(of, backend, limit, *how)[0]


def smaller(
    estimate_on: Callable[[Backend], MemoryEstimate], backend: Backend, limit: int, how: str,
    what: str,
) -> tuple[Backend, MemoryEstimate]:  # fmt: skip
    """The backend with less working memory, or fewer threads too, so that an estimate is within the
    limit; and this estimate. If even the way `how` exceeds it, a ValueError says `what` to lower.
    """
    estimates = []
    for changed in _smaller(backend):
        estimates.append(estimate_on(changed))
        if estimates[-1].total <= limit:
            return changed, estimates[-1]
    least = min(estimates, key=lambda made: made.total)
    raise ValueError(
        f"memory_limit={limit} bytes is too little: this fit takes about {least.total} bytes even "
        f"with {how}, {least.codes} of them for the binned features and {least.forest} for the "
        f"forest; lower {what}, or raise the limit"
    )


def _smaller(backend: Backend) -> Iterator[Backend]:
    threads = backend.n_threads
    while threads:
        budget = backend.memory_budget
        while budget:
            changed = copy(backend)
            changed.n_threads, changed.memory_budget = threads, budget
            yield changed
            budget //= 4
        threads //= 2
