"""Partition, compiled. The specification is numpy.py beside this file."""

import numpy as np

from gpuforest.kernels.best_split.sets import has_code
from gpuforest.kernels.compile import kernel
from gpuforest.kernels.hashing.numba import U
from gpuforest.nodes import SET_BIN


@kernel
def partition(
    codes, rows, weights, begin, end, feature, bin, missing_left, missing, sets, n_left
):  # fmt: skip
    """Changes rows and weights in place; n_left i64[S] holds zeros."""
    half, flat = len(rows) // 2, sets.reshape(-1)
    for s in range(len(begin)):
        f, cut, missing_goes = feature[s], bin[s], missing_left[s]
        if f < 0:
            continue
        # 1. which way each row goes; left ones forwards, right ones backwards from the
        #    end, without a branch to mispredict
        first = begin[s] + half if begin[s] < half else begin[s] - half
        left, right = first, first + end[s] - begin[s] - 1
        for i in range(begin[s], end[s]):
            r, w = rows[U(i)], weights[U(i)]
            code = codes[U(r), U(f)]
            goes_left = missing_goes if code == missing else code <= cut
            if cut == SET_BIN and code != missing:
                goes_left = has_code(flat, s * sets.shape[1], np.int64(code))
            at = left if goes_left else right
            rows[U(at)], weights[U(at)] = r, w
            left += goes_left
            right -= not goes_left
        # 2. the right side back into its order
        n_left[s] = left - first
        low, high = left, first + end[s] - begin[s] - 1
        while low < high:
            rows[low], rows[high] = rows[high], rows[low]
            weights[low], weights[high] = weights[high], weights[low]
            low += 1
            high -= 1
