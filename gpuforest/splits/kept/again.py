"""Nodes whose rows have changed grow again, where other rows pass.

Two kinds of rows walk down as nodes grow: rows that have changed, and rows whose leaves are wanted.
A node grows no further where none of the second kind passes. Nor does it where the split above is
that of the tree as it was, and no changed row comes this way: all below is as it was, too.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from gpuforest.compiler.decorators import device
from gpuforest.compiler.types import I64, Codes2
from gpuforest.core.nodes import CHILD_MASK, LEAF_MASK, SET_BIN
from gpuforest.kernels.grow_subtrees import rows
from gpuforest.kernels.shared.numba import TO_CHILD, TO_FEATURE, U, goes_left

Array = Any

LOW, HIGH, N_CHANGED, OLD, BASE = range(5)  # of an open node: its walkers, and what it was before
CHILD = U(CHILD_MASK)
BUT_CHILD = ~(CHILD << TO_CHILD)


class Again(NamedTuple):
    """The trees as they were, and the rows that walk down D nodes which grow again."""

    nodes: Annotated[Array, "u64[M]"]
    set_at: Annotated[Array, "i64[M]"]  # where a set begins in `sets`
    sets: Annotated[Array, "u64[S]"]
    old: Annotated[Array, "i64[D]"]  # the place of each node in `nodes`
    base: Annotated[Array, "i64[D]"]  # and that of the root of its tree
    begin: Annotated[Array, "i64[E]"]  # walkers of node d are begin[d] .. begin[d + 1] - 1
    codes: Codes2  # [n, F]
    row: Annotated[Array, "i32[W]"]  # of `codes`, of each walker
    n_changed: I64  # rows of `codes` that have changed, which are the first
    order: Annotated[Array, "i32[W]"]  # walkers in the order of the nodes; scratch
    spare: Annotated[Array, "i32[W]"]
    reached: Annotated[Array, "i64[W]"]  # the node that each reaches; -1: it is as it was
    sums: Annotated[Array, "i64[W, C]"]  # of the leaves that they reach


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
def visit(kept, again, number, n_stack):
    """Whether a node grows no further; the stack has its walkers."""
    top = kept.stack[n_stack]
    low, high, is_old = top[LOW], top[HIGH], top[OLD] >= 0 and top[N_CHANGED] == 0
    for i in range(low, high):
        again.reached[again.order[i]] = -1 if is_old else number
    for j in range(len(kept.now)):
        kept.now[j] = top[j]
    return is_old or high - low == top[N_CHANGED]


@device
def is_same(data, scratch, again, old, number, sets):
    """Whether the split of a node is that of an old one."""
    word = again.nodes[old]
    same = (word ^ scratch.nodes[number]) & BUT_CHILD == 0
    if same and np.int64(word & U(SET_BIN)) == SET_BIN:
        for w in range((np.int64(data.n_bins[np.int64(word >> TO_FEATURE)]) + 63) >> 6):
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
    if old >= 0 and is_same(growth.data, growth.scratch, again, old, number, sets):
        child = base + np.int64(again.nodes[old] >> TO_CHILD & CHILD)
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
