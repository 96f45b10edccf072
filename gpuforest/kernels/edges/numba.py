"""Edges of a sorted column of equal weights, compiled; numpy.py in this folder specifies them.

Sums of whole numbers do not depend on the order. They and the maximum of positive floats, by their
bits, are computed as integers, because the compiler vectorises these loops.
"""

import math

import numpy as np

from gpuforest.compiler.decorators import device, kernel, rare
from gpuforest.compiler.types import I64, F64s, F64s2, I64s
from gpuforest.kernels.edges.numpy import SUM_BITS, TINY

BLOCK = 64  # gaps that are skipped at once if they hold no edge


@device
def float_of(bits):
    return np.int64(bits).view(np.float64)


@device
def middle(low, high):
    between = low / 2 + high / 2
    return between if low <= between < high else low


@device
def rounded(total, shares, n_edges):
    return math.floor(total / shares * n_edges + 0.5)


@rare
def capped(measure, G, n):
    """Cap the measures of G > n gaps in place, and return their sum."""
    bits, size = measure.view(np.int64), 0
    while G >> size:
        size += 1
    units = np.float64(1 << (SUM_BITS - size))
    cap, left = np.inf, G
    while True:
        limit, kept, most = np.float64(cap).view(np.int64), 0, 0
        for i in range(G):
            kept += bits[i] <= limit
            most = max(most, bits[i] if bits[i] <= limit else 0)
        if cap < np.inf and kept == left:
            break
        n, left = n - (left - kept), kept
        top = float_of(most)
        unit, total = units / top, 0
        for i in range(G):
            total += math.ceil(measure[i] * unit) if measure[i] <= cap else 0
        cap = min(cap, top * (total / units / n))
    unit, total = units / cap, 0
    for i in range(G):
        whole = math.ceil(min(measure[i], cap) * unit)
        measure[i] = whole
        total += whole
    return np.float64(total)


@device
def find_edges(values, max_bins, first, rank, spread, out):
    """Write the edges of a column to `out`, and return their number; see `edges`."""
    n = len(values) - 1
    while n > 0 and np.isnan(values[n - 1]):
        n -= 1
    # 1. distinct values, and where each begins: always written, but kept only if they are new
    n_values, last = 0, np.nan
    for i in range(n):
        x = values[i]
        values[n_values], first[n_values] = x, i
        n_values += x != last
        last = x
    first[n_values] = n
    G, n_edges = n_values - 1, max_bins - 1
    if n_values <= max_bins:
        for i in range(G):
            out[i] = middle(values[i], values[i + 1])
        return max(G, 0)
    # 2. two measures of each gap
    widths, widest = spread.view(np.int64), 0
    for i in range(G):
        spread[i] = values[i + 1] / 2 - values[i] / 2
    for i in range(G):
        widest = max(widest, widths[i])
    width = max(float_of(widest), TINY)
    for i in range(G):
        rank[i] = first[i + 2] - first[i]
        half = math.sqrt(max(spread[i] / width, TINY))
        spread[i] = half * math.sqrt(half * math.sqrt(rank[i]))
    # 3. each capped, then both together
    half_of_them = max(n_edges // 2, 1)
    ranks, spreads = capped(rank, G, half_of_them), capped(spread, G, half_of_them)
    share = rank
    for i in range(G):
        share[i] = rank[i] / ranks + spread[i] / spreads
    shares = capped(share, G, n_edges)
    # 4. an edge where their running sum, counted in edges, rounds to a new number
    n_chosen, total, before = 0, 0.0, 0
    for begin in range(0, G, BLOCK):
        end, whole = min(begin + BLOCK, G), 0
        for i in range(begin, end):
            whole += np.int64(share[i])
        if rounded(total + whole, shares, n_edges) == before:
            total += whole
            continue
        for i in range(begin, end):
            total += share[i]
            step = rounded(total, shares, n_edges)
            if step != before:
                out[n_chosen] = middle(values[i], values[i + 1])
                n_chosen += 1
            before = step
    return n_chosen


@kernel
def edges(
    column: F64s, max_bins: I64, first: F64s, rank: F64s, spread: F64s, out: F64s2, count: I64s,
    number: I64s,
):  # fmt: skip
    """Write the edges of column f, which is number[0], to out[f], f64[min(n, max_bins)], and their
    number to count[f].

    column : f64[n + 1], ascending, NaN last, and one more place; it is overwritten
    first, rank, spread : f64[n + 1], scratch
    """
    f = number[0]
    count[f] = find_edges(column, max_bins, first, rank, spread, out[f])
