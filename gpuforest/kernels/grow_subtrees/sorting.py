"""Small nodes: a feature's rows are sorted by code, and the cuts between them scored.

The same candidates, in the same order and with the same scores, as from a histogram.
"""

import numpy as np

from gpuforest.kernels.best_split.scan import (
    CODE,
    NO_MORE,
    NOTHING,
    ROWS,
    SECOND,
    THIRD,
    WEIGHT,
    best_classes,
    chosen_cut,
    first_highest,
)
from gpuforest.kernels.compile import device, rare
from gpuforest.kernels.hashing.numba import U
from gpuforest.kernels.histogram.numba import has_labels
from gpuforest.kernels.scoring.numba import class_sides, grown, moment_score

MOST_SORTED = 2**16  # rows, whose places take half of a key
RANK_ROWS = 16  # up to here every key is compared with every other, in one vector
TWENTY_FOUR = np.uint32(24)
PLACE, SIXTEEN, BYTE = np.uint32(0xFFFF), np.uint32(16), np.uint32(255)
NO_KEY = np.uint32(0xFFFFFFFF)


@device
def radix_pass(source, result, n, shift, counts):
    """Sort keys u32[n] by the byte at `shift`, equal ones in their order."""
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
def sort_by_code(code, n, keys, spare, counts):
    """Places 0 .. n - 1 in ascending order of their codes, to `keys`, as code << 16 | place.

    keys, spare : u32, RANK_ROWS longer than n
    """
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
    """Running totals of two channels at each distinct code (see best_split); returns m."""
    m, n_weight, a = 0, np.int64(0), np.int64(0)
    for i in range(n):
        key = keys[U(i)]
        at = low + np.int64(key & PLACE)
        first, second = np.int64(own[U(at), 0]), np.int64(own[U(at), 1])
        n_weight += second if has_labels(own) else first
        a += first * second if has_labels(own) else second
        code = key >> SIXTEEN
        upto[WEIGHT, U(m)], upto[SECOND, U(m)] = n_weight, a
        upto[ROWS, U(m)], upto[CODE, U(m)] = i + 1, code
        # a place is kept behind the last row of its code
        m += (i + 1 == n) | (keys[U(i + 1)] >> SIXTEEN != code)
    return m


@device
def count_missing(keys, n, missing):
    """How many of the sorted rows, the last ones, have a missing value."""
    n_missing = 0
    while n_missing < n and np.int64(keys[n - 1 - n_missing] >> SIXTEEN) == missing:
        n_missing += 1
    return n_missing


@rare
def scan_sorted_classes(
    keys, n, own, low, missing, sums, n_weight, bins, criterion, limits, scratch
):  # fmt: skip
    """Best cut of one feature, of any number of classes: (score, cut, missing_left)."""
    left, upto, scores = scratch
    C, n_missing = len(sums), count_missing(keys, n, missing)
    found = NOTHING
    all_right = np.int64(0)
    for c in range(C):
        all_right += grown(criterion, 0, sums[c])
    # first without the missing values, then with them
    for side in range(2 if n_missing > 0 else 1):
        n_left, left_sum, right_sum, m = np.int64(0), np.int64(0), all_right, 0
        for c in range(C):
            left[c] = 0
        # the missing rows, last in order, go first where they go left
        before = n_missing * side
        for step in range(-before, n - before):
            key = keys[U(step if step >= 0 else n + step)]
            row = low + np.int64(key & PLACE)
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
                criterion, left_sum, right_sum, left, sums, C
            )
            m += 1
        found = best_classes(upto, m, n_weight, n, criterion, limits, scores, side, found)
    return chosen_cut(found, upto, n_weight, missing, bins, n_missing > 0)


@rare
def scan_sorted_outputs(
    keys, n, own, low, missing, sums, bins, criterion, limits, scratch
):  # fmt: skip
    """Best cut of one feature, of several outputs: (score, cut, missing_left)."""
    left, upto, scores = scratch
    C, n_missing = len(sums), count_missing(keys, n, missing)
    found = NOTHING
    for side in range(2 if n_missing > 0 else 1):
        m = 0
        for c in range(C):
            left[c] = 0
        before = n_missing * side
        for step in range(-before, n - before):
            key = keys[step if step >= 0 else n + step]
            row = low + np.int64(key & PLACE)
            for c in range(C):
                left[c] += own[row, c]
            code = key >> SIXTEEN
            if step < 0 or (step + 1 < n and keys[step + 1] >> SIXTEEN == code):
                continue
            upto[WEIGHT, m], upto[ROWS, m], upto[CODE, m] = left[0], step + 1 + before, code
            scores[m] = moment_score(criterion, left, sums, C) if left[0] < sums[0] else -np.inf
            m += 1
        whole = sums[0], np.int64(0), np.int64(n)
        found = first_highest(scores, upto, m - 1, whole, NO_MORE, limits, side, found)
    return chosen_cut(found, upto, sums[0], missing, bins, n_missing > 0)
