"""Other subtrees take the places of nodes in a forest; all other nodes only move."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gpuforest.backends.slots import distinct_rows
from gpuforest.core.forest import Forest
from gpuforest.core.nodes import CHILD_MASK, CHILD_SHIFT, LEAF_WORD, is_leaf, leaf_rows
from gpuforest.growing.assemble import sets_in_order


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

    def of(self, tree: int, nodes: np.ndarray) -> np.ndarray:
        """By how much nodes i64[m] of a tree move, i64[m]."""
        inside = slice(*np.searchsorted(self.tree, [tree, tree + 1]))
        upto = np.concatenate([[0], self.upto[inside]])
        return np.asarray(upto[np.searchsorted(self.end[inside], nodes, "right")])


def spliced(forest: Forest, at: np.ndarray, grown: Forest) -> tuple[Forest, Moves]:
    """The forest with the trees of `grown` in place of the nodes `at` i64[P] and all below these;
    and how the other nodes move. No node of `at` lies below another one."""
    offsets = forest.tree_offsets
    begin, end = places_below(forest, at)
    # where several leaves have no descendants at one place, the deepest pair is the leftmost
    in_tree = at - offsets[np.searchsorted(offsets, at, "right") - 1]
    order = np.lexsort((at, -(in_tree + in_tree % 2), end, begin))
    at, begin, end = at[order], begin[order], end[order]
    tree = np.searchsorted(offsets, at, "right") - 1
    sizes = np.diff(grown.tree_offsets)[order]
    gain = sizes - 1 - (end - begin)
    upto = np.cumsum(gain)
    before = np.concatenate([[0], upto])[np.searchsorted(tree, tree)]
    moves = Moves(tree, end - offsets[tree], upto - before)
    first = begin - offsets[tree] + moves.upto - gain  # of the new descendants, in the tree
    # 1. children of old nodes move
    nodes = forest.nodes.copy()
    for t in np.unique(tree).tolist():
        part = nodes[offsets[t] : offsets[t + 1]]
        split = np.flatnonzero(part < np.uint64(LEAF_WORD))
        by = moves.of(t, children(part[split]))
        part[split] += by.astype(np.uint64) << np.uint64(CHILD_SHIFT)
    # 2. and those of new ones, which come next to the root; their leaves have rows behind the old
    new = grown.nodes.copy()
    leaf = is_leaf(new)
    by = np.empty(grown.n_trees, np.int64)
    by[order] = first - 1
    by = np.repeat(by, np.diff(grown.tree_offsets))
    new += np.where(leaf, len(forest.leaf_sums), by << CHILD_SHIFT).astype(np.uint64)
    # 3. all in their order
    roots = grown.tree_offsets[:-1][order]
    where = at, begin, end, roots, sizes
    placed = _placed(nodes, new, *where)
    sets, oblique = forest.sets, forest.oblique or grown.oblique
    if len(sets) or len(grown.sets):
        old, new = (f.set_at if len(f.sets) else np.zeros(f.n_nodes, int) for f in (forest, grown))
        set_at = _placed(old, new + len(sets), *where)
        words = np.concatenate([sets, grown.sets])
        sets = sets_in_order(placed, set_at, words, forest.edges, oblique)
    new_offsets = offsets + np.concatenate(
        [[0], np.cumsum(np.bincount(tree, gain, forest.n_trees).astype(np.int64))]
    )
    placed, sums = _with_table(forest, grown, placed)
    return replace(
        forest, nodes=placed, tree_offsets=new_offsets, leaf_sums=sums, sets=sets, oblique=oblique,
        leaf_values=None, shrinkage=0.0,
    ), moves  # fmt: skip


def _placed(
    old: np.ndarray, new: np.ndarray, at: np.ndarray, begin: np.ndarray, end: np.ndarray,
    roots: np.ndarray, sizes: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """What belongs to old and new nodes, in the order of the joined forest."""
    old = old.copy()
    old[at] = new[roots]
    parts, upto = [], 0
    for b, e, root, size in zip(*(a.tolist() for a in (begin, end, roots, sizes)), strict=True):
        parts += [old[upto:b], new[root + 1 : root + size]]
        upto = e
    return np.concatenate([*parts, old[upto:]])


def _with_table(forest: Forest, grown: Forest, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes with their leaves' rows in the canonical leaf table of assemble.py, and that table."""
    leaf = np.flatnonzero(is_leaf(nodes))
    row, n_old = leaf_rows(nodes[leaf]), len(forest.leaf_sums)
    if forest.coding.is_classes:
        used = np.bincount(row, minlength=n_old) > 0
        used[n_old:] = True
        sums, number = distinct_rows([forest.leaf_sums[used[:n_old]], grown.leaf_sums])
        number_of = np.empty(len(used), np.int64)
        number_of[used] = number
        nodes[leaf] = number_of[row].astype(np.uint64) + np.uint64(LEAF_WORD)
        return nodes, sums
    sums = np.concatenate([forest.leaf_sums, grown.leaf_sums])[row]
    nodes[leaf] = np.arange(len(leaf), dtype=np.uint64) + np.uint64(LEAF_WORD)
    return nodes, sums
