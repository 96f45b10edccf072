"""The sums of combinations of features, as codes, for every slot."""

import numpy as np

from gpuforest.common.dtypes import Array
from gpuforest.core.frontier import Data, Frontier
from gpuforest.kernels.totals.numpy import slots_and_rows


def project(
    data: Data, slots: Frontier, features: Array, weights: Array, coordinates: Array, n_bins: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes u8 or u16 [R, k] of the rows of all slots, slot after slot, in k combinations; and
    low i64[S, k], shift i64[S, k]: the code of a sum is (sum - low) >> shift.

    Parameters
    ----------
    features, weights : i32[S, k, L]; a feature of -1 adds nothing
    coordinates : i32[F, B]
    n_bins : int, the codes are below it, and `n_bins` means missing

    `low` is the least sum of the slot and `shift` the least for which all codes are below n_bins.
    A value that is missing makes the sum missing. A feature alone keeps its codes;
    a combination of none has zeros.

    Example
    -------
    Let two features have the coordinates 0, 100, 1000, the weights be 1 and -1, and the rows'
    codes (0, 1), (2, 1), (2, 0): the sums are -100, 900, 1000. With four bins low is -100 and the
    shift 9, because 1100 >> 8 is 4: the codes are 0, 1000 >> 9 = 1 and 1100 >> 9 = 2.
    """
    (S, k, L), missing = features.shape, data.n_codes - 1
    slot, position = slots_and_rows(slots.begin, slots.end)
    row, begins = slots.rows[position], np.flatnonzero(np.diff(slot, prepend=-1))
    codes = np.zeros((len(row), k), data.codes.dtype)
    low, shift = np.zeros((S, k), np.int64), np.zeros((S, k), np.int64)
    for j in range(k):
        # 1. the sums
        sums, is_missing = np.zeros(len(row), np.int64), np.zeros(len(row), bool)
        for i in range(L):
            f, w = features[slot, j, i], weights[slot, j, i]
            code = data.codes[row, np.maximum(f, 0)]
            sums += np.where(f >= 0, w * coordinates[np.maximum(f, 0), code], 0)
            is_missing |= (f >= 0) & (code == missing)
        # 2. the least and the greatest of each slot
        if len(row):
            some = slot[begins]
            top = np.iinfo(np.int64).max
            least = np.minimum.reduceat(np.where(is_missing, top, sums), begins)
            greatest = np.maximum.reduceat(np.where(is_missing, -top, sums), begins)
            low[some, j] = np.where(least == top, 0, least)
            spread = np.where(least == top, 0, greatest - least)
            while (big := (spread >> shift[some, j]) >= n_bins).any():
                shift[some[big], j] += 1
        # 3. codes
        alone = (features[:, j] >= 0).sum(axis=1) < 2
        low[alone, j] = shift[alone, j] = 0
        code = (sums - low[slot, j]) >> shift[slot, j]
        first = features[slot, j, 0]
        unchanged = np.where(first >= 0, data.codes[row, np.maximum(first, 0)], 0)
        codes[:, j] = np.where(is_missing, n_bins, np.where(alone[slot], unchanged, code))
    return codes, low, shift
