"""Best split in Numba CUDA. The specification is numpy.py beside this file.

A thread scans a feature's histogram, with no more scratch than one side's sums.
"""

from typing import Any

import numpy as np
from numba import cuda

from gpuforest.common.dtypes import FEATURE, SCORE, STAT
from gpuforest.criteria import SQUARED_ERROR
from gpuforest.kernels.best_split.limits import left_of, may_part, random_of_bins
from gpuforest.kernels.compile import rare
from gpuforest.kernels.shared.records import Feature, Found, Limits, Slot
from gpuforest.kernels.shared.scoring import numba_cuda  # noqa: F401 rounds the products in `scan`
from gpuforest.kernels.shared.scoring.numba import class_sides, grown, moment_score, score_sides


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
    is_classes, min_rows = criterion < SQUARED_ERROR, limits.min_rows
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
        low, high = -np.inf, np.inf
        if len(bounds):
            low, high = bounds[s, 0], bounds[s, 1]
        sign = np.int64(signs[f]) if len(signs) else np.int64(0)
        limits = Limits(np.int64(min_rows), np.int64(min_weight), sign, low, high)
        if len(keys):
            feature = Feature(
                np.int64(f), np.int64(n_bins[f]), np.int64(B - 1), np.int64(C),
                np.int64(C + count_rows), criterion < SQUARED_ERROR,
            )  # fmt: skip
            slot = Slot(s, np.int64(0), n_rows[s], n, keys[s], sums[s], low, high)
            found, split = random_of_bins(hist[s, j], feature, slot, criterion, limits, sides[s, j])
            best, at, side = split.score, split.bin, split.missing_left
        else:
            found, best, at, side = scan(
                hist[s, j], B, C, sums[s], n, n_rows[s], n_bins[f], criterion, limits,
                count_rows, sides[s, j],
            )  # fmt: skip
        varies[s, j], score[s, j], cut[s, j], missing_left[s, j] = found, best, at, side


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
            width = np.int64(C + count_rows)
            chosen = Feature(
                np.int64(feature[s]), np.int64(0), np.int64(B - 1), np.int64(C), width, False
            )
            left_of(hist[s, best], chosen, cuts[s, best], sides[s, best], left[s])


def best_split(data, slots, hist, features, need, rules, backend) -> Any:
    xp, (S, k, B, _), C = backend.xp, hist.shape, data.n_channels
    hist = xp.reshape(hist, (S, k, -1))
    each = (
        xp.zeros((S, k), dtype=np.bool_),
        xp.empty((S, k), dtype=SCORE),
        xp.empty((S, k), dtype=np.int32),
        xp.empty((S, k), dtype=np.bool_),
    )
    found = Found(
        xp.full(S, -np.inf, dtype=SCORE),
        xp.full(S, -1, dtype=FEATURE),
        xp.zeros(S, dtype=np.int32),
        xp.zeros(S, dtype=np.bool_),
        xp.zeros((S, C), dtype=STAT),
        xp.empty(S, dtype=np.int64),
        xp.zeros((S, 0), dtype=np.uint64),
    )
    backend.launch(
        scan_features, S * k, hist, features, slots.sums, slots.n_rows, data.n_bins,
        rules.criterion, rules.min_rows, rules.count_rows, rules.min_weight,
        slots.key if rules.is_random else slots.key[:0], rules.signs, slots.bounds, B,
        xp.empty((S, k, C), dtype=STAT), *each,
    )  # fmt: skip
    backend.launch(
        choose_features, S, hist, features, need, rules.count_rows, B, *each, *found[:-1]
    )  # fmt: skip
    return found
