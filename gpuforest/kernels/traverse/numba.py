"""Traverse, compiled. The specification is numpy.py beside this file.

Rows go down a tree in groups, in two phases. In the top levels each node is held against
the codes of the whole group: vector work without a branch. Below them rows take single
steps, all rows one after another, and each node is asked for a whole round before it is
read, so that no step waits for memory.
"""

import numpy as np

from gpuforest.kernels.best_split.sets import has_code
from gpuforest.kernels.compile import device, kernel
from gpuforest.kernels.hashing.numba import U
from gpuforest.kernels.prefetch import prefetch
from gpuforest.nodes import (
    BIN_MASK,
    CHILD_MASK,
    CHILD_SHIFT,
    FEATURE_SHIFT,
    LEAF_MASK,
    LEAF_WORD,
    MISSING_SHIFT,
)

LEAF, LEAF_BITS, ONE = U(LEAF_WORD), U(LEAF_MASK), U(1)
BIN_BITS, CHILD_BITS = U(BIN_MASK), U(CHILD_MASK)
CHILD, MISSING, FEATURE = U(CHILD_SHIFT), U(MISSING_SHIFT), U(FEATURE_SHIFT)
GROUP = 256  # rows that walk a tree together
SLOTS = 127  # nodes of the top levels, at the most: their numbers are bytes
FEW = 32  # fewer rows than this are no vector work


@device
def step(word, code, missing, at, set_at, sets):
    """The child that a row with this code in the feature of the word, the node `at`, goes to."""
    right = U(code > np.int64(word & BIN_BITS))
    if sets is not None and word & BIN_BITS == BIN_BITS and code != missing:
        right = ONE - U(has_code(sets, set_at[U(at)], code))
    if code == missing:
        right = ONE - ((word >> MISSING) & ONE)
    return np.int64(((word >> CHILD) & CHILD_BITS) + right)


@device
def top(nodes, root, codes, first, n, missing, set_at, sets, node, slot):
    """The group's rows through the top levels: the `slot` u8[n] of each, and the `node`
    i32[SLOTS] of each slot."""
    for i in range(n):
        slot[i] = 0
    node[0] = 0
    used, s = 1, 0
    while s < used and used + 2 <= SLOTS and n >= FEW:
        word = nodes[U(root + node[s])]
        if word < LEAF:
            child = np.int64((word >> CHILD) & CHILD_BITS)
            node[used], node[used + 1] = child, child + 1
            # all but a missing value keep their order when `shift` is added, which makes
            # a missing one the first
            shift = codes.dtype.type((word >> MISSING & ONE) * U(-missing))
            bin = codes.dtype.type(U(shift) + (word & BIN_BITS))
            here, ahead = np.uint8(s), np.uint8(used - s)
            column = codes[np.int64(word >> FEATURE), first : first + n]
            if sets is not None and word & BIN_BITS == BIN_BITS:
                for i in range(n):
                    if slot[i] == here:
                        code, at = np.int64(column[i]), root + node[s]
                        right = step(word, code, missing, at, set_at, sets) - child
                        slot[i] += np.uint8(ahead + np.uint8(right))
                used += 2
                s += 1
                continue
            for i in range(n):  # a sum of bytes: a choice between two becomes wider ones
                right = np.uint8(codes.dtype.type(column[i] + shift) > bin)
                slot[i] += np.uint8(ahead + right) if slot[i] == here else np.uint8(0)
            used += 2
        s += 1


@device
def walk(
    nodes, root, codes, first, n, missing, set_at, sets, node, slot, row, moving, word, at
):  # fmt: skip
    """The leaves of some of the rows first .. first + n - 1 in one tree, to `at` i32[n].

    row : u8[n], of which the first `moving` are those rows; it is overwritten
    """
    top(nodes, root, codes, first, n, missing, set_at, sets, node, slot)
    for i in range(n):
        at[i] = node[slot[i]]
    while moving > 0:
        # 1. drop the rows that have arrived
        kept = 0
        for i in range(moving):
            r = row[i]
            w = nodes[U(root + at[r])]
            word[kept], row[kept] = w, r
            kept += w < LEAF
        moving = kept
        # 2. one step down: children are adjacent
        for i in range(moving):
            r = U(row[i])
            code = np.int64(codes[word[i] >> FEATURE, U(first) + r])
            at[r] = step(word[i], code, missing, root + at[r], set_at, sets)
            prefetch(nodes, root + at[r])


@kernel
def apply(nodes, offsets, codes, missing, set_at, sets, out):
    """`codes` [F, N], `out` i64[N, T]; set_at and sets None: no node has a set."""
    node, slot = np.empty(SLOTS, np.int32), np.empty(GROUP, np.uint8)
    row, word, at = np.empty(GROUP, np.uint8), np.empty(GROUP, np.uint64), np.empty(GROUP, np.int32)
    N = codes.shape[1]
    for t in range(len(offsets) - 1):
        for first in range(0, N, GROUP):
            n = min(GROUP, N - first)
            for i in range(n):
                row[i] = i
            walk(
                nodes, offsets[t], codes, first, n, missing, set_at, sets, node, slot, row, n,
                word, at,
            )  # fmt: skip
            for i in range(n):
                out[first + i, t] = at[i]


@kernel
def accumulate(
    nodes, offsets, values, codes, missing, set_at, sets, skip, total, begin, column
):  # fmt: skip
    """`codes` [F, N]; `skip` bool[T, N] may be empty; the sums are added to `total`
    f64[N, n_values].

    values : f64[V * n_values], leaf after leaf; where `begin` i64[V + 1] is not empty, only
        those of leaf v that are not zero, with their `column`, at begin[v]:begin[v + 1]
    """
    node, slot = np.empty(SLOTS, np.int32), np.empty(GROUP, np.uint8)
    row, word, at = np.empty(GROUP, np.uint8), np.empty(GROUP, np.uint64), np.empty(GROUP, np.int32)
    added = np.empty(GROUP, np.uint8)
    N, K = total.shape
    for t in range(len(offsets) - 1):
        root = offsets[t]
        for first in range(0, N, GROUP):
            # 1. the leaves of the rows that are not left out
            n, n_added = min(GROUP, N - first), 0
            for i in range(n):
                row[n_added] = added[n_added] = i
                n_added += not (len(skip) and skip[t, first + i])
            walk(
                nodes, root, codes, first, n, missing, set_at, sets, node, slot, row, n_added,
                word, at,
            )  # fmt: skip
            for i in range(n_added):
                word[i] = nodes[U(root + at[added[i]])] & LEAF_BITS
                prefetch(begin, word[i]) if len(begin) else prefetch(values, word[i] * U(K))
            # 2. their values
            if len(begin):
                for i in range(n_added):
                    for ahead in range(3):  # most leaves' values
                        prefetch(column, begin[word[i]] + 16 * ahead)
                        prefetch(values, begin[word[i]] + 8 * ahead)
                for i in range(n_added):
                    r = U(first) + U(added[i])
                    for v in range(begin[word[i]], begin[word[i] + ONE]):
                        total[r, U(column[U(v)])] += values[U(v)]
            else:
                for v in range(K):
                    for i in range(n_added):
                        total[U(first) + U(added[i]), v] += values[word[i] * U(K) + U(v)]
