"""Small nodes: a feature's rows are sorted by code, and the cuts between them scored.

The same candidates, in the same order and with the same scores, as from a histogram.
"""

import numpy as np

from gpuforest.kernels.best_split.numba import CODE, ROWS, SECOND, WEIGHT
from gpuforest.kernels.compile import device, rare
from gpuforest.kernels.hashing.numba import U
from gpuforest.kernels.histogram.numba import has_labels
from gpuforest.kernels.scoring.numba import class_score, grown, moment_score

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
def compact_sorted(keys, n, target, weight, low, upto):
    """Running totals of two channels at each distinct code (see best_split); returns m."""
    m, n_weight, a = 0, np.int64(0), np.int64(0)
    for i in range(n):
        key = keys[U(i)]
        at = low + np.int64(key & PLACE)
        w = np.int64(weight[U(at)])
        n_weight += w
        a += w * target[U(at), 0]
        code = key >> SIXTEEN
        upto[WEIGHT, U(m)], upto[SECOND, U(m)] = n_weight, a
        upto[ROWS, U(m)], upto[CODE, U(m)] = i + 1, code
        # a place is kept behind the last row of its code
        m += (i + 1 == n) | (keys[U(i + 1)] >> SIXTEEN != code)
    return m


@rare
def scan_sorted(
    keys, n, target, weight, low, missing, sums, n_weight, n_bins, criterion, min_rows, left
):  # fmt: skip
    """Best cut of one feature, of any channels, from sorted keys: (score, cut, missing_left)."""
    is_classes, C = has_labels(target), len(sums)
    n_present = n
    while n_present > 0 and np.int64(keys[n_present - 1] >> SIXTEEN) == missing:
        n_present -= 1
    best, best_code, upper, best_side, heavier = -np.inf, np.int64(-1), np.int64(0), 0, False
    for side in range(2 if n_present < n else 1):
        n_left, left_sum, right_sum = np.int64(0), np.int64(0), np.int64(0)
        for c in range(C):
            left[c] = 0
        if is_classes:
            for c in range(C):
                right_sum += grown(criterion, 0, sums[c])
        # the missing rows, last in order, go first where they go left
        n_before = n - n_present if side == 1 else 0
        stop = n_present - 1 if side == 1 or n_present == n else n_present
        for step in range(-n_before, stop):
            i = step if step >= 0 else n + step
            at = low + np.int64(keys[i] & PLACE)
            w = np.int64(weight[at])
            n_left += w
            if is_classes:
                c = target[at, 0]
                left_sum += grown(criterion, left[c], w)
                right_sum -= grown(criterion, sums[c] - left[c] - w, w)
                left[c] += w
            else:
                left[0] += w
                for k in range(C - 1):
                    left[1 + k] += w * target[at, k]
            if step < 0:
                continue
            code, after = np.int64(keys[i] >> SIXTEEN), np.int64(keys[i + 1] >> SIXTEEN)
            rows_left = step + 1 + n_before
            if code == after or rows_left < min_rows or n - rows_left < min_rows:
                continue
            if is_classes:
                n_right = n_weight - n_left
                score = class_score(criterion, left_sum, n_left, right_sum, n_right, left, sums, C)
            else:
                score = moment_score(criterion, left, sums, C)
            if score > best or (score == best and code < best_code):
                best, best_code, upper, best_side = score, code, after, side
                heavier = n_left > n_weight - n_left
    if best_code < 0:
        return best, np.int64(0), False
    cut = np.int64(n_bins) - 1 if upper == missing else (best_code + upper - 1) >> 1
    return best, cut, best_side == 1 if n_present < n else heavier
