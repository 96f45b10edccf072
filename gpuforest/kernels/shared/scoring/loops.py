"""The scores of many cuts at once, and what is known of a criterion's scores, compiled for CPUs.

The usual criteria have loops of their own, without calls and branches, which the compiler
vectorises.
"""

import numpy as np

from gpuforest.compiler.decorators import device, rare
from gpuforest.engine.criteria import ENTROPY, GINI, MISCLASSIFICATION, POISSON, SQUARED_ERROR
from gpuforest.kernels.shared.constants import XLOGX_TABLE_SIZE
from gpuforest.kernels.shared.hashing.numba import U
from gpuforest.kernels.shared.records import NO_BIN, Bin
from gpuforest.kernels.shared.scoring.numba import (
    XLOGX_TABLE,
    grown,
    pair_side,
    score_sides,
    xlogx_of,
)

# rows of the running totals upto i64[5, ...] of a feature, see best_split/scan.py
WEIGHT, SECOND, ROWS, CODE, THIRD = range(5)

WAYS_PER_FEATURE = 4  # partitions of a node's rows that highest_score may try for each feature
EXACT_SQUARES = 2**26  # float64 holds the squares of weights up to this
NOT_WHOLE = -np.inf  # below every score


@device
def pair_scores(criterion, upto, whole, more, last, scores):
    """The loop of score_pairs."""
    n, a, n_more, a_more = whole.weight, whole.second, more.weight, more.second
    for i in range(last):
        n_left, a_left = upto[WEIGHT, U(i)] + n_more, upto[SECOND, U(i)] + a_more
        left = pair_side(criterion, n_left, a_left)
        scores[U(i)] = left + pair_side(criterion, n - n_left, a - a_left)


@rare
def entropy_scores(upto, whole, more, last, scores):
    """As score_pairs, for entropy. n ln n is looked up or computed in loops without a call, which
    the compiler vectorises."""
    n, a = whole.weight, whole.second
    for side in range(2):
        for i in range(last):
            n_side, a_side = upto[WEIGHT, U(i)] + more.weight, upto[SECOND, U(i)] + more.second
            if side == 1:
                n_side, a_side = n - n_side, a - a_side
            if n < XLOGX_TABLE_SIZE:
                score = XLOGX_TABLE[U(a_side)] + XLOGX_TABLE[U(n_side - a_side)]
                score -= XLOGX_TABLE[U(n_side)]
            else:
                score = xlogx_of(a_side) + xlogx_of(n_side - a_side) - xlogx_of(n_side)
            scores[U(i)] = np.float64(score) if side == 0 else scores[U(i)] + np.float64(score)


@device
def score_pairs(criterion, upto, whole, more, last, scores):
    """Fill the scores of the cuts behind the positions 0 .. last - 1, of two channels.

    whole, more : Bin, the sums of the node, and what is added to the running totals of the left
        side
    """
    if criterion == GINI:
        pair_scores(GINI, upto, whole, more, last, scores)
    elif criterion == SQUARED_ERROR:
        pair_scores(SQUARED_ERROR, upto, whole, more, last, scores)
    elif criterion == ENTROPY:
        entropy_scores(upto, whole, more, last, scores)
    else:
        pair_scores(criterion, upto, whole, more, last, scores)


@device
def class_scores(criterion, upto, n, last, scores):
    """The loop of score_classes."""
    for i in range(last):
        n_left = upto[WEIGHT, U(i)]
        left, right = upto[SECOND, U(i)], upto[THIRD, U(i)]
        scores[U(i)] = score_sides(criterion, left, n_left, right, n - n_left)


@device
def score_classes(criterion, upto, n, last, scores):
    """Fill the scores of the cuts behind the positions 0 .. last - 1, of a class target."""
    if criterion == GINI:
        class_scores(GINI, upto, n, last, scores)
    else:
        class_scores(criterion, upto, n, last, scores)


@device
def add_bin(criterion, hist, at, left, sums, left_sum, right_sum, n):
    """Move the rows of the bin hist[at : at + C] to the left side: its class sums `left`, the
    running integers of both sides, and the weight n of the left one, which are returned."""
    C = len(left)
    if criterion == GINI:  # without a branch
        for c in range(C):
            h, n_left, n_all = np.int64(hist[U(at + c)]), left[U(c)], sums[U(c)]
            left_sum += h * (2 * n_left + h)
            right_sum -= h * (2 * (n_all - n_left) - h)
            left[U(c)] = n_left + h
            n += h
        return left_sum, right_sum, n
    for c in range(C):
        h = np.int64(hist[U(at + c)])
        if h:
            right = sums[U(c)] - left[U(c)]
            left_sum += grown(criterion, left[U(c)], h)
            right_sum -= grown(criterion, right - h, h)
            left[U(c)] += h
            n += h
    return left_sum, right_sum, n


@device
def needs_some(criterion):
    """Whether no side may have a mean of zero, though single categories may."""
    return criterion == POISSON


@device
def free_side(criterion, n, a):
    """As pair_side, but a mean of zero is allowed."""
    return 0.0 if criterion == POISSON and a == 0 else pair_side(criterion, n, a)


@device
def perfect_score(criterion, slot):
    """A score that no split of a node can exceed, even after rounding; inf if none is known. The
    sides of a split with this score are leaves, and so are those of two rows."""
    if slot.n_rows == 2:
        return NOT_WHOLE
    if criterion == ENTROPY:
        return 0.0
    if criterion == MISCLASSIFICATION or (criterion == GINI and slot.weight < EXACT_SQUARES):
        return np.float64(slot.weight)
    return np.inf


@device
def highest_score(criterion, own, slot, k, scan):
    """The highest score of all 2**(n - 1) - 1 partitions of a node's few rows in two, which no cut
    can exceed; inf if it is not known, for example if there are too many rows."""
    n, upto, scores = slot.n_rows, scan.upto, scan.scores
    if criterion != SQUARED_ERROR or n == 2:
        return perfect_score(criterion, slot)
    if k == 1 or n > 12 or 1 << (n - 1) > min(WAYS_PER_FEATURE * k, len(scores) - 1):
        return np.inf
    upto[WEIGHT, 0], upto[SECOND, 0], m = 0, 0, 1
    for i in range(slot.begin + 1, slot.begin + n):  # the first row stays on the other side
        for j in range(m):
            upto[WEIGHT, U(m + j)] = upto[WEIGHT, U(j)] + own[U(i), 0]
            upto[SECOND, U(m + j)] = upto[SECOND, U(j)] + own[U(i), 1]
        m *= 2
    whole = Bin(slot.weight, slot.sums[1], np.int64(0))
    pair_scores(SQUARED_ERROR, upto, whole, NO_BIN, m, scores)
    best = -np.inf
    for i in range(1, m):
        best = max(best, scores[U(i)])
    return best
