"""What several compiled kernels use: hashes (gpuforest/common/hashing.py), the rule that says
which rows go left (numpy.py in this folder), and the scores of gpuforest/core/criteria.py.

Sums of squares and of n ln n are updated in exact integers as rows move from the right side to the
left, so that a candidate costs O(1), not O(classes). The usual criteria have loops of their own
over many cuts, without calls and branches, which the compiler vectorises."""

import math

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.common import hashing
from gpuforest.compiler.decorators import device, rare
from gpuforest.compiler.intrinsics import times
from gpuforest.core import criteria
from gpuforest.core.criteria import ENTROPY, GINI, LOGRANK, MISCLASSIFICATION, SQUARED_ERROR
from gpuforest.core.nodes import CHILD_SHIFT, FEATURE_SHIFT, MISSING_SHIFT, SET_BIN
from gpuforest.kernels.shared.constants import XLOGX_TABLE_SIZE
from gpuforest.kernels.shared.records import NO_BIN, Bin

U = np.uint64
GOLDEN, MIX_1, MIX_2 = U(hashing.GOLDEN), U(hashing.MIX_1), U(hashing.MIX_2)
LOW_32 = U(0xFFFFFFFF)
U1, U16, U27, U30, U31, U32, U48 = U(1), U(16), U(27), U(30), U(31), U(32), U(48)
TO_CHILD, TO_MISSING, TO_FEATURE = U(CHILD_SHIFT), U(MISSING_SHIFT), U(FEATURE_SHIFT)
PERMUTATION, CUT = hashing.PERMUTATION, hashing.CUT

LN2, SQRT2, ATANH = criteria.LN2, criteria.SQRT2, criteria.ATANH
XLOGX_SCALE = criteria.XLOGX_SCALE
# n ln n of small n, where most nodes are: 32 KB, the size of a first-level cache
XLOGX_TABLE = criteria.xlogx(xp, np.arange(XLOGX_TABLE_SIZE, dtype=np.int64))
WAYS_PER_FEATURE = 4  # partitions of a node's rows that highest_score may try for each feature
EXACT_SQUARES = 2**26  # float64 holds the squares of weights up to this
SHORT = 24  # the most keys that are sorted by insertion
NOT_WHOLE = -np.inf  # below every score


@device
def has_labels(y):
    """Whether targets are class codes and not moments, which is known at compile time."""
    return y.itemsize == 4


@device
def mix(z):
    z = (z ^ (z >> U30)) * MIX_1
    z = (z ^ (z >> U27)) * MIX_2
    return z ^ (z >> U31)


@device
def hash_at(key, position):
    return mix(key + (U(position) + U1) * GOLDEN)


@device
def order_of(key):
    """The four round keys that `permute` needs, from a node's key."""
    return (
        hash_at(key, PERMUTATION),
        hash_at(key, PERMUTATION + 1),
        hash_at(key, PERMUTATION + 2),
        hash_at(key, PERMUTATION + 3),
    )


@device
def permute(order, position, n, mask, shift):
    """The element at `position` of an order of range(n); `domain` returns mask and shift."""
    x = U(position)
    while True:
        for h in order:
            x = ((x + (h & LOW_32)) * ((h >> U32) | U1)) & mask
            x = x ^ (x >> shift)
            x = ((x + ((h >> U16) & LOW_32)) * ((h >> U48) | U1)) & mask
            x = x ^ (x >> shift)
        if x < U(n):
            return np.int64(x)


@device
def domain(n):
    """The mask of the smallest power of two that holds range(n), and the fold's shift."""
    bits = 0
    while (1 << bits) < n:
        bits += 1
    return U((1 << bits) - 1), U((bits + 1) // 2)


@device
def below(values, first, last, x):
    """How many of the ascending values[first:last] are below x. NumPy's takes 0.5 s to compile."""
    low, high = first, last
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low - first


@device
def has_code(sets, first, code):
    """Whether the set that begins at word `first` of `sets` has the code."""
    return (sets[U(first + (code >> 6))] >> U(code & 63)) & U(1) == U(1)


@device
def goes_left(code, split, missing, sets, first):
    """Whether a row goes left; `sets` is None if no feature is categorical."""
    if sets is not None and split.bin == SET_BIN and code != missing:
        return has_code(sets, first, code)
    return split.missing_left if code == missing else code <= split.bin


@device
def split_word(feature, bin, missing_left, child):
    """The packed node of a split, see core/nodes.py."""
    sides = (U(missing_left) << TO_MISSING) | (U(child) << TO_CHILD)
    return (U(feature) << TO_FEATURE) | sides | U(bin)


@device
def first_highest(scores, first, last):
    """The highest of scores first .. last - 1, and where it comes first; -inf: there is none."""
    a = b = c = d = -np.inf  # several maxima, because each waits for the one before it
    at = first
    while at + 4 <= last:
        a, b = max(a, scores[U(at)]), max(b, scores[U(at + 1)])
        c, d = max(c, scores[U(at + 2)]), max(d, scores[U(at + 3)])
        at += 4
    while at < last:
        a = max(a, scores[U(at)])
        at += 1
    highest, at = max(max(a, b), max(c, d)), first
    while at < last and scores[U(at)] != highest:
        at += 1
    return highest, at


@device
def insertion_sort(keys, codes, low, high):
    """Sort the positions low .. high - 1 by key; equal keys keep their order."""
    for i in range(low + 1, high):
        key, code, j = keys[i], codes[i], i
        while j > low and keys[j - 1] > key:
            keys[j], codes[j] = keys[j - 1], codes[j - 1]
            j -= 1
        keys[j], codes[j] = key, code


@rare
def merge_sort(keys, codes, spare_keys, spare_codes, m):
    """As insertion_sort, for m codes: short runs are sorted and merged."""
    for low in range(0, m, SHORT):
        insertion_sort(keys, codes, low, min(low + SHORT, m))
    width = SHORT
    while width < m:
        for low in range(0, m, 2 * width):
            middle, high = min(low + width, m), min(low + 2 * width, m)
            i, j = low, middle
            for at in range(low, high):
                if j >= high or (i < middle and keys[i] <= keys[j]):
                    spare_keys[at], spare_codes[at] = keys[i], codes[i]
                    i += 1
                else:
                    spare_keys[at], spare_codes[at] = keys[j], codes[j]
                    j += 1
        for at in range(m):
            keys[at], codes[at] = spare_keys[at], spare_codes[at]
        width *= 2


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
def are_squares(criterion):
    """Whether a side's score is the sum of the squares of its moments over its weight."""
    return criterion in (SQUARED_ERROR, LOGRANK)


@device
def moment_score(criterion, left, sums, C):
    """The score of a split of a regression target; -inf if it is forbidden."""
    return side_score(criterion, left, left, 0, C) + side_score(criterion, sums, left, -1, C)


@device
def side_score(criterion, sums, more, factor, C):
    """The score of a side of a regression target with the moments sums + factor * more."""
    n, score = sums[0] + factor * more[0], 0.0
    for c in range(1, C):
        a = sums[c] + factor * more[c]
        if a <= 0 and needs_some(criterion):
            return -np.inf
        if are_squares(criterion):
            score += times(np.float64(a), np.float64(a))
        elif a > 0:
            score += times(np.float64(a), log_int(a) - log_int(n))
    return score / np.float64(n) if are_squares(criterion) else score


@device
def pair_side(criterion, n, a):
    """The score of a side with two channels: its weight n, and a, the second class or moment."""
    if criterion == GINI:
        return np.float64(a * a + (n - a) * (n - a)) / np.float64(n)
    if criterion == ENTROPY:
        return np.float64(xlogx(a) + xlogx(n - a) - xlogx(n))
    if criterion == MISCLASSIFICATION:
        return np.float64(max(a, n - a))
    if criterion == LOGRANK and a <= 0:
        return -np.inf
    if are_squares(criterion):
        return np.float64(a) * np.float64(a) / np.float64(n)
    return times(np.float64(a), log_int(a) - log_int(n)) if a > 0 else -np.inf


@rare
def node_score(criterion, sums, n, C):
    if criterion == MISCLASSIFICATION:
        return np.float64(max(sums))
    if criterion not in (GINI, ENTROPY):
        return side_score(criterion, sums, sums, 0, C)
    total = np.int64(0)
    for c in range(C):
        total += grown(criterion, 0, sums[c])
    return np.float64(total) / np.float64(n) if criterion == GINI else np.float64(total - xlogx(n))


@device
def pair_scores(criterion, scan, whole, more, last):
    weight, second, scores = scan.weight, scan.second, scan.scores
    n, a, n_more, a_more = whole.weight, whole.second, more.weight, more.second
    for i in range(last):
        n_left, a_left = weight[U(i)] + n_more, second[U(i)] + a_more
        left = pair_side(criterion, n_left, a_left)
        scores[U(i)] = left + pair_side(criterion, n - n_left, a - a_left)


@rare
def entropy_scores(scan, whole, more, last):
    """As score_pairs, for entropy. n ln n is looked up or computed in loops without a call."""
    n, a, scores = whole.weight, whole.second, scan.scores
    for side in range(2):
        for i in range(last):
            n_side, a_side = scan.weight[U(i)] + more.weight, scan.second[U(i)] + more.second
            if side == 1:
                n_side, a_side = n - n_side, a - a_side
            if n < XLOGX_TABLE_SIZE:
                score = XLOGX_TABLE[U(a_side)] + XLOGX_TABLE[U(n_side - a_side)]
                score -= XLOGX_TABLE[U(n_side)]
            else:
                score = xlogx_of(a_side) + xlogx_of(n_side - a_side) - xlogx_of(n_side)
            scores[U(i)] = np.float64(score) if side == 0 else scores[U(i)] + np.float64(score)


@device
def score_pairs(criterion, scan, whole, more, last):
    """Scores of cuts behind positions 0 .. last - 1, two channels, node sums `whole`.

    more : added to the running totals of the left side"""
    if criterion == GINI:
        pair_scores(GINI, scan, whole, more, last)
    elif criterion == SQUARED_ERROR:
        pair_scores(SQUARED_ERROR, scan, whole, more, last)
    elif criterion == ENTROPY:
        entropy_scores(scan, whole, more, last)
    else:
        pair_scores(criterion, scan, whole, more, last)


@device
def class_scores(criterion, scan, n, last):
    for i in range(last):
        n_left = scan.weight[U(i)]
        left, right = scan.second[U(i)], scan.third[U(i)]
        scan.scores[U(i)] = score_sides(criterion, left, n_left, right, n - n_left)


@device
def score_classes(criterion, scan, n, last):
    """As score_pairs, for a class target of weight n."""
    if criterion == GINI:
        class_scores(GINI, scan, n, last)
    else:
        class_scores(criterion, scan, n, last)


@device
def add_bin(criterion, hist, at, left, sums, left_sum, right_sum, n):
    """Move rows of hist[at : at + C] to `left`; returns running integers and the left weight."""
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
    return criterion in (criteria.POISSON, LOGRANK)


@device
def free_side(criterion, n, a):
    """As pair_side, but a mean of zero is allowed."""
    return 0.0 if needs_some(criterion) and a == 0 else pair_side(criterion, n, a)


@device
def perfect_score(criterion, slot):
    """A score that no split of a node exceeds, even rounded; inf: unknown. Sides of a split with
    this score, or of a node of two rows, are leaves."""
    if slot.n_rows == 2:
        return NOT_WHOLE
    if criterion == ENTROPY:
        return 0.0
    if criterion == MISCLASSIFICATION or (criterion == GINI and slot.weight < EXACT_SQUARES):
        return np.float64(slot.weight)
    return np.inf


@device
def highest_score(criterion, stats, slot, k, scan):
    """Highest score of all 2**(n - 1) - 1 partitions of few rows, a bound of cuts; inf: unknown."""
    n, weight, second, scores = slot.n_rows, scan.weight, scan.second, scan.scores
    if criterion != SQUARED_ERROR or n == 2:
        return perfect_score(criterion, slot)
    if k == 1 or n > 12 or 1 << (n - 1) > min(WAYS_PER_FEATURE * k, len(scores) - 1):
        return np.inf
    weight[0], second[0], m = 0, 0, 1
    for i in range(slot.begin + 1, slot.begin + n):  # the first row stays on the other side
        for j in range(m):
            weight[U(m + j)] = weight[U(j)] + stats[U(i), 0]
            second[U(m + j)] = second[U(j)] + stats[U(i), 1]
        m *= 2
    whole = Bin(slot.weight, slot.sums[1], np.int64(0))
    pair_scores(SQUARED_ERROR, scan, whole, NO_BIN, m)
    return first_highest(scores, 1, m)[0]
