"""How much memory a fit takes, told before it; and how to take no more than a limit.

An estimate, not a bound: how many nodes a tree has depends on the data. It is taken to have as
many leaves as labels that have nothing to do with the features would need, in the shape of a
random binary search tree: of n leaves, 2**j P(Poisson(ln n) >= j) nodes lie j levels below the
root. In forests of trees of 40,000 rows, cut off 6 to 20 levels below their roots, there were 1.0
to 1.1 times as many nodes as that of data like HIGGS, 0.6 to 1.0 times in regression.

Counted is what a fit takes beside X and y, the interpreter and the compiled kernels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from gpuforest.binning import BLOCK_ROWS, BLOCK_VALUES, SAMPLE_ROWS
from gpuforest.frontier import Rules
from gpuforest.grow import waves_of
from gpuforest.sampling import Sampling

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend

ON_HOST = ("numpy", "numba")  # backends whose memory is the host's; others are taken for GPUs
MIB = 2**20
# Leaves of a tree of two classes, as parts of its rows, were 0.28 where labels were random and
# 20 features to choose from, and 0.61 of ten classes; 0.49 and 0.79 where cuts are random
CHOSEN = 2 / 3
ROUNDING = 1e-12  # of sums of probabilities
CHAIN_BYTES = 96  # a row, of open nodes and branches while multiway splits grow
PURE_SUMS = 24  # different weights of a wave's pure leaves, of one class


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes that a fit takes, about, beside X and y. `str` of it is a table.

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
    """What is known of a fit before it.

    n_channels : C
    target_bytes, code_bytes, value_bytes : of a row's coded target, of a code, of a value of X
    copied : X is made row-major, float32 or float64, block by block
    scores_bytes : of a row's out-of-bag prediction; 0: none is made
    """

    n_rows: int
    n_features: int
    n_trees: int
    n_channels: int
    is_classes: bool
    max_bins: int
    target_bytes: int
    value_bytes: int
    copied: bool
    scores_bytes: int
    sampling: Sampling
    rules: Rules

    @property
    def code_bytes(self) -> int:
        return 1 if self.max_bins < 256 else 2

    @property
    def n_codes(self) -> int:
        """B."""
        return min(self.max_bins, self.n_rows) + 1

    @property
    def bag_rows(self) -> int:
        """R, of a bag as large as they are in the mean."""
        drawn, N = self.sampling.n_draws, self.n_rows
        if not drawn or self.sampling.distinct:
            return self.sampling.bag_rows
        return math.ceil(-N * math.expm1(-drawn / N))

    @property
    def leaves(self) -> tuple[int, int]:
        """Of a tree: all its leaves, and those that end at `max_depth`."""
        R, rules = self.bag_rows, self.rules
        most = R / max(rules.min_rows_leaf, rules.min_rows_split / 2)
        if self.is_classes:
            share = 1 - 1 / max(self.n_channels, 2)
            most = min(most, R * share * (1 if rules.random else CHOSEN))
        if rules.min_weight_leaf > 1:
            most = min(most, self.sampling.bag_weight / rules.min_weight_leaf)
        return truncated_tree(most, rules.max_depth)

    @property
    def is_pure(self) -> bool:
        """Whether leaves above `max_depth` are of one class; their sums then are few."""
        rules = self.rules
        return self.is_classes and rules.min_rows_leaf == 1 and rules.min_rows_split == 2


def truncated_tree(leaves: float, max_depth: int) -> tuple[int, int]:
    """Leaves of a random binary search tree of so many, cut off at `max_depth`, and those there.

    Example
    -------
    Of 1,000 leaves, P(Poisson(ln 1000) >= 3) = 0.968: so many of the 8 nodes three levels
    below the root exist.
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
    """What `fit` takes on this backend, as it is set up."""
    N, R, C, T = fit.n_rows, fit.bag_rows, fit.n_channels, fit.n_trees
    leaves, deepest = fit.leaves
    n_workers, worker, size = waves_of(backend, fit.sampling, C, T)
    n_waves, at_once = -(-T // size), min(T, size * n_workers)
    nodes = 8 * 2 * leaves
    # rows of the leaf tables, of a wave
    rows = leaves * size
    if fit.is_pure:
        rows = min(rows, deepest * size + PURE_SUMS * C)
    wave = _deep(fit, worker, size) if backend.name == "numba" else _levels(fit, worker, size)
    growing = n_workers * wave
    if n_waves > 1 and backend.name in ON_HOST:
        # what the waves made is copied, and sums are looked up by keys
        growing += T * nodes + n_waves * rows * (8 * C + (48 if fit.is_classes else 0))
    return MemoryEstimate(
        codes=N * fit.n_features * fit.code_bytes,
        target=N * fit.target_bytes,
        binning=_binning(fit, backend),
        bags=at_once * (4 * N + 8 * R),
        growing=math.ceil(max(growing, 4 * fit.scores_bytes * N)),
        forest=T * nodes + 8 * C * n_waves * rows,
    )


def within(fit: Fit, backend: Backend, limit: int | None) -> Backend:
    """The backend, with fewer threads and less working memory where the limit needs it.

    Raises
    ------
    ValueError : the fit takes more than the limit even so
    """
    least = estimate(fit, backend)
    if limit is None or least.total <= limit:
        return backend
    threads, room = backend.n_threads, max(0, limit - least.codes - least.target - least.forest)
    while threads:
        budget = backend.memory_budget
        while budget:
            changed = backend.within(threads, budget, room)
            least = estimate(fit, changed)
            if least.total <= limit:
                return changed
            budget //= 4
        threads //= 2
    raise ValueError(
        f"memory_limit={limit} bytes is too little: this fit takes about {least.total} bytes even "
        f"one tree at a time, {least.codes} of them for the binned features and {least.forest} for "
        "the forest; lower max_depth, n_estimators, max_samples or max_bins, or raise the limit"
    )


def _deep(fit: Fit, worker: Backend, size: int) -> float:
    """Of one of Numba's waves: scratch for the threads, nodes in several orders."""
    F, R, C = fit.n_features, fit.bag_rows, fit.n_channels
    leaves, _ = fit.leaves
    threads, width = worker.n_threads, 4 * 2 if fit.is_classes else 8 * C
    most = R if threads == 1 else max(size * R // (4 * threads), min(R, MIB // F))
    scratch: float = 2 * (4 + width) * most + 8 * fit.rules.n_tried + MIB
    if fit.rules.multiway:
        scratch += CHAIN_BYTES * most
    if most * 8 < fit.n_rows:  # it copies all of a node's codes
        scratch += F * fit.code_bytes * most
    unordered: float = size * leaves * (2 * 8 * 5 + (0 if fit.is_pure else 8 * C * 2))
    if not fit.rules.deep:
        unordered += _kept_levels(fit, size) + 2 * 8 * size * R
    return threads * scratch + unordered


def _levels(fit: Fit, worker: Backend, size: int) -> float:
    """Of a wave that grows level by level: the rows' other half, histograms, levels."""
    R, C, k, B = fit.bag_rows, fit.n_channels, fit.rules.n_tried, fit.n_codes
    if worker.name not in ON_HOST:
        return worker.memory_budget + size * (48 + 12 * C) * R
    slot = 8 * k * B * (C + 1)
    # the widest level holds no more slots than half of the leaves
    chunk, level = max(worker.memory_budget, slot), slot * size * fit.leaves[0] / 2
    # left and right sides, and scores, of all cuts; of another chunk they still take room
    histograms = 13 * chunk if level > chunk else 9 * level
    kept = _kept_levels(fit, size)  # a third of it until trees are put together
    return max(histograms + 110 * size * R + kept / 3, kept)


def _kept_levels(fit: Fit, size: int) -> float:
    """Of a wave's nodes, what is known of each until its trees are put together."""
    return size * 2 * fit.leaves[0] * (150 + 24 * fit.n_channels)


def _binning(fit: Fit, backend: Backend) -> int:
    """The sample of the features that edges are chosen from; or a block of X, copied."""
    N, F, size, threads = fit.n_rows, fit.n_features, fit.value_bytes, backend.n_threads
    n = min(N, SAMPLE_ROWS)
    if backend.name == "numba":
        column = n * size + 8 * min(fit.max_bins, n)
        edges = min(F, max(1, backend.memory_budget // column)) * column + threads * 32 * n
    else:
        edges = threads * n * (size + 80)
    block = min(N, BLOCK_ROWS, max(1, BLOCK_VALUES // F)) * F
    return max(edges + 8 * F * min(fit.max_bins, n), block * (fit.code_bytes + size * fit.copied))
