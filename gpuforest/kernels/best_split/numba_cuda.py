"""Best split in Numba CUDA. The specification is numpy.py beside this file.

A thread scans a feature's histogram just as a CPU's does.
"""

from typing import Any

import numpy as np
from numba import cuda

from gpuforest.criteria import SQUARED_ERROR
from gpuforest.dtypes import FEATURE, SCORE, STAT
from gpuforest.kernels.best_split.numba import left_of, scan
from gpuforest.kernels.scoring import numba_cuda  # noqa: F401 rounds the products in `scan`


@cuda.jit
def scan_features(
    hist, features, sums, n_rows, n_bins, criterion, min_rows, count_rows, B,
    sides, varies, score, cut, missing_left,
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
        varies[s, j], score[s, j], cut[s, j], missing_left[s, j] = scan(
            hist[s, j], B, C, sums[s], n, n_rows[s], n_bins[f], criterion, min_rows, count_rows,
            sides[s, j],
        )  # fmt: skip


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
                hist[s, best], B, C, C + count_rows, cuts[s, best], sides[s, best], left[s]
            )  # fmt: skip


def best_split(
    hist, features, need, sums, n_rows, n_bins, criterion, min_rows, count_rows, backend
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
        count_rows, B, xp.empty((S, k, C), dtype=STAT), *each,
    )  # fmt: skip
    backend.launch(choose_features, S, hist, features, need, count_rows, B, *each, *found)
    return found
