"""Other subtrees take the places of nodes in a forest; all other nodes only move."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gpuforest.backends.base import Backend
from gpuforest.backends.slots import distinct_rows
from gpuforest.core.forest import Forest
from gpuforest.core.nodes import CHILD_MASK, CHILD_SHIFT, is_leaf
from gpuforest.growing.assemble import leaf_sums_in_order, sets_in_order, text_of
from gpuforest.kernels.place_nodes.numba import number_leaves, splice_nodes


def children(nodes: np.ndarray) -> np.ndarray:
    """The left child of splits u64[...] in their tree, i64[...]."""
    return (nodes >> CHILD_SHIFT & CHILD_MASK).astype(np.int64)


def ends_below(forest: Forest, base: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Where the descendants of splits end, i64[n]: with those of the last split on the way down to
    the right, or where there is only a left one, to the left.

    base, at : i64[n], roots of trees and nodes below them"""
    at, end = at.copy(), np.zeros_like(at)
    going = np.arange(len(at))
    while len(going):
        left = base[going] + children(forest.nodes[at[going]])
        right_ends, left_ends = (is_leaf(forest.nodes[left + side]) for side in (1, 0))
        end[going] = left + 2
        at[going] = left + ~right_ends
        going = going[~(left_ends & right_ends)]
    return end


def places_below(forest: Forest, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the descendants of nodes i64[n] begin and end, i64[n] each; a leaf's would lie behind
    those of the node left of it."""
    base = forest.tree_offsets[np.searchsorted(forest.tree_offsets, at, "right") - 1]
    begin = at + 1  # of a root, and behind a right leaf
    split = ~is_leaf(forest.nodes[at])
    begin[split] = base[split] + children(forest.nodes[at[split]])
    on_left = ~split & ((at - base) % 2 == 1)
    begin[on_left] += 1
    beside = np.flatnonzero(~split & ~on_left & (at > base))
    beside = beside[~is_leaf(forest.nodes[at[beside] - 1])]
    begin[beside] = ends_below(forest, base[beside], at[beside] - 1)
    end = begin.copy()
    end[split] = ends_below(forest, base[split], at[split])
    return begin, end


@dataclass(frozen=True, eq=False)
class Moves:
    """By how much nodes of trees move when others below them are replaced.

    tree : i64[n], ascending; end : i64[n], where what is replaced ends, in its tree
    upto : i64[n], by how much all nodes from there on move
    """

    tree: np.ndarray
    end: np.ndarray
    upto: np.ndarray

    def of(self, tree: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """By how much nodes i64[m] of trees i64[m] move, i64[m]."""
        upto, below = np.append(self.upto, 0), np.searchsorted(self.tree, tree)
        at = np.searchsorted(
            (self.tree << 32) + self.end, (tree.astype(np.int64) << 32) + nodes, "right"
        )
        return np.asarray(np.where(at > below, upto[at - 1], 0))


def spliced(
    forest: Forest, at: np.ndarray, grown: Forest, backend: Backend
) -> tuple[Forest, Moves]:
    """The forest with the trees of `grown` in place of the nodes `at` i64[P] and all below these;
    and how the other nodes move. No node of `at` lies below another one."""
    offsets, T = forest.tree_offsets, forest.n_trees
    begin, end = places_below(forest, at)
    # where several leaves have no descendants at one place, the deepest pair is the leftmost
    in_tree = at - offsets[np.searchsorted(offsets, at, "right") - 1]
    order = np.lexsort((at, -(in_tree + in_tree % 2), end, begin))
    at, begin, end = at[order], begin[order], end[order]
    tree = np.searchsorted(offsets, at, "right") - 1
    roots, sizes = grown.tree_offsets[:-1][order], np.diff(grown.tree_offsets)[order]
    gain = sizes - 1 - (end - begin)
    upto, first = np.cumsum(gain), np.searchsorted(tree, np.arange(T + 1))
    moves = Moves(tree, end - offsets[tree], upto - np.append(0, upto)[first[tree]])
    nodes = np.empty(forest.n_nodes + int(gain.sum()), np.uint64)
    text_of(backend, splice_nodes)(
        forest.nodes, grown.nodes, offsets, first, at, begin, end, moves.upto, roots, sizes,
        len(forest.leaf_sums), nodes,
    )  # fmt: skip
    sets, oblique = forest.sets, forest.oblique or grown.oblique
    if len(sets) or len(grown.sets):
        old, new = (f.set_at if len(f.sets) else np.zeros(f.n_nodes, int) for f in (forest, grown))
        set_at = _placed(old, new + len(sets), at, begin, end, roots, sizes)
        words = np.concatenate([sets, grown.sets])
        sets = sets_in_order(nodes, set_at, words, forest.edges, oblique)
    offsets = offsets + np.append(0, np.cumsum(np.bincount(tree, gain, T).astype(np.int64)))
    return replace(
        forest, nodes=nodes, tree_offsets=offsets, sets=sets, oblique=oblique,
        leaf_sums=_with_table(forest, grown, offsets, nodes, backend), leaf_values=None,
        shrinkage=0.0,
    ), moves  # fmt: skip


def _placed(
    old: np.ndarray, new: np.ndarray, at: np.ndarray, begin: np.ndarray, end: np.ndarray,
    roots: np.ndarray, sizes: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Where the sets of old and new nodes begin, in the order of the joined forest."""
    old = old.copy()
    old[at] = new[roots]
    parts, upto = [], 0
    for b, e, root, size in zip(*(a.tolist() for a in (begin, end, roots, sizes)), strict=True):
        parts += [old[upto:b], new[root + 1 : root + size]]
        upto = e
    return np.concatenate([*parts, old[upto:]])


def _with_table(
    forest: Forest, grown: Forest, offsets: np.ndarray, nodes: np.ndarray, backend: Backend
) -> np.ndarray:
    """The canonical leaf table of assemble.py, after the leaves of the nodes get its numbers."""
    n_old, sums = len(forest.leaf_sums), [forest.leaf_sums, grown.leaf_sums]
    if not forest.coding.is_classes:
        n_leaves = (len(nodes) + forest.n_trees) // 2
        return leaf_sums_in_order(backend, offsets, nodes, np.concatenate(sums))[:n_leaves].copy()
    used, number = np.zeros(n_old + len(grown.leaf_sums), np.bool_), np.empty(0, np.int64)
    text_of(backend, number_leaves)(nodes, used, number)
    used[n_old:] = True
    table, numbers = distinct_rows([forest.leaf_sums[used[:n_old]], grown.leaf_sums])
    number = np.empty(len(used), np.int64)
    number[used] = numbers
    text_of(backend, number_leaves)(nodes, used[:0], number)
    return table
