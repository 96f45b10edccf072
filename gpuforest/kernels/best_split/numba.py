"""Best split, compiled. The specification is numpy.py beside this file."""

import numpy as np

from gpuforest.criteria import SQUARED_ERROR
from gpuforest.kernels.compile import device, kernel
from gpuforest.kernels.scoring.numba import class_score, class_total, grown, moment_score


@device
def bin_weight(hist, at, C, is_classes):
    if not is_classes:
        return hist[at]
    n = hist[at]
    for c in range(1, C):
        n += hist[at + c]
    return n


@device
def scan(hist, B, C, sums, n, n_rows, n_bins, criterion, min_rows, count_rows, left):
    """Best cut of one feature from its histogram i64[B * channels].

    Returns (varies, score, cut, missing_left); `left` i64[C] is scratch.
    """
    is_classes = criterion < SQUARED_ERROR
    channels = C + count_rows
    last = (B - 1) * channels
    n_missing = bin_weight(hist, last, C, is_classes)
    rows_missing = hist[last + C] if count_rows else 0
    varies, best, best_bin, best_side = False, -np.inf, -1, 0
    # 3. left sides, first without the missing values, then with them
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
            # 4. both sides hold rows, and enough of them
            if n_left == n:
                break
            if count_rows:
                rows_left += hist[at + C]
                if rows_left < min_rows or n_rows - rows_left < min_rows:
                    continue
            # 5. the first of the highest
            if is_classes:
                score = class_score(criterion, left_sum, n_left, right_sum, n - n_left, left, sums, C)
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
    """Steps 6 and 7: the middle of the gap above `bin`, and whether the left is heavier."""
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
    left[:C] = 0
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
        varies, s, at, side = scan(
            hist[j], B, C, sums, n, n_rows, n_bins[f], criterion, min_rows, count_rows, scratch
        )
        tried += varies
        # 2. of equal scores the lowest feature
        if s > score or (s == score and f < feature and s > -np.inf):
            score, feature, cut, missing_left = s, f, np.int64(at), side
            left_of(hist[j], B, C, C + count_rows, at, side, left)
    return (score, feature, cut, missing_left), tried


@kernel
def best_split(
    hist, features, need, sums, n_rows, n_bins, criterion, min_rows, count_rows, B, C,
    score, feature, bin, missing_left, left, tried,
):  # fmt: skip
    """hist i64[S, k, B * channels]; the results are written to the last six arguments."""
    scratch = np.zeros(C, np.int64)
    for s in range(len(features)):
        best = (-np.inf, np.int64(-1), np.int64(0), False)
        best, tried[s] = slot_best(
            hist[s], features[s], need[s], sums[s], n_rows[s], n_bins, criterion, min_rows,
            count_rows, B, C, best, left[s], scratch,
        )  # fmt: skip
        score[s], feature[s], bin[s], missing_left[s] = best
