"""Totals in Numba CUDA. The specification is numpy.py beside this file."""

from typing import Any

import numpy as np

from gpuforest.common.dtypes import STAT
from gpuforest.compiler.decorators import device
from gpuforest.kernels.encode.numba_cuda import below
from gpuforest.kernels.shared.numba import has_labels
from gpuforest.kernels.shared.numba_cuda import cuda


@device
def slot_and_position(i, first, begin):
    """Find the slot of the i-th row of all slots, in order, and its position in `rows`.

    first : i64[S + 1], how many rows the slots before hold
    """
    s = below(first, 1, len(first), i + 1)
    return s, begin[s] + i - first[s]


@cuda.jit
def add_rows(y, rows, weights, begin, first, sums):
    """Add the rows to `sums`; each thread takes one row."""
    for i in range(cuda.grid(1), first[len(begin)], cuda.gridsize(1)):
        s, position = slot_and_position(i, first, begin)
        r, w = rows[position], np.int64(weights[position])
        if has_labels(y):
            cuda.atomic.add(sums, (s, y[r, 0]), w)
        else:
            cuda.atomic.add(sums, (s, 0), w)
            for k in range(y.shape[1]):
                cuda.atomic.add(sums, (s, 1 + k), w * y[r, k])


def totals(y, rows, weights, begin, end, C, backend) -> Any:
    sums = backend.xp.zeros((len(begin), C), dtype=STAT)
    first = backend.offsets(end - begin)
    backend.launch(add_rows, len(rows), y, rows, weights, begin, first, sums)
    return sums


@cuda.jit
def compare_rows(y, rows, begin, first, values, found):
    """Look for rows that differ from their slot's values; each thread takes one row."""
    for i in range(cuda.grid(1), first[len(begin)], cuda.gridsize(1)):
        s, position = slot_and_position(i, first, begin)
        for k in range(y.shape[1]):
            if y[rows[position], k] != values[s, k]:
                found[s] = True


def differs(y, rows, begin, end, values, backend) -> Any:
    found = backend.xp.zeros(len(begin), dtype=np.bool_)
    first = backend.offsets(end - begin)
    backend.launch(compare_rows, len(rows), y, rows, begin, first, values, found)
    return found
