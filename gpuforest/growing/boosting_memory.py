"""The memory of a boosting fit besides X and y, and the histograms' part of a limit.

Without `max_leaf_nodes` the number of leaves is estimated, as in growing/memory.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

from gpuforest.backends.base import Backend
from gpuforest.core.fit import MIB, Fit, truncated_tree
from gpuforest.growing.memory import MemoryEstimate, binning_bytes, smaller

HISTOGRAM_BYTES = 256 * MIB  # the most that histograms take, if no memory_limit says less
LEAST_POOL, SPARE = 2, 2  # histograms of a tree that grows, at least, and two more of each pool
PATHS = 3  # how many times longer a path is than in a balanced tree
NODE_BYTES = 2 * 250  # of a growing tree, for each leaf: two nodes and what is known of them
GROWN_BYTES = 2 * 8 + 80  # of a leaf and its part of the nodes, until rounds end
TREE_BYTES = 2500  # Python's objects and arrays of a grown tree
SCORING_BYTES = 72  # of a row's loss, while early stopping computes it
ORDER_BYTES = 40  # of a row's residual, while quantiles are looked for
BASELINE_BYTES = 40  # of a row, before the first round
WHOLE_BYTES = 48  # of a row's gradient where it is not computed by blocks


@dataclass(frozen=True)
class BoostedFit:
    """What is known about a fit of boosting before it begins."""

    table: Fit  # the fit as binning sees it
    n_train: int  # rows that trees grow from
    n_validation: int  # rows that early stopping judges by
    n_raw: int  # K
    n_words: int  # of the stats of a row
    n_rounds: int
    max_leaves: int
    max_depth: int
    min_rows: int
    target_bytes: int  # of a row, with its weight
    copied: int  # bytes of the training and validation rows, if these are copied
    stops: bool  # there is early stopping
    keeps_rows: bool  # the training rows are needed to the end
    by_order: bool  # leaves look for quantiles

    @property
    def leaves(self) -> int:
        """Of a tree."""
        most = truncated_tree(max(1.0, self.n_train / self.min_rows), self.max_depth)[0]
        return max(1, min(most, self.max_leaves))

    @property
    def histogram_bytes(self) -> int:
        """Bytes of a histogram of all features, at the most."""
        return self.table.n_features * self.table.n_codes * self.n_words * 8

    def pools(self, n_threads: int) -> int:
        """Trees that grow at the same time: threads share one where there are more threads."""
        return n_threads if n_threads <= self.n_raw else 1

    @property
    def open_nodes(self) -> int:
        """Most nodes of a tree open at once: all with enough rows; a path if leaves are
        unlimited."""
        if self.max_leaves >= self.n_train:
            return PATHS * self.leaves.bit_length()
        return min(self.leaves, self.n_train // (2 * self.min_rows)) + 1

    def histograms(self, n_threads: int, memory: int) -> int:
        """Bytes of all histograms; histograms of open nodes may take `memory` bytes."""
        n, size = self.pools(n_threads), self.histogram_bytes
        return n * size * (SPARE + max(LEAST_POOL, min(self.open_nodes, memory // n // size)))


def estimate(fit: BoostedFit, backend: Backend, memory: int) -> MemoryEstimate:
    """The memory that `fit` takes on this backend; open nodes' histograms take `memory` bytes."""
    N, V, K, threads = fit.n_train, fit.n_validation, fit.n_raw, backend.n_threads
    on_numpy = backend.name == "numpy"  # the specification: whole arrays, one histogram at a time
    pools = fit.pools(threads)
    rows = 4 * N * (1 + K)
    growing = 8 * N * K * (1 + fit.n_words) + 8 * V * K * 2
    after = SCORING_BYTES * max(N, V) if fit.stops else 0
    if on_numpy:
        after = max(after, WHOLE_BYTES * N * K)
    else:
        rows += 4 * N * pools
        growing += fit.histograms(threads, memory) + pools * fit.leaves * NODE_BYTES
    if fit.by_order:
        after = max(after, ORDER_BYTES * N)
    trees = fit.n_rounds * K
    grown = trees * (TREE_BYTES + fit.leaves * GROWN_BYTES)
    forest = trees * fit.leaves * (2 * 8 + 24 + 8 * K)
    data = fit.table.n_features * fit.table.code_bytes * (N + V)
    binning = binning_bytes(fit.table, backend)
    to_end = fit.copied if fit.keeps_rows else fit.copied * V // (N + V)
    return MemoryEstimate(
        codes=data,
        target=(N + V) * fit.target_bytes + to_end,
        binning=max(binning, BASELINE_BYTES * N) + fit.copied - to_end,
        bags=rows,
        growing=growing + after + grown + MIB,
        forest=forest,
    )


def within(
    fit: BoostedFit, backend: Backend, limit: int | None, *later: BoostedFit
) -> tuple[Backend, int]:
    """The backend, with fewer threads if necessary, and bytes for histograms of open nodes.

    later : fits that come later and must stay within the limit as well"""
    if limit is None:
        return backend, HISTOGRAM_BYTES
    how = "the fewest histograms", "max_iter, max_leaf_nodes or max_bins"

    def of(changed: Backend) -> MemoryEstimate:
        made = (estimate(each, changed, memory=0) for each in (fit, *later))
        return max(made, key=attrgetter("total"))

    changed, _ = smaller(of, backend, limit, *how)
    least = estimate(fit, changed, memory=0)
    pools = fit.pools(changed.n_threads) * LEAST_POOL * fit.histogram_bytes
    after_binning = least.codes + least.target + least.bags + least.growing + least.forest
    return changed, limit - after_binning + pools
