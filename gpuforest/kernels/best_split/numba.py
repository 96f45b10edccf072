"""Best split, compiled. The specification is numpy.py beside this file."""

import numpy as np

from gpuforest.criteria import GINI, SQUARED_ERROR
from gpuforest.kernels.compile import device, kernel, maker, rare
from gpuforest.kernels.hashing.numba import U
from gpuforest.kernels.scoring.numba import class_score, grown, moment_score, pair_side

# Two channels (two classes, or weight and one moment) are the common case. Their
# feature is first made compact: running totals at the codes that hold rows,
#
#     upto[WEIGHT, i], upto[SECOND, i], upto[ROWS, i] at upto[CODE, i],     i < m
#
# of weight, second channel and rows, so that scoring is one loop without branches.
WEIGHT, SECOND, ROWS, CODE = range(4)


@device
def compact_pairs(hist, B, is_classes, channels, upto):
    """Fills the running totals from a histogram i64[B * channels]; returns m."""
    m, n, a, n_rows = 0, np.int64(0), np.int64(0), np.int64(0)
    for b in range(B):
        at = b * channels
        first, second = hist[U(at)], hist[U(at + 1)]
        w = first + second if is_classes else first
        n += w
        a += second
        if channels > 2:
            n_rows += hist[U(at + 2)]
            upto[ROWS, U(m)] = n_rows
        upto[WEIGHT, U(m)], upto[SECOND, U(m)], upto[CODE, U(m)] = n, a, b
        m += w > 0  # else the next bin overwrites this place
    return m


@device
def score_pairs(criterion, upto, n, a, n_more, a_more, last, scores):
    """Scores of the cuts behind the places 0 .. last - 1."""
    for i in range(last):
        n_left, a_left = upto[WEIGHT, U(i)] + n_more, upto[SECOND, U(i)] + a_more
        left = pair_side(criterion, n_left, a_left)
        scores[U(i)] = left + pair_side(criterion, n - n_left, a - a_left)


@device
def best_pair(upto, m, missing, n_bins, criterion, min_rows, scores):
    """Best cut of a compact feature: (score, cut, missing_left).

    `scores` f64[m] is scratch. The last of the m places may be the missing values.
    """
    n, a, n_rows = upto[WEIGHT, m - 1], upto[SECOND, m - 1], upto[ROWS, m - 1]
    some_missing = upto[CODE, m - 1] == missing
    best, at, best_side = -np.inf, -1, 0
    # 2. left sides, first without the missing values, then with them
    for side in range(2 if some_missing else 1):
        n_more, a_more, rows_more = np.int64(0), np.int64(0), np.int64(0)
        if side == 1:
            if m == 1:
                break
            n_more, a_more = n - upto[WEIGHT, m - 2], a - upto[SECOND, m - 2]
            rows_more = n_rows - upto[ROWS, m - 2]
        # 3. both sides hold rows
        last = m - 1 - side
        if criterion == GINI:  # a loop of its own, which the compiler turns into vectors
            score_pairs(GINI, upto, n, a, n_more, a_more, last, scores)
        elif criterion == SQUARED_ERROR:
            score_pairs(SQUARED_ERROR, upto, n, a, n_more, a_more, last, scores)
        else:
            score_pairs(criterion, upto, n, a, n_more, a_more, last, scores)
        if min_rows > 1:
            for i in range(last):
                rows_left = upto[ROWS, i] + rows_more
                if rows_left < min_rows or n_rows - rows_left < min_rows:
                    scores[i] = -np.inf
        # 4. the first of the highest
        for i in range(last):
            score = scores[U(i)]
            if score > best or (score == best and i < at):
                best, at, best_side = score, i, side
    if at < 0:
        return best, np.int64(0), False
    # 5. and 6. the middle of the gap, and where missing values go
    code, upper = np.int64(upto[CODE, at]), np.int64(upto[CODE, at + 1])
    cut = np.int64(n_bins) - 1 if upper == missing else (code + upper - 1) >> 1
    return best, cut, best_side == 1 if some_missing else upto[WEIGHT, at] > n - upto[WEIGHT, at]


@device
def bin_weight(hist, at, C, is_classes):
    if not is_classes:
        return hist[at]
    n = hist[at]
    for c in range(1, C):
        n += hist[at + c]
    return n


@maker
def new_scratch(size, C):
    """What a scan works on, for `size` codes; compaction writes one place more."""
    return np.zeros(C, np.int64), np.zeros((4, size + 1), np.int64), np.empty(size, np.float64)


@rare
def scan(hist, B, C, sums, n, n_rows, n_bins, criterion, min_rows, count_rows, left):
    """Best cut of one feature from its histogram i64[B * channels], of any channels.

    Returns (varies, score, cut, missing_left); `left` i64[C] is scratch.
    """
    is_classes = criterion < SQUARED_ERROR
    channels = C + count_rows
    last = (B - 1) * channels
    n_missing = bin_weight(hist, last, C, is_classes)
    rows_missing = hist[last + C] if count_rows else 0
    varies, best, best_bin, best_side = False, -np.inf, -1, 0
    # 2. left sides, first without the missing values, then with them
    for side in range(2 if n_missing > 0 else 1):
        n_left, rows_left, left_sum, right_sum = np.int64(0), np.int64(0), 0, 0
        for c in range(C):
            left[c] = hist[last + c] if side == 1 else 0
        if side == 1:
            n_left, rows_left = n_missing, rows_missing
        if is_classes:
            for c in range(C):
                left_sum += grown(criterion, 0, left[c])
                right_sum += grown(criterion, 0, sums[c] - left[c])
        for b in range(B - 1):
            at = b * channels
            w = bin_weight(hist, at, C, is_classes)
            if w == 0:
                continue
            # 1. a bin that holds some rows, but not all
            varies |= w < n
            if is_classes:
                for c in range(C):
                    h = hist[at + c]
                    if h:
                        right = sums[c] - left[c]
                        left_sum += grown(criterion, left[c], h)
                        right_sum -= grown(criterion, right - h, h)
                        left[c] += h
            else:
                for c in range(C):
                    left[c] += hist[at + c]
            n_left += w
            # 3. both sides hold rows, and enough of them
            if n_left == n:
                break
            if count_rows:
                rows_left += hist[at + C]
                if rows_left < min_rows or n_rows - rows_left < min_rows:
                    continue
            # 4. the first of the highest
            if is_classes:
                score = class_score(
                    criterion, left_sum, n_left, right_sum, n - n_left, left, sums, C
                )
            else:
                score = moment_score(criterion, left, sums, C)
            if score > best or (score == best and b < best_bin):
                best, best_bin, best_side = score, b, side
    if best_bin < 0:
        return varies, best, 0, False
    cut, heavier = middle(hist, B, C, channels, best_bin, n, n_bins, is_classes)
    return varies, best, cut, best_side == 1 if n_missing > 0 else heavier


@device
def middle(hist, B, C, channels, bin, n, n_bins, is_classes):
    """Steps 5 and 6: the middle of the gap above `bin`, and whether the left is heavier."""
    n_left = np.int64(0)
    for b in range(bin + 1):
        n_left += bin_weight(hist, b * channels, C, is_classes)
    heavier = n_left > n - n_left
    for b in range(bin + 1, B - 1):
        if bin_weight(hist, b * channels, C, is_classes) > 0:
            return (bin + b - 1) >> 1, heavier
    return np.int64(n_bins) - 1, heavier


@device
def left_of(hist, B, C, channels, cut, missing_left, left):
    """Channel sums of the codes <= cut, and of the missing ones if they go left."""
    for c in range(C):
        left[c] = 0
    for b in range(cut + 1):
        for c in range(C):
            left[c] += hist[b * channels + c]
    if missing_left:
        for c in range(C):
            left[c] += hist[(B - 1) * channels + c]


@device
def slot_best(
    hist, features, need, sums, n_rows, n_bins, criterion, min_rows, count_rows, B, C, best, left,
    scratch,
):  # fmt: skip
    """Improve on `best` = (score, feature, cut, missing_left) with one slot's histograms.

    Returns the new best and how many features were tried; `left` follows the best.
    """
    score, feature, cut, missing_left = best
    sides, upto, scores = scratch
    n, tried = np.int64(0), 0
    if criterion >= SQUARED_ERROR:
        n = sums[0]
    else:
        for c in range(C):
            n += sums[c]
    for j in range(len(features)):
        if tried >= need:
            break
        f = np.int64(features[j])
        if f < 0:
            continue
        if C == 2:
            m = compact_pairs(hist[j], B, criterion < SQUARED_ERROR, C + count_rows, upto)
            s, at, side = best_pair(upto, m, B - 1, n_bins[f], criterion, min_rows, scores)
            varies = m > 1
        else:
            varies, s, at, side = scan(
                hist[j], B, C, sums, n, n_rows, n_bins[f], criterion, min_rows, count_rows, sides
            )
        tried += varies
        if s > score:  # of equal ones the first stays
            score, feature, cut, missing_left = s, f, np.int64(at), side
            left_of(hist[j], B, C, C + count_rows, at, side, left)
    return (score, feature, cut, missing_left), tried


@kernel
def best_split(
    hist, features, need, sums, n_rows, n_bins, criterion, min_rows, count_rows, B, C,
    score, feature, bin, missing_left, left, tried,
):  # fmt: skip
    """hist i64[S, k, B * channels]; the results are written to the last six arguments."""
    scratch = new_scratch(B, C)
    for s in range(len(features)):
        best = (-np.inf, np.int64(-1), np.int64(0), False)
        best, tried[s] = slot_best(
            hist[s], features[s], need[s], sums[s], n_rows[s], n_bins, criterion, min_rows,
            count_rows, B, C, best, left[s], scratch,
        )  # fmt: skip
        score[s], feature[s], bin[s], missing_left[s] = best
