"""Histogram in Numba CUDA. The specification is numpy.py beside this file."""

from typing import Any

import numpy as np

from gpuforest.common.dtypes import STAT
from gpuforest.kernels.shared.numba import has_labels
from gpuforest.kernels.shared.numba_cuda import cuda
from gpuforest.kernels.totals.numba_cuda import slot_and_position


@cuda.jit
def add_rows(data, slots, features, count_rows, first, hist):
    """Add the rows to hist i64[S, k, B, width]; each thread takes one row and one feature."""
    y, C, begin, k = data.y, data.n_channels, slots.begin, np.int64(features.shape[1])
    for at in range(cuda.grid(1), first[len(begin)] * k, cuda.gridsize(1)):
        j = at % k
        s, position = slot_and_position(at // k, first, begin)
        r, w = slots.rows[position], np.int64(slots.weights[position])
        # 1. the row's bin in the slot's j-th feature
        f = features[s, j]
        if f < 0:
            continue
        b = data.codes[r, f]
        # 2. add its weight, or weight and moments
        if has_labels(y):
            cuda.atomic.add(hist, (s, j, b, y[r, 0]), w)
        else:
            cuda.atomic.add(hist, (s, j, b, 0), w)
            for c in range(C - 1):
                cuda.atomic.add(hist, (s, j, b, 1 + c), w * y[r, c])
        # 3. count it
        if count_rows:
            cuda.atomic.add(hist, (s, j, b, C), 1)


def histogram(data, slots, features, count_rows, backend) -> Any:
    (S, k), C = features.shape, data.n_channels
    hist = backend.xp.zeros((S, k, data.n_codes, C + count_rows), dtype=STAT)
    first = backend.offsets(slots.end - slots.begin)
    n = len(slots.rows) * k
    backend.launch(add_rows, n, data, slots, features, count_rows, first, hist)
    return hist
