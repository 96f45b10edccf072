"""Bag, compiled. The specification is numpy.py in this folder."""

import numpy as np

from gpuforest.compiler.decorators import device, kernel
from gpuforest.compiler.types import I64, U64, Bools, I32s, I64s, U64s
from gpuforest.kernels.shared.numba import LOW_32, U32, U, below, domain, hash_at, order_of, permute


@device
def mulhi(a, b):
    b_low, b_high = b & LOW_32, b >> U32
    a_low, a_high = a & LOW_32, a >> U32
    middle = a_high * b_low + ((a_low * b_low) >> U32)
    low = a_low * b_high + (middle & LOW_32)
    return np.int64(a_high * b_high + (middle >> U32) + (low >> U32))


@kernel
def bag(key: U64, n_draws: I64, cumulative: I64s, weights: I32s):
    """Add one tree's draws to `weights` i32[N]; `cumulative` is empty if weights are equal."""
    N = len(weights)
    total = U(cumulative[-1]) if len(cumulative) else U(N)
    for j in range(n_draws):
        # 1. a point in the total weight
        row = mulhi(hash_at(key, j), total)
        # 2. the row whose share it falls in
        if len(cumulative):
            row = below(cumulative, 0, N, row + 1)
        # 3. count
        weights[row] += 1


@kernel
def once(key: U64, count: I64, drawn: Bools):
    """Mark the `count` items bool[n] that a key draws without replacement."""
    order, (mask, shift) = order_of(key), domain(len(drawn))
    for i in range(len(drawn)):
        drawn[i] = permute(order, i, len(drawn), mask, shift) < count


@kernel
def poisson(key: U64, ids: U64s, steps: U64s, bag: I32s):
    """Write how often rows count in a bag i32[N]: how many of the steps the hash has reached.

    ids : u64[N], what is hashed of each row; steps : u64[n], ascending"""
    for r in range(len(ids)):
        point, count = hash_at(key, ids[r]), 0
        while count < len(steps) and point >= steps[count]:
            count += 1
        bag[r] = count


@kernel
def in_part(key: U64, low: I64, high: I64, numbers: U64s, bag: I32s, weights: I32s):
    """Write the weights of a bag's rows whose hash lies in a part of [0, 2**32), 0 of others.

    numbers : u64[N], what is hashed of each row"""
    for r in range(len(bag)):
        weights[r] = 0
        if bag[r] != 0:
            place = np.int64(hash_at(key, numbers[r]) >> U32)
            if low <= place < high:
                weights[r] = bag[r]


@kernel
def in_bag(bag: I32s, rows: I32s, weights: I32s):
    """Write the rows of a bag i32[N], and their weights, to `rows` and `weights`."""
    n = 0
    for r in range(len(bag)):
        if n < len(rows):  # always written, but kept only if the weight is not 0: no branch
            rows[n], weights[n] = r, bag[r]
        n += bag[r] > 0
