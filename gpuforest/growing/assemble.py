"""Assembly: what grew becomes a forest. Nodes are numbered here, once, when their trees have grown.

levels, subtrees  --grown_wave-->  the trees of a wave, as a forest in the order of nodes.py
waves             --merged------>  one forest

The leaf table is in a canonical order. For classes it has every distinct row once, in the order of
a hash: most leaves of a forest are pure and of small weight. Moments hardly repeat, so their rows
are in the order of the nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import array_api_compat.numpy as host
import numpy as np

from gpuforest.backends.base import Array, Backend
from gpuforest.backends.slots import distinct_rows
from gpuforest.common.dtypes import OFFSET
from gpuforest.common.parallel import cut_evenly, parallel_map
from gpuforest.compiler.decorators import Kernel
from gpuforest.core import forest
from gpuforest.core.bins import BinEdges
from gpuforest.core.frontier import Frontier, Subtrees
from gpuforest.core.nodes import LEAF_WORD, is_leaf, leaf_rows, words_of
from gpuforest.core.target import TargetCoding
from gpuforest.core.training import Training
from gpuforest.kernels.place_nodes import numba as kernels
from gpuforest.kernels.shared.constants import WIDE

NODES_AT_ONCE = 2**16  # that a thread places: their scratch stays in a core's cache
NO_NUMBERS, NO_SETS = np.zeros(0, np.int64), np.zeros(0, np.uint64)
# The S slots of one depth and the splits of its W wide slots, on the backend's device: kind i8[S]
# (NONE, LEAF, DEEP or WIDE), channel sums i64[S, C]; feature i32[W] (-1: the split was refused, and
# the slot is a leaf), bin i32[W], missing_left bool[W] and sets u64[W, ...], see `Splits`. Slots
# 2 i and 2 i + 1 of the next level are below the i-th wide slot
Level = tuple[Array, Array, Array, Array, Array, Array]


def grown_wave(
    backend: Backend, training: Training, levels: list[Level], parts: list[Subtrees]
) -> forest.Forest:
    """The trees of a wave from its levels and deep subtrees; `parts` is emptied, to free memory."""
    xp, coding = backend.xp, training.target.coding
    n_trees, depth, subtrees = levels[0][0].shape[0], len(levels), parts.pop()
    # 1. the slots of all levels, one level after another, linked to the slots below
    *columns, sets = zip(*levels, strict=True)
    kind, sums, *splits = (xp.concat(arrays, axis=0) for arrays in columns)
    kind, *splits = (backend.asnumpy(array) for array in (kind, *splits))
    S, n_words = len(kind), sets[0].shape[1]
    link, word, leaf = np.zeros(S, np.int64), np.zeros(S, np.uint64), np.empty(S, np.int64)
    text_of(backend, kernels.link_slots)(kind, *splits, n_trees, link, word, leaf)
    # 2. the sums of leaves in levels, then in subtrees; leaves are numbered in this order
    leaf = leaf[: np.count_nonzero(is_leaf(word))]
    leaf_sums = xp.concat([xp.take(sums, backend.asarray(leaf), axis=0), subtrees.leaf_sums])
    del sums
    subtrees = _on_host(backend, subtrees, len(leaf))
    if coding.is_classes:
        leaf_sums, number = backend.nodes.distinct_rows(backend, leaf_sums)
    else:
        leaf_sums, number = backend.asnumpy(leaf_sums), NO_NUMBERS
    # 3. where the sets of splits begin, in levels and then in subtrees
    set_at, words = NO_NUMBERS, NO_SETS
    if n_words:
        set_at, words = np.zeros(S, np.int64), backend.asnumpy(xp.concat(sets)).reshape(-1)
        set_at[kind == WIDE] = np.arange(len(splits[0])) * n_words
    if subtrees.set_at is not None and subtrees.sets is not None:
        subtrees = replace(subtrees, set_at=subtrees.set_at + len(words))
        words = np.concatenate([words, subtrees.sets])
    # 4. nodes and leaves in their order
    slots = link, word, set_at
    offsets, nodes, set_at = _placed(backend, slots, n_trees, depth, subtrees, number)
    if not coding.is_classes:
        leaf_sums = leaf_sums_in_order(backend, offsets, nodes, leaf_sums)
    if n_words:
        edges, combines = training.matrix.edges, training.combines
        words = sets_in_order(nodes, set_at, words, edges, combines)
    return _forest(training, nodes, offsets, leaf_sums, words)


def text_of(backend: Backend, kernel: Kernel) -> Callable[..., None]:
    """The kernel, or its text as Python runs it, for the backend that compiles nothing."""
    return kernel.function if backend.name == "numpy" else kernel


def _placed(
    backend: Backend, slots: tuple[np.ndarray, np.ndarray, np.ndarray], n_trees: int, depth: int,
    subtrees: Subtrees, number: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Offsets of trees i64[T + 1], nodes u64[M] in order, first words of sets i64[M]; see
    `place_nodes`.

    slots : link, word and set_at"""
    link, word, set_at = slots
    offsets, nodes, node_set_at = np.zeros(n_trees + 1, OFFSET), np.empty(0, np.uint64), NO_NUMBERS
    sizes, inner = offsets[1:], subtrees.set_at

    def place(trees: slice) -> None:
        stack = np.empty((depth + 2, 2), np.int64)
        place_nodes(
            link, word, set_at, subtrees.offsets, subtrees.nodes, subtrees.first_leaf,
            NO_NUMBERS if inner is None else inner, number, offsets, trees.start, trees.stop,
            stack, nodes, node_set_at, sizes,
        )  # fmt: skip

    place_nodes = text_of(backend, kernels.place_nodes)
    shares = cut_evenly(np.ones(n_trees), -(-n_trees // backend.n_threads))
    parallel_map(place, shares, backend.n_threads)  # which counts the nodes
    np.cumsum(sizes, out=sizes)
    nodes, sizes = np.empty(offsets[-1], np.uint64), NO_NUMBERS
    node_set_at = np.zeros(len(nodes) if len(set_at) else 0, np.int64)
    parallel_map(place, cut_evenly(np.diff(offsets), NODES_AT_ONCE), backend.n_threads)
    return offsets, nodes, node_set_at


def leaf_sums_in_order(
    backend: Backend, offsets: np.ndarray, nodes: np.ndarray, leaf_sums: np.ndarray
) -> np.ndarray:
    """The rows i64[V, C] of leaves in the order of the nodes, which get the rows' new numbers."""
    table = np.empty_like(leaf_sums)

    def order(trees: slice) -> None:
        # a tree of n nodes has (n + 1) / 2 leaves
        first = (offsets[trees.start] + trees.start) // 2
        leaves_in_order(offsets, trees.start, trees.stop, first, leaf_sums, nodes, table)

    leaves_in_order = text_of(backend, kernels.leaves_in_order)
    parallel_map(order, cut_evenly(np.diff(offsets), NODES_AT_ONCE), backend.n_threads)
    return table


def _forest(
    training: Training, nodes: np.ndarray, offsets: np.ndarray, table: np.ndarray, sets: np.ndarray
) -> forest.Forest:
    edges, coding, stored = training.matrix.edges, training.target.coding, len(sets) > 0
    multiway, oblique = training.rules.multiway and stored, training.combines and stored
    return forest.Forest(
        nodes, offsets, table, edges, coding, training.seed, sets=sets, multiway=multiway,
        oblique=oblique,
    )  # fmt: skip


def _on_host(backend: Backend, subtrees: Subtrees, n_before: int) -> Subtrees:
    """The subtrees in host arrays, without their sums. n_before : number of leaves in levels"""
    names = ("offsets", "nodes", "first_leaf", "set_at", "sets")
    arrays = {name: getattr(subtrees, name) for name in names}
    arrays = {name: None if a is None else backend.asnumpy(a) for name, a in arrays.items()}
    arrays["first_leaf"] = arrays["first_leaf"] + n_before
    return Subtrees(**arrays, leaf_sums=NO_NUMBERS)


def sets_in_order(
    nodes: np.ndarray, set_at: np.ndarray, sets: np.ndarray, edges: BinEdges, combines: bool
) -> np.ndarray:
    """The sets u64[...] in the order of the nodes u64[M]; set_at i64[M] is where they are now."""
    words = words_of(host, nodes, edges.set_words, combines)
    split = np.flatnonzero(words)
    words = words[split]
    upto = np.cumsum(words)
    source = np.repeat(set_at[split] - (upto - words), words)
    source += np.arange(len(source))
    return np.asarray(sets[source])


def merged(waves: list[forest.Forest], training: Training, n_threads: int) -> forest.Forest:
    """One forest of all waves' trees; empties `waves` as it goes, because memory peaks here."""
    parts: list[Any] = list(waves)
    waves.clear()
    sets = np.concatenate([wave.sets for wave in parts])
    if len(parts) == 1:
        [wave] = parts
        return _forest(training, wave.nodes, wave.tree_offsets, wave.leaf_sums, sets)
    first_node = np.cumsum([0, *(wave.n_nodes for wave in parts)])
    first_row = np.cumsum([0, *(len(wave.leaf_sums) for wave in parts)])
    sizes = [np.diff(wave.tree_offsets) for wave in parts]
    offsets = np.cumsum(np.concatenate([[0], *sizes])).astype(OFFSET)
    nodes, number = np.empty(first_node[-1], np.uint64), None
    if training.target.coding.is_classes:
        table, number = distinct_rows([wave.leaf_sums for wave in parts])
        parts = [replace(wave, leaf_sums=table) for wave in parts]  # frees their own tables
    else:
        table = np.empty((first_row[-1], training.n_channels), np.int64)

    def place(i: int) -> None:
        wave, parts[i] = parts[i], None
        if number is None:
            table[first_row[i] : first_row[i + 1]] = wave.leaf_sums
        of_wave = nodes[first_node[i] : first_node[i + 1]]
        for begin in range(0, len(of_wave), NODES_AT_ONCE):
            block = wave.nodes[begin : begin + NODES_AT_ONCE]
            placed = of_wave[begin : begin + len(block)]
            if number is None:
                np.add(block, is_leaf(block) * np.uint64(first_row[i]), out=placed)
                continue
            placed[:] = block
            leaf = np.flatnonzero(is_leaf(block))
            rows = number[leaf_rows(block[leaf]) + first_row[i]]
            placed[leaf] = rows.astype(np.uint64) + np.uint64(LEAF_WORD)

    parallel_map(place, range(len(parts)), n_threads)
    return _forest(training, nodes, offsets, table, sets)


def no_subtrees(xp: Any, slots: Frontier, has_sets: bool = False) -> Subtrees:
    """A `Subtrees` record without subtrees."""
    zero, none = xp.zeros(1, dtype=xp.int64), xp.zeros(0, dtype=xp.uint64)
    sets = (zero[:0], none) if has_sets else (None, None)
    return Subtrees(zero, none, zero[:0], slots.sums[:0, ...], *sets)


def in_order(
    nodes: np.ndarray, tables: list[np.ndarray], coding: TargetCoding
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes u64[M] with their leaves' rows in the canonical leaf table, and that table.

    tables : sums of leaves, one table after another, in the order of the nodes"""
    leaf, n_leaves = is_leaf(nodes), sum(map(len, tables))
    if coding.is_classes:
        sums, number = distinct_rows(tables)
    else:
        sums, number = np.concatenate(tables), np.arange(n_leaves)
    nodes[leaf] = number.astype(np.uint64) + np.uint64(LEAF_WORD)
    return nodes, sums
