"""Totals, compiled. The specification is numpy.py beside this file."""

import numpy as np

from gpuforest.kernels.compile import device, kernel
from gpuforest.kernels.histogram.numba import has_labels


@device
def totals_of(y, rows, weights, begin, end, sums):
    """Add one slot's rows to `sums` i64[C], which holds zeros; are its targets equal?"""
    constant = True
    for i in range(begin, end):
        # 1. sums
        r, w = rows[i], np.int64(weights[i])
        if has_labels(y):
            sums[y[r, 0]] += w
        else:
            sums[0] += w
            for k in range(y.shape[1]):
                sums[1 + k] += w * y[r, k]
        # 2. rows that differ from their slot's first
        for k in range(y.shape[1]):
            constant &= y[r, k] == y[rows[begin], k]
    return constant


@kernel
def totals(y, rows, weights, begin, end, sums, constant):
    """`sums` i64[S, C] holds zeros; the results are written to the last two arguments."""
    for s in range(len(begin)):
        constant[s] = totals_of(y, rows, weights, begin[s], end[s], sums[s])
