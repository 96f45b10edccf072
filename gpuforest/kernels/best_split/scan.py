"""The best cut of one feature from its histogram, compiled; see numpy.py beside this file."""

import numpy as np

from gpuforest.criteria import ENTROPY, GINI, SQUARED_ERROR
from gpuforest.kernels.best_split.limits import may_part
from gpuforest.kernels.compile import device, maker, rare
from gpuforest.kernels.hashing.numba import U
from gpuforest.kernels.scoring.numba import (
    XLOGX_PLACES,
    XLOGX_TABLE,
    class_sides,
    grown,
    moment_score,
    pair_side,
    score_sides,
    xlogx_of,
)

# A feature is first made compact: running totals behind each code that holds rows,
#
#     upto[WEIGHT, i], upto[SECOND, i], upto[ROWS, i] at upto[CODE, i],     i < m
#
# of weight, second channel and rows, so that scoring is one loop without branches, which
# the compiler turns into vectors. Of more than two classes, SECOND and THIRD are what the
# two sides of a cut there add up to (see scoring).
WEIGHT, SECOND, ROWS, CODE, THIRD = range(5)
NO_SUMS = np.int64(0), np.int64(0)
NO_MORE = np.int64(0), np.int64(0), np.int64(0)
NOTHING = -np.inf, np.int64(-1), 0  # score, place and side of missing values, of no cut


def scan_arrays(size: int, C: int) -> tuple[np.ndarray, ...]:
    """What a scan works on, for `size` codes; compaction writes one place more."""
    return np.zeros(C, np.int64), np.zeros((5, size + 1), np.int64), np.empty(size + 1, np.float64)


new_scratch = maker(scan_arrays)


@device
def compact_pairs(hist, bins, missing, is_classes, channels, upto):
    """Fills the running totals of two channels from hist [B * channels]; returns m."""
    m, n, a, n_rows = 0, np.int64(0), np.int64(0), np.int64(0)
    for i in range(bins + 1):
        b = i if i < bins else missing
        at = b * channels
        first, second = np.int64(hist[U(at)]), np.int64(hist[U(at + 1)])
        w = first + second if is_classes else first
        n += w
        a += second
        if channels > 2:
            n_rows += np.int64(hist[U(at + 2)])
            upto[ROWS, U(m)] = n_rows
        upto[WEIGHT, U(m)], upto[SECOND, U(m)], upto[CODE, U(m)] = n, a, b
        m += w > 0  # else the next bin overwrites this place
    return m


@device
def score_pairs(criterion, upto, n, a, n_more, a_more, last, scores):
    """Scores of the cuts behind the places 0 .. last - 1."""
    for i in range(last):
        n_left, a_left = upto[WEIGHT, U(i)] + n_more, upto[SECOND, U(i)] + a_more
        left = pair_side(criterion, n_left, a_left)
        scores[U(i)] = left + pair_side(criterion, n - n_left, a - a_left)


@rare
def score_entropy(upto, n, a, n_more, a_more, last, scores):
    """As score_pairs: n ln n is looked up, or computed in vectors, in loops without a call."""
    for side in range(2):
        for i in range(last):
            n_side, a_side = upto[WEIGHT, U(i)] + n_more, upto[SECOND, U(i)] + a_more
            if side == 1:
                n_side, a_side = n - n_side, a - a_side
            if n < XLOGX_PLACES:
                score = XLOGX_TABLE[U(a_side)] + XLOGX_TABLE[U(n_side - a_side)]
                score -= XLOGX_TABLE[U(n_side)]
            else:
                score = xlogx_of(a_side) + xlogx_of(n_side - a_side) - xlogx_of(n_side)
            scores[U(i)] = np.float64(score) if side == 0 else scores[U(i)] + np.float64(score)


@device
def first_highest(scores, upto, last, whole, more, limits, side, found):
    """Improve on `found` = (score, place, side): the first of the highest scores of a side.

    whole, more : weight, second channel and rows of the node, and of what the running
        totals of the left side leave out
    """
    (n, a, n_rows), (n_more, a_more, rows_more) = whole, more
    best, at, best_side = found
    min_rows = limits[0]
    if min_rows > 1:
        for i in range(last):
            rows_left = upto[ROWS, i] + rows_more
            if rows_left < min_rows or n_rows - rows_left < min_rows:
                scores[i] = -np.inf
    if limits[1] > 1 or limits[2] != 0:
        for i in range(last):
            n_left, a_left = upto[WEIGHT, i] + n_more, upto[SECOND, i] + a_more
            if not may_part(n_left, a_left, n, a, limits):
                scores[i] = -np.inf
    for i in range(last):
        score = scores[U(i)]
        if score > best or (score == best and i < at):
            best, at, best_side = score, np.int64(i), side
    return best, at, best_side


@device
def chosen_cut(found, upto, n, missing, bins, some_missing):
    """Score, the middle of the gap behind the place found, and where missing values go."""
    best, at, side = found
    if at < 0:
        return best, np.int64(0), False
    code, upper = upto[CODE, at], upto[CODE, at + 1]
    cut = np.int64(bins) - 1 if upper == missing else (code + upper - 1) >> 1
    return best, cut, side == 1 if some_missing else upto[WEIGHT, at] > n - upto[WEIGHT, at]


@device
def best_pair(upto, m, missing, n_bins, criterion, limits, scores):
    """Best cut of a compact feature: (score, cut, missing_left, left), where `left` are
    weight and second channel on the left.

    `scores` f64[m] is scratch. The last of the m places may be the missing values.
    """
    n, a, n_rows = upto[WEIGHT, m - 1], upto[SECOND, m - 1], upto[ROWS, m - 1]
    some_missing = upto[CODE, m - 1] == missing
    found = NOTHING
    # 2. left sides, first without the missing values, then with them
    for side in range(2 if some_missing else 1):
        n_more, a_more, rows_more = np.int64(0), np.int64(0), np.int64(0)
        if side == 1:
            if m == 1:
                break
            n_more, a_more = n - upto[WEIGHT, m - 2], a - upto[SECOND, m - 2]
            rows_more = n_rows - upto[ROWS, m - 2]
        # 3. both sides hold rows
        last = m - 1 - side
        if criterion == GINI:  # a loop of its own, which the compiler turns into vectors
            score_pairs(GINI, upto, n, a, n_more, a_more, last, scores)
        elif criterion == SQUARED_ERROR:
            score_pairs(SQUARED_ERROR, upto, n, a, n_more, a_more, last, scores)
        elif criterion == ENTROPY:
            score_entropy(upto, n, a, n_more, a_more, last, scores)
        else:
            score_pairs(criterion, upto, n, a, n_more, a_more, last, scores)
        # 4. the first of the highest
        whole, more = (n, a, n_rows), (n_more, a_more, rows_more)
        found = first_highest(scores, upto, last, whole, more, limits, side, found)
    # 5. and 6. the middle of the gap, and where missing values go
    score, cut, goes_left = chosen_cut(found, upto, n, missing, n_bins, some_missing)
    _, at, side = found
    if at < 0:
        return score, cut, goes_left, NO_SUMS
    n_left, a_left = upto[WEIGHT, at], upto[SECOND, at]
    if side == 1:
        n_left += n - upto[WEIGHT, m - 2]
        a_left += a - upto[SECOND, m - 2]
    return score, cut, goes_left, (n_left, a_left)


@device
def score_classes(criterion, upto, n, last, scores):
    """Scores of the cuts behind the places 0 .. last - 1."""
    for i in range(last):
        n_left = upto[WEIGHT, U(i)]
        left, right = upto[SECOND, U(i)], upto[THIRD, U(i)]
        scores[U(i)] = score_sides(criterion, left, n_left, right, n - n_left)


@device
def best_classes(upto, m, n, n_rows, criterion, limits, scores, side, found):
    """The best cut of a compact feature of a class target: as first_highest."""
    if criterion == GINI:  # a loop of its own, which the compiler turns into vectors
        score_classes(GINI, upto, n, m - 1, scores)
    else:
        score_classes(criterion, upto, n, m - 1, scores)
    whole = n, np.int64(0), n_rows
    return first_highest(scores, upto, m - 1, whole, NO_MORE, limits, side, found)


@device
def compact_classes(
    hist, bins, missing, C, channels, criterion, n, n_rows, sums, left, upto
):  # fmt: skip
    """As compact_pairs, of any number of classes.

    On the left of all bins lie n_rows rows of weight n, with the channel sums `left`: none,
    or the missing values. Otherwise these come last.
    """
    m, last = 0, bins if n > 0 else bins + 1
    left_sum, right_sum = np.int64(0), np.int64(0)
    for c in range(C):
        left_sum += grown(criterion, 0, left[c])
        right_sum += grown(criterion, 0, sums[c] - left[c])
    for i in range(last):
        b = i if i < bins else missing
        at, before = b * channels, n
        if criterion == GINI:  # without a branch
            for c in range(C):
                h, n_left, n_all = np.int64(hist[U(at + c)]), left[U(c)], sums[U(c)]
                left_sum += h * (2 * n_left + h)
                right_sum -= h * (2 * (n_all - n_left) - h)
                left[U(c)] = n_left + h
                n += h
        else:
            for c in range(C):
                h = np.int64(hist[U(at + c)])
                if h:
                    right = sums[U(c)] - left[U(c)]
                    left_sum += grown(criterion, left[U(c)], h)
                    right_sum -= grown(criterion, right - h, h)
                    left[U(c)] += h
                    n += h
        if n > before:
            if channels > C:
                n_rows += np.int64(hist[U(at + C)])
                upto[ROWS, U(m)] = n_rows
            upto[WEIGHT, U(m)], upto[CODE, U(m)] = n, b
            upto[SECOND, U(m)], upto[THIRD, U(m)] = class_sides(
                criterion, left_sum, right_sum, left, sums, C
            )
            m += 1
    return m


@rare
def scan_classes(hist, bins, missing, sums, n, n_rows, criterion, limits, scratch):
    """Best cut of one feature of a class target: (varies, score, cut, missing_left)."""
    left, upto, scores = scratch
    C, min_rows = len(sums), limits[0]
    channels = C + (min_rows > 1)
    found, varies = NOTHING, False
    n_missing, rows_missing = np.int64(0), np.int64(0)
    for c in range(C):
        n_missing += np.int64(hist[missing * channels + c])
    if min_rows > 1:
        rows_missing = np.int64(hist[missing * channels + C])
    # 2. left sides, first without the missing values, then with them
    for side in range(2 if n_missing > 0 else 1):
        for c in range(C):
            left[c] = hist[missing * channels + c] * side
        m = compact_classes(
            hist, bins, missing, C, channels, criterion, n_missing * side, rows_missing * side,
            sums, left, upto,
        )  # fmt: skip
        varies |= m > 1
        # 3. and 4. both sides hold rows; the first of the highest
        found = best_classes(upto, m, n, n_rows, criterion, limits, scores, side, found)
    # 5. and 6. the middle of the gap, and where missing values go
    score, cut, goes_left = chosen_cut(found, upto, n, missing, bins, n_missing > 0)
    return varies, score, cut, goes_left


@rare
def scan_outputs(hist, bins, missing, sums, n_rows, criterion, limits, scratch):
    """Best cut of one feature of several outputs: (varies, score, cut, missing_left)."""
    left, upto, scores = scratch
    C, n, min_rows = len(sums), sums[0], limits[0]
    channels = C + (min_rows > 1)
    n_missing = hist[missing * channels]
    found, varies = NOTHING, False
    # 2. left sides, first without the missing values, then with them
    for side in range(2 if n_missing > 0 else 1):
        rows_left = hist[missing * channels + C] * side if min_rows > 1 else 0
        for c in range(C):
            left[c] = hist[missing * channels + c] * side
        m = 0
        for i in range(bins + 1 - side):
            b = i if i < bins else missing
            if hist[b * channels] == 0:
                continue
            for c in range(C):
                left[c] += hist[b * channels + c]
            if min_rows > 1:
                rows_left += hist[b * channels + C]
                upto[ROWS, m] = rows_left
            upto[WEIGHT, m], upto[CODE, m] = left[0], b
            scores[m] = moment_score(criterion, left, sums, C) if left[0] < n else -np.inf
            m += 1
        varies |= m > 1
        # 3. and 4. both sides hold rows; the first of the highest
        whole = n, np.int64(0), n_rows
        found = first_highest(scores, upto, m - 1, whole, NO_MORE, limits, side, found)
    # 5. and 6. the middle of the gap, and where missing values go
    score, cut, goes_left = chosen_cut(found, upto, n, missing, bins, n_missing > 0)
    return varies, score, cut, goes_left


@device
def best_of_bins(hist, bins, B, sums, n, n_rows, criterion, limits, labels, scratch):
    """Best cut of one feature from hist [B * channels]: (varies, score, cut, missing_left,
    left), where `left` are the sums on the left if there are two channels.

    bins : of the feature; only they, and the last of B, which is for missing values, hold
        rows
    """
    C, missing = len(sums), B - 1
    if C == 2:
        _, upto, scores = scratch
        m = compact_pairs(hist, bins, missing, labels, C + (limits[0] > 1), upto)
        score, cut, side, left = best_pair(upto, m, missing, bins, criterion, limits, scores)
        return m > 1, score, cut, side, left
    if labels:
        varies, score, cut, side = scan_classes(
            hist, bins, missing, sums, n, n_rows, criterion, limits, scratch
        )
    else:
        varies, score, cut, side = scan_outputs(
            hist, bins, missing, sums, n_rows, criterion, limits, scratch
        )
    return varies, score, cut, side, NO_SUMS
