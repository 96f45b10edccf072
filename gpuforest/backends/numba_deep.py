"""The deep phase of the compiled CPU backend: the threads' scratch, and their results joined."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.common.parallel import parallel_map
from gpuforest.engine.frontier import Frontier, Subtrees
from gpuforest.kernels.grow_subtrees.multiway import chain_arrays, grow_multiway
from gpuforest.kernels.grow_subtrees.numba import grow_combined, grow_subtrees
from gpuforest.kernels.grow_subtrees.oblique import Oblique, new_oblique
from gpuforest.kernels.grow_subtrees.scratch import Scratch, Sets, new_scratch, new_sets

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend
    from gpuforest.engine.training import Training

Array = Any

Kept = deque[tuple[Scratch, Sets | None, Oblique | None]]  # scratch to be used again


def grow_parts(
    backend: Backend,
    training: Training,
    frontier: Frontier,
    slices: list[slice],
    kept: Kept,
) -> Subtrees:
    """The subtrees of all slots; each task of a thread takes some slots."""
    data, rules, width = training.columns, training.rules, training.hist_channels
    n_rows, n_codes = frontier.n_stored, data.n_codes
    if rules.oblique:
        n_codes = training.combining.n_bins + 1

    def scratch_for(most: int, total: int) -> tuple[Scratch, Sets | None, Oblique | None]:
        try:
            scratch, sets, oblique = kept.pop()
            if scratch.holds(most, total):
                return scratch, sets, oblique
        except IndexError:
            pass
        # somewhat more, because another tree may need it
        more = most + most // 32, total + total // 32
        scratch = new_scratch(data, *more, rules.n_tried, width, n_codes)
        edges, n_words = training.matrix.edges, training.node_words
        oblique = new_oblique(scratch, data, training.combining) if rules.oblique else None
        return scratch, new_sets(scratch, edges, data.n_channels, width, n_words, n_codes), oblique

    def part(s: slice) -> tuple[Array, ...]:
        most = int(n_rows[s].max())
        scratch, sets, oblique = scratch_for(most, int(n_rows[s].sum()))
        offsets = np.zeros(s.stop - s.start + 1, np.int64)
        slots, random = frontier.part(s), True if rules.random else None
        written = np.zeros(2, np.int64)
        arguments = data, slots, rules, scratch, offsets, written, random, sets
        if rules.multiway:
            grow_multiway(*arguments, chain_arrays(most, training.n_features))
        elif rules.oblique:
            grow_combined(*arguments, oblique)
        else:
            grow_subtrees(*arguments)
        n_leaves, n_words = written
        nodes = scratch.nodes[: offsets[-1]].copy()
        leaf_sums = scratch.leaf_sums[:n_leaves].copy()
        set_at = words = None
        if sets is not None:
            set_at, words = sets.at[: offsets[-1]].copy(), sets.words[:n_words].copy()
        kept.append((scratch, sets, oblique))
        return offsets, nodes, leaf_sums, set_at, words

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
