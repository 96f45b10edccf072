"""Encode, compiled. The specification is numpy.py beside this file."""

import numpy as np

from gpuforest.kernels.compile import kernel
from gpuforest.kernels.hashing.numba import U

ROWS = 128  # rows whose values stay in cache while one feature after another reads them


@kernel
def encode(X, edges, offsets, missing, codes):
    N, F = X.shape
    for begin in range(0, N, ROWS):
        end = min(begin + ROWS, N)
        for f in range(F):
            first, n = offsets[f], offsets[f + 1] - offsets[f]
            start = 1
            while 2 * start <= n:
                start *= 2
            for r in range(begin, end):
                x = np.float64(X[r, f])
                # 1. the edges below the value: as many steps for every row, no branches
                code, step = 0, start if n else 0
                while step > 0:
                    probe = min(code + step, n)
                    below = edges[U(first + probe - 1)] < x
                    code = probe if below else code
                    step >>= 1
                # 2. missing values
                codes[r, f] = missing if x != x else code
