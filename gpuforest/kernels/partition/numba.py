"""Partition, compiled. The specification is numpy.py beside this file."""

from gpuforest.kernels.compile import kernel
from gpuforest.kernels.hashing.numba import U


@kernel
def partition(
    codes, rows, weights, begin, end, feature, bin, missing_left, missing,
    first, new_rows, new_weights, n_left,
):  # fmt: skip
    """Writes slot s to new_rows[first[s]:...] and its count of left rows to n_left[s]."""
    for s in range(len(begin)):
        f, cut, missing_goes = feature[s], bin[s], missing_left[s]
        # 1. which way each row goes; left ones forwards, right ones backwards from the
        #    end, without a branch to mispredict
        left, right = first[s], first[s] + end[s] - begin[s] - 1
        for i in range(begin[s], end[s]):
            r = rows[i]
            code = codes[U(r), U(f)]
            goes_left = missing_goes if code == missing else code <= cut
            at = left if goes_left else right
            new_rows[U(at)], new_weights[U(at)] = r, weights[i]
            left += goes_left
            right -= not goes_left
        # 2. the right side back into its order
        n_left[s] = left - first[s]
        low, high = left, first[s] + end[s] - begin[s] - 1
        while low < high:
            new_rows[low], new_rows[high] = new_rows[high], new_rows[low]
            new_weights[low], new_weights[high] = new_weights[high], new_weights[low]
            low += 1
            high -= 1
