"""The compiled CPU backend's deep phase: the threads' scratch, and what they grew as one."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.frontier import Frontier, Rules, Subtrees
from gpuforest.kernels.grow_subtrees.multiway import chain_arrays, grow_multiway
from gpuforest.kernels.grow_subtrees.numba import grow_subtrees
from gpuforest.kernels.grow_subtrees.scratch import Scratch, Sets, new_scratch, new_sets
from gpuforest.parallel import parallel_map

if TYPE_CHECKING:
    from gpuforest.binning import BinnedMatrix
    from gpuforest.target import Target

Array = Any

Kept = deque[tuple[Scratch, Sets | None]]  # scratch to be used again
NO_SETS = None, None, None, None, None  # what a kernel takes in place of `Sets`
ALL_ALLOWED = np.zeros((0, 0), np.bool_)


def grow_parts(
    matrix: BinnedMatrix,
    target: Target,
    frontier: Frontier,
    rules: Rules,
    slices: list[slice],
    n_threads: int,
    kept: Kept,
) -> Subtrees:
    """The subtrees of all slots, some of them at a time: a task for a thread."""
    f, C = frontier, target.coding.n_channels
    channels, fewest = C + rules.count_rows, max(rules.min_rows_split, 2 * rules.min_rows_leaf)
    columns = np.ascontiguousarray(matrix.codes.T)
    limits = (
        rules.criterion, rules.n_tried, rules.max_depth, fewest, rules.min_rows_leaf,
        float(rules.min_gain),
    )  # fmt: skip

    def scratch_for(most: int, total: int) -> tuple[Scratch, Sets | None]:
        try:
            scratch, sets = kept.pop()
            if scratch.holds(most, total):
                return scratch, sets
        except IndexError:
            pass
        # somewhat more, as another tree may need
        scratch = new_scratch(
            columns, target.y, most + most // 32, total + total // 32, rules.n_tried,
            matrix.edges.n_codes, C, channels,
        )  # fmt: skip
        return scratch, new_sets(scratch, matrix.edges, C, channels)

    def part(s: slice) -> tuple[Array, ...]:
        scratch, sets = scratch_for(int(f.n_rows[s].max()), int(f.n_rows[s].sum()))
        offsets = np.zeros(s.stop - s.start + 1, np.int64)
        slots = (
            columns, target.y, f.rows, f.weights, f.begin[s], f.end[s], f.key[s], f.depth[s],
            f.tree[s], allowed_of(f), matrix.n_bins, limits,
        )  # fmt: skip
        out = offsets, True if rules.random else None, *(sets or NO_SETS)
        if rules.multiway:
            chains = chain_arrays(int(f.n_rows[s].max()), matrix.n_features)
            n_leaves, n_words = grow_multiway(
                *slots, rules.gain_ratio, matrix.edges.n_codes, scratch, chains, *out
            )
        else:
            n_leaves, n_words = grow_subtrees(*slots, matrix.edges.n_codes, scratch, *out)
        nodes = scratch.nodes[: offsets[-1]].copy()
        leaf_sums = scratch.leaf_sums[:n_leaves].copy()
        set_at = words = None
        if sets is not None:
            set_at, words = sets.at[: offsets[-1]].copy(), sets.words[:n_words].copy()
        kept.append((scratch, sets))
        return offsets, nodes, leaf_sums, set_at, words

    return _joined(parallel_map(part, slices, n_threads))


def _joined(parts: list[tuple[Array, ...]]) -> Subtrees:
    offsets, nodes, leaf_sums, set_at, words = zip(*parts, strict=True)
    leaves = np.cumsum([0, *map(len, leaf_sums)])[:-1]
    first = np.cumsum([0, *(0 if w is None else len(w) for w in words)])
    no_sets = words[0] is None
    return Subtrees(
        joined_offsets(offsets),
        np.concatenate(nodes),
        np.repeat(leaves, [len(o) - 1 for o in offsets]),
        np.concatenate(leaf_sums),
        None if no_sets else np.concatenate([a + first[i] for i, a in enumerate(set_at)]),
        None if no_sets else np.concatenate(words),
    )


def joined_offsets(parts: tuple[Array, ...]) -> Array:
    """Offsets of blocks put one behind another, from each part's own."""
    return np.cumsum(np.concatenate([[0], *(np.diff(p) for p in parts)]))


def allowed_of(frontier: Frontier) -> Array:
    """Features drawn for each tree, bool[T, F]; bool[0, 0]: all."""
    return ALL_ALLOWED if frontier.allowed is None else frontier.allowed
