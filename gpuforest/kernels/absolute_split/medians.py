"""Weighted medians, and absolute errors around them, of groups of rows.

The median is the value at which half of a group's weight is reached; where it is reached
exactly, the middle between that value and the next one. Around either of the two the error is
the same.
"""

from __future__ import annotations

import numpy as np


def halves(group: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each group of rows, in their order, where it begins i64[g], where half of its weight is
    reached i64[g], and where more than half is i64[g].

    Parameters
    ----------
    group : i64[n], rows of one group lie together, in the order of their values
    weights : int[n] > 0

    Example
    -------
    Groups 5, 5, 5, 7 of weights 1, 1, 2, 3: [0, 3], [1, 3] and [2, 3].
    """
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
    """Weighted medians f64[S] of the rows of slots; zero where a slot has none.

    Parameters
    ----------
    q : i64[N], moments
    rows, weights : i32[R]
    begin, end : i64[S], slot s holds rows[begin[s]:end[s]]
    """
    count = end - begin
    slot = np.repeat(np.arange(len(begin)), count)
    at = np.arange(len(slot)) - (np.cumsum(count) - count)[slot] + begin[slot]
    own, w = q[rows[at]], weights[at]
    order = np.lexsort((own, slot))
    _, lower, upper = halves(slot[order], w[order])
    found = np.zeros(len(begin))
    own = own[order]
    found[count > 0] = (own[lower] + own[upper]) * 0.5
    return found
