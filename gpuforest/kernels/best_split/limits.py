"""What limits cuts, and the one cut of a feature that is drawn at random, compiled.

The limits of a cut are (min_rows, min_weight, sign, low, high): rows and weight of either
side; the order of the sides' means, of the second channel, and between what they lie.
"""

import numpy as np

from gpuforest.kernels.compile import device, rare
from gpuforest.kernels.hashing.numba import CUT, U1, U, hash_at
from gpuforest.kernels.scoring.numba import node_score


@device
def by_rows(min_rows):
    """Limits of rows alone."""
    return np.int64(min_rows), np.int64(1), np.int64(0), -np.inf, np.inf


@device
def may_part(n_left, a_left, n, a, limits):
    """Whether the limits of weight and of means allow these sides."""
    _, min_weight, sign, low, high = limits
    if n_left < min_weight or n - n_left < min_weight:
        return False
    if sign == 0:
        return True
    left = np.float64(a_left) / np.float64(n_left)
    right = np.float64(a - a_left) / np.float64(n - n_left)
    in_order = left <= right if sign > 0 else left >= right
    return in_order and min(left, right) >= low and max(left, right) <= high


@device
def draw_cut(key, f, low, high, bins):
    """A random cut between the first and the last bin that hold rows, and the side of the
    missing values. One bin alone is cut from them: they go right."""
    h = hash_at(key, CUT + np.int64(f))
    if high == low:
        return np.int64(bins) - 1, False
    return low + np.int64((h >> U1) % U(high - low)), h & U1 == U1


@device
def score_parts(left, sums, n_left, n, rows_left, n_rows, criterion, limits):
    """Score of the sides of a cut, -inf if the limits forbid it; `left` becomes the right."""
    C = len(sums)
    a_left, a = left[C - 1], sums[C - 1]
    if rows_left < limits[0] or n_rows - rows_left < limits[0]:
        return -np.inf
    if not may_part(n_left, a_left, n, a, limits):
        return -np.inf
    score = node_score(criterion, left, n_left, C)
    for c in range(C):
        left[c] = sums[c] - left[c]
    return score + node_score(criterion, left, n - n_left, C)


@device
def left_of(hist, missing, C, channels, cut, missing_left, left):
    """Channel sums of the codes <= cut, and of the missing ones if they go left."""
    for c in range(C):
        left[c] = 0
    for b in range(cut + 1):
        for c in range(C):
            left[c] += hist[b * channels + c]
    if missing_left:
        for c in range(C):
            left[c] += hist[missing * channels + c]


@rare
def random_of_bins(hist, f, bins, B, sums, n, n_rows, criterion, limits, labels, key, left):
    """As best_of_bins, of the one cut that is drawn; `left` i64[C] is scratch."""
    C, missing = len(sums), B - 1
    channels = C + (limits[0] > 1)
    low, high, n_missing = np.int64(-1), np.int64(-1), np.int64(0)
    for i in range(bins + 1):
        b = i if i < bins else missing
        w = np.int64(0)
        for c in range(C if labels else 1):
            w += hist[b * channels + c]
        if b == missing:
            n_missing = w
        elif w > 0:
            low, high = b if low < 0 else low, b
    if low < 0 or (low == high and n_missing == 0):
        return False, -np.inf, np.int64(0), False
    cut, side = draw_cut(key, f, low, high, bins)
    side &= n_missing > 0
    left_of(hist, missing, C, channels, min(cut, high), side, left)
    n_left, rows_left = np.int64(0), np.int64(1)
    for c in range(C if labels else 1):
        n_left += left[c]
    if limits[0] > 1:
        rows_left = np.int64(hist[missing * channels + C]) if side else np.int64(0)
        for b in range(min(cut, high) + 1):
            rows_left += np.int64(hist[b * channels + C])
    score = score_parts(left, sums, n_left, n, rows_left, n_rows, criterion, limits)
    return True, score, cut, side if n_missing > 0 else n_left > n - n_left


@device
def special_of(s, min_weight, keys, bounds):
    """Of a slot what `slot_best` asks for."""
    low, high = -np.inf, np.inf
    if len(bounds):
        low, high = bounds[s, 0], bounds[s, 1]
    is_random = len(keys) > 0
    return min_weight, is_random, keys[s] if is_random else U(0), low, high
