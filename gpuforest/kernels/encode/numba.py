"""Encode, compiled. The specification is numpy.py beside this file."""

import numpy as np

from gpuforest.kernels.compile import kernel


@kernel
def encode(X, edges, offsets, missing, codes):
    N, F = X.shape
    for f in range(F):
        first, n = offsets[f], offsets[f + 1] - offsets[f]
        for r in range(N):
            x = np.float64(X[r, f])
            # 2. missing values
            if x != x:
                codes[r, f] = missing
                continue
            # 1. the edges below the value: a halving without branches
            low, size = first, n
            while size > 0:
                half = size >> 1
                below = edges[low + half] < x
                low = low + half + 1 if below else low
                size = size - half - 1 if below else half
            codes[r, f] = low - first
