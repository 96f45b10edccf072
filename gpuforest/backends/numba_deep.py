"""The deep phase of the compiled CPU backend: the threads' scratch, and their results joined."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from gpuforest.common.parallel import cut_evenly, parallel_map
from gpuforest.engine.records import Frontier, Subtrees, Training
from gpuforest.kernels.grow_subtrees.scratch import Scratch, new_scratch
from gpuforest.splits.sets.numba import Sets, new_sets

Array = Any

TASK_ROWS = 2**16  # rows of slots that one task takes: some milliseconds of work

# scratch to be used again: of all kinds of split, for sets, and of the kind alone
Kept = deque[tuple[Scratch, Sets | None, tuple[Any, ...]]]


def grow_parts(training: Training, frontier: Frontier, kept: Kept | None = None) -> Subtrees:
    """The subtrees of all slots; each task of a thread takes some slots.

    kept : scratch that is used again
    """
    backend, rules, kind = training.backend, training.rules, training.kind
    data, width, n_rows = training.columns, training.hist_channels, frontier.n_stored
    n_codes = kind.n_codes(training)
    kept = deque(maxlen=0) if kept is None else kept

    def scratch_for(most: int, total: int) -> tuple[Scratch, Sets | None, tuple[Any, ...]]:
        try:
            scratch, sets, own = kept.pop()
            if scratch.holds(most, total):
                return scratch, sets, own
        except IndexError:
            pass
        # somewhat more, because another tree may need it
        more = most + most // 32, total + total // 32
        scratch = new_scratch(data, *more, rules.n_tried, width, n_codes)
        kinds, n_words = training.matrix.edges.kinds, training.node_words
        n_nodes = len(scratch.nodes)
        sets = new_sets(kinds, data.n_channels, width, n_words, n_codes, n_nodes)
        return scratch, sets, kind.cpu_scratch(training, scratch, data)

    def part(s: slice) -> tuple[Array, ...]:
        scratch, sets, own = scratch_for(int(n_rows[s].max()), int(n_rows[s].sum()))
        offsets = np.zeros(s.stop - s.start + 1, np.int64)
        slots, random = frontier.part(s), True if rules.random else None
        written = np.zeros(2, np.int64)
        kind.cpu_kernel(data, slots, rules, scratch, offsets, written, random, sets, *own)
        n_leaves, n_words = written
        nodes = scratch.nodes[: offsets[-1]].copy()
        leaf_sums = scratch.leaf_sums[:n_leaves].copy()
        set_at = words = None
        if sets is not None:
            set_at, words = sets.at[: offsets[-1]].copy(), sets.words[:n_words].copy()
        kept.append((scratch, sets, own))
        return offsets, nodes, leaf_sums, set_at, words

    slices = cut_evenly(frontier.n_rows, TASK_ROWS)
    return _joined(parallel_map(part, slices, backend.n_threads))


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
    """The offsets of concatenated blocks, from the offsets of each part."""
    return np.cumsum(np.concatenate([[0], *(np.diff(p) for p in parts)]))
