"""Nodes that grow again after rows of theirs have changed, from the trees as they were.

A split that is found again keeps what was below it on the side that no changed row reaches. Rows
walk down as nodes grow: those that have changed, and others, whose leaves are wanted.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from gpuforest.compiler.decorators import device
from gpuforest.compiler.types import I64, Codes2
from gpuforest.core.nodes import CHILD_MASK, CHILD_SHIFT, LEAF_MASK, LEAF_WORD, SET_BIN
from gpuforest.kernels.grow_subtrees import rows
from gpuforest.kernels.grow_subtrees.scratch import Grown
from gpuforest.kernels.shared.numba import TO_FEATURE, U, goes_left

Array = Any

LOW, HIGH, N_CHANGED, OLD, BASE = range(5)  # of an open node: its walkers, and what it was before
LEAF, CHILD, SHIFT = U(LEAF_WORD), U(CHILD_MASK), U(CHILD_SHIFT)
BUT_CHILD = ~(CHILD << SHIFT)


class Again(NamedTuple):
    """The trees as they were, and the rows that walk down D nodes which grow again."""

    nodes: Annotated[Array, "u64[M]"]
    set_at: Annotated[Array, "i64[M]"]  # where a set begins in `sets`
    sets: Annotated[Array, "u64[S]"]
    leaf_sums: Annotated[Array, "i64[V, C]"]
    old: Annotated[
        Array, "i64[D]"
    ]  # the place of each node in `nodes`, -1: it has grown in no tree
    base: Annotated[Array, "i64[D]"]  # and that of the root of its tree
    begin: Annotated[Array, "i64[E]"]  # walkers of node d are begin[d] .. begin[d + 1] - 1
    codes: Codes2  # [n, F]
    row: Annotated[Array, "i32[W]"]  # of `codes`, of each walker
    n_changed: I64  # rows of `codes` that have changed, which are the first
    order: Annotated[Array, "i32[W]"]  # walkers in the order of the nodes; scratch
    spare: Annotated[Array, "i32[W]"]
    reached: Annotated[Array, "i64[W]"]  # the node that each reaches; -1: it is as it was
    sums: Annotated[Array, "i64[W, C]"]  # of the leaves that they reach
    prunes: I64  # whether nodes grow no further where no walker wants a leaf


@device
def enter(kept, again, d):
    """Put the walkers of a node on the stack."""
    low, high, n_changed = again.begin[d], again.begin[d + 1], 0
    for i in range(low, high):
        again.order[i] = i
        n_changed += again.row[i] < again.n_changed
    put(kept.stack[0], low, high, n_changed, again.old[d], again.base[d])


@device
def put(top, low, high, n_changed, old, base):
    top[LOW], top[HIGH], top[N_CHANGED], top[OLD], top[BASE] = low, high, n_changed, old, base


@device
def visit(growth, kept, again, node, n_stack, sets, grown):
    """Whether a node is written, because it is as it was or no walker wants it; and `grown`."""
    top, scratch = kept.stack[n_stack], growth.scratch
    low, high, is_old = top[LOW], top[HIGH], top[OLD] >= 0 and top[N_CHANGED] == 0
    for i in range(low, high):
        again.reached[again.order[i]] = -1 if is_old else node.number
    for j in range(len(kept.stack[0])):
        kept.now[j] = top[j]
    if again.prunes and (is_old or high - low == top[N_CHANGED]):
        return True, rows.put_leaf(scratch, node.number, scratch.sums, grown)
    if is_old:
        return True, copy(growth, again, node.number, top[OLD], top[BASE], sets, grown)
    return False, grown


@device
def copy(growth, again, number, old, base, sets, grown):
    """Write a node as it was before, with all nodes below."""
    nodes, scratch, word = again.nodes, growth.scratch, again.nodes[old]
    if word >= LEAF:
        return rows.put_leaf(scratch, number, again.leaf_sums[np.int64(word & U(LEAF_MASK))], grown)
    # 1. where they are, and how far they move
    begin = child = base + np.int64(word >> SHIFT & CHILD)
    while True:  # to the last split on the way down to the right, or to the left, see ends_below
        end = child + 2
        at = child if nodes[child + 1] >= LEAF else child + 1
        if nodes[at] >= LEAF:
            break
        child = base + np.int64(nodes[at] >> SHIFT & CHILD)
    to, by = grown.n_nodes, U(grown.n_nodes - growth.first - (begin - base)) << SHIFT
    grown = Grown(to + end - begin, grown.n_leaves, grown.n_words)
    # 2. this node, and these
    grown = copy_one(growth, again, old, number, by, sets, grown)
    for i in range(begin, end):
        grown = copy_one(growth, again, i, to + i - begin, by, sets, grown)
    return grown


@device
def copy_one(growth, again, old, number, by, sets, grown):
    word, n_words = again.nodes[old], grown.n_words
    if word >= LEAF:
        leaf = np.int64(word & U(LEAF_MASK))
        return rows.put_leaf(growth.scratch, number, again.leaf_sums[leaf], grown)
    growth.scratch.nodes[number] = word + by
    if np.int64(word & U(SET_BIN)) == SET_BIN:
        sets.at[number] = n_words
        for w in range(set_words(growth.data, word)):
            sets.words[n_words] = again.sets[again.set_at[old] + w]
            n_words += 1
    return Grown(grown.n_nodes, grown.n_leaves, n_words)


@device
def set_words(data, word):
    return (np.int64(data.n_bins[np.int64(word >> TO_FEATURE)]) + 63) >> 6


@device
def is_same(growth, again, old, number, sets):
    """Whether the split of a node is that of an old one."""
    word = again.nodes[old]
    same = (word ^ growth.scratch.nodes[number]) & BUT_CHILD == 0
    if same and np.int64(word & U(SET_BIN)) == SET_BIN:
        for w in range(set_words(growth.data, word)):
            same &= again.sets[again.set_at[old] + w] == sets.best[w]
    return same


@device
def divide(growth, kept, again, number, split, n_stack, sets):
    """Put the walkers of a split's sides on the stack, the right ones below the left ones."""
    low, high, old, base = kept.now[LOW], kept.now[HIGH], kept.now[OLD], kept.now[BASE]
    missing, words = np.int64(growth.data.n_codes - 1), rows.words_of(sets)
    left, right, changed = low, low, np.int64(0)
    for i in range(low, high):
        p = again.order[i]
        row = again.row[p]
        if goes_left(np.int64(again.codes[row, split.feature]), split, missing, words, 0):
            again.order[left] = p
            left += 1
            changed += row < again.n_changed
        else:
            again.spare[right] = p
            right += 1
    for i in range(low, right):
        again.order[left + i - low] = again.spare[i]
    child = np.int64(-1)
    if old >= 0 and is_same(growth, again, old, number, sets):
        child = base + np.int64(again.nodes[old] >> SHIFT & CHILD)
    others = kept.now[N_CHANGED] - changed
    put(kept.stack[n_stack], left, high, others, child + (child >= 0), base)
    put(kept.stack[n_stack + 1], low, left, changed, child, base)


@device
def leave(again, scratch, d):
    """Write the sums of the leaves that the walkers of a node have reached."""
    for p in range(again.begin[d], again.begin[d + 1]):
        if again.reached[p] >= 0:
            leaf = np.int64(scratch.nodes[again.reached[p]] & U(LEAF_MASK))
            for c in range(again.sums.shape[1]):
                again.sums[p, c] = scratch.leaf_sums[leaf, c]
