"""The scores of gpuforest/engine/criteria.py, one split at a time.

Sums of squares and of n ln n are updated in exact integers as rows move from the right side to the
left, so that a candidate costs O(1), not O(classes).
"""

import math

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.compiler.decorators import device, rare
from gpuforest.compiler.times import times
from gpuforest.engine import criteria
from gpuforest.engine.criteria import ENTROPY, GINI, INFORMATION, MISCLASSIFICATION, SQUARED_ERROR
from gpuforest.kernels.shared.constants import XLOGX_TABLE_SIZE

LN2, SQRT2, ATANH = criteria.LN2, criteria.SQRT2, criteria.ATANH
XLOGX_SCALE = criteria.XLOGX_SCALE
# n ln n of small n, where most nodes are: 32 KB, the size of a first-level cache
XLOGX_TABLE = criteria.xlogx(xp, np.arange(XLOGX_TABLE_SIZE, dtype=np.int64))


@device
def log_of(n):
    """As log_int, inlined and without a branch, so that loops over it are vectorised."""
    e, rest = np.int64(0), np.int64(n)
    for step in (32, 16, 8, 4, 2, 1):
        big = np.int64(rest >= np.int64(1) << step)
        e += big * step
        rest = rest >> (big * step)
    m = np.float64(n) / np.float64(np.int64(1) << e)
    high = m > SQRT2
    m = m * 0.5 if high else m
    e += np.int64(high)
    t = (m - 1.0) / (m + 1.0)
    t2 = t * t
    series = ATANH[9]
    for i in range(8, -1, -1):
        series = times(series, t2) + ATANH[i]
    return times(np.float64(e), LN2) + times(t, series)


@device
def xlogx_of(n):
    """As xlogx, inlined, without its table."""
    some = n if n > 0 else np.int64(1)
    return np.int64(math.floor(times(np.float64(n) * log_of(some), XLOGX_SCALE) + 0.5))


@rare
def log_int(n):
    return log_of(n)


@rare
def xlogx(n):
    return XLOGX_TABLE[n] if n < XLOGX_TABLE_SIZE else xlogx_of(n)


@device
def grown(criterion, s, w):
    """The change of a side's running integer when a class sum goes from s to s + w."""
    if criterion == GINI:
        return w * (2 * s + w)
    if criterion == ENTROPY:
        return xlogx(s + w) - xlogx(s)
    return 0


@device
def class_total(criterion, sums, C):
    """The running integer of a whole node."""
    total = 0
    for c in range(C):
        total += grown(criterion, 0, sums[c])
    return total


@device
def class_sides(criterion, left_sum, right_sum, left, sums, C):
    """What `score_sides` takes for the two sides: their running integers, or largest sums."""
    if criterion == MISCLASSIFICATION:
        left_sum, right_sum = np.int64(0), np.int64(0)
        for c in range(C):
            left_sum = max(left_sum, left[c])
            right_sum = max(right_sum, sums[c] - left[c])
    return left_sum, right_sum


@device
def score_sides(criterion, left, n_left, right, n_right):
    """The score of a split of a class target, from `class_sides` and the sides' weights."""
    if criterion == GINI:
        return np.float64(left) / np.float64(n_left) + np.float64(right) / np.float64(n_right)
    if criterion == ENTROPY:
        return np.float64(left - xlogx(n_left)) + np.float64(right - xlogx(n_right))
    return np.float64(left) + np.float64(right)


@device
def moment_score(criterion, left, sums, C):
    """The score of a split of a regression target; -inf if it is forbidden."""
    n_left, n_right = left[0], sums[0] - left[0]
    score_left, score_right = 0.0, 0.0
    for c in range(1, C):
        a, b = left[c], sums[c] - left[c]
        if criterion == SQUARED_ERROR:
            score_left += times(np.float64(a), np.float64(a))
            score_right += times(np.float64(b), np.float64(b))
        else:
            if (a <= 0 or b <= 0) and criterion != INFORMATION:
                return -np.inf
            if a > 0:
                score_left += times(np.float64(a), log_int(a) - log_int(n_left))
            if b > 0:
                score_right += times(np.float64(b), log_int(b) - log_int(n_right))
    if criterion == SQUARED_ERROR:
        return score_left / np.float64(n_left) + score_right / np.float64(n_right)
    return score_left + score_right


@device
def pair_side(criterion, n, a):
    """The score of a side with two channels: its weight n, and a, the second class or moment."""
    if criterion == GINI:
        return np.float64(a * a + (n - a) * (n - a)) / np.float64(n)
    if criterion == ENTROPY:
        return np.float64(xlogx(a) + xlogx(n - a) - xlogx(n))
    if criterion == MISCLASSIFICATION:
        return np.float64(max(a, n - a))
    if criterion == SQUARED_ERROR:
        return np.float64(a) * np.float64(a) / np.float64(n)
    return np.float64(a) * (log_int(a) - log_int(n)) if a > 0 else -np.inf


@rare
def node_score(criterion, sums, n, C):
    """Score of a whole node."""
    if criterion == GINI:
        return np.float64(class_total(criterion, sums, C)) / np.float64(n)
    if criterion == ENTROPY:
        return np.float64(class_total(criterion, sums, C) - xlogx(n))
    score = 0.0
    for c in range(C):
        if criterion == MISCLASSIFICATION:
            score = max(score, np.float64(sums[c]))
        elif c > 0:
            s = np.float64(sums[c])
            if criterion == SQUARED_ERROR:
                score += times(s, s)
            elif sums[c] > 0:
                score += times(s, log_int(sums[c]) - log_int(n))
            elif criterion != INFORMATION:
                return -np.inf
    return score / np.float64(n) if criterion == SQUARED_ERROR else score
