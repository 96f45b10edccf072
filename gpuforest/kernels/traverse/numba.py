"""Traverse, compiled. The specification is numpy.py in this folder.

Rows walk down a tree in groups, in three phases. In the top levels, each node is compared with the
codes of the whole group, in vectors and without branches; a set that takes more than four words
ends these levels. Below them, while many rows are not at a leaf, all take a step in vectors. The
last rows take a step in turn. In both, each node is prefetched a whole round before it is read, so
few steps wait for memory. A prediction of few rows takes them one after another instead, and each
walks down many trees in turn.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from gpuforest.compiler.decorators import device, kernel
from gpuforest.compiler.intrinsics import prefetch
from gpuforest.compiler.types import Bools2, Codes2, F64s, F64s2, I32s, I64s, I64s2, U32s, U64s
from gpuforest.core import nodes as packed
from gpuforest.core.frontier import Trees
from gpuforest.kernels.shared.numba import LOW_32, U

LEAF, LEAF_BITS, ONE = U(packed.LEAF_WORD), U(packed.LEAF_MASK), U(1)
WORD = np.uint32  # of vectors with a code each
BIN_BITS, CHILD_BITS = U(packed.BIN_MASK), U(packed.CHILD_MASK)
CHILD, MISSING, FEATURE = U(packed.CHILD_SHIFT), U(packed.MISSING_SHIFT), U(packed.FEATURE_SHIFT)
GROUP = 256  # rows that walk a tree together
MOST_WORDS = 4  # of a set in the top levels
SLOTS = 63  # the most nodes of the top levels; with 127 or 255 predictions took longer
MOVING = 3  # all rows of a group take a step while more than a third of them moves
FEW = 32  # fewer rows than this are too few for vectors


class Group(NamedTuple):
    """Scratch of the rows that walk down a tree together."""

    node: Annotated[Any, "i32[S]"]  # the nodes of the top levels
    slot: Annotated[Any, "u8[G]"]  # the index in `node` of each row's node
    row: Annotated[Any, "u8[G]"]  # the rows that have not reached a leaf
    word: Annotated[Any, "u64[G]"]  # the nodes of these rows
    at: Annotated[Any, "i32[G]"]  # the number of each row's node in the tree
    added: Annotated[Any, "u8[G]"]  # the rows whose leaves are added


def new_group() -> Group:
    """Scratch; not by `new_arrays`, whose time a prediction of one row would notice."""
    of_rows = (np.uint8, np.uint8, np.uint64, np.int32, np.uint8)
    return Group(np.empty(SLOTS, np.int32), *[np.empty(GROUP, dtype) for dtype in of_rows])


@device
def side_of(sets, begin, code, by_set, right):
    """1 if the set at a word of `sets` lacks the code, else 0, without a branch; `right` if not
    `by_set`. Half of branches would be mispredicted."""
    mask = U(0) - U(by_set)
    left = sets[(U(begin) + (code >> U(6))) & mask] >> (code & U(63)) & ONE
    return (ONE - left) & mask | right & ~mask


@device
def step(word, code, missing, at, set_at, sets):
    """The child of node `at`, packed in `word`, for a code: goes_left without branches."""
    right = U(code > np.int64(word & BIN_BITS))
    if sets is not None:
        by_set = (word & BIN_BITS == BIN_BITS) & (code != missing)
        right = side_of(sets, set_at[U(at)], U(code), by_set, right)
    if code == missing:
        right = ONE - ((word >> MISSING) & ONE)
    return np.int64(((word >> CHILD) & CHILD_BITS) + right)


@device
def half_of(sets, begin, h):
    """32 bits of the set that begins at a word of `sets`: its codes from 32 h on, if it has any."""
    at = begin + U(h >> 1)
    return WORD((sets[at if at < U(len(sets)) else begin] >> U(32 * (h & 1))) & LOW_32)


@device
def move(slot, i, here, ahead, half, code, hole, stays):
    """Move row i to its side's next slot, if it is `here`; half : 32 bits of the set; hole : the
    missing code; stays : 1 if it goes left"""
    left = WORD(WORD(half >> WORD(code & WORD(31))) & WORD(1))  # a vector of 32 bits each
    left = stays if code == hole else left
    slot[i] += np.uint8(ahead + np.uint8(left ^ WORD(1))) if slot[i] == here else np.uint8(0)


@device
def step_by_set(sets, begin, n_words, word, missing, column, n, slot, here, ahead):
    """Move the rows in slot `here`, whose node is split by the set of n_words <= 4 words."""
    hole, stays = WORD(missing), WORD((word >> MISSING) & ONE)
    a, b = half_of(sets, begin, 0), half_of(sets, begin, 1)
    if n_words == 1:
        for i in range(n):
            code = WORD(column[i])
            move(slot, i, here, ahead, b if code & WORD(32) else a, code, hole, stays)
        return
    c, d, e = half_of(sets, begin, 2), half_of(sets, begin, 3), half_of(sets, begin, 4)
    f, g, h = half_of(sets, begin, 5), half_of(sets, begin, 6), half_of(sets, begin, 7)
    for i in range(n):
        code = WORD(column[i])
        odd = code & WORD(32)
        low, high = b if odd else a, f if odd else e
        if code & WORD(64):
            low, high = d if odd else c, h if odd else g
        half = high if code & WORD(128) else low
        move(slot, i, here, ahead, half, code, hole, stays)


@device
def top(trees, sets, root, codes, first, n, group):
    """Walk a group through the top levels: fill each row's `slot`, and each slot's `node`."""
    nodes, missing, node, slot = trees.nodes, trees.missing, group.node, group.slot
    for i in range(n):
        slot[i] = 0
    node[0] = 0
    used, s = 1, 0
    while s < used and used + 2 <= SLOTS and n >= FEW:
        word = nodes[U(root + node[s])]
        begin, n_words = 0, 0
        if sets is not None and word < LEAF and word & BIN_BITS == BIN_BITS:
            at = root + node[s]  # a split, so its children follow
            begin, n_words = trees.set_at[U(at)], trees.set_at[U(at + 1)] - trees.set_at[U(at)]
        if word < LEAF and n_words <= MOST_WORDS:
            child = np.int64((word >> CHILD) & CHILD_BITS)
            node[used], node[used + 1] = child, child + 1
            # adding `shift` makes a missing value the lowest; other codes keep their order
            shift = codes.dtype.type((word >> MISSING & ONE) * U(-missing))
            bin = codes.dtype.type(U(shift) + (word & BIN_BITS))
            here, ahead = np.uint8(s), np.uint8(used - s)
            column = codes[np.int64(word >> FEATURE), first : first + n]
            if sets is not None and n_words:
                step_by_set(sets, U(begin), n_words, word, missing, column, n, slot, here, ahead)
                used += 2
                s += 1
                continue
            for i in range(n):  # a sum stays in bytes; a choice between two would be wider
                right = np.uint8(codes.dtype.type(column[i] + shift) > bin)
                slot[i] += np.uint8(ahead + right) if slot[i] == here else np.uint8(0)
            used += 2
        s += 1


@device
def step_all(trees, sets, root, codes, words, first, n, at):
    """Move all rows of a group that are not at a leaf a step down; returns how many moved.

    It is `step` without branches and 64-bit products, so that it is vectorised.
    words : the memory of the codes, four bytes at a time, because vectors gather no fewer"""
    nodes, missing, moved = trees.nodes, U(trees.missing), 0
    n_rows, bits = U(codes.shape[1]) & LOW_32, U(8 * codes.itemsize)
    each = U(32) // bits  # codes of a word
    for i in range(n):
        word = nodes[U(root + at[i])]
        is_split = word < LEAF
        feature = word >> FEATURE if is_split else U(0)
        place = feature * n_rows + U(first + i)
        code = U(words[place // each]) >> (place % each * bits) & ((ONE << bits) - ONE)
        right = U(code > word & BIN_BITS)
        if sets is not None:
            by_set = is_split & (word & BIN_BITS == BIN_BITS) & (code != missing)
            right = side_of(sets, trees.set_at[U(root + at[i])], code, by_set, right)
        right = ONE - ((word >> MISSING) & ONE) if code == missing else right
        child = np.int32(((word >> CHILD) & CHILD_BITS) + right)
        at[i] = child if is_split else at[i]
        moved += is_split
    for i in range(n):
        prefetch(nodes, root + at[i])
        if sets is not None:
            prefetch(trees.set_at, root + at[i])
    return moved


@device
def walk(trees, root, codes, memory, first, n, group, moving):
    """Write the leaves of `moving` rows of first .. first + n - 1 in one tree to `group.at`.

    memory : the codes in words, and the sets; None if no node has one
    moving : number of rows in `group.row`, which is overwritten"""
    nodes, row, word, at, moved = trees.nodes, group.row, group.word, group.at, moving
    words, sets = memory
    top(trees, sets, root, codes, first, n, group)
    for i in range(n):
        at[i] = group.node[group.slot[i]]
    while n >= FEW and MOVING * moved > n:
        moved = step_all(trees, sets, root, codes, words, first, n, at)
        moving = moving if moved else 0
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
            at[r] = step(word[i], code, trees.missing, root + at[r], trees.set_at, sets)
            prefetch(nodes, root + at[r])
            if sets is not None:
                prefetch(trees.set_at, root + at[r])


@device
def add_all(values, word, n, first, total):
    """Add the values of n leaves to the totals [K, N] of their rows."""
    K = U(len(total))
    for v in range(K):
        for i in range(n):
            total[U(v), U(first + i)] += values[word[i] * K + U(v)]


@device
def add_listed(values, word, added, n, first, total):
    """As add_all, for listed rows."""
    K = U(len(total))
    for v in range(K):
        for i in range(n):
            total[U(v), U(first) + U(added[i])] += values[word[i] * K + U(v)]


@device
def add_some(values, begin, column, word, added, n, first, total):
    """As add_listed, for totals [N, K] and a table that holds only the values that are not zero."""
    for i in range(n):
        for ahead in range(3):  # most leaves' values
            prefetch(column, begin[word[i]] + 16 * ahead)
            prefetch(values, begin[word[i]] + 8 * ahead)
    for i in range(n):
        r = U(first) + U(added[i])
        for v in range(begin[word[i]], begin[word[i] + ONE]):
            total[r, U(column[U(v)])] += values[U(v)]


@device
def walk_trees(trees, values, codes, skip, total, begin, column, out, group, walk, memory):
    """The loop of `accumulate`: `walk` is the function of that name, and takes `memory`."""
    offsets, added, row, word, at = trees.offsets, group.added, group.row, group.word, group.at
    N = codes.shape[1]
    for t in range(len(offsets) - 1):
        root = offsets[t]
        for first in range(0, N, GROUP):
            # 1. the leaves of the rows that are not left out
            n, n_added = min(GROUP, N - first), 0
            for i in range(n):
                row[n_added] = added[n_added] = i
                n_added += not (len(skip) and skip[t, first + i])
            walk(trees, root, codes, memory, first, n, group, n_added)
            if len(out):
                for i in range(n):
                    out[first + i, t] = at[i]
                continue
            # 2. their values
            if n_added == n and not len(begin):
                for i in range(n):
                    word[i] = trees.nodes[U(root + at[i])] & LEAF_BITS
                add_all(values, word, n, first, total)
                continue
            for i in range(n_added):
                word[i] = trees.nodes[U(root + at[added[i]])] & LEAF_BITS
                if len(begin):
                    prefetch(begin, word[i])
            if len(begin):
                add_some(values, begin, column, word, added, n_added, first, total)
            else:
                add_listed(values, word, added, n_added, first, total)


@device
def walk_rows(trees, values, codes, skip, total, begin, column, group, sets):
    """As `walk_trees`, for few rows: one after another walks down many trees at once."""
    nodes, offsets, row, word, at = trees.nodes, trees.offsets, group.row, group.word, group.at
    T, K = len(offsets) - 1, U(len(total))
    for r in range(codes.shape[1]):
        for first in range(0, T, GROUP):
            n = min(GROUP, T - first)
            moving = n
            for j in range(n):
                row[j], at[j] = j, 0
            while moving > 0:
                # 1. drop the trees whose leaf is reached
                kept = 0
                for i in range(moving):
                    j = row[i]
                    w = nodes[U(offsets[first + j] + at[j])]
                    word[kept], row[kept] = w, j
                    kept += w < LEAF
                moving = kept
                # 2. one step down
                for i in range(moving):
                    root, j = offsets[first + row[i]], row[i]
                    code = np.int64(codes[word[i] >> FEATURE, r])
                    at[j] = step(word[i], code, trees.missing, root + at[j], trees.set_at, sets)
                    prefetch(nodes, root + at[j])
                    if sets is not None:
                        prefetch(trees.set_at, root + at[j])
            # 3. the values of the leaves
            for j in range(n):
                word[j] = nodes[U(offsets[first + j] + at[j])] & LEAF_BITS
                if len(begin):
                    prefetch(begin, word[j])
                else:
                    prefetch(values, word[j] * K)
            for j in range(n):
                if len(skip) and skip[first + j, r]:
                    continue
                if len(begin):
                    for v in range(begin[word[j]], begin[word[j] + ONE]):
                        total[r, U(column[U(v)])] += values[U(v)]
                else:
                    for v in range(K):
                        total[v, r] += values[word[j] * K + U(v)]


@kernel
def accumulate(
    trees: Trees, values: F64s, codes: Codes2, skip: Bools2, total: F64s2, begin: I64s,
    column: I32s, out: I64s2, group: Group, words: U32s, sets: U64s | None,
):  # fmt: skip
    """Add the leaves' values to `total` f64[n_values, N], or f64[N, n_values] if they are sparse;
    or write the leaves to `out` i64[N, T], if it has elements.

    codes : u8 or u16 [F, N]; words : their memory in words
    skip : bool[T, N], may be empty
    values : f64[V * n_values], leaf after leaf. If `begin` i64[V + 1] is not empty, it holds only
        values that are not zero: those of leaf v, with their `column`, at begin[v]:begin[v + 1]
    sets : those of the trees; None if no node has one
    """
    if codes.shape[1] < FEW and not len(out):
        walk_rows(trees, values, codes, skip, total, begin, column, group, sets)
        return
    memory = words, sets
    walk_trees(trees, values, codes, skip, total, begin, column, out, group, walk, memory)
