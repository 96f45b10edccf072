"""Weighted medians, and absolute errors around them, of groups of rows.

The median is the value at which half of a group's weight is reached. If it is reached exactly,
the median is the middle between that value and the next one; the error around either is the same.
"""

from __future__ import annotations

import numpy as np

from gpuforest.kernels.totals.numpy import slots_and_rows


def halves(group: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """First row, row that reaches half of the weight, row that exceeds it, of g groups: i64[g]
    each.

    Parameters
    ----------
    group : i64[n], each row's group; rows of a group are adjacent, in the order of their values
    weights : int[n] > 0

    Example
    -------
    Groups 5, 5, 5, 7 of weights 1, 1, 2, 3: [0, 3], [1, 3] and [2, 3]."""
    first = np.ones(len(group), np.bool_)
    first[1:] = group[1:] != group[:-1]
    begin, number = np.flatnonzero(first), np.cumsum(first) - 1
    upto = np.cumsum(weights, dtype=np.int64)
    before = (upto - weights)[begin]
    total = np.append(before[1:], upto[-1:]) - before
    twice, total = 2 * (upto - before[number]), total[number]
    start = twice - 2 * weights.astype(np.int64)
    lower = np.flatnonzero((start < total) & (twice >= total))
    return begin, lower, np.flatnonzero((start <= total) & (twice > total))


def slot_medians(
    q: np.ndarray, rows: np.ndarray, weights: np.ndarray, begin: np.ndarray, end: np.ndarray
) -> np.ndarray:
    """Weighted medians f64[S] of the rows of slots; zero for a slot without rows.

    q : i64[N], moments
    rows, weights : i32[R]
    begin, end : i64[S], slot s holds rows[begin[s]:end[s]]"""
    slot, at = slots_and_rows(begin, end)
    targets = q[rows[at]]
    order = np.lexsort((targets, slot))
    _, lower, upper = halves(slot[order], weights[at][order])
    medians, targets = np.zeros(len(begin)), targets[order]
    medians[end > begin] = (targets[lower] + targets[upper]) * 0.5
    return medians
