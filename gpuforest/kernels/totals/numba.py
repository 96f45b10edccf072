"""Totals, compiled. The specification is numpy.py in this folder."""

import numpy as np

from gpuforest.compiler.decorators import device, kernel
from gpuforest.compiler.types import I32s, I64s, I64s2, Targets2
from gpuforest.kernels.shared.numba import has_labels


@device
def totals_of(y, rows, weights, begin, end, sums):
    """Add one slot's rows to `sums` i64[C], which holds zeros."""
    for i in range(begin, end):
        r, w = rows[i], np.int64(weights[i])
        if has_labels(y):
            sums[y[r, 0]] += w
        else:
            sums[0] += w
            for k in range(y.shape[1]):
                sums[1 + k] += w * y[r, k]


@kernel
def totals(y: Targets2, rows: I32s, weights: I32s, begin: I64s, end: I64s, sums: I64s2):
    """Add the rows of each slot to `sums` i64[S, C], which holds zeros."""
    for s in range(len(begin)):
        totals_of(y, rows, weights, begin[s], end[s], sums[s])
