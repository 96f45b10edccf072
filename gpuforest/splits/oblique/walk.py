"""Walks down the trees of oblique forests, compiled; see numba.py and numpy.py beside this file.

The block's codes become coordinates once. Every split but one by a set then compares a sum with a
threshold: a feature alone is a sum of one term, because coordinates ascend as codes do. Nodes are
read from records of two words, see `walking_records` in terms.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from gpuforest.compiler.decorators import device
from gpuforest.compiler.intrinsics import prefetch
from gpuforest.compiler.types import U16s, U32s, new_arrays
from gpuforest.engine.nodes import CHILD_MASK
from gpuforest.kernels.shared.numba import LOW_32, U, has_code
from gpuforest.splits.oblique.terms import (
    BY_SET,
    COUNT_AT,
    FEATURE_BITS,
    FEATURES_AT,
    MISSING_AT,
    TERMS_IN_WORD,
    THRESHOLD_AT,
    WEIGHT_BITS,
    WEIGHT_ZERO,
)

if TYPE_CHECKING:
    from gpuforest.engine.forest import Forest

ONE, CHILD_BITS, LOW_4, HALF = U(1), U(CHILD_MASK), U(15), U(32)
MISSING, COUNT, THRESHOLD, WEIGHT = U(MISSING_AT), U(COUNT_AT), U(THRESHOLD_AT), U(WEIGHT_BITS)
IN_WORD, SET, ZERO = U(TERMS_IN_WORD), U(BY_SET), np.int64(WEIGHT_ZERO)
HOLE = np.uint16(65_535)  # a missing value, in all columns
GROUP, GROUP_BITS = 256, 8  # as in numba.py
PLACES = U((2**FEATURE_BITS - 1) << GROUP_BITS)
# fewer rows take steps in vectors than in numba.py, because sums cost more
SLOTS, FEW, MOVING = 63, 32, 2


class Sums(NamedTuple):
    """What walks down an oblique forest need; all arrays are empty for other forests."""

    records: Annotated[Any, "u64[M]"]  # with the next one, see `walking_records`
    more: Annotated[Any, "u64[L]"]
    coordinates: Annotated[Any, "i32[F, B]"]
    # scratch for the coordinates of the rows, group after group, each [F, GROUP], so that a
    # feature's column begins at the same place of every group
    columns: U16s
    words: U32s  # their memory, four bytes at a time, because vectors gather no fewer
    sums: Annotated[Any, "i32[G]"]  # scratch of a group
    holes: Annotated[Any, "bool[G]"]
    limit: Annotated[Any, "i32[G]"]
    low: Annotated[Any, "i32[G]"]
    counts: Annotated[Any, "u8[G]"]
    listed: Annotated[Any, "u8[G]"]


def sums_of(forest: Forest, codes: Any) -> Sums | None:
    """What walks down the forest need for codes [F, N] if it has combinations; None if it has no
    sets either."""
    if forest.oblique:
        return new_sums(forest.walking, forest.edges.coordinates, *codes.shape)
    return NO_SUMS if len(forest.sets) else None


def new_sums(walking: tuple[Any, Any], coordinates: Any, F: int, N: int) -> Sums:
    """The record, with scratch for N rows of F features; `walking` are the first two arrays."""
    words = np.empty(F * -(-N // GROUP) * GROUP // 2, np.uint32)
    scratch = new_arrays(Sums, np.empty, G=GROUP if F else 0)
    return Sums(*walking, coordinates, words.view(np.uint16), words, **scratch)


@device
def fill_columns(codes, missing, sums):
    """Fill the columns of coordinates from codes [F, N], and return whether values are missing."""
    (F, N), some, columns = codes.shape, False, sums.columns
    for f in range(F):
        own = sums.coordinates[f]
        for first in range(0, N, GROUP):
            begin = first * F + f * GROUP
            for i in range(min(GROUP, N - first)):
                code = codes[U(f), U(first + i)]
                columns[U(begin + i)] = HOLE if code == missing else np.uint16(own[U(code)])
                some |= code == missing
    return some


@device
def place_of(pair, t):
    """Where the column of term t < TERMS_IN_WORD begins in a group."""
    return (pair >> U(FEATURES_AT + FEATURE_BITS * t - GROUP_BITS)) & PLACES


@device
def weight_of(pair, t):
    """The weight of term t < TERMS_IN_WORD."""
    return np.int32(np.int64((pair >> U(WEIGHT_BITS * t)) & LOW_4) - ZERO)


@device
def term_of(trees, at, t):
    """Any term of a combination: where its column begins in a group, and its weight."""
    pair = trees.sets[U(trees.set_at[U(at)]) + ((t + ONE) >> ONE)]
    term = pair & LOW_32 if t & ONE else pair >> HALF
    return (term >> WEIGHT) << U(GROUP_BITS), np.int32(np.int64(term & LOW_4) - ZERO)


@device
def limit_of(word):
    """The threshold in a record's first word."""
    return np.int32(np.int64(word) >> np.int64(THRESHOLD))


@device
def three_sum(pair, own, place, some_missing):
    """The sum of a row's three terms in a word, and whether a value is missing."""
    columns, is_hole = own.columns, False
    first = columns[place_of(pair, 0) + place]
    second = columns[place_of(pair, 1) + place]
    third = columns[place_of(pair, 2) + place]
    total = np.int32(first) * weight_of(pair, 0) + np.int32(second) * weight_of(pair, 1)
    total += np.int32(third) * weight_of(pair, 2)
    if some_missing:
        is_hole = (first == HOLE) | (second == HOLE) | (third == HOLE)
    return total, is_hole


@device
def more_terms(trees, at, own, place, total, is_hole, count, some_missing):
    """Add the terms after the third to a row's sum; returns it, and whether a value is missing."""
    more, torn = three_sum(own.more[U(at)], own, place, some_missing)
    total, is_hole = total + more, is_hole | torn
    for t in range(U(2) * IN_WORD, count):
        begin, weight = term_of(trees, at, t)
        value = own.columns[begin + place]
        total += np.int32(value) * weight
        is_hole |= value == HOLE
    return total, is_hole


@device
def step_sum(trees, word, at, own, place, some_missing):
    """The child that a row goes to from node `at`; `word` is the first word of its record.

    place : where the row is in the first column of its group
    """
    pair, count = own.records[(U(at) << ONE) + ONE], (word >> COUNT) & LOW_4
    total, is_hole = three_sum(pair, own, place, some_missing)
    is_right = total > np.int64(limit_of(word))
    if count > IN_WORD:
        if count == SET:
            first = own.columns[place_of(pair, 0) + place]
            is_right = not has_code(trees.sets, trees.set_at[U(at)], np.int64(first))
        else:
            total, is_hole = more_terms(trees, at, own, place, total, is_hole, count, some_missing)
            is_right = total > np.int64(limit_of(word))
    right = ONE - ((word >> MISSING) & ONE) if is_hole else U(is_right)
    return np.int64((word & CHILD_BITS) + right)


@device
def add_terms(trees, at, own, place, n, count, some_missing):
    """Fill the sums of a group's rows at node `at`, which has two features or more, and the holes
    if values are missing."""
    sums, holes, columns = own.sums, own.holes, own.columns
    for t in range(U(0), count):
        begin, weight = term_of(trees, at, t)
        column = columns[np.int64(place + begin) :]
        for i in range(n):
            before = np.int32(0) if t == U(0) else sums[i]
            sums[i] = before + np.int32(column[i]) * weight
        if some_missing:
            for i in range(n):
                before = False if t == U(0) else holes[i]
                holes[i] = before | (column[i] == HOLE)


@device
def top_sums(trees, root, own, first, n, group, some_missing):
    """As `top` in numba.py."""
    node, slot, sums, holes = group.node, group.slot, own.sums, own.holes
    place = U(first) * U(len(own.coordinates))
    for i in range(n):
        slot[i] = 0
    node[0] = 0
    used, s = 1, 0
    while s < used and used + 2 <= SLOTS and n >= FEW:
        at = U(root + node[s])
        word = own.records[at << ONE]
        count, missing_left = (word >> COUNT) & LOW_4, (word >> MISSING) & ONE
        if count:
            child, threshold = np.int64(word & CHILD_BITS), limit_of(word)
            node[used], node[used + 1] = child, child + 1
            here, ahead = np.uint8(s), np.uint8(used - s)
            if count == ONE:  # as codes in numba.py
                column = own.columns[
                    np.int64(place + place_of(own.records[(at << ONE) + ONE], 0)) :
                ]
                shift, bin = np.uint16(missing_left), np.uint16(threshold + np.int64(missing_left))
                for i in range(n):
                    right = np.uint8(np.uint16(column[i] + shift) > bin)
                    slot[i] += np.uint8(ahead + right) if slot[i] == here else np.uint8(0)
            elif count == SET:
                for i in range(n):
                    if slot[i] == here:
                        right = step_sum(trees, word, at, own, place + U(i), some_missing) - child
                        slot[i] += np.uint8(ahead + np.uint8(right))
            else:
                add_terms(trees, at, own, place, n, count, some_missing)
                otherwise = np.uint8(ONE - missing_left)
                for i in range(n):
                    right = np.uint8(sums[i] > threshold)
                    if some_missing:
                        right = otherwise if holes[i] else right
                    slot[i] += np.uint8(ahead + right) if slot[i] == here else np.uint8(0)
            used += 2
        s += 1


@device
def value_at(words, place, i):
    """The value of row i in the column that begins at `place`; a word holds two rows."""
    word = words[(place >> ONE) + (i >> ONE)]
    return np.int32((word >> np.uint32((i & ONE) << U(4))) & np.uint32(HOLE))


@device
def later_step(trees, at, own, place, i, some_missing):
    """The child that row i of a group goes to from node `at`, a set or a sum of more than three
    features, of which three are added up."""
    count, low, total, is_hole = own.counts[i], U(own.low[i]), own.sums[i], own.holes[i]
    if count == SET:
        first = own.columns[place_of(own.records[(U(at) << ONE) + ONE], 0) + place]
        is_right = not has_code(trees.sets, trees.set_at[U(at)], np.int64(first))
    else:
        total, is_hole = more_terms(trees, at, own, place, total, is_hole, U(count), some_missing)
        is_right = total > own.limit[i] >> np.int32(THRESHOLD - HALF)
    right = ONE - ((low >> MISSING) & ONE) if is_hole else U(is_right)
    return np.int64((low & CHILD_BITS) + right)


@device
def step_all_sums(trees, root, own, first, n, group, some_missing):
    """Move all rows of a group that are not at a leaf one step down, and return how many moved.

    It is in vectors but for the few rows at combinations of more than three features, and at sets.
    """
    at, words, records, counts, listed = group.at, own.words, own.records, own.counts, own.listed
    sums, limit, low, holes, hole = own.sums, own.limit, own.low, own.holes, np.int32(HOLE)
    place, moved, kept = U(first) * U(len(own.coordinates)), 0, 0
    # 1. the sums of three terms
    for i in range(n):
        here, r = U(root + at[i]) << ONE, U(i)
        word, pair = records[here], records[here + ONE]
        one = value_at(words, place + place_of(pair, 0), r)
        two = value_at(words, place + place_of(pair, 1), r)
        three = value_at(words, place + place_of(pair, 2), r)
        sums[i] = one * weight_of(pair, 0) + two * weight_of(pair, 1) + three * weight_of(pair, 2)
        holes[i] = (one == hole) | (two == hole) | (three == hole)
        limit[i], low[i] = np.int32(word >> HALF), np.int32(word)
        count = (word >> COUNT) & LOW_4
        counts[i] = count
        moved += count > U(0)
    # 2. one step down
    for i in range(n):
        right = np.int32(sums[i] > limit[i] >> np.int32(THRESHOLD - HALF))
        otherwise = np.int32(np.uint32(~low[i]) >> np.uint32(MISSING)) & np.int32(1)
        right = otherwise if holes[i] else right
        child = np.int32((low[i] & np.int32(CHILD_BITS)) + right)
        at[i] = at[i] if counts[i] > np.uint8(IN_WORD) else child
    # 3. the other rows
    for i in range(n):
        prefetch(records, U(root + at[i]) << ONE)
        listed[kept] = i
        kept += counts[i] > np.uint8(IN_WORD)
    for j in range(kept):
        i = U(listed[j])
        at[i] = later_step(trees, root + at[i], own, place + i, i, some_missing)
        prefetch(records, U(root + at[i]) << ONE)
    return moved


@device
def walk_sums(trees, root, own, first, n, group, moving, some_missing):
    """As `walk` in numba.py."""
    records, row, word, at, moved = own.records, group.row, group.word, group.at, moving
    top_sums(trees, root, own, first, n, group, some_missing)
    for i in range(n):
        at[i] = group.node[group.slot[i]]
    while n >= FEW and MOVING * moved > n:
        moved = step_all_sums(trees, root, own, first, n, group, some_missing)
        moving = moving if moved else 0
    place = U(first) * U(len(own.coordinates))
    while moving > 0:
        kept = 0
        for i in range(moving):
            r = row[i]
            w = records[U(root + at[r]) << ONE]
            word[kept], row[kept] = w, r
            kept += (w >> COUNT) & LOW_4 > U(0)
        moving = kept
        for i in range(moving):
            r = U(row[i])
            at[r] = step_sum(trees, word[i], root + at[r], own, place + r, some_missing)
            prefetch(records, U(root + at[r]) << ONE)


NO_SUMS = new_sums(
    (np.zeros(0, np.uint64), np.zeros(0, np.uint64)), np.zeros((0, 0), np.int32), 0, 0
)
