"""Totals: a slot's channel sums, and whether its target is constant."""

import numpy as np

from gpuforest.dtypes import LABEL, STAT


def slots_and_rows(
    rows: np.ndarray, begin: np.ndarray, end: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """For every row of every slot, in order: its slot, and its place in `rows`."""
    count = end - begin
    slot = np.repeat(np.arange(len(begin)), count)
    first = np.cumsum(count) - count
    place = np.arange(len(slot)) - first[slot] + begin[slot]
    return slot, place


def totals(
    y: np.ndarray,
    rows: np.ndarray,
    weights: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    C: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Channel sums i64[S, C] and "all targets are equal" bool[S].

    Parameters
    ----------
    y : i32[N, 1] classes or i64[N, K] moments
    rows, weights : i32[R]
    begin, end : i64[S], slot s holds rows[begin[s]:end[s]]; without any, zeros and True

    Example
    -------
    Classes (0, 1, 1) with weights (1, 1, 2) and C = 2 in one slot: sums (1, 3), False.
    """
    S = len(begin)
    slot, place = slots_and_rows(rows, begin, end)
    target, weight = y[rows[place]], weights[place].astype(STAT)
    sums = np.zeros((S, C), STAT)
    # 1. sums
    if y.dtype == LABEL:
        np.add.at(sums, (slot, target[:, 0]), weight)
    else:
        np.add.at(sums[:, 0], slot, weight)
        for k in range(C - 1):
            np.add.at(sums[:, 1 + k], slot, weight * target[:, k])
    # 2. rows that differ from their slot's first
    differs = (target != y[rows[begin[slot]]]).any(axis=1)
    return sums, np.bincount(slot[differs], minlength=S) == 0
