"""Walks down the trees of oblique forests, compiled; see numba.py and numpy.py in this folder.

The block's codes become coordinates once. Every split but one by a set then compares a sum with a
threshold: a feature alone is a sum of one term, because coordinates ascend as codes do. Nodes are
read from records of two words, see `walking_records` in terms.py.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from gpuforest.compiler import types
from gpuforest.compiler.decorators import device, kernel
from gpuforest.compiler.intrinsics import prefetch
from gpuforest.core import terms
from gpuforest.core.frontier import Trees
from gpuforest.core.nodes import CHILD_MASK
from gpuforest.kernels.shared.numba import LOW_32, U, has_code
from gpuforest.kernels.traverse.numba import FEW, GROUP, SLOTS, Group, walk_trees

ONE, CHILD_BITS, LOW_4, HALF = U(1), U(CHILD_MASK), U(15), U(32)
MISSING, COUNT, THRESHOLD = U(terms.MISSING_AT), U(terms.COUNT_AT), U(terms.THRESHOLD_AT)
WEIGHT = U(terms.WEIGHT_BITS)
IN_WORD, SET, ZERO = U(terms.TERMS_IN_WORD), U(terms.BY_SET), np.int64(terms.WEIGHT_ZERO)
HOLE = np.uint16(65_535)  # a missing value, in all columns
GROUP_BITS = GROUP.bit_length() - 1
PLACES = U((2**terms.FEATURE_BITS - 1) << GROUP_BITS)
MOVING = 2  # fewer rows take steps in vectors than in other forests, because sums cost more


class Sums(NamedTuple):
    """What walks down an oblique forest need."""

    records: Annotated[Any, "u64[M]"]  # with the next one, see `walking_records`
    more: Annotated[Any, "u64[L]"]
    coordinates: Annotated[Any, "i32[F, B]"]
    # scratch for the coordinates of the rows, group after group, each [F, GROUP], so that a
    # feature's column begins at the same place of every group
    columns: types.U16s
    words: types.U32s  # their memory, four bytes at a time, because vectors gather no fewer
    sums: Annotated[Any, "i32[G]"]  # scratch of a group
    holes: Annotated[Any, "bool[G]"]
    limit: Annotated[Any, "i32[G]"]
    low: Annotated[Any, "i32[G]"]
    counts: Annotated[Any, "u8[G]"]
    listed: Annotated[Any, "u8[G]"]


def new_sums(walking: tuple[Any, Any], coordinates: Any, F: int, N: int) -> Sums:
    """The record, with scratch for N rows of F features; `walking` are the first two arrays."""
    words = np.empty(F * -(-N // GROUP) * GROUP // 2, np.uint32)
    scratch = types.new_arrays(Sums, np.empty, G=GROUP)
    return Sums(*walking, coordinates, words.view(np.uint16), words, **scratch)


@device
def fill_columns(codes, missing, sums):
    """Fill the columns of coordinates from codes [F, N], and return whether values are missing."""
    (F, N), some, columns = codes.shape, False, sums.columns
    for f in range(F):
        places = sums.coordinates[f]
        for first in range(0, N, GROUP):
            begin = first * F + f * GROUP
            for i in range(min(GROUP, N - first)):
                code = codes[U(f), U(first + i)]
                columns[U(begin + i)] = HOLE if code == missing else np.uint16(places[U(code)])
                some |= code == missing
    return some


@device
def place_of(pair, t):
    """Where the column of term t < TERMS_IN_WORD begins in a group."""
    return (pair >> U(terms.FEATURES_AT + terms.FEATURE_BITS * t - GROUP_BITS)) & PLACES


@device
def weight_of(pair, t):
    """The weight of term t < TERMS_IN_WORD."""
    return np.int32(np.int64((pair >> U(terms.WEIGHT_BITS * t)) & LOW_4) - ZERO)


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
def three_sum(pair, work, place, some_missing):
    """The sum of a row's three terms in a word, and whether a value is missing."""
    columns, is_hole = work.columns, False
    first = columns[place_of(pair, 0) + place]
    second = columns[place_of(pair, 1) + place]
    third = columns[place_of(pair, 2) + place]
    total = np.int32(first) * weight_of(pair, 0) + np.int32(second) * weight_of(pair, 1)
    total += np.int32(third) * weight_of(pair, 2)
    if some_missing:
        is_hole = (first == HOLE) | (second == HOLE) | (third == HOLE)
    return total, is_hole


@device
def more_terms(trees, at, work, place, total, is_hole, count, some_missing):
    """Add the terms after the third to a row's sum; returns it, and whether a value is missing."""
    more, torn = three_sum(work.more[U(at)], work, place, some_missing)
    total, is_hole = total + more, is_hole | torn
    for t in range(U(2) * IN_WORD, count):
        begin, weight = term_of(trees, at, t)
        value = work.columns[begin + place]
        total += np.int32(value) * weight
        is_hole |= value == HOLE
    return total, is_hole


@device
def step_sum(trees, word, at, work, place, some_missing):
    """The child of node `at`, with first word `word`, of a row at `place` in the first column."""
    pair, count = work.records[(U(at) << ONE) + ONE], (word >> COUNT) & LOW_4
    total, is_hole = three_sum(pair, work, place, some_missing)
    is_right = total > np.int64(limit_of(word))
    if count > IN_WORD:
        if count == SET:
            first = work.columns[place_of(pair, 0) + place]
            is_right = not has_code(trees.sets, trees.set_at[U(at)], np.int64(first))
        else:
            total, is_hole = more_terms(trees, at, work, place, total, is_hole, count, some_missing)
            is_right = total > np.int64(limit_of(word))
    right = ONE - ((word >> MISSING) & ONE) if is_hole else U(is_right)
    return np.int64((word & CHILD_BITS) + right)


@device
def add_terms(trees, at, work, place, n, count, some_missing):
    """Fill a group's sums at node `at` of two features or more, and holes of missing values."""
    sums, holes, columns = work.sums, work.holes, work.columns
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
def top_sums(trees, root, work, first, n, group, some_missing):
    """As `top` of kernels/traverse/numba.py."""
    node, slot, sums, holes = group.node, group.slot, work.sums, work.holes
    place = U(first) * U(len(work.coordinates))
    for i in range(n):
        slot[i] = 0
    node[0] = 0
    used, s = 1, 0
    while s < used and used + 2 <= SLOTS and n >= FEW:
        at = U(root + node[s])
        word = work.records[at << ONE]
        count, missing_left = (word >> COUNT) & LOW_4, (word >> MISSING) & ONE
        if count:
            child, threshold = np.int64(word & CHILD_BITS), limit_of(word)
            node[used], node[used + 1] = child, child + 1
            here, ahead = np.uint8(s), np.uint8(used - s)
            if count == ONE:  # as codes there
                column = work.columns[
                    np.int64(place + place_of(work.records[(at << ONE) + ONE], 0)) :
                ]
                shift, bin = np.uint16(missing_left), np.uint16(threshold + np.int64(missing_left))
                for i in range(n):
                    right = np.uint8(np.uint16(column[i] + shift) > bin)
                    slot[i] += np.uint8(ahead + right) if slot[i] == here else np.uint8(0)
            elif count == SET:
                for i in range(n):
                    if slot[i] == here:
                        right = step_sum(trees, word, at, work, place + U(i), some_missing) - child
                        slot[i] += np.uint8(ahead + np.uint8(right))
            else:
                add_terms(trees, at, work, place, n, count, some_missing)
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
def later_step(trees, at, work, place, i, some_missing):
    """The child of node `at` for row i: a set, or a sum with three features added up."""
    count, low, total, is_hole = work.counts[i], U(work.low[i]), work.sums[i], work.holes[i]
    if count == SET:
        first = work.columns[place_of(work.records[(U(at) << ONE) + ONE], 0) + place]
        is_right = not has_code(trees.sets, trees.set_at[U(at)], np.int64(first))
    else:
        total, is_hole = more_terms(trees, at, work, place, total, is_hole, U(count), some_missing)
        is_right = total > work.limit[i] >> np.int32(THRESHOLD - HALF)
    right = ONE - ((low >> MISSING) & ONE) if is_hole else U(is_right)
    return np.int64((low & CHILD_BITS) + right)


@device
def step_all_sums(trees, root, work, first, n, group, some_missing):
    """Move all rows of a group that are not at a leaf a step down; returns how many moved. In
    vectors, except for rows at combinations of over three features, and at sets."""
    at, words, records = group.at, work.words, work.records
    counts, listed = work.counts, work.listed
    sums, limit, low, holes, hole = work.sums, work.limit, work.low, work.holes, np.int32(HOLE)
    place, moved, kept = U(first) * U(len(work.coordinates)), 0, 0
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
        at[i] = later_step(trees, root + at[i], work, place + i, i, some_missing)
        prefetch(records, U(root + at[i]) << ONE)
    return moved


@device
def walk_sums(trees, root, codes, memory, first, n, group, moving):
    """`walk` of kernels/traverse/numba.py; memory : Sums, and whether values are missing"""
    work, some_missing = memory
    records, row, word, at, moved = work.records, group.row, group.word, group.at, moving
    top_sums(trees, root, work, first, n, group, some_missing)
    for i in range(n):
        at[i] = group.node[group.slot[i]]
    while n >= FEW and MOVING * moved > n:
        moved = step_all_sums(trees, root, work, first, n, group, some_missing)
        moving = moving if moved else 0
    place = U(first) * U(len(work.coordinates))
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
            at[r] = step_sum(trees, word[i], root + at[r], work, place + r, some_missing)
            prefetch(records, U(root + at[r]) << ONE)


@kernel(code="uint16")
def accumulate_sums(
    trees: Trees, values: types.F64s, codes: types.Codes2, skip: types.Bools2,
    total: types.F64s2, begin: types.I64s, column: types.I32s, out: types.I64s2, group: Group,
    sums: Sums,
):  # fmt: skip
    """As `accumulate` of kernels/traverse/numba.py.

    codes : u16[F, N], so that there is one kernel to compile
    """
    memory = sums, fill_columns(codes, trees.missing, sums)
    walk_trees(trees, values, codes, skip, total, begin, column, out, group, walk_sums, memory)
