"""Assembly: what grew becomes a forest. Nodes are numbered here, once, when their trees have grown.

levels, subtrees  --grown_wave-->  the trees of a wave, as a forest in the order of nodes.py
waves             --merged------>  one forest

The leaf table is in a canonical order. For classes it has every distinct row once, in the order of
a hash: most leaves of a forest are pure and of small weight. Moments hardly repeat, so their rows
are in the order of the nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import array_api_compat.numpy as host
import numpy as np

from gpuforest.backends.base import Backend
from gpuforest.common.dtypes import OFFSET
from gpuforest.common.hashing import hash_at
from gpuforest.common.parallel import cut_evenly, parallel_map
from gpuforest.engine.binning import BinEdges
from gpuforest.engine.forest import Forest
from gpuforest.engine.nodes import CHILD_SHIFT, LEAF_WORD, is_leaf, leaf_rows, pack_splits, words_of
from gpuforest.engine.records import Frontier, Subtrees, Training
from gpuforest.engine.target import TargetCoding
from gpuforest.kernels.shared.constants import DEEP, LEAF, WIDE

Array = Any

NODES_AT_ONCE = 2**16  # that a thread places: their scratch stays in a core's cache
SUMS_AT_ONCE = 2**18  # channel sums that are copied at once, at most
NO_NUMBERS, NO_SETS = np.zeros(0, np.int64), np.zeros(0, np.uint64)

# What became of the S slots of one depth, of which W are wide, on the backend's device: of the
# slots the kind i8[S] (NONE, LEAF, DEEP or WIDE) and the channel sums i64[S, C]; of the wide ones
# the feature i32[W] (-1: the split was refused, and the slot is a leaf), bin i32[W], missing_left
# bool[W] and sets u64[W, ...] of their splits, see records.Splits. Slots 2 i and 2 i + 1 of the
# next level are below the i-th wide slot
Level = tuple[Array, Array, Array, Array, Array, Array]


def grown_wave(training: Training, levels: list[Level], parts: list[Subtrees]) -> Forest:
    """The trees of a wave from its levels, of which the first holds the roots, and the subtrees of
    the deep slots of all levels. The second list is emptied, to make room."""
    backend, coding, edges = training.backend, training.target.coding, training.matrix.edges
    # 1. the slots of all levels, one level after another, linked to their children
    upto = np.cumsum([level[0].shape[0] for level in levels[:-1]])
    link, word, splits = _linked(backend, levels, upto)
    leaf_sums, subtrees = _leaf_sums(training, levels, np.split(is_leaf(word), upto), parts)
    if coding.is_classes:
        leaf_sums, number = backend.nodes.distinct_rows(backend, leaf_sums)
    else:
        leaf_sums, number = backend.asnumpy(leaf_sums), None
    # 2. the nodes of splits and leaves in their order
    n_trees = levels[0][0].shape[0]
    offsets, root, at, below = _positions(link, splits, n_trees, np.diff(subtrees.offsets))
    child = (below - root).astype(np.uint64) << np.uint64(CHILD_SHIFT)
    nodes, single = np.empty(offsets[-1], np.uint64), np.flatnonzero((link > 0) | is_leaf(word))
    nodes[at[single]] = word[single] + np.where(link[single] > 0, child[single], 0)
    # 3. the sets of splits, one after another, as words; those of subtrees follow
    set_at, words, n_words = NO_NUMBERS, NO_SETS, levels[0][5].shape[1]
    if n_words:
        set_at, split = np.zeros(len(nodes), np.int64), np.flatnonzero(link > 0)
        set_at[at[split]] = (link[split] - n_trees) // 2 * n_words
        words = _on_host(backend, [level[5] for level in levels]).reshape(-1)
    if subtrees.set_at is not None and subtrees.sets is not None:
        subtrees = replace(subtrees, set_at=subtrees.set_at + len(words))
        words = np.concatenate([words, subtrees.sets])
    # 4. the nodes of subtrees, and the numbers of leaves
    deep, n_threads = link < 0, backend.n_threads
    _place(subtrees, at[deep], below[deep], child[deep], nodes, set_at, n_threads)
    table = _number_leaves(nodes, offsets, leaf_sums, number, n_threads)
    if n_words:
        words = _sets_in_order(nodes, set_at, words, edges, training.kind.combines)
    return _forest(training, nodes, offsets, table, words)


def _forest(
    training: Training, nodes: np.ndarray, offsets: np.ndarray, table: np.ndarray, sets: np.ndarray
) -> Forest:
    edges, coding, marks = training.matrix.edges, training.target.coding, training.kind.forest_marks
    marks = marks if len(sets) else {}
    return Forest(nodes, offsets, table, edges, coding, training.seed, sets=sets, **marks)


def _on_host(backend: Backend, arrays: Iterable[Array]) -> np.ndarray:
    """The arrays of all levels, one after another."""
    return np.concatenate([backend.asnumpy(array) for array in arrays])


def _linked(
    backend: Backend, levels: list[Level], upto: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """How the slots of all levels are linked.

    i64[S], the left child of a slot that is split, next to which the right one lies; -1 - d if the
    slot is the root of subtree d; 0 if it is a leaf, or no split led to it. u64[S], the node of
    each slot, without the number of its child; leaves are numbered as they come, and the nodes of
    other slots are 0. And the slots of each level that are split.
    """
    kinds, _, *splits, _ = zip(*levels, strict=True)
    kind, feature, bin, missing_left = (_on_host(backend, arrays) for arrays in (kinds, *splits))
    wide, deep, ends = kind == WIDE, kind == DEEP, kind == LEAF
    ends[wide] = refused = feature < 0
    link, word = np.zeros(len(kind), np.int64), np.zeros(len(kind), np.uint64)
    below = kinds[0].shape[0] + 2 * np.arange(len(feature))
    link[wide] = np.where(refused, 0, below)
    link[deep] = -1 - np.arange(np.count_nonzero(deep))
    word[wide] = pack_splits(host, feature, bin, missing_left)
    word[ends] = np.arange(np.count_nonzero(ends), dtype=np.uint64) + np.uint64(LEAF_WORD)
    split = np.flatnonzero(link > 0)
    return link, word, np.split(split, np.searchsorted(split, upto))


def _leaf_sums(
    training: Training, levels: list[Level], ends: list[np.ndarray], parts: list[Subtrees]
) -> tuple[Array, Subtrees]:
    """The channel sums i64[V, C] of the leaves among the slots of each level and then of those in
    subtrees, on the device; and the subtrees in host arrays, with leaves numbered alike and without
    their sums."""
    backend, xp, subtrees = training.backend, training.backend.xp, parts.pop()
    of_slots = np.concatenate(
        [backend.asnumpy(level[1])[mask] for level, mask in zip(levels, ends, strict=True)]
    )
    n, n_below = len(of_slots), subtrees.leaf_sums.shape[0]
    sums = xp.empty((n + n_below, training.n_channels), dtype=xp.int64)
    sums[:n, :], sums[n:, :] = backend.asarray(of_slots), subtrees.leaf_sums
    names = ("offsets", "nodes", "first_leaf", "set_at", "sets")
    arrays = {name: getattr(subtrees, name) for name in names}
    arrays = {name: None if a is None else backend.asnumpy(a) for name, a in arrays.items()}
    arrays["first_leaf"] = arrays["first_leaf"] + n
    return sums, Subtrees(**arrays, leaf_sums=NO_NUMBERS)


def _positions(
    link: np.ndarray, splits: list[np.ndarray], n_trees: int, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Where the trees begin, i64[T + 1], and of each slot the positions i64[S] of its tree's root,
    of its node and of the first node below it; `sizes` i64[D] are those of subtrees."""
    size = np.ones(len(link), np.int64)  # the number of nodes at and below each slot
    size[link < 0] = sizes
    for split in reversed(splits):
        left = link[split]
        size[split] += size[left] + size[left + 1]
    offsets = np.concatenate([[0], np.cumsum(size[:n_trees])]).astype(OFFSET)
    root, at, below = np.zeros((3, len(link)), np.int64)
    root[:n_trees], at[:n_trees], below[:n_trees] = offsets[:-1], offsets[:-1], offsets[:-1] + 1
    for split in splits:
        left, first = link[split], below[split]
        root[left], at[left], below[left] = root[split], first, first + 2
        root[left + 1], at[left + 1] = root[split], first + 1
        below[left + 1] = first + 1 + size[left]
    return offsets, root, at, below


def _place(
    subtrees: Subtrees, at: np.ndarray, below: np.ndarray, child: np.ndarray, nodes: np.ndarray,
    set_at: np.ndarray, n_threads: int,
) -> None:  # fmt: skip
    """Write the nodes of subtrees to `nodes`, and where their sets begin to `set_at`. The root of
    subtree d lies at at[d], and the others in a row from below[d] on; child u64[D] is the number
    of the first in its tree, as a node has it."""
    move, child = below - 1 - subtrees.offsets[:-1], child - np.uint64(1 << CHILD_SHIFT)
    leaf = subtrees.first_leaf.astype(np.uint64)

    def part(group: slice) -> None:
        offsets = subtrees.offsets[group.start : group.stop + 1]
        inside, n = slice(offsets[0], offsets[-1]), np.diff(offsets)
        position = np.arange(offsets[0], offsets[-1]) + np.repeat(move[group], n)
        position[offsets[:-1] - offsets[0]] = at[group]
        block = subtrees.nodes[inside]
        added = np.where(is_leaf(block), np.repeat(leaf[group], n), np.repeat(child[group], n))
        nodes[position] = block + added
        if subtrees.set_at is not None:
            set_at[position] = subtrees.set_at[inside]

    parallel_map(part, cut_evenly(np.diff(subtrees.offsets), NODES_AT_ONCE), n_threads)


def _number_leaves(
    nodes: np.ndarray, offsets: np.ndarray, sums: np.ndarray, number: np.ndarray | None,
    n_threads: int,
) -> np.ndarray:  # fmt: skip
    """Number the leaves among nodes u64[M] by the leaf table i64[V, C], which is returned: `sums`,
    in which leaf i has the row number[i]; or with None, `sums` in the order of the nodes."""
    n_leaves = (len(nodes) + len(offsets) - 1) // 2  # a tree of n nodes has (n + 1) / 2 leaves
    table = sums if number is not None else np.empty((n_leaves, sums.shape[1]), np.int64)

    def part(trees: slice) -> None:
        low, high = offsets[trees.start], offsets[trees.stop]
        leaf = low + np.flatnonzero(is_leaf(nodes[low:high]))
        rows = leaf_rows(nodes[leaf])
        if number is None:
            first = (low + trees.start) // 2
            table[first : first + len(leaf)] = sums[rows]
            rows = np.arange(first, first + len(leaf))
        else:
            rows = number[rows]
        nodes[leaf] = rows.astype(np.uint64) + np.uint64(LEAF_WORD)

    parallel_map(part, cut_evenly(np.diff(offsets), NODES_AT_ONCE), n_threads)
    return table


def _sets_in_order(
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


def merged(waves: list[Forest], training: Training) -> Forest:
    """The forest of the trees of all waves, numbered in their order.

    A fit holds most memory here, so `waves` is emptied, and each wave is freed once it is placed.
    """
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
        parts = [replace(wave, leaf_sums=table) for wave in parts]  # and theirs are freed
    else:
        table = np.empty((first_row[-1], training.n_channels), np.int64)

    def place(i: int) -> None:
        wave, parts[i] = parts[i], None
        if number is None:
            table[first_row[i] : first_row[i + 1]] = wave.leaf_sums
        of_wave = nodes[first_node[i] : first_node[i + 1]]
        for begin in range(0, len(of_wave), NODES_AT_ONCE):
            block = wave.nodes[begin : begin + NODES_AT_ONCE]
            of_wave[begin : begin + len(block)] = block
            leaf = np.flatnonzero(is_leaf(block))
            rows = leaf_rows(block[leaf]) + first_row[i]
            rows = rows if number is None else number[rows]
            of_wave[begin + leaf] = rows.astype(np.uint64) + np.uint64(LEAF_WORD)

    parallel_map(place, range(len(parts)), training.backend.n_threads)
    return _forest(training, nodes, offsets, table, sets)


def no_subtrees(xp: Any, slots: Frontier, has_sets: bool = False) -> Subtrees:
    """The subtrees of none of the slots."""
    zero, none = xp.zeros(1, dtype=xp.int64), xp.zeros(0, dtype=xp.uint64)
    sets = (zero[:0], none) if has_sets else (None, None)
    return Subtrees(zero, none, zero[:0], slots.sums[:0, ...], *sets)


def in_order(
    nodes: np.ndarray, tables: list[np.ndarray], coding: TargetCoding
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes u64[M] with the numbers of their leaves, and the canonical leaf table, of leaves whose
    sums are the rows of `tables`, one after another, in the order of the nodes."""
    leaf, n_leaves = is_leaf(nodes), sum(map(len, tables))
    if coding.is_classes:
        sums, number = distinct_rows(tables)
    else:
        sums, number = np.concatenate(tables), np.arange(n_leaves)
    nodes[leaf] = number.astype(np.uint64) + np.uint64(LEAF_WORD)
    return nodes, sums


def distinct_rows(tables: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows of tables i64[..., C] in a canonical order, and the number among them of
    each row of all tables, i64[V]. Equal rows are found by their hashes."""
    keys = np.concatenate([row_keys(table) for table in tables])
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    table, begin = np.empty((len(first), tables[0].shape[1]), np.int64), 0
    for rows in tables:
        inside = (first >= begin) & (first < begin + len(rows))
        table[inside] = rows[first[inside] - begin]
        begin += len(rows)
    begin, same = 0, True
    for rows in tables:
        for i, j in row_blocks(rows):
            same = same and np.array_equal(table[number[begin + i : begin + j]], rows[i:j])
        begin += len(rows)
    return (table, number) if same else distinct_sorted(np.concatenate(tables))


def row_blocks(sums: np.ndarray) -> list[tuple[int, int]]:
    """Ranges of rows that are copied at once."""
    V, C = sums.shape
    step = max(1, SUMS_AT_ONCE // C)
    return [(i, min(i + step, V)) for i in range(0, V, step)]


def row_keys(sums: np.ndarray) -> np.ndarray:
    """A hash u64[V] of each row i64[V, C]."""
    column = np.arange(sums.shape[1], dtype=np.uint64)
    factors, keys = hash_at(np.zeros_like(column), column) | np.uint64(1), [sums[:0, 0]]
    keys += [np.sum(sums[i:j].astype(np.uint64) * factors, axis=1) for i, j in row_blocks(sums)]
    return np.concatenate(keys, dtype=np.uint64, casting="unsafe")


def distinct_sorted(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As `distinct_rows`, by sorting, for the case that two different rows have the same hash."""
    table, number = np.unique(sums, axis=0, return_inverse=True)
    return table, number.reshape(-1)
