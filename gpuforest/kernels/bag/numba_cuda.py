"""Bag in Numba CUDA. The specification is numpy.py beside this file."""

from typing import Any

import numpy as np

from gpuforest.common.dtypes import WEIGHT
from gpuforest.kernels.bag.numba import mulhi
from gpuforest.kernels.encode.numba_cuda import below
from gpuforest.kernels.shared.numba import U, hash_at
from gpuforest.kernels.shared.numba_cuda import cuda


@cuda.jit
def draw(keys, n_draws, cumulative, weights):
    """A thread a draw; `cumulative` is empty for equal rows."""
    T, N = weights.shape
    total = U(cumulative[N - 1]) if len(cumulative) else U(N)
    for at in range(cuda.grid(1), np.int64(T) * n_draws, cuda.gridsize(1)):
        t, j = at // n_draws, at % n_draws
        # 1. a point in the total weight
        row = mulhi(hash_at(keys[t], j), total)
        # 2. the row whose share it falls in
        if len(cumulative):
            row = below(cumulative, 0, N, row + 1)
        # 3. count
        cuda.atomic.add(weights, (t, row), 1)


def bag(keys, N, n_draws, cumulative, backend) -> Any:
    xp = backend.xp
    weights = xp.zeros((len(keys), N), dtype=WEIGHT)
    shares = xp.zeros(0, dtype=np.int64) if cumulative is None else cumulative
    backend.launch(draw, len(keys) * n_draws, keys, n_draws, shares, weights)
    return weights
