"""Encode in Numba CUDA. The specification is numpy.py beside this file."""

from typing import Any

import numpy as np

from gpuforest.common.dtypes import CODE8, CODE16
from gpuforest.compiler.decorators import device
from gpuforest.kernels.shared.numba_cuda import cuda


@device
def below(values, first, last, x):
    """How many of the ascending values[first:last] are below x."""
    low, high = first, last
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low - first


@cuda.jit
def encode_values(X, edges, offsets, missing, codes):
    """A thread a value."""
    N, F = X.shape
    for at in range(cuda.grid(1), np.int64(N) * F, cuda.gridsize(1)):
        r, f = at // F, at % F
        # 1. the edges below the value (compared as float64, which holds any float32)
        x = np.float64(X[r, f])
        code = below(edges, offsets[f], offsets[f + 1], x)
        # 2. missing values
        codes[r, f] = missing if x != x else code


def encode(X, edges, offsets, missing, backend) -> Any:
    codes = backend.xp.empty(X.shape, dtype=CODE8 if missing < 256 else CODE16)
    backend.launch(encode_values, codes.size, X, edges, offsets, missing, codes)
    return codes
