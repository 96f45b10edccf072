"""Partition in Numba CUDA. The specification is numpy.py beside this file."""

from typing import Any

import numpy as np
from numba import cuda

from gpuforest.kernels.shared.goes_left.numba import has_code
from gpuforest.kernels.totals.numba_cuda import slot_and_place
from gpuforest.nodes import SET_BIN


@cuda.jit
def choose_sides(
    codes, rows, begin, feature, bin, missing_left, missing, sets, n_words, first, left
):  # fmt: skip
    """Step 1, a thread a row: left[i] is 1 where the i-th row of all slots goes left.

    sets : u64[S * n_words], slot after slot
    """
    for i in range(cuda.grid(1), first[len(begin)], cuda.gridsize(1)):
        s, place = slot_and_place(i, first, begin)
        code = codes[rows[place], feature[s]]
        if code == missing:
            left[i] = missing_left[s]
        elif bin[s] == SET_BIN:
            left[i] = has_code(sets, s * n_words, np.int64(code))
        else:
            left[i] = code <= bin[s]


@cuda.jit
def move(rows, weights, begin, first, rank):
    """Step 2, a thread a row: rank[i] of the rows before the i-th go left."""
    half = len(rows) // 2
    for i in range(cuda.grid(1), first[len(begin)], cuda.gridsize(1)):
        s, place = slot_and_place(i, first, begin)
        before = rank[i] - rank[first[s]]
        if rank[i + 1] == rank[i]:  # to the right: all that go left come first
            before = rank[first[s + 1]] - rank[i] + i - first[s]
        at = begin[s] + before + (half if begin[s] < half else -half)
        rows[at], weights[at] = rows[place], weights[place]


def partition(data, slots, splits, backend) -> tuple[Any, Any, Any]:
    """Changes rows and weights in place."""
    xp, rows, weights, begin = backend.xp, slots.rows, slots.weights, slots.begin
    R, sets = len(rows) // 2, splits.sets
    first = backend.offsets(xp.where(splits.feature < 0, 0, slots.end - begin))
    left = xp.zeros(R, dtype=np.int64)
    backend.launch(
        choose_sides, R, data.codes, rows, begin, splits.feature, splits.bin, splits.missing_left,
        data.n_codes - 1, xp.reshape(sets, (-1,)), sets.shape[1], first, left,
    )  # fmt: skip
    rank = backend.offsets(left)
    backend.launch(move, R, rows, weights, begin, first, rank)
    return rows, weights, rank[first[1:]] - rank[first[:-1]]
