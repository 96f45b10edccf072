"""Histogram in Numba CUDA. The specification is numpy.py beside this file."""

from typing import Any

import numpy as np
from numba import cuda

from gpuforest.common.dtypes import STAT
from gpuforest.kernels.histogram.numba import has_labels
from gpuforest.kernels.totals.numba_cuda import slot_and_place


@cuda.jit
def add_rows(codes, y, rows, weights, begin, features, C, count_rows, first, hist):
    """A thread a row and feature."""
    k = np.int64(features.shape[1])
    for at in range(cuda.grid(1), first[len(begin)] * k, cuda.gridsize(1)):
        j = at % k
        s, place = slot_and_place(at // k, first, begin)
        r, w = rows[place], np.int64(weights[place])
        # 1. the row's bin in the slot's j-th feature
        f = features[s, j]
        if f < 0:
            continue
        b = codes[r, f]
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
    backend.launch(
        add_rows, len(slots.rows) * k, data.codes, data.y, slots.rows, slots.weights, slots.begin,
        features, C, count_rows, first, hist,
    )  # fmt: skip
    return hist
