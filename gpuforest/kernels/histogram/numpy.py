"""Histogram: channel sums by bin, for every slot and every feature tried there."""

import numpy as np

from gpuforest.dtypes import LABEL, STAT
from gpuforest.kernels.totals.numpy import slots_and_rows


def histogram(
    codes: np.ndarray,
    y: np.ndarray,
    rows: np.ndarray,
    weights: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    features: np.ndarray,
    B: int,
    C: int,
    count_rows: bool,
) -> np.ndarray:
    """Sums i64[S, k, B, C], or [S, k, B, C + 1] with a last channel that counts rows.

    Parameters
    ----------
    codes : u8 or u16 [N, F], each below B
    y : i32[N, 1] classes or i64[N, K] moments
    rows, weights : i32[R]
    begin, end : i64[S], slot s holds rows[begin[s]:end[s]]
    features : i32[S, k], the features tried; -1 leaves its histogram empty

    Example
    -------
    One slot of three rows with codes (0, 2, 2), classes (0, 0, 1), weights (1, 1, 3):
    bin 0 holds (1, 0), bin 1 (0, 0), bin 2 (1, 3).
    """
    S, k = features.shape
    out = np.zeros((S, k, B, C + count_rows), STAT)
    slot, place = slots_and_rows(rows, begin, end)
    row, weight = rows[place], weights[place].astype(STAT)
    for j in range(k):
        # 1. each row's bin in the slot's j-th feature
        f = features[slot, j]
        used = f >= 0
        s, r, w = slot[used], row[used], weight[used]
        b = codes[r, f[used]]
        # 2. add its weight, or weight and moments
        if y.dtype == LABEL:
            np.add.at(out, (s, j, b, y[r, 0]), w)
        else:
            np.add.at(out, (s, j, b, 0), w)
            for c in range(C - 1):
                np.add.at(out, (s, j, b, 1 + c), w * y[r, c])
        # 3. count it
        if count_rows:
            np.add.at(out, (s, j, b, C), 1)
    return out
