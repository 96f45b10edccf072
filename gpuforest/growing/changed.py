"""Grow trees again after some rows have changed: where a split is found again, only the side that
holds changed rows goes on, and the old subtree stays on the other one.

    a slot without changed rows    keeps its old subtree
    with some                      its split is searched; the same as before: both sides go on
                                   so; another one: both sides grow anew
"""

from __future__ import annotations

import numpy as np

from gpuforest.backends.base import Backend
from gpuforest.core.forest import Forest
from gpuforest.core.frontier import Frontier, Splits, Subtrees
from gpuforest.core.nodes import CHILD_SHIFT, LEAF_WORD, SET_BIN, is_leaf, leaf_rows, unpack
from gpuforest.core.training import Training
from gpuforest.growing.assemble import Level, grown_wave, no_subtrees
from gpuforest.growing.grow import gaining, roots, split_slots
from gpuforest.kernels.shared.constants import DEEP, WIDE
from gpuforest.splits.kinds import kind_in


class Changed:
    """Slots of one depth with what is known of them.

    origin : i64[S], the node of the old forest that a slot was; -1: it grows anew
    slot, row : i64[n] each, the slots that hold changed rows, and which rows these are
    """

    def __init__(self, forest: Forest, first: int, counted: np.ndarray, codes: np.ndarray) -> None:
        self.forest, self.codes, self.first = forest, codes, first
        self.slot, self.row = np.nonzero(counted)
        self.origin = forest.tree_offsets[first : first + len(counted)].copy()

    def sorted_out(self, kinds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The kinds of the slots i8[S], and which of the deep ones keep their subtrees."""
        touched = np.zeros(len(kinds), bool)
        touched[self.slot] = True
        known = (self.origin >= 0) & ((kinds == DEEP) | (kinds == WIDE))
        splits = known & touched & ~is_leaf(self.forest.nodes[np.maximum(self.origin, 0)])
        kept = known & ~touched
        return np.where(splits, WIDE, np.where(kept, DEEP, kinds)).astype(kinds.dtype), kept

    def go_on(self, at: np.ndarray, slots: Frontier, splits: Splits, words: np.ndarray) -> None:
        """Follow the splits of the slots numbered `at` to the slots below.

        words : u64[W, n], sets of the splits"""
        forest, old = self.forest, self.origin[at]
        words_of_old = forest.nodes[np.maximum(old, 0)]
        feature, bins, missing_left, child = unpack(np, words_of_old)
        same = (old >= 0) & ~is_leaf(words_of_old)
        same &= (splits.feature == feature) & (splits.bin == bins)
        same &= splits.missing_left == missing_left.astype(bool)
        for i in np.flatnonzero(same & (bins == SET_BIN)).tolist():
            begin = forest.set_at[old[i]]
            n = int(forest.n_words(forest.nodes[old[i] : old[i] + 1])[0])
            same[i] = np.array_equal(forest.sets[begin : begin + n], words[i, :n])
        base = forest.tree_offsets[self.first + slots.tree]
        left = np.where(same, base + child, -1)
        # the changed rows below
        number = np.full(len(self.origin), -1)
        number[at[same]] = np.flatnonzero(same)
        stays = number[self.slot] >= 0
        row, s = self.row[stays], np.asarray(number[self.slot[stays]])
        code = self.codes[row, feature[s]].astype(np.int64)
        goes_left, hole = code <= bins[s], code == forest.edges.missing_code
        for j in np.flatnonzero((bins[s] == SET_BIN) & ~hole).tolist():
            goes_left[j] = int(words[s[j], code[j] >> 6]) >> int(code[j] & 63) & 1
        goes_left = np.where(hole, missing_left[s], goes_left)
        self.row, self.slot = row, 2 * s + ~goes_left.astype(bool)
        self.origin = np.stack([left, np.where(same, left + 1, -1)], axis=1).reshape(-1)


def regrow(
    training: Training, backend: Backend, forest: Forest, first: int, counted: np.ndarray,
    codes: np.ndarray,
) -> Forest:  # fmt: skip
    """The trees from number `first` on that grow from the training, on the host.

    forest : grown from the same rows, except some that have left or joined
    codes : u8 or u16 [n, F] of these rows
    counted : bool[T, n], which of them the bag of each tree holds, or held
    """
    xp, kind, last = backend.xp, kind_in(training), first + len(counted)
    frontier, known = roots(training, backend, first, last), Changed(forest, first, counted, codes)
    deep_rows = kind.deep_rows(backend, training, frontier.max_rows)
    levels, handed_over, blocks = list[Level](), list[Frontier](), list[np.ndarray]()
    while frontier.n_slots:
        sorts, _, _ = backend.nodes.sort_out(backend, training, frontier, deep_rows)
        kinds, kept = known.sorted_out(sorts)
        deep, at = kinds == DEEP, np.flatnonzero(kinds == WIDE)
        blocks.append(np.where(kept, known.origin, -1)[deep])
        wide, anew = (
            frontier.take(xp, slots, int(frontier.local_rows[slots].sum()))
            for slots in (at, np.flatnonzero(deep & ~kept))
        )
        handed_over.append(anew)
        if len(levels) == 0 and wide.n_slots:
            wide = wide.with_room(xp)
        splits = backend.level(training, wide) if kind.by_level else None
        if splits is None:
            splits = kind.search(backend, training, wide)
        splits = gaining(training, backend, wide, splits)
        of_splits = splits.feature, splits.bin, splits.missing_left, splits.sets
        levels.append((kinds, frontier.sums, *of_splits))
        frontier = split_slots(training, backend, kind, wide, splits)
        known.go_on(at, wide, splits, splits.sets)
    deep = backend.nodes.join(backend, handed_over, frontier.rows, frontier.weights)
    grown = no_subtrees(xp, deep, training.n_words > 0)
    if deep.n_slots:
        grown = backend.grow_subtrees(training, deep, kind)
    inside = slice(*forest.tree_offsets[[first, last]])
    leaves = forest.added_up(is_leaf(forest.nodes[inside]).astype(np.int64), first, last)
    subtrees = with_kept(forest, first, np.concatenate(blocks), grown, leaves)
    return grown_wave(backend, training, levels, [subtrees])


def with_kept(
    forest: Forest, first: int, origins: np.ndarray, grown: Subtrees, leaves: np.ndarray
) -> Subtrees:
    """Subtrees of all deep slots: old ones where `origins` i64[D] name a node, else the next
    block that has grown.

    leaves : i64[m], the number of leaves below each node from the root of tree `first` on"""
    parts, sums, first_leaf, n_leaves, used = [], [grown.leaf_sums], [], len(grown.leaf_sums), 0
    set_at, sets = [], [] if grown.sets is None else [grown.sets]
    for node in origins.tolist():
        if node < 0:
            inside = slice(*grown.offsets[used : used + 2])
            parts.append(grown.nodes[inside])
            first_leaf.append(int(grown.first_leaf[used]))
            if grown.set_at is not None:
                set_at.append(grown.set_at[inside])
            used += 1
            continue
        begin, (nodes, of_leaves, words) = n_leaves, block_of(forest, first, node, leaves)
        parts.append(nodes)
        sums.append(of_leaves)
        first_leaf.append(begin)
        n_leaves += len(of_leaves)
        if grown.set_at is not None:
            n_words = forest.n_words(nodes)
            set_at.append(np.cumsum(n_words) - n_words + sum(map(len, sets)))
            sets.append(words)
    empty = np.zeros(0, np.uint64)
    return Subtrees(
        np.cumsum([0, *map(len, parts)]),
        np.concatenate([empty, *parts]),
        np.array(first_leaf, np.int64),
        np.concatenate(sums),
        None if grown.set_at is None else np.concatenate([empty.astype(np.int64), *set_at]),
        None if grown.sets is None else np.concatenate([empty, *sets]),
    )


def block_of(
    forest: Forest, first: int, node: int, leaves: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A node and all below it as nodes of a block, the sums of its leaves, and its sets."""
    tree = int(np.searchsorted(forest.tree_offsets, node, side="right")) - 1
    base, word = int(forest.tree_offsets[tree]), forest.nodes[node]
    below = 2 * int(leaves[node - forest.tree_offsets[first]]) - 2
    child = int(unpack(np, word)[3]) if below else 0
    inside = np.concatenate([[node], np.arange(base + child, base + child + below)])
    nodes = forest.nodes[inside]
    leaf = is_leaf(nodes)
    sums = forest.leaf_sums[leaf_rows(nodes[leaf])]
    nodes[~leaf] -= np.uint64((child - 1) << CHILD_SHIFT) if below else np.uint64(0)
    nodes[leaf] = np.uint64(LEAF_WORD) + np.arange(len(sums), dtype=np.uint64)
    words = np.zeros(0, np.uint64)
    if len(forest.sets):
        n = forest.n_words(forest.nodes[inside])
        at = np.repeat(forest.set_at[inside] - (np.cumsum(n) - n), n) + np.arange(int(n.sum()))
        words = forest.sets[at]
    return nodes, sums, words
