"""The best set of a categorical feature, compiled. The specification is categories.py beside
this file: the bins that hold rows are put in order, and the cuts between them scored.

Work on a feature is a tuple of arrays, `category_arrays`:

    codes, keys    the occupied codes, and what they are ordered by
    spare          the same, for merging
    bins, ordered  their sums [m * channels], by code and in order; an empty place follows, where
                   `best_of_bins` looks for missing values
    off, sides, scatter, directions    of the two ways to order many classes
"""

import numpy as np

from gpuforest.criteria import POISSON
from gpuforest.kernels.best_split.categories import ITERATIONS, MOST_TRIED
from gpuforest.kernels.best_split.limits import left_of, may_part, random_of_bins
from gpuforest.kernels.best_split.scan import (
    CODE,
    NO_SUMS,
    ROWS,
    SECOND,
    WEIGHT,
    best_of_bins,
    best_pair,
)
from gpuforest.kernels.compile import device, rare
from gpuforest.kernels.hashing.numba import CUT, U, hash_at
from gpuforest.kernels.scoring.numba import node_score, pair_side

PLACE, CODE_BITS = 32, 0xFFFFFFFF  # a place above a code
SHORT, MANY = 24, 512  # so many are sorted by insertion, or in buckets
U11 = U(11)


def category_arrays(B: int, C: int, channels: int) -> tuple[np.ndarray, ...]:
    """Work on a feature of B - 1 bins."""
    return (
        np.empty(B, np.int64),
        np.empty(B, np.float64),
        np.empty(B, np.int64),
        np.empty(B, np.float64),
        np.zeros((B + 1) * channels, np.int64),
        np.zeros((B + 1) * channels, np.int64),
        np.zeros((B, C), np.float64),
        np.zeros((2, C), np.int64),
        np.zeros((C, C), np.float64),
        np.zeros((2, C), np.float64),
    )


@device
def has_code(sets, first, code):
    """Whether the set that begins at word `first` has the code."""
    return (sets[U(first + (code >> 6))] >> U(code & 63)) & U(1) == U(1)


@device
def compact_bins(hist, bins, missing, C, channels, labels, work):
    """The occupied ones of a histogram's bins to `work`; how many."""
    codes, some, m = work[0], work[4], 0
    for i in range(bins + 1):
        b = i if i < bins else missing
        n = np.int64(0)
        for c in range(C if labels else 1):
            n += np.int64(hist[b * channels + c])
        if n > 0:
            codes[m] = b
            for c in range(channels):
                some[m * channels + c] = hist[b * channels + c]
            m += 1
    return m


@device
def insertion_sort(keys, codes, low, high):
    """Sort places low .. high - 1 by key, equal ones in their order."""
    for i in range(low + 1, high):
        key, code, j = keys[i], codes[i], i
        while j > low and keys[j - 1] > key:
            keys[j], codes[j] = keys[j - 1], codes[j - 1]
            j -= 1
        keys[j], codes[j] = key, code


@rare
def merge_sort(keys, codes, spare_keys, spare_codes, m):
    """The same of many: short runs, merged."""
    for low in range(0, m, SHORT):
        insertion_sort(keys, codes, low, min(low + SHORT, m))
    width = SHORT
    while width < m:
        for low in range(0, m, 2 * width):
            middle, high = min(low + width, m), min(low + 2 * width, m)
            i, j = low, middle
            for at in range(low, high):
                if j >= high or (i < middle and keys[i] <= keys[j]):
                    spare_keys[at], spare_codes[at] = keys[i], codes[i]
                    i += 1
                else:
                    spare_keys[at], spare_codes[at] = keys[j], codes[j]
                    j += 1
        for at in range(m):
            keys[at], codes[at] = spare_keys[at], spare_codes[at]
        width *= 2


@rare
def best_of_all(m, sums, n, n_rows, C, channels, criterion, limits, labels, work):
    """Keys: zero for the categories of the best set, one for the others.

    From one set to the next a single category crosses: a Gray code.
    """
    keys, some, (left, right) = work[1], work[4], work[7]
    best, best_score, min_rows, min_weight = 0, -np.inf, limits[0], limits[1]
    rows_left, n_left = np.int64(0), np.int64(0)
    for c in range(C):
        left[c], right[c] = 0, sums[c]
    for step in range(1, 1 << (m - 1)):
        s, i = step ^ (step >> 1), 0
        while not step >> i & 1:
            i += 1
        sign = np.int64(1) if s >> i & 1 else np.int64(-1)
        for c in range(C):
            w = sign * some[i * channels + c]
            left[c] += w
            right[c] -= w
            if labels or c == 0:
                n_left += w
        if min_rows > 1:
            rows_left += sign * some[i * channels + C]
            if rows_left < min_rows or n_rows - rows_left < min_rows:
                continue
        if n_left < min_weight or n - n_left < min_weight:
            continue
        score = node_score(criterion, left, n_left, C)
        score += node_score(criterion, right, n - n_left, C)
        if score > best_score or (score == best_score and s < best):
            best, best_score = s, score
    for i in range(m):
        keys[i] = 0.0 if best >> i & 1 else 1.0


@rare
def along(m, sums, n, C, channels, labels, work):
    """Keys: each category's place on the first principal direction of the shares.

    Classes that the node does not hold add zeros, and are passed over.
    """
    keys, some, off, scatter, (way, found) = work[1], work[4], work[6], work[8], work[9]
    held, K, total, most, at = work[7][0], 0, np.float64(n), -1.0, 0
    for c in range(0 if labels else 1, C):
        held[K] = c
        K += sums[c] != 0 or not labels
    for c in range(K):
        for d in range(c, K):
            scatter[c, d] = 0.0
    # 1. how the shares scatter: the upper half of a symmetric matrix
    for i in range(m):
        weight = np.int64(0)
        for c in range(C if labels else 1):
            weight += some[i * channels + c]
        w, matters = np.float64(weight), 0.0
        for c in range(K):
            mean = np.float64(sums[held[c]]) / total
            off[i, c] = np.float64(some[i * channels + held[c]]) / w - mean
        for c in range(K):
            matters += off[i, c] * off[i, c]
            pull = w * off[i, c]
            for d in range(c, K):
                scatter[c, d] += pull * off[i, d]
        if matters * w > most:
            most, at = matters * w, i
    # 2. its direction
    for c in range(K):
        way[c] = off[at, c]
    for _ in range(ITERATIONS):
        largest = 0.0
        for c in range(K):
            total = 0.0
            for d in range(K):
                total += (scatter[c, d] if c <= d else scatter[d, c]) * way[d]
            found[c] = total
            largest = max(largest, abs(total))
        if largest > 0.0:
            for c in range(K):
                way[c] = found[c] / largest
    for i in range(m):
        place = 0.0
        for c in range(K):
            place += off[i, c] * way[c]
        keys[i] = place


@rare
def bucket_sort(keys, codes, spare_keys, spare_codes, counts, m):
    """The same of a few hundred: into as many buckets, which leaves little to insertion."""
    low = high = keys[0]
    for i in range(m):
        low, high = min(low, keys[i]), max(high, keys[i])
        counts[i] = 0
    scale = np.float64(m - 1) / (high - low) if high > low else 0.0
    for i in range(m):
        counts[min(np.int64((keys[i] - low) * scale), m - 1)] += 1
    first = np.int64(0)
    for i in range(m):
        n, counts[i] = counts[i], first
        first += n
    for i in range(m):
        spare_keys[i], spare_codes[i] = keys[i], codes[i]
    for i in range(m):
        b = min(np.int64((spare_keys[i] - low) * scale), m - 1)
        keys[counts[b]], codes[counts[b]] = spare_keys[i], spare_codes[i]
        counts[b] += 1
    insertion_sort(keys, codes, 0, m)


@device
def sort_codes(m, work):
    """Sort the `codes` of the compact bins by their keys, each with its place above it."""
    codes, keys, spare_codes, spare_keys, counts = work[0], work[1], work[2], work[3], work[5]
    for i in range(m):
        codes[i] |= np.int64(i) << PLACE
    if m <= SHORT:
        insertion_sort(keys, codes, 0, m)
    elif m <= MANY:
        bucket_sort(keys, codes, spare_keys, spare_codes, counts, m)
    else:
        merge_sort(keys, codes, spare_keys, spare_codes, m)


@device
def best_pairs(m, criterion, channels, limits, labels, scratch, work):
    """As best_set, of two channels and cuts that are not random."""
    codes, keys, some, (_, upto, scores) = work[0], work[1], work[4], scratch
    for i in range(m):
        a, b = some[i * channels], some[i * channels + 1]
        keys[i] = np.float64(b) / np.float64(a + b if labels else a)
    sort_codes(m, work)
    n, second, n_rows = np.int64(0), np.int64(0), np.int64(0)
    for i in range(m):
        at, codes[i] = codes[i] >> PLACE, codes[i] & CODE_BITS
        a, b = some[at * channels], some[at * channels + 1]
        n += a + b if labels else a
        second += b
        if channels > 2:
            n_rows += some[at * channels + 2]
        upto[WEIGHT, i], upto[SECOND, i], upto[ROWS, i], upto[CODE, i] = n, second, n_rows, i
    found = best_pair(upto, m, -1, m, criterion, limits, scores)
    if m <= MOST_TRIED and (limits[0] > 1 or limits[1] > 1 or criterion == POISSON):
        return best_allowed(m, found, criterion, limits, upto, work)
    return found


@rare
def best_allowed(m, found, criterion, limits, upto, work):
    """As best_pairs: `found`, the best allowed cut of the order, or another set of the categories
    where the best of all cuts is forbidden."""
    codes, in_order, (score, _, _, _) = work[0], work[2], found
    n, a, n_rows = upto[WEIGHT, m - 1], upto[SECOND, m - 1], upto[ROWS, m - 1]
    highest, best, best_left = -np.inf, 0, NO_SUMS
    for i in range(m - 1):
        n_left, a_left = upto[WEIGHT, i], upto[SECOND, i]
        free = free_side(criterion, n_left, a_left) + free_side(criterion, n - n_left, a - a_left)
        highest = max(highest, free)
    if not highest > score:
        return found
    for s in range(1, 1 << (m - 1)):
        if s & (s + 1) == 0:
            continue  # a cut
        n_left, a_left, rows_left = np.int64(0), np.int64(0), np.int64(0)
        for i in range(m - 1):
            sign = (s >> i & 1) - (s >> (i + 1) & 1)  # totals where a run ends, and before it
            n_left += sign * upto[WEIGHT, i]
            a_left += sign * upto[SECOND, i]
            rows_left += sign * upto[ROWS, i]
        if limits[0] > 1 and (rows_left < limits[0] or n_rows - rows_left < limits[0]):
            continue
        if not may_part(n_left, a_left, n, a, limits):
            continue
        new = pair_side(criterion, n_left, a_left) + pair_side(criterion, n - n_left, a - a_left)
        if new > score:
            score, best, best_left = new, s, (n_left, a_left)
    if best == 0:
        return found
    at = 0
    for i in range(m):
        in_order[i] = codes[i]
    for side in range(2):
        for i in range(m):
            if best >> i & 1 != side:
                codes[at] = in_order[i]
                at += 1
        if side == 0:
            cut = at - 1
    return score, np.int64(cut), best_left[0] > n - best_left[0], best_left


@device
def free_side(criterion, n, a):
    """As pair_side, also of a mean of zero."""
    return 0.0 if criterion == POISSON and a == 0 else pair_side(criterion, n, a)


@rare
def put_in_order(
    m, f, sums, n, n_rows, C, channels, criterion, limits, labels, is_random, key, work
):  # fmt: skip
    """Sort the `codes` of the compact bins, and put these into `ordered`."""
    codes, keys, some, ordered = work[0], work[1], work[4], work[5]
    if is_random:
        h = hash_at(key, CUT + np.int64(f))
        for i in range(m):
            keys[i] = np.float64(hash_at(h, codes[i]) >> U11)
    elif m <= MOST_TRIED:
        best_of_all(m, sums, n, n_rows, C, channels, criterion, limits, labels, work)
    else:
        along(m, sums, n, C, channels, labels, work)
    sort_codes(m, work)
    for i in range(m):
        at, codes[i] = codes[i] >> PLACE, codes[i] & CODE_BITS
        for c in range(channels):
            ordered[i * channels + c] = some[at * channels + c]
    for c in range(channels):
        ordered[m * channels + c] = 0


@device
def best_set(
    m, f, sums, n, n_rows, C, channels, criterion, limits, labels, is_random, key, scratch, work
):  # fmt: skip
    """Best set of a feature whose compact bins are in `work`: (score, place, heavier, left), the
    places up to which go left, whether they are the heavier side, and of two channels the weight
    and the second channel on the left."""
    if C == 2 and not is_random:
        score, cut, heavier, left = best_pairs(
            m, criterion, channels, limits, labels, scratch, work
        )
        return score, np.int64(cut), heavier, left
    put_in_order(
        m, f, sums, n, n_rows, C, channels, criterion, limits, labels, is_random, key, work
    )
    if is_random:
        _, score, cut, heavier = random_of_bins(
            work[5], f, m, m + 1, sums, n, n_rows, criterion, limits, labels, key, scratch[0]
        )
    else:
        _, score, cut, heavier, _ = best_of_bins(
            work[5], m, m + 1, sums, n, n_rows, criterion, limits, labels, scratch
        )
    left = scratch[0]
    left_of(work[5], m, C, channels, cut, False, left)
    n_left = np.int64(left[0])
    for c in range(1, C if labels else 1):
        n_left += left[c]
    return score, np.int64(cut), heavier, (n_left, np.int64(left[C - 1]))


@device
def set_sums(m, cut, found, C, channels, labels, work, left):
    """Fill the channel sums of the places up to `cut`; `found`: of two channels, as best_set
    gives them."""
    if C == 2:
        left[0], left[1] = found[0] - found[1] if labels else found[0], found[1]
    else:
        left_of(work[5], m, C, channels, cut, False, left)


@device
def write_set(m, cut, heavier, bins, missing, work, words):
    """The set whose last place is `cut`, to `words`; whether missing values go left."""
    codes, missing_left = work[0], heavier
    for w in range(len(words)):
        words[w] = U(0)
    if heavier:
        for b in range(bins):
            words[b >> 6] |= U(1) << U(b & 63)
    for i in range(m):
        b = codes[i]
        if b == missing:
            missing_left = i <= cut
        elif (i <= cut) != heavier:
            words[b >> 6] ^= U(1) << U(b & 63)
    return missing_left
