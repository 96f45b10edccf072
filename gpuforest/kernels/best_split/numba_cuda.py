"""Best split in Numba CUDA. The specification is numpy.py beside this file.

A thread scans a feature's histogram, with no more scratch than one side's sums.
"""

from typing import Any

import numpy as np

from gpuforest.common.dtypes import FEATURE, SCORE, STAT
from gpuforest.compiler.decorators import rare
from gpuforest.engine.frontier import Splits
from gpuforest.kernels.best_split.cuts import (
    feature_of,
    left_of,
    limits_of,
    may_part,
    random_of_bins,
    slot_at,
)
from gpuforest.kernels.shared.numba import class_sides, grown, has_labels, moment_score, score_sides
from gpuforest.kernels.shared.numba_cuda import cuda
from gpuforest.kernels.shared.records import NO_BIN, Cuts, Split
from gpuforest.kernels.shared.scoring import numba_cuda  # noqa: F401 rounds the products in `scan`


@rare
def bin_weight(hist, b, feature):
    """The weight of the rows in bin b of hist i64[B * width]."""
    at = b * feature.width
    n = hist[at]
    for c in range(1, feature.n_channels if feature.is_classes else 1):
        n += hist[at + c]
    return n


@rare
def scan(hist, feature, slot, criterion, limits, left):
    """As best_of_bins of scan.py, of any number of channels; `left` i64[C] is scratch."""
    C, sums, n, is_classes = feature.n_channels, slot.sums, slot.weight, feature.is_classes
    count_rows, min_rows = feature.width > C, limits.min_rows
    last = feature.missing * feature.width
    n_missing = bin_weight(hist, feature.missing, feature)
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
        for b in range(feature.missing):
            at = b * feature.width
            w = bin_weight(hist, b, feature)
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
                if rows_left < min_rows or slot.n_rows - rows_left < min_rows:
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
    cut, missing_left = np.int64(0), False
    if best_bin >= 0:
        cut, heavier = middle(hist, feature, best_bin, n)
        missing_left = best_side == 1 if n_missing > 0 else heavier
    return varies, Split(best, feature.number, cut, missing_left, NO_BIN)


@rare
def middle(hist, feature, bin, n):
    """Steps 5 and 6: the middle of the gap above `bin`, and whether the left is heavier."""
    n_left = np.int64(0)
    for b in range(bin + 1):
        n_left += bin_weight(hist, b, feature)
    heavier = n_left > n - n_left
    for b in range(bin + 1, feature.missing):
        if bin_weight(hist, b, feature) > 0:
            return (bin + b - 1) >> 1, heavier
    return feature.bins - 1, heavier


@cuda.jit
def scan_features(data, slots, hist, features, rules, cuts):
    """Steps 1 to 6 for hist i64[S, k, B * width]; each thread takes one slot and one feature."""
    S, k = features.shape
    for at in range(cuda.grid(1), np.int64(S) * k, cuda.gridsize(1)):
        s, j = at // k, at % k
        if features[s, j] < 0:
            continue
        slot = slot_at(slots, s, has_labels(data.y))
        feature = feature_of(features[s, j], data, rules, data.n_channels)
        limits, bins, left = limits_of(rules, slot, feature.number), hist[s, j], cuts.left[s, j]
        if rules.random:
            varies, split = random_of_bins(
                bins, feature, slot, rules.criterion.number, limits, left
            )
        else:
            varies, split = scan(bins, feature, slot, rules.criterion.number, limits, left)
        cuts.varies[s, j], cuts.score[s, j], cuts.bin[s, j] = varies, split.score, split.bin
        cuts.missing_left[s, j] = split.missing_left
        if split.score > -np.inf:
            left_of(bins, feature, split.bin, split.missing_left, left)


@cuda.jit
def choose_features(features, need, cuts, found):
    """Choose the first of the best among the features that may be tried; each thread takes one
    slot."""
    S, k = features.shape
    for s in range(cuda.grid(1), S, cuda.gridsize(1)):
        best, n_tried = -1, 0
        for j in range(k):
            if not cuts.varies[s, j] or n_tried >= need[s]:
                continue
            n_tried += 1
            if cuts.score[s, j] > found.score[s]:
                best, found.score[s] = j, cuts.score[s, j]
        found.tried[s] = n_tried
        if best >= 0:
            found.feature[s], found.bin[s] = features[s, best], cuts.bin[s, best]
            found.missing_left[s] = cuts.missing_left[s, best]
            for c in range(found.left.shape[1]):
                found.left[s, c] = cuts.left[s, best, c]


def best_split(data, slots, hist, features, need, rules, backend) -> Any:
    xp, (S, k), C = backend.xp, features.shape, data.n_channels
    hist = xp.reshape(hist, (S, k, -1))
    cuts = Cuts(
        xp.empty((S, k), dtype=SCORE),
        xp.zeros((S, k), dtype=np.bool_),
        xp.empty((S, k), dtype=np.int32),
        xp.empty((S, k), dtype=np.bool_),
        xp.empty((S, k, C), dtype=STAT),
    )
    found = Splits(
        xp.full(S, -np.inf, dtype=SCORE),
        xp.full(S, -1, dtype=FEATURE),
        xp.zeros(S, dtype=np.int32),
        xp.zeros(S, dtype=np.bool_),
        xp.zeros((S, C), dtype=STAT),
        xp.empty(S, dtype=np.int64),
        xp.zeros((S, 0), dtype=np.uint64),
    )
    backend.launch(scan_features, S * k, data, slots, hist, features, rules, cuts)
    backend.launch(choose_features, S, features, need, cuts, found)
    return found
