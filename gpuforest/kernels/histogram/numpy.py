"""Histogram: channel sums by bin, for every slot and every feature tried there."""

import numpy as np

from gpuforest.common.dtypes import LABEL, STAT
from gpuforest.core.frontier import Data, Frontier
from gpuforest.kernels.totals.numpy import slots_and_rows


def histogram(data: Data, slots: Frontier, features: np.ndarray, count_rows: bool) -> np.ndarray:
    """Channel sums i64[S, k, B, C], or [S, k, B, C + 1] with a last channel that counts rows.

    Parameters
    ----------
    features : i32[S, k], the features tried; -1 leaves its histogram empty

    Example
    -------
    A slot has three rows with codes (0, 2, 2), classes (0, 0, 1) and weights (1, 1, 3). Then
    bin 0 holds (1, 0), bin 1 (0, 0) and bin 2 (1, 3).
    """
    (S, k), y, C = features.shape, data.y, data.n_channels
    out = np.zeros((S, k, data.n_codes, C + count_rows), STAT)
    slot, position = slots_and_rows(slots.begin, slots.end)
    row, weight = slots.rows[position], slots.weights[position].astype(STAT)
    for j in range(k):
        # 1. each row's bin in the slot's j-th feature
        f = features[slot, j]
        used = f >= 0
        s, r, w = slot[used], row[used], weight[used]
        b = data.codes[r, f[used]]
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
