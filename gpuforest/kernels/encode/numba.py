"""Encode, compiled. The specification is numpy.py beside this file."""

import numpy as np

from gpuforest.kernels.compile import kernel
from gpuforest.kernels.hashing.numba import U

ROWS = 128  # rows whose values stay in cache while one feature after another reads them


@kernel
def encode(X, edges, offsets, missing, codes):
    N, F = X.shape
    x, code = np.empty(ROWS, np.float64), np.empty(ROWS, np.int64)
    for begin in range(0, N, ROWS):
        n_rows = min(ROWS, N - begin)
        for f in range(F):
            first, n = offsets[f], offsets[f + 1] - offsets[f]
            for i in range(n_rows):
                x[i], code[i] = X[begin + i, f], 0
            # 1. the edges below the value, by halving; all rows take a step together,
            #    so that there is no branch to mispredict
            step = 1
            while 2 * step <= n:
                step *= 2
            while step > 0 and n > 0:
                for i in range(n_rows):
                    probe = min(code[i] + step, n)
                    below = edges[U(first + probe - 1)] < x[i]
                    code[i] += (probe - code[i]) * below
                step >>= 1
            # 2. missing values
            for i in range(n_rows):
                codes[begin + i, f] = missing if x[i] != x[i] else code[i]
