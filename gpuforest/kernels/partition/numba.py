"""Partition, compiled. The specification is numpy.py in this folder."""

import numpy as np

from gpuforest.compiler.decorators import kernel
from gpuforest.compiler.types import I64, I64s
from gpuforest.core.frontier import Data, Frontier, Splits
from gpuforest.kernels.shared.numba import U, goes_left
from gpuforest.kernels.shared.records import NO_BIN, Split


@kernel(target="int32")
def partition(data: Data, slots: Frontier, splits: Splits, first: I64, last: I64, n_left: I64s):
    """Move rows and weights of slots first .. last - 1 in place, and count left rows in n_left
    i64[S], which holds zeros. It reads no targets."""
    rows, weights, half = slots.rows, slots.weights, len(slots.rows) // 2
    missing = data.n_codes - 1
    for s in range(first, last):
        f, begin, end = splits.feature[s], slots.begin[s], slots.end[s]
        if f < 0:
            continue
        split = Split(0.0, f, splits.bin[s], splits.missing_left[s], NO_BIN)
        # 1. which side each row goes to: left rows are written forwards, right ones backwards from
        #    the end, without a branch to mispredict
        other = begin + half if begin < half else begin - half
        left, right = other, other + end - begin - 1
        for i in range(begin, end):
            r, w = rows[U(i)], weights[U(i)]
            code = np.int64(data.codes[U(f), U(r)])
            is_left = goes_left(code, split, missing, splits.sets[s], 0)
            at = left if is_left else right
            rows[U(at)], weights[U(at)] = r, w
            left += is_left
            right -= not is_left
        n_left[s] = left - other
        # 2. the right side back into its order
        low, high = left, other + end - begin - 1
        while low < high:
            rows[low], rows[high] = rows[high], rows[low]
            weights[low], weights[high] = weights[high], weights[low]
            low += 1
            high -= 1
