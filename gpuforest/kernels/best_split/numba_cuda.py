"""Best split in Numba CUDA. The specification is numpy.py beside this file.

A thread scans a feature's histogram, with no more scratch than one side's sums.
"""

from typing import Any

import numpy as np
from numba import cuda

from gpuforest.criteria import SQUARED_ERROR
from gpuforest.dtypes import FEATURE, SCORE, STAT
from gpuforest.kernels.best_split.limits import left_of, may_part, random_of_bins, special_of
from gpuforest.kernels.compile import rare
from gpuforest.kernels.scoring import numba_cuda  # noqa: F401 rounds the products in `scan`
from gpuforest.kernels.scoring.numba import class_sides, grown, moment_score, score_sides


@rare
def bin_weight(hist, at, C, is_classes):
    if not is_classes:
        return hist[at]
    n = hist[at]
    for c in range(1, C):
        n += hist[at + c]
    return n


@rare
def scan(hist, B, C, sums, n, n_rows, n_bins, criterion, limits, count_rows, left):
    """Best cut of one feature from its histogram i64[B * channels], of any channels.

    Returns (varies, score, cut, missing_left); `left` i64[C] is scratch.
    """
    is_classes, min_rows = criterion < SQUARED_ERROR, limits[0]
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
            if not may_part(n_left, left[C - 1], n, sums[C - 1], limits):
                continue
            # 4. the first of the highest
            if is_classes:
                a, b_right = class_sides(criterion, left_sum, right_sum, left, sums, C)
                score = score_sides(criterion, a, n_left, b_right, n - n_left)
            else:
                score = moment_score(criterion, left, sums, C)
            if score > best or (score == best and b < best_bin):
                best, best_bin, best_side = score, b, side
    if best_bin < 0:
        return varies, best, 0, False
    cut, heavier = middle(hist, B, C, channels, best_bin, n, n_bins, is_classes)
    return varies, best, cut, best_side == 1 if n_missing > 0 else heavier


@rare
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


@cuda.jit
def scan_features(
    hist, features, sums, n_rows, n_bins, criterion, min_rows, count_rows, min_weight, keys,
    signs, bounds, B, sides, varies, score, cut, missing_left,
):  # fmt: skip
    """Steps 1 to 6, a thread a slot and feature; hist i64[S, k, B * channels]."""
    S, k = features.shape
    C = sums.shape[1]
    for at in range(cuda.grid(1), np.int64(S) * k, cuda.gridsize(1)):
        s, j = at // k, at % k
        f = features[s, j]
        if f < 0:
            continue
        n = sums[s, 0]
        if criterion < SQUARED_ERROR:
            for c in range(1, C):
                n += sums[s, c]
        _, is_random, key, low, high = special_of(s, min_weight, keys, bounds)
        sign = np.int64(signs[f]) if len(signs) else np.int64(0)
        limits = np.int64(min_rows), np.int64(min_weight), sign, low, high
        if is_random:
            found = random_of_bins(
                hist[s, j], f, n_bins[f], B, sums[s], n, n_rows[s], criterion, limits,
                criterion < SQUARED_ERROR, key, sides[s, j],
            )  # fmt: skip
        else:
            found = scan(
                hist[s, j], B, C, sums[s], n, n_rows[s], n_bins[f], criterion, limits,
                count_rows, sides[s, j],
            )  # fmt: skip
        varies[s, j], score[s, j], cut[s, j], missing_left[s, j] = found


@cuda.jit
def choose_features(
    hist, features, need, count_rows, B, varies, scores, cuts, sides,
    score, feature, bin, missing_left, left, tried,
):  # fmt: skip
    """Of the features that may be tried the first of the best, a thread a slot."""
    S, k = features.shape
    C = left.shape[1]
    for s in range(cuda.grid(1), S, cuda.gridsize(1)):
        best, n_tried = -1, 0
        for j in range(k):
            if not varies[s, j] or n_tried >= need[s]:
                continue
            n_tried += 1
            if scores[s, j] > score[s]:
                best, score[s] = j, scores[s, j]
        tried[s] = n_tried
        if best >= 0:
            feature[s], bin[s] = features[s, best], cuts[s, best]
            missing_left[s] = sides[s, best]
            left_of(
                hist[s, best], B - 1, C, C + count_rows, cuts[s, best], sides[s, best], left[s]
            )  # fmt: skip


def best_split(
    hist, features, need, sums, n_rows, n_bins, criterion, min_rows, count_rows, min_weight,
    keys, signs, bounds, backend,
) -> tuple[Any, ...]:  # fmt: skip
    xp, (S, k, B, _), C = backend.xp, hist.shape, sums.shape[1]
    hist = xp.reshape(hist, (S, k, -1))
    each = (
        xp.zeros((S, k), dtype=np.bool_),
        xp.empty((S, k), dtype=SCORE),
        xp.empty((S, k), dtype=np.int32),
        xp.empty((S, k), dtype=np.bool_),
    )
    found = (
        xp.full(S, -np.inf, dtype=SCORE),
        xp.full(S, -1, dtype=FEATURE),
        xp.zeros(S, dtype=np.int32),
        xp.zeros(S, dtype=np.bool_),
        xp.zeros((S, C), dtype=STAT),
        xp.empty(S, dtype=np.int64),
    )
    backend.launch(
        scan_features, S * k, hist, features, sums, n_rows, n_bins, criterion, min_rows,
        count_rows, min_weight, keys, signs, bounds, B, xp.empty((S, k, C), dtype=STAT), *each,
    )  # fmt: skip
    backend.launch(choose_features, S, hist, features, need, count_rows, B, *each, *found)
    return found
