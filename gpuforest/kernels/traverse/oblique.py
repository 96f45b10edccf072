"""Walks down the trees of oblique forests, compiled; see numba.py and numpy.py beside this file.

The block's codes become coordinates once. Every split but one by a set then compares a sum with a
threshold: a feature alone is a sum of one term, because coordinates ascend as codes do.
"""

from typing import Any, NamedTuple

import numpy as np

from gpuforest.combinations import WEIGHT_BITS, WEIGHT_ZERO
from gpuforest.kernels.decorators import device
from gpuforest.kernels.prefetch import prefetch
from gpuforest.kernels.shared.goes_left.numba import has_code
from gpuforest.kernels.shared.hashing.numba import LOW_32, U
from gpuforest.kernels.types import Bools, I32s, I32s2, U8s, U16s2, U32s, U64s
from gpuforest.nodes import (
    BIN_MASK,
    CHILD_MASK,
    CHILD_SHIFT,
    FEATURE_SHIFT,
    LEAF_WORD,
    MISSING_SHIFT,
    OBLIQUE_BIN,
)

LEAF, ONE, BIN_BITS, CHILD_BITS = U(LEAF_WORD), U(1), U(BIN_MASK), U(CHILD_MASK)
CHILD, MISSING, FEATURE = U(CHILD_SHIFT), U(MISSING_SHIFT), U(FEATURE_SHIFT)
OBLIQUE, HALF, TERM, WEIGHT = U(OBLIQUE_BIN), U(32), U(WEIGHT_BITS), U(15)
NOTHING = U(WEIGHT_ZERO)  # a term that adds nothing
HOLE = np.uint16(65_535)  # a missing value, in all columns
LOW_16 = U(0xFFFF)
GROUP = 256  # as in numba.py
SLOTS, FEW, MOVING = 31, 32, 3  # fewer top levels than in numba.py, because sums cost more


class Sums(NamedTuple):
    """What walks down an oblique forest need; all arrays are empty for other forests.

    terms, more : u64[M], the first two terms of each split, the first in the upper half, and the
        third and fourth; thresholds : i32[M]. See `walking_terms` in combinations.py
    coordinates : i32[F, B]; columns : u16[F, N], scratch for those of the rows
    words : the memory of the columns, four bytes at a time, because vectors gather no fewer
    sums, holes, threshold, listed, part : [GROUP], scratch of a group
    """

    terms: U64s
    more: U64s
    thresholds: I32s
    coordinates: I32s2
    columns: U16s2
    words: U32s
    sums: I32s
    holes: Bools
    threshold: I32s
    listed: U8s
    part: I32s


def new_sums(terms: tuple[Any, Any, Any], coordinates: Any, F: int, N: int) -> Sums:
    """The record, with scratch for N rows of F features; `terms` are the first three arrays."""
    words, group = np.empty(-(-F * N // 2), np.uint32), GROUP if F else 0
    columns = words.view(np.uint16)[: F * N].reshape(F, N)
    sums, threshold, part = (np.empty(group, np.int32) for _ in range(3))
    holes, listed = np.empty(group, np.bool_), np.empty(group, np.uint8)
    two, more, limits = terms
    scratch = words, sums, holes, threshold, listed, part
    return Sums(two, more, limits, coordinates, columns, *scratch)


@device
def fill_columns(codes, missing, sums):
    """Fill the columns u16[F, N] of coordinates from codes [F, N], and return whether values are
    missing."""
    (F, N), some, columns = codes.shape, False, sums.columns
    for f in range(F):
        own = sums.coordinates[f]
        for i in range(N):
            code = codes[U(f), U(i)]
            columns[U(f), U(i)] = HOLE if code == missing else np.uint16(own[U(code)])
            some |= code == missing
    return some


@device
def term_of(trees, at, i):
    """The i-th term of a combination, i > 1."""
    pair = trees.sets[U(trees.set_at[U(at)] + ((i + 1) >> 1))]
    return pair & LOW_32 if i & 1 else pair >> HALF


@device
def weight_of_term(term):
    """The weight in a term."""
    return np.int32(np.int32(term & WEIGHT) - np.int32(WEIGHT_ZERO))


@device
def add_term(term, column, first, n, own, is_first, some_missing):
    """Add a term to the sums of the group's rows, and note which have a missing value."""
    weight, sums, holes = weight_of_term(term), own.sums, own.holes
    for i in range(n):
        value = column[U(first + i)]
        before = np.int32(0) if is_first else sums[i]
        sums[i] = before + weight * np.int32(value)
    if some_missing:
        for i in range(n):
            before = False if is_first else holes[i]
            holes[i] = before | (column[U(first + i)] == HOLE)


@device
def top_sums(trees, root, own, first, n, group, some_missing):
    """As `top` in numba.py; a split by a set ends the top levels of its branch."""
    nodes, node, slot, sums, holes = trees.nodes, group.node, group.slot, own.sums, own.holes
    for i in range(n):
        slot[i] = 0
    node[0] = 0
    used, s = 1, 0
    while s < used and used + 2 <= SLOTS and n >= FEW:
        at = U(root + node[s])
        word = nodes[at]
        bin = word & BIN_BITS
        if word < LEAF and bin != BIN_BITS:
            child = np.int64((word >> CHILD) & CHILD_BITS)
            node[used], node[used + 1] = child, child + 1
            n_terms, pair, threshold = np.int64(1), own.terms[at], own.thresholds[at]
            if bin > OBLIQUE:
                n_terms = np.int64(bin - OBLIQUE)
            for t in range(n_terms):
                term = pair >> HALF if t == 0 else pair & LOW_32
                if t > 1:
                    term = term_of(trees, at, t)
                column = own.columns[np.int64(term >> TERM)]
                add_term(term, column, first, n, own, t == 0, some_missing)
            here, ahead = np.uint8(s), np.uint8(used - s)
            otherwise = np.uint8(ONE - ((word >> MISSING) & ONE))
            if some_missing:
                for i in range(n):
                    right = otherwise if holes[i] else np.uint8(sums[i] > threshold)
                    slot[i] += np.uint8(ahead + right) if slot[i] == here else np.uint8(0)
            else:
                for i in range(n):
                    right = np.uint8(sums[i] > threshold)
                    slot[i] += np.uint8(ahead + right) if slot[i] == here else np.uint8(0)
            used += 2
        s += 1


@device
def add_rest(trees, word, at, columns, r, total, is_hole, begin):
    """Add later terms of a combination: its sum, and whether a value is missing."""
    for i in range(begin, np.int64((word & BIN_BITS) - OBLIQUE)):
        term = term_of(trees, at, i)
        value = columns[term >> TERM, r]
        total += weight_of_term(term) * np.int32(value)
        is_hole |= value == HOLE
    return total, is_hole


@device
def set_goes_right(trees, word, at, columns, r):
    """Whether a row goes right at a split by a set: zero or one."""
    code = columns[word >> FEATURE, r]
    if code == HOLE:
        return ONE - ((word >> MISSING) & ONE)
    return ONE - U(has_code(trees.sets, trees.set_at[U(at)], np.int64(code)))


@device
def step_sum(trees, word, at, own, r):
    """The child that a row goes to from node `at`, packed in `word`.

    The first two terms are added without a branch, because it would be mispredicted.
    """
    bin, columns, pair = word & BIN_BITS, own.columns, own.terms[U(at)]
    child, term, other = (word >> CHILD) & CHILD_BITS, pair >> HALF, pair & LOW_32
    if bin == BIN_BITS:
        return np.int64(child + set_goes_right(trees, word, at, columns, r))
    value, second = columns[term >> TERM, r], columns[other >> TERM, r]
    total = weight_of_term(term) * np.int32(value) + weight_of_term(other) * np.int32(second)
    is_hole = (value == HOLE) | ((second == HOLE) & (other != NOTHING))
    if bin > OBLIQUE + U(2):
        total, is_hole = add_rest(trees, word, at, columns, r, total, is_hole, 2)
    right = ONE - ((word >> MISSING) & ONE) if is_hole else U(total > own.thresholds[U(at)])
    return np.int64(child + right)


@device
def value_at(words, term, n_rows, r):
    """The value in a term's column, in row r."""
    place = (term >> TERM) * n_rows + r
    return (U(words[place >> ONE]) >> ((place & ONE) << U(4))) & LOW_16


@device
def two_terms(trees, root, own, first, n, group, some_missing):
    """Add the first two terms for all rows of a group, in vectors: fill `group.word`, and of `own`
    the sums, holes and thresholds; returns how many rows are at a split."""
    nodes, words, at, moved = trees.nodes, own.words, group.at, 0
    n_rows = U(own.columns.shape[1]) & LOW_32
    for i in range(n):
        here = U(root + at[i])
        pair = own.terms[here]
        one, two = pair >> HALF, pair & LOW_32
        value = value_at(words, one, n_rows, U(first + i))
        other = value_at(words, two, n_rows, U(first + i))
        own.sums[i] = weight_of_term(one) * np.int32(value) + weight_of_term(two) * np.int32(other)
        own.threshold[i] = own.thresholds[here]
        group.word[i] = nodes[here]
        moved += nodes[here] < LEAF
    if some_missing:
        for i in range(n):
            pair = own.terms[U(root + at[i])]
            one, two = pair >> HALF, pair & LOW_32
            value = value_at(words, one, n_rows, U(first + i))
            other = value_at(words, two, n_rows, U(first + i))
            own.holes[i] = (value == U(HOLE)) | ((other == U(HOLE)) & (two != NOTHING))
    return moved


@device
def more_terms(root, own, first, n, group, some_missing):
    """Add the third and the fourth term for the n rows that are listed, as `two_terms`."""
    words, at, listed, part = own.words, group.at, own.listed, own.part
    n_rows = U(own.columns.shape[1]) & LOW_32
    for j in range(n):
        i = U(listed[j])
        pair = own.more[U(root + at[i])]
        one, two = pair >> HALF, pair & LOW_32
        value = value_at(words, one, n_rows, U(first) + i)
        other = value_at(words, two, n_rows, U(first) + i)
        part[j] = weight_of_term(one) * np.int32(value) + weight_of_term(two) * np.int32(other)
    for j in range(n):
        own.sums[U(listed[j])] += part[j]
    if some_missing:
        for j in range(n):
            i = U(listed[j])
            pair = own.more[U(root + at[i])]
            one, two = pair >> HALF, pair & LOW_32
            value = value_at(words, one, n_rows, U(first) + i)
            other = value_at(words, two, n_rows, U(first) + i)
            is_hole = (value == U(HOLE)) & (one != NOTHING)
            own.holes[i] |= is_hole | ((other == U(HOLE)) & (two != NOTHING))


@device
def listed_above(limit, n, group, own):
    """List the rows at splits whose bins are above a limit, and return how many there are."""
    word, listed, kept = group.word, own.listed, 0
    for i in range(n):
        listed[kept] = i
        kept += (word[i] < LEAF) & (word[i] & BIN_BITS > limit)
    return kept


@device
def finish_sums(trees, root, own, first, n, group, some_missing):
    """What `two_terms` leaves out: combinations of more than two features; and sets, as a sum of 0
    or 1 that is above 0 on the right."""
    at, word, listed = group.at, group.word, own.listed
    kept = listed_above(OBLIQUE + U(2), n, group, own)
    more_terms(root, own, first, kept, group, some_missing)
    for j in range(listed_above(OBLIQUE + U(4), n, group, own)):
        i = U(listed[j])
        here, r = root + at[i], U(first) + i
        if word[i] & BIN_BITS == BIN_BITS:
            own.sums[i] = set_goes_right(trees, word[i], here, own.columns, r)
            own.threshold[i], own.holes[i] = 0, False
        else:
            own.sums[i], own.holes[i] = add_rest(
                trees, word[i], here, own.columns, r, own.sums[i], own.holes[i], 4
            )


@device
def step_all_sums(trees, root, own, first, n, group, some_missing):
    """Move all rows of a group that are not at a leaf one step down, and return how many moved."""
    at, word = group.at, group.word
    moved = two_terms(trees, root, own, first, n, group, some_missing)
    finish_sums(trees, root, own, first, n, group, some_missing)
    for i in range(n):
        w = word[i]
        right = U(own.sums[i] > own.threshold[i])
        if some_missing:
            right = ONE - ((w >> MISSING) & ONE) if own.holes[i] else right
        child = np.int32(((w >> CHILD) & CHILD_BITS) + right)
        at[i] = child if w < LEAF else at[i]
    return moved


@device
def walk_sums(trees, root, own, first, n, group, moving, some_missing):
    """As `walk` in numba.py."""
    nodes, row, word, at, moved = trees.nodes, group.row, group.word, group.at, moving
    top_sums(trees, root, own, first, n, group, some_missing)
    for i in range(n):
        at[i] = group.node[group.slot[i]]
    while n >= FEW and MOVING * moved > n:
        moved = step_all_sums(trees, root, own, first, n, group, some_missing)
        moving = moving if moved else 0
    while moving > 0:
        kept = 0
        for i in range(moving):
            r = row[i]
            w = nodes[U(root + at[r])]
            word[kept], row[kept] = w, r
            kept += w < LEAF
        moving = kept
        for i in range(moving):
            r = U(row[i])
            at[r] = step_sum(trees, word[i], root + at[r], own, U(first) + r)
            prefetch(nodes, root + at[r])
            prefetch(own.terms, root + at[r])


NO_TERMS = np.zeros(0, np.uint64), np.zeros(0, np.uint64), np.zeros(0, np.int32)
NO_SUMS = new_sums(NO_TERMS, np.zeros((0, 0), np.int32), 0, 0)
