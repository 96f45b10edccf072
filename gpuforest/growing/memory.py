"""An estimate of the memory of a fit besides X and y, and a way to stay within a limit.

The number of nodes depends on the data; it is taken for labels that are random, which need the most
leaves, see `truncated_tree`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, fields

from gpuforest.backends.base import Backend
from gpuforest.core.fit import MIB, Fit
from gpuforest.growing.edges import block_rows

LARGE = 32 * MIB  # bytes of an array that goes back to the system as soon as it is free
# Bytes for a row of AdaBoost besides integer weights, and after a tree has grown
WEIGHING, JUDGING = 9, 24
# Bytes of a row of survival forests that is ranked by time, and put in the order of a tree's leaves
# by a thread, which takes several small trees at a time
RANKED, BY_LEAF, LEAST_BY_LEAF = 40, 40, 10 * MIB


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


def estimate(fit: Fit, backend: Backend) -> MemoryEstimate:
    """The memory that `fit` takes on this backend, as it is set up."""
    N, R, C, T = fit.n_rows, fit.expected_bag_rows, fit.n_channels, fit.n_trees
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
        # waves are copied, and sums are looked up by keys. Memory in which trees grew is free by
        # then. Tables of moments are as large as the nodes, and only their large arrays go back
        # to the system; the last tables come after it
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
    """The backend with less memory or fewer threads, so that the estimate fits the limit; the
    estimate. If even the way `how` exceeds it, a ValueError says `what` to lower."""
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
