"""Totals: a slot's channel sums, and whether some target differs from one value."""

import numpy as np

from gpuforest.common.dtypes import LABEL, STAT


def slots_and_rows(begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The slot of every row of all slots, in order, and its position in `rows`, i64[n] both."""
    count = end - begin
    slot = np.repeat(np.arange(len(begin)), count)
    first = np.cumsum(count) - count
    return slot, np.arange(len(slot)) + (begin - first)[slot]


def totals(
    y: np.ndarray, rows: np.ndarray, weights: np.ndarray, begin: np.ndarray, end: np.ndarray, C: int
) -> np.ndarray:
    """Channel sums i64[S, C] of the rows of each slot.

    Parameters
    ----------
    y : i32[N, 1] classes or i64[N, K] moments
    rows, weights : i32[R]
    begin, end : i64[S], slot s holds rows[begin[s]:end[s]]; sums of no rows are zero

    Example
    -------
    Classes (0, 1, 1) with weights (1, 1, 2) and C = 2 in one slot: sums (1, 3).
    """
    S = len(begin)
    slot, position = slots_and_rows(begin, end)
    target, weight = y[rows[position]], weights[position].astype(STAT)
    sums = np.zeros((S, C), STAT)
    if y.dtype == LABEL:
        np.add.at(sums, (slot, target[:, 0]), weight)
    else:
        np.add.at(sums[:, 0], slot, weight)
        for k in range(C - 1):
            np.add.at(sums[:, 1 + k], slot, weight * target[:, k])
    return sums


def differs(
    y: np.ndarray, rows: np.ndarray, begin: np.ndarray, end: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """Whether some row of a slot has a target that differs from the slot's value, bool[S].

    Parameters
    ----------
    y : i64[N, K] moments
    rows : i32[R]
    begin, end : i64[S], slot s holds rows[begin[s]:end[s]]; without rows nothing differs
    values : i64[S, K]

    Example
    -------
    Moments (4, 4, 5) in one slot: True for the value 4, and False for its first two rows.
    """
    slot, position = slots_and_rows(begin, end)
    other = (y[rows[position]] != values[slot]).any(axis=1)
    return np.bincount(slot[other], minlength=len(begin)) > 0
