"""The working memory of the CPU backends."""

from __future__ import annotations

from gpuforest.engine.memory import Fit

MIB = 2**20
DEEP_ROWS = 2**16  # rows of the trees that a thread grows one after another in one scratch


def level_wave_bytes(fit: Fit, memory_budget: int, n_trees: int) -> float:
    """Bytes of a wave that NumPy grows level by level: rows, histograms and levels."""
    R, C, k, B = fit.bag_rows, fit.n_channels, fit.rules.n_tried, fit.n_codes
    slot = 8 * k * B * (C + 1)
    # the widest level has at most half as many slots as there are leaves
    chunk, level = max(memory_budget, slot), slot * n_trees * fit.leaves[0] / 2
    # both sides and the scores of all cuts; those of the chunk before may still take memory
    histograms = 13 * chunk if level > chunk else 9 * level
    kept = fit.level_bytes(n_trees)  # a third of it until trees are put together
    return max(histograms + 110 * n_trees * R + kept / 3, kept, fit.pruning_bytes(n_trees))


def edge_bytes(fit: Fit, n_threads: int, memory_budget: int) -> int:
    """Bytes that Numba takes to choose edges: as many columns of the sample as fit the budget, and
    the threads' scratch."""
    n = fit.sample_rows
    column = n * fit.value_bytes + 8 * min(fit.max_bins, n)
    n_columns = min(fit.n_features, max(1, memory_budget // column))
    return n_columns * column + min(n_threads, fit.n_features) * 32 * n


def deep_wave_bytes(fit: Fit, n_threads: int, n_trees: int) -> float:
    """Bytes of a wave that Numba grows: the threads' scratch, nodes and leaves in several orders,
    and then the pruned trees."""
    from gpuforest.kernels.grow_subtrees.scratch import CACHE_BYTES, block_rows

    F, R, C = fit.n_features, fit.bag_rows, fit.n_channels
    leaves, _ = fit.leaves
    alone = n_threads == 1
    most = R if alone else max(n_trees * R // (4 * n_threads), min(R, MIB // F))
    scratch = fit.kind.scratch_bytes(fit, most) + MIB
    each = F * fit.code_bytes
    # copies of codes; MIB has room for those that stay in the cache
    scratch += max(0, each * sum(block_rows(each, fit.n_rows, int(most))) - CACHE_BYTES)
    together = min(n_trees, DEEP_ROWS / R)
    if alone:
        together = max(1.0, together)
    own = 8 * C * fit.leaf_rows(together, growing=True)
    # nodes with the threads' copies, and the sums of leaves twice
    unordered: float = n_trees * leaves * 2 * 8 * 4 + 2 * own * n_trees / together
    if fit.is_pure:
        scratch += own
    unordered += fit.kind.wave_bytes(fit, n_trees)
    if fit.prunes:
        scratch += (2 * 8 + 8 * C) * leaves * together
    return n_threads * scratch + max(unordered, fit.pruning_bytes(n_trees))
