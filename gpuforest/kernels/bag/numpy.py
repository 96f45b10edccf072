"""Bag: draw rows with replacement."""

import numpy as np

from gpuforest.common.dtypes import KEY, WEIGHT
from gpuforest.common.hashing import hash_at


def mulhi(a: np.ndarray, b: int | np.ndarray) -> np.ndarray:
    """The upper 64 bits of a * b, i64[...], for a u64[...] and b < 2**63, an int or u64[...]."""
    b_low, b_high = b & 0xFFFFFFFF, b >> 32
    a_low, a_high = a & 0xFFFFFFFF, a >> 32
    middle = a_high * b_low + ((a_low * b_low) >> 32)
    low = a_low * b_high + (middle & 0xFFFFFFFF)
    high = a_high * b_high + (middle >> 32) + (low >> 32)
    return np.asarray(high.astype(np.int64))


def bag(keys: np.ndarray, N: int, n_draws: int, cumulative: np.ndarray | None) -> np.ndarray:
    """How often each row is drawn: i32[T, N].

    Parameters
    ----------
    keys : u64[T], the trees' bag keys
    N, n_draws : numbers of rows, and of draws for each tree
    cumulative : i64[N], running total of the rows' weights, or None if they are equal

    Example
    -------
    Weights (2, 0, 1), cumulative (2, 2, 3): a hash in the first two thirds of [0, 2**64)
    draws row 0, one in the last third draws row 2.
    """
    T = len(keys)
    weights = np.empty((T, N), WEIGHT)
    draws = np.arange(n_draws, dtype=KEY)
    total = N if cumulative is None else int(cumulative[-1])
    for t in range(T):
        # 1. a point in the total weight
        point = mulhi(hash_at(keys[t : t + 1], draws), total)
        # 2. the row whose share it falls in
        if cumulative is not None:
            point = np.searchsorted(cumulative, point, side="right")
        # 3. count
        weights[t] = np.bincount(point, minlength=N)
    return weights
