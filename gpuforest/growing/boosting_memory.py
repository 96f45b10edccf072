"""The memory of a boosting fit besides X and y, and the histograms' part of a limit.

Without `max_leaf_nodes` the number of leaves is estimated, as in growing/memory.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

from gpuforest.backends.base import Backend
from gpuforest.growing.memory import MIB, MemoryEstimate, Table, smaller, truncated_tree
from gpuforest.kernels.gradients.losses import Loss

HISTOGRAM_BYTES = 256 * MIB  # the most that histograms take, if no memory_limit says less
LEAST_POOL, SPARE = 2, 2  # histograms of a tree that grows, at least, and two more of each pool
PATHS = 3  # how many times longer a path is than in a balanced tree
NODE_BYTES = 2 * 250  # of a growing tree, for each leaf: two nodes and what is known of them
GROWN_BYTES = 2 * 8 + 80  # of a leaf and its part of the nodes, until rounds end
TREE_BYTES = 2500  # Python's objects and arrays of a grown tree
# Bytes of a row: of its loss, while early stopping computes it; of its residual, while quantiles
# are looked for; before the first round; of its gradient where it is not computed by blocks
SCORING_BYTES, ORDER_BYTES, BASELINE_BYTES, WHOLE_BYTES = 72, 40, 40, 48
ROUNDS_SIZE = "max_iter, max_leaf_nodes or max_bins"  # what may be lowered


@dataclass(frozen=True)
class BoostedFit:
    """What is known about a fit of boosting before it begins."""

    table: Table  # of the rows that trees grow from
    n_validation: int  # rows that early stopping judges by
    loss: Loss
    n_words: int  # of the stats of a row
    n_rounds: int
    max_leaves: int
    max_depth: int
    min_rows: int
    target_bytes: int  # of a row, with its weight
    copied: int  # bytes of the training and validation rows, if these are copied
    stops: bool  # there is early stopping
    keeps_rows: bool  # the training rows are needed to the end

    @property
    def leaves(self) -> int:
        """Of a tree."""
        most = truncated_tree(max(1.0, self.table.n_rows / self.min_rows), self.max_depth)[0]
        return max(1, min(most, self.max_leaves))

    @property
    def histogram_bytes(self) -> int:
        """Bytes of a histogram of all features, at the most."""
        return self.table.n_features * self.table.n_codes * self.n_words * 8

    def pools(self, n_threads: int) -> int:
        """Trees that grow at the same time: threads share one where there are more threads."""
        return n_threads if n_threads <= self.loss.n_raw else 1

    def histograms(self, n_threads: int, memory: int) -> int:
        """Bytes of all histograms; those of open nodes may take `memory` bytes. All nodes of a tree
        with enough rows may be open, and a path if leaves are unlimited."""
        n_open = min(self.leaves, self.table.n_rows // (2 * self.min_rows)) + 1
        if self.max_leaves >= self.table.n_rows:
            n_open = PATHS * self.leaves.bit_length()
        n, size = self.pools(n_threads), self.histogram_bytes
        return n * size * (SPARE + max(LEAST_POOL, min(n_open, memory // n // size)))

    def estimate(self, backend: Backend, memory: int) -> MemoryEstimate:
        """The memory that the fit takes on this backend; open nodes' histograms take `memory`
        bytes."""
        N, V, K, threads = self.table.n_rows, self.n_validation, self.loss.n_raw, backend.n_threads
        n_leaves, n_trees, pools = self.leaves, self.n_rounds * K, self.pools(threads)
        rows, after = 4 * N * (1 + K), [SCORING_BYTES * max(N, V) * self.stops]
        growing = 8 * N * K * (1 + self.n_words) + 8 * V * K * 2
        if backend.name == "numpy":  # the specification: whole arrays, one histogram at a time
            after.append(WHOLE_BYTES * N * K)
        else:
            rows += 4 * N * pools
            growing += self.histograms(threads, memory) + pools * n_leaves * NODE_BYTES
        after.append(ORDER_BYTES * N * self.loss.by_order)
        grown = n_trees * (TREE_BYTES + n_leaves * GROWN_BYTES)
        to_end = self.copied if self.keeps_rows else self.copied * V // (N + V)
        binning = max(self.table.binning_bytes(backend), BASELINE_BYTES * N)
        return MemoryEstimate(
            codes=self.table.row_bytes * (N + V),
            target=(N + V) * self.target_bytes + to_end,
            binning=binning + self.copied - to_end,
            bags=rows,
            growing=growing + max(after) + grown + MIB,
            forest=n_trees * n_leaves * (2 * 8 + 24 + 8 * K),
        )


def within(fits: list[BoostedFit], backend: Backend, limit: int) -> tuple[Backend, int]:
    """The backend, with fewer threads if necessary, and bytes for histograms of open nodes.

    fits : the first, and one that comes later and must stay within the limit as well"""

    def on(changed: Backend) -> MemoryEstimate:
        return max((fit.estimate(changed, 0) for fit in fits), key=attrgetter("total"))

    changed = smaller(on, backend, limit, "the fewest histograms", ROUNDS_SIZE)
    least, first = fits[0].estimate(changed, 0), fits[0]
    pools = first.pools(changed.n_threads) * LEAST_POOL * first.histogram_bytes
    after_binning = least.codes + least.target + least.bags + least.growing + least.forest
    return changed, limit - after_binning + pools
