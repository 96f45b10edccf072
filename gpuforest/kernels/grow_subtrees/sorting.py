"""Small nodes: a feature's rows are sorted by code, and the cuts between them are scored.

The candidates, their order and their scores are the same as from a histogram.
"""

import numpy as np

from gpuforest.compiler.decorators import device, rare
from gpuforest.kernels.best_split.scan import (
    NOTHING,
    best_classes,
    first_highest,
    split_of,
)
from gpuforest.kernels.histogram.numba import has_labels
from gpuforest.kernels.shared.hashing.numba import U
from gpuforest.kernels.shared.records import NO_BIN, Bin
from gpuforest.kernels.shared.scoring.loops import CODE, ROWS, SECOND, THIRD, WEIGHT
from gpuforest.kernels.shared.scoring.numba import class_sides, grown, moment_score

MOST_SORTED = 2**16  # rows, because a position takes half of a key of 32 bits
RANK_ROWS = 16  # up to so many keys, each is compared with all others, in one vector
TWENTY_FOUR = np.uint32(24)
POSITION, SIXTEEN, BYTE = np.uint32(0xFFFF), np.uint32(16), np.uint32(255)
NO_KEY = np.uint32(0xFFFFFFFF)


@device
def radix_pass(source, result, n, shift, counts):
    """Sort keys u32[n] by the byte at `shift`; equal ones keep their order."""
    for d in range(256):
        counts[d] = 0
    for i in range(n):
        counts[(source[U(i)] >> shift) & BYTE] += 1
    total = 0
    for d in range(256):
        count = counts[d]
        counts[d] = total
        total += count
    for i in range(n):
        d = (source[U(i)] >> shift) & BYTE
        result[U(counts[d])] = source[U(i)]
        counts[d] += 1


@device
def sort_by_code(n, work):
    """Write the positions 0 .. n - 1, in ascending order of their codes `work.code`, to `work.keys`
    as code << 16 | position."""
    code, keys, spare, counts = work.code, work.keys, work.spare_keys, work.counts
    if n <= RANK_ROWS:
        for i in range(n):
            spare[U(i)] = (np.uint32(code[U(i)]) << SIXTEEN) | np.uint32(i)
        for i in range(n, RANK_ROWS):
            spare[U(i)] = NO_KEY
        for i in range(n):
            key, rank = spare[U(i)], 0
            for j in range(RANK_ROWS):
                rank += spare[U(j)] < key
            keys[U(rank)] = key
    elif code.itemsize == 1:
        for i in range(n):
            spare[U(i)] = (np.uint32(code[U(i)]) << SIXTEEN) | np.uint32(i)
        radix_pass(spare, keys, n, SIXTEEN, counts)
    else:
        for i in range(n):
            keys[i] = (np.uint32(code[i]) << SIXTEEN) | np.uint32(i)
        radix_pass(keys, spare, n, SIXTEEN, counts)
        radix_pass(spare, keys, n, TWENTY_FOUR, counts)


@device
def compact_sorted(keys, n, own, low, upto):
    """Fill the running totals of two channels at each distinct code (see scan.py); returns m."""
    m, n_weight, a = 0, np.int64(0), np.int64(0)
    for i in range(n):
        key = keys[U(i)]
        at = low + np.int64(key & POSITION)
        first, second = np.int64(own[U(at), 0]), np.int64(own[U(at), 1])
        n_weight += second if has_labels(own) else first
        a += first * second if has_labels(own) else second
        code = key >> SIXTEEN
        upto[WEIGHT, U(m)], upto[SECOND, U(m)] = n_weight, a
        upto[ROWS, U(m)], upto[CODE, U(m)] = i + 1, code
        # a position is kept behind the last row of its code
        m += (i + 1 == n) | (keys[U(i + 1)] >> SIXTEEN != code)
    return m


@device
def count_missing(keys, n, missing):
    """How many of the sorted rows have missing values; these are the last ones."""
    n_missing = 0
    while n_missing < n and np.int64(keys[n - 1 - n_missing] >> SIXTEEN) == missing:
        n_missing += 1
    return n_missing


@device
def compact_sorted_classes(work, slot, own, criterion, side, n_missing):
    """As compact_classes, from sorted rows, which move from the right side to the left in turn.

    side : 1 if the last `n_missing` rows, with missing values, go left first; else 0
    """
    keys, left, upto, sums, n = work.keys, work.scan.left, work.scan.upto, slot.sums, slot.n_rows
    n_left, left_sum, right_sum, m = np.int64(0), np.int64(0), np.int64(0), 0
    for c in range(len(sums)):
        right_sum += grown(criterion, 0, sums[c])
        left[c] = 0
    before = n_missing * side
    for step in range(-before, n - before):
        key = keys[U(step if step >= 0 else n + step)]
        row = slot.begin + np.int64(key & POSITION)
        c, w = own[U(row), 0], np.int64(own[U(row), 1])
        n_left += w
        left_sum += grown(criterion, left[U(c)], w)
        right_sum -= grown(criterion, sums[U(c)] - left[U(c)] - w, w)
        left[U(c)] += w
        code = key >> SIXTEEN
        if step < 0 or (step + 1 < n and keys[U(step + 1)] >> SIXTEEN == code):
            continue
        upto[WEIGHT, U(m)], upto[ROWS, U(m)], upto[CODE, U(m)] = n_left, step + 1 + before, code
        upto[SECOND, U(m)], upto[THIRD, U(m)] = class_sides(
            criterion, left_sum, right_sum, left, sums, len(sums)
        )
        m += 1
    return m


@rare
def scan_sorted_classes(work, slot, own, feature, criterion, limits):
    """The best split by one feature, for any number of classes."""
    found, n_missing = NOTHING, count_missing(work.keys, slot.n_rows, feature.missing)
    # first without the missing values, then with them
    for side in range(2 if n_missing > 0 else 1):
        m = compact_sorted_classes(work, slot, own, criterion, side, n_missing)
        found = best_classes(m, slot, criterion, limits, work.scan, side, found)
    return split_of(found, work.scan.upto, slot.weight, feature, n_missing > 0, NO_BIN)


@device
def compact_sorted_outputs(work, slot, own, criterion, side, n_missing):
    """As compact_sorted_classes, for several outputs; it also fills the scores of `work.scan`."""
    keys, scan, sums, n = work.keys, work.scan, slot.sums, slot.n_rows
    left, upto, scores, C, m = scan.left, scan.upto, scan.scores, len(slot.sums), 0
    for c in range(C):
        left[c] = 0
    before = n_missing * side
    for step in range(-before, n - before):
        key = keys[step if step >= 0 else n + step]
        row = slot.begin + np.int64(key & POSITION)
        for c in range(C):
            left[c] += own[row, c]
        code = key >> SIXTEEN
        if step < 0 or (step + 1 < n and keys[step + 1] >> SIXTEEN == code):
            continue
        upto[WEIGHT, m], upto[ROWS, m], upto[CODE, m] = left[0], step + 1 + before, code
        scores[m] = moment_score(criterion, left, sums, C) if left[0] < sums[0] else -np.inf
        m += 1
    return m


@rare
def scan_sorted_outputs(work, slot, own, feature, criterion, limits):
    """The best split by one feature, for several outputs."""
    scan, n = work.scan, slot.sums[0]
    found, n_missing = NOTHING, count_missing(work.keys, slot.n_rows, feature.missing)
    for side in range(2 if n_missing > 0 else 1):
        m = compact_sorted_outputs(work, slot, own, criterion, side, n_missing)
        whole = Bin(n, np.int64(0), slot.n_rows)
        found = first_highest(
            scan.scores, scan.upto, m - 1, whole, NO_BIN, limits, side, found
        )  # fmt: skip
    return split_of(found, scan.upto, n, feature, n_missing > 0, NO_BIN)
