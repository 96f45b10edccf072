"""Totals, compiled. The specification is numpy.py in this folder."""

import numpy as np

from gpuforest.compiler.decorators import kernel
from gpuforest.compiler.types import I32s, I64s, I64s2, Targets2
from gpuforest.kernels.shared.numba import has_labels


@kernel
def totals(y: Targets2, rows: I32s, weights: I32s, begin: I64s, end: I64s, sums: I64s2):
    """Add the rows of each slot to `sums` i64[S, C], which holds zeros."""
    for s in range(len(begin)):
        for i in range(begin[s], end[s]):
            r, w = rows[i], np.int64(weights[i])
            if has_labels(y):
                sums[s, y[r, 0]] += w
                continue
            sums[s, 0] += w
            for k in range(y.shape[1]):
                sums[s, 1 + k] += w * y[r, k]
