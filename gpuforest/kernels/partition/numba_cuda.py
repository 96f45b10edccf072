"""Partition in Numba CUDA. The specification is numpy.py beside this file."""

from typing import Any

import numpy as np

from gpuforest.kernels.shared.numba import goes_left
from gpuforest.kernels.shared.numba_cuda import cuda
from gpuforest.kernels.shared.records import NO_BIN, Split
from gpuforest.kernels.totals.numba_cuda import slot_and_position


@cuda.jit
def choose_sides(data, slots, splits, sets, first, left):
    """Step 1: left[i] is 1 where the i-th row of all slots goes left; each thread takes one row.

    sets : u64[S * W], slot after slot
    """
    n_words, missing = splits.sets.shape[1], data.n_codes - 1
    for i in range(cuda.grid(1), first[len(slots.begin)], cuda.gridsize(1)):
        s, position = slot_and_position(i, first, slots.begin)
        f = splits.feature[s]
        split = Split(0.0, f, splits.bin[s], splits.missing_left[s], NO_BIN)
        code = np.int64(data.codes[slots.rows[position], f])
        left[i] = goes_left(code, split, missing, sets, s * n_words)


@cuda.jit
def move(rows, weights, begin, first, rank):
    """Step 2: rank[i] of the rows before the i-th go left; each thread takes one row."""
    half = len(rows) // 2
    for i in range(cuda.grid(1), first[len(begin)], cuda.gridsize(1)):
        s, position = slot_and_position(i, first, begin)
        before = rank[i] - rank[first[s]]
        if rank[i + 1] == rank[i]:  # to the right: all that go left come first
            before = rank[first[s + 1]] - rank[i] + i - first[s]
        at = begin[s] + before + (half if begin[s] < half else -half)
        rows[at], weights[at] = rows[position], weights[position]


def partition(data, slots, splits, backend) -> tuple[Any, Any, Any]:
    """Changes rows and weights in place."""
    xp, rows, weights, begin = backend.xp, slots.rows, slots.weights, slots.begin
    R, sets = len(rows) // 2, xp.reshape(splits.sets, (-1,))
    first = backend.offsets(xp.where(splits.feature < 0, 0, slots.end - begin))
    left = xp.zeros(R, dtype=np.int64)
    backend.launch(choose_sides, R, data, slots, splits, sets, first, left)
    rank = backend.offsets(left)
    backend.launch(move, R, rows, weights, begin, first, rank)
    return rows, weights, rank[first[1:]] - rank[first[:-1]]
