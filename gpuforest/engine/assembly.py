"""Assembly: what grew becomes a forest. Nodes are numbered here, once, when their trees have grown.

levels, subtrees  --grown_wave-->  slots linked to their children, on the host
waves             --merged------>  nodes in the order of nodes.py, and one leaf table
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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


@dataclass(frozen=True, eq=False)
class Level:
    """What became of the S slots of one depth, of which W are wide, on the backend's device. Slots
    2 i and 2 i + 1 of the next level are below the i-th wide slot."""

    kind: Array  # i8[S], NONE, LEAF, DEEP or WIDE
    sums: Array  # i64[S, C]
    # i32[W], the split of each wide slot; -1: it was refused, and the slot is a leaf
    feature: Array
    bin: Array  # i32[W]
    missing_left: Array  # bool[W]
    sets: Array  # u64[W, ...], see records.Splits


@dataclass(frozen=True, eq=False)
class WaveTrees:
    """The trees of a wave as they grew, on the host: slots that are linked, and subtrees. The first
    slots are the roots, and children follow their parents."""

    n_trees: int  # T
    # i64[S], the left child of a slot that is split, next to which the right one lies; -1 - d if
    # the slot is the root of subtree d; 0 if it is a leaf, or no split led to it
    link: np.ndarray
    splits: list[np.ndarray]  # the slots of each level that are split
    # u64[S], the node of each slot, without the number of its child; leaves have the numbers of
    # their rows in `leaf_sums`, or in `number` if there is one
    word: np.ndarray
    subtrees: Subtrees  # their leaves are numbered alike; its `leaf_sums` are empty
    leaf_sums: np.ndarray  # i64[V, C], of classes the distinct ones
    number: np.ndarray | None  # i64[...], the row of `leaf_sums` of each leaf's row
    set_at: np.ndarray  # i64[S], where each slot's set begins in `subtrees.sets`; or i64[0]


def grown_wave(training: Training, levels: list[Level], parts: list[Subtrees]) -> WaveTrees:
    """The trees of a wave from its levels, of which the first holds the roots, and the subtrees of
    the deep slots of all levels. The second list is emptied, to make room."""
    backend, xp, subtrees = training.backend, training.backend.xp, parts.pop()
    names = ("kind", "feature", "bin", "missing_left")
    kind, feature, bin, missing_left = (_column(backend, levels, name) for name in names)
    wide, deep, ends = kind == WIDE, kind == DEEP, kind == LEAF
    refused, n_trees, n_wide = feature < 0, levels[0].kind.shape[0], len(feature)
    ends[wide] = refused
    link, word = np.zeros(len(kind), np.int64), np.zeros(len(kind), np.uint64)
    link[wide] = np.where(refused, 0, n_trees + 2 * np.arange(n_wide))
    link[deep] = -1 - np.arange(np.count_nonzero(deep))
    word[wide] = pack_splits(host, feature, bin, missing_left)
    split = np.flatnonzero(link > 0)
    slots = np.cumsum([level.kind.shape[0] for level in levels[:-1]])
    splits = np.split(split, np.searchsorted(split, slots))
    word[ends] = np.arange(np.count_nonzero(ends), dtype=np.uint64) + np.uint64(LEAF_WORD)
    n_ends = int(np.count_nonzero(ends))
    sums = [
        backend.asnumpy(level.sums)[mask]
        for level, mask in zip(levels, np.split(ends, slots), strict=True)
    ]
    V, C = n_ends + subtrees.leaf_sums.shape[0], sums[0].shape[1]
    leaf_sums = xp.empty((V, C), dtype=xp.int64)
    leaf_sums[:n_ends, :] = backend.asarray(np.concatenate(sums))
    leaf_sums[n_ends:, :] = subtrees.leaf_sums
    del sums  # they make room
    subtrees = _on_host(backend, subtrees, n_ends)
    if training.target.coding.is_classes:
        leaf_sums, number = backend.nodes.distinct_rows(backend, leaf_sums)
    else:
        leaf_sums, number = backend.asnumpy(leaf_sums), None
    set_at = NO_NUMBERS
    if levels[0].sets.shape[1]:
        sets = _column(backend, levels, "sets")
        set_at = np.zeros(len(kind), np.int64)
        set_at[wide] = np.arange(n_wide) * sets.shape[1]
        below, at = subtrees.sets, subtrees.set_at
        words = [sets.reshape(-1)] if below is None else [sets.reshape(-1), below]
        at = None if at is None else at + sets.size
        subtrees = replace(subtrees, set_at=at, sets=np.concatenate(words))
    return WaveTrees(n_trees, link, splits, word, subtrees, leaf_sums, number, set_at)


def _column(backend: Backend, levels: list[Level], name: str) -> np.ndarray:
    """What all levels have under a name, on the host."""
    return np.concatenate([backend.asnumpy(getattr(level, name)) for level in levels])


def _on_host(backend: Backend, subtrees: Subtrees, n_before: int) -> Subtrees:
    """The subtrees in host arrays, without their sums. `n_before`: rows of sums before theirs."""
    names = ("offsets", "nodes", "first_leaf", "set_at", "sets")
    arrays = {name: getattr(subtrees, name) for name in names}
    arrays = {name: None if a is None else backend.asnumpy(a) for name, a in arrays.items()}
    arrays["first_leaf"] = arrays["first_leaf"] + n_before
    return Subtrees(**arrays, leaf_sums=NO_NUMBERS)


def no_subtrees(xp: Any, slots: Frontier, has_sets: bool = False) -> Subtrees:
    """The subtrees of none of the slots."""
    zero, none = xp.zeros(1, dtype=xp.int64), xp.zeros(0, dtype=xp.uint64)
    sets = (zero[:0], none) if has_sets else (None, None)
    return Subtrees(zero, none, zero[:0], slots.sums[:0, ...], *sets)


def as_wave(forest: Forest) -> WaveTrees:
    """The trees of a forest as a wave: each is a subtree."""
    n, no, has_sets = forest.n_trees, NO_NUMBERS, len(forest.sets) > 0
    sets = (forest.set_at, forest.sets) if has_sets else (None, None)
    leaves = np.zeros(n, np.int64), forest.leaf_sums[:0]
    subtrees = Subtrees(forest.tree_offsets, forest.nodes, *leaves, *sets)
    words, set_at = np.zeros(n, np.uint64), np.zeros(n, np.int64) if has_sets else no
    return WaveTrees(n, -1 - np.arange(n), [], words, subtrees, forest.leaf_sums, None, set_at)


def merged(waves: list[WaveTrees], training: Training) -> Forest:
    """The forest of the trees of all waves, numbered in their order.

    A fit holds most memory here, so `waves` is emptied, and each wave is freed once it is placed.
    """
    coding, edges = training.target.coding, training.matrix.edges
    parts: list[Any] = list(waves)
    waves.clear()
    n_waves, n_threads = len(parts), training.backend.n_threads
    sizes: list[Any] = parallel_map(_sizes, parts, n_threads)
    first = np.cumsum([0] + [wave.n_trees for wave in parts])
    of_trees = [size[: wave.n_trees] for size, wave in zip(sizes, parts, strict=True)]
    offsets = np.cumsum(np.concatenate([[0], *of_trees])).astype(OFFSET)
    nodes = np.empty(offsets[-1], np.uint64)
    leaves = _Leaves.of(parts, coding, (int(offsets[-1]) + int(first[-1])) // 2)
    if coding.is_classes:  # the joined table has their rows
        parts = [replace(wave, leaf_sums=leaves.table) for wave in parts]

    def place(i: int) -> np.ndarray:
        wave, size = parts[i], sizes[i]
        parts[i] = sizes[i] = None
        trees, inside = np.arange(first[i], first[i + 1] + 1), n_threads if n_waves == 1 else 1
        begin = offsets[trees]
        of_wave = nodes[begin[0] : begin[-1]]
        set_at = _place(wave, size, begin[:-1] - begin[0], of_wave, inside)

        def number(some: slice) -> None:
            low, high = begin[some.start], begin[some.stop]
            # a tree of n nodes has (n + 1) / 2 leaves
            leaves.number(i, wave, nodes[low:high], (low + trees[some.start]) // 2)

        parallel_map(number, cut_evenly(np.diff(begin), NODES_AT_ONCE), inside)
        if wave.subtrees.sets is None:
            return NO_SETS
        return _sets_in_order(of_wave, set_at, wave.subtrees.sets, edges, training.kind.combines)

    sets = np.concatenate(parallel_map(place, range(n_waves), n_threads))
    return Forest(
        nodes,
        offsets,
        leaves.table,
        edges,
        coding,
        training.seed,
        sets=sets,
        **(training.kind.forest_marks if len(sets) else {}),
    )


def _sizes(wave: WaveTrees) -> np.ndarray:
    """The number of nodes at and below each slot, i64[S]."""
    size = np.ones(len(wave.link), np.int64)
    size[wave.link < 0] = np.diff(wave.subtrees.offsets)
    for split in reversed(wave.splits):
        left = wave.link[split]
        size[split] += size[left] + size[left + 1]
    return size


def _place(
    wave: WaveTrees, size: np.ndarray, roots: np.ndarray, nodes: np.ndarray, n_threads: int
) -> np.ndarray:
    """Write the wave's nodes in their order to `nodes` u64[M], and return the word where each
    node's set begins, i64[M]; i64[0] without sets. roots : i64[T], their positions"""
    subtrees, link, n_trees = wave.subtrees, wave.link, wave.n_trees
    # 1. where each slot's node lies, and where those below begin; both counted from `nodes`
    root, at, below = np.zeros((3, len(link)), np.int64)
    root[:n_trees], at[:n_trees], below[:n_trees] = roots, roots, roots + 1
    for split in wave.splits:
        left, first = link[split], below[split]
        root[left], at[left], below[left] = root[split], first, first + 2
        root[left + 1], at[left + 1] = root[split], first + 1
        below[left + 1] = first + 1 + size[left]
    # 2. the nodes of splits and leaves
    deep, child = link < 0, (below - root).astype(np.uint64) << np.uint64(CHILD_SHIFT)
    single = np.flatnonzero((link > 0) | is_leaf(wave.word))
    nodes[at[single]] = wave.word[single] + np.where(link[single] > 0, child[single], 0)
    set_at = np.zeros(len(nodes) if len(wave.set_at) else 0, np.int64)
    if len(set_at):
        set_at[at[single]] = wave.set_at[single]
    # 3. subtrees: their nodes but the root lie in a row already
    move, child = below[deep] - 1 - subtrees.offsets[:-1], child[deep] - np.uint64(1 << CHILD_SHIFT)
    leaf = subtrees.first_leaf.astype(np.uint64)

    def part(some: slice) -> None:
        offsets = subtrees.offsets[some.start : some.stop + 1]
        inside, n = slice(offsets[0], offsets[-1]), np.diff(offsets)
        position = np.arange(offsets[0], offsets[-1]) + np.repeat(move[some], n)
        position[offsets[:-1] - offsets[0]] = at[deep][some]
        block = subtrees.nodes[inside]
        added = np.where(is_leaf(block), np.repeat(leaf[some], n), np.repeat(child[some], n))
        nodes[position] = block + added
        if subtrees.set_at is not None:
            set_at[position] = subtrees.set_at[inside]

    parallel_map(part, cut_evenly(np.diff(subtrees.offsets), NODES_AT_ONCE), n_threads)
    return set_at


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


# the leaf table


@dataclass(frozen=True, eq=False)
class _Leaves:
    """The leaf table in its canonical order. For classes it has every distinct row once, in the
    order of a hash: most leaves of a forest are pure and of small weight. Moments hardly repeat,
    so their rows are in the order of the nodes."""

    table: np.ndarray  # i64[V, C]
    # for each wave the row of each of its leaves' rows, i64[...], or None: as they are. Empty for
    # moments
    numbers: list[np.ndarray | None]

    @classmethod
    def of(cls, waves: list[WaveTrees], coding: TargetCoding, n_leaves: int) -> _Leaves:
        """The table of all waves; that of moments is not filled."""
        if not coding.is_classes:
            return cls(np.empty((n_leaves, coding.n_channels), np.int64), [])
        if len(waves) == 1:
            return cls(waves[0].leaf_sums, [waves[0].number])
        tables = [wave.leaf_sums for wave in waves]
        table, number = distinct_rows(tables)
        parts = np.split(number, np.cumsum([len(part) for part in tables])[:-1])
        return cls(
            table,
            [p if w.number is None else p[w.number] for p, w in zip(parts, waves, strict=True)],
        )

    def number(self, i: int, wave: WaveTrees, nodes: np.ndarray, first: int) -> None:
        """Number the leaves among nodes u64[...] of some trees of wave i. `first`: the leaves of
        earlier trees."""
        leaf = np.flatnonzero(is_leaf(nodes))
        rows = leaf_rows(nodes[leaf])
        if not self.numbers:
            last = first + len(leaf)
            self.table[first:last] = wave.leaf_sums[rows]
            rows = np.arange(first, last)
        elif (number := self.numbers[i]) is not None:
            rows = number[rows]
        nodes[leaf] = rows.astype(np.uint64) + np.uint64(LEAF_WORD)


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
