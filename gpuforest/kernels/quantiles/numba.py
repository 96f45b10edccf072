"""Quantiles, compiled. The specification is numpy.py beside this file.

A row's members are few among all training rows: an array of bits, one for each rank, says which
ranks have a weight, and its words are read in order, so nothing is sorted.
"""

from typing import NamedTuple

import numpy as np

from gpuforest.kernels.decorators import device, kernel
from gpuforest.kernels.quantiles.members import INVERTED, LINEAR, LOWER, MEAN, Members
from gpuforest.kernels.shared.hashing.numba import U
from gpuforest.kernels.types import F64s, F64s2, F64s3, I64, I64s, I64s2, I64s3, U64s

WORD, IN_WORD, ONE, NONE = np.int64(6), np.int64(63), U(1), U(0)
EXPONENT, BIAS = np.int64(52), np.int64(1023)  # of float64


class ByRank(NamedTuple):
    """Scratch of a thread.

    weight : i64[N], zero between two rows
    bits : u64[N / 64 + 1], bit r is set where weight[r] is not zero; zero between two rows
    value, upto : f64[N] and i64[N], the targets of a row and the weights up to each
    """

    weight: I64s
    bits: U64s
    value: F64s
    upto: I64s


def new_scratch(n_rows: int) -> ByRank:
    """Scratch for so many training rows."""
    return ByRank(
        np.zeros(n_rows, np.int64),
        np.zeros(n_rows // 64 + 1, np.uint64),
        np.empty(n_rows),
        np.empty(n_rows, np.int64),
    )


@device
def position_of(bit):
    """The position of the only bit of a word, from the exponent of the word as a number."""
    return (np.float64(bit).view(np.int64) >> EXPONENT) - BIAS


@device
def add_members(members, leaves, i, k, ranks):
    """Add the weights of the members of row i's leaves, and return the draws."""
    draws = 0
    for t in range(leaves.shape[1]):
        node = leaves[i, t]
        if node < 0:
            continue
        draws += members.draws[node]
        for e in range(members.begin[node], members.begin[node + 1]):
            r = np.int64(members.rank[k, members.row[e]])
            ranks.weight[r] += members.weight[e]
            ranks.bits[r >> WORD] |= ONE << U(r & IN_WORD)
    return draws


@device
def in_order(ranks, y, k):
    """Write the values and the weights up to each, clear the weights, and return how many."""
    n, total = 0, 0
    for w in range(len(ranks.bits)):
        word = ranks.bits[w]
        if word == NONE:
            continue
        ranks.bits[w] = NONE
        while word != NONE:
            rest = word & (word - ONE)
            r = (np.int64(w) << WORD) + position_of(word ^ rest)
            word = rest
            total += ranks.weight[r]
            ranks.weight[r] = 0
            ranks.value[n], ranks.upto[n] = y[k, r], total
            n += 1
    return n


@device
def first_above(upto, n, limit):
    """The first position whose weight is above the limit, n - 1 at most."""
    low, high = 0, n - 1
    while low < high:
        middle = (low + high) >> 1
        if np.float64(upto[middle]) > limit:
            high = middle
        else:
            low = middle + 1
    return low


@device
def first_not_below(upto, n, limit):
    """The first position whose weight is not below the limit, n - 1 at most."""
    low, high = 0, n - 1
    while low < high:
        middle = (low + high) >> 1
        if np.float64(upto[middle]) >= limit:
            high = middle
        else:
            low = middle + 1
    return low


@device
def mean_over(values, upto, n, start, end):
    """The mean of V from `start` to `end`, added from the first value on."""
    at = first_above(upto, n, start)
    base, total, before = values[at], 0.0, start
    while at < n:
        here = min(np.float64(upto[at]), end)
        total += (values[at] - base) * (here - before)
        before = here
        if np.float64(upto[at]) >= end:
            break
        at += 1
    return base + total / (end - start)


@device
def quantile(values, upto, n, draws, q, how):
    """One quantile of ascending values, from the cumulative weights up to each."""
    total = np.float64(upto[n - 1])
    unit = total / draws
    start = q * (draws - 1) * unit
    end = start + unit
    if how == LINEAR:
        return mean_over(values, upto, n, start, end)
    slack = draws + 1.0
    if how == LOWER:
        return values[first_above(upto, n, start + slack)]
    limit = q * total if how == INVERTED else end
    return values[first_not_below(upto, n, limit - slack)]


@kernel
def quantiles(
    members: Members, leaves: I64s2, y: F64s2, q: F64s, how: I64, ranks: ByRank, out: F64s3
):  # fmt: skip
    """Write the quantiles to `out` f64[n, K, Q], or the mean to `out` f64[n, K, 1]."""
    for i in range(len(leaves)):
        for k in range(len(y)):
            # 1. the members of the leaves, and the draws
            draws = add_members(members, leaves, i, k, ranks)
            # 2. the weights of rows in the order of their targets
            n = in_order(ranks, y, k)
            # 3. the mean, or the quantiles
            for j in range(out.shape[2]):
                if n == 0:
                    out[i, k, j] = np.nan
                elif how == MEAN:
                    end = np.float64(ranks.upto[n - 1])
                    out[i, k, j] = mean_over(ranks.value, ranks.upto, n, 0.0, end)
                else:
                    out[i, k, j] = quantile(ranks.value, ranks.upto, n, draws, q[j], how)


@kernel
def weights_below(members: Members, leaves: I64s2, low: I64s2, high: I64s2, out: I64s3):
    """Add the weights to `out` i64[n, K, 2], which holds zeros."""
    for i in range(len(leaves)):
        for t in range(leaves.shape[1]):
            node = leaves[i, t]
            if node < 0:
                continue
            for e in range(members.begin[node], members.begin[node + 1]):
                for k in range(low.shape[1]):
                    rank, weight = members.rank[k, members.row[e]], members.weight[e]
                    out[i, k, 0] += weight if rank < low[i, k] else 0
                    out[i, k, 1] += weight if rank < high[i, k] else 0
