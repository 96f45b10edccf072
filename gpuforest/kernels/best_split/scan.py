"""The best cut of one feature from its histogram, compiled; see numpy.py beside this file."""

from typing import Any, NamedTuple

import numpy as np

from gpuforest.compiler.decorators import device, rare
from gpuforest.compiler.types import F64s, I64s, I64s2
from gpuforest.kernels.best_split.limits import may_part
from gpuforest.kernels.shared.hashing.numba import U
from gpuforest.kernels.shared.records import NO_BIN, Bin, Split
from gpuforest.kernels.shared.scoring.loops import (
    CODE,
    ROWS,
    SECOND,
    THIRD,
    WEIGHT,
    add_bin,
    score_classes,
    score_pairs,
)
from gpuforest.kernels.shared.scoring.numba import class_sides, grown, moment_score

# A feature is first made compact: for each code that holds rows, in order, the running totals of
# weight, second channel and rows up to it are
#
#     upto[WEIGHT, i], upto[SECOND, i], upto[ROWS, i] at upto[CODE, i],     i < m
#
# Scoring is then a loop without branches, see scoring/loops.py. With more than two classes, SECOND
# and THIRD are the terms of the score of the left and the right side (see scoring/numba.py).


class Scan(NamedTuple):
    """Scratch of a scan: left i64[C], the running totals upto i64[5, size + 1], and scores
    f64[size + 1]. Compaction writes one position more than there are codes."""

    left: I64s
    upto: I64s2
    scores: F64s


class Candidate(NamedTuple):
    """The best cut so far: its score, its position in the running totals (-1: none), and the side
    of missing values, 1 for left."""

    score: Any
    at: Any
    side: Any


NOTHING = Candidate(-np.inf, np.int64(-1), np.int64(0))


def scan_arrays(size: int, C: int) -> Scan:
    """Scratch for a scan of `size` codes."""
    return Scan(
        np.zeros(C, np.int64), np.zeros((5, size + 1), np.int64), np.empty(size + 1, np.float64)
    )


@device
def compact_pairs(hist, feature, upto):
    """Fill the running totals of two channels from hist i64[B * width], and return m."""
    m, n, a, n_rows = 0, np.int64(0), np.int64(0), np.int64(0)
    width = feature.width
    for i in range(feature.bins + 1):
        b = i if i < feature.bins else feature.missing
        at = b * width
        first, second = np.int64(hist[U(at)]), np.int64(hist[U(at + 1)])
        w = first + second if feature.is_classes else first
        n += w
        a += second
        if width > 2:
            n_rows += np.int64(hist[U(at + 2)])
            upto[ROWS, U(m)] = n_rows
        upto[WEIGHT, U(m)], upto[SECOND, U(m)], upto[CODE, U(m)] = n, a, b
        m += w > 0  # else the next bin overwrites this position
    return m


@device
def first_highest(scores, upto, last, whole, more, limits, side, found):
    """Improve on the Candidate `found` by the first of the highest scores, for a side of the
    missing values.

    whole, more : as in score_pairs
    """
    best, at, best_side = found
    min_rows = limits.min_rows
    if min_rows > 1:
        for i in range(last):
            rows_left = upto[ROWS, i] + more.rows
            if rows_left < min_rows or whole.rows - rows_left < min_rows:
                scores[i] = -np.inf
    if limits.min_weight > 1 or limits.sign != 0:
        for i in range(last):
            n_left, a_left = upto[WEIGHT, i] + more.weight, upto[SECOND, i] + more.second
            if not may_part(n_left, a_left, whole.weight, whole.second, limits):
                scores[i] = -np.inf
    for i in range(last):
        score = scores[U(i)]
        if score > best or (score == best and i < at):
            best, at, best_side = score, np.int64(i), np.int64(side)
    return Candidate(best, at, best_side)


@device
def split_of(found, upto, n, feature, some_missing, left):
    """The split of a candidate; its cut is the middle of the gap behind its position."""
    at, cut, missing_left = found.at, np.int64(0), False
    if at >= 0:
        code, upper = upto[CODE, at], upto[CODE, at + 1]
        cut = feature.bins - 1 if upper == feature.missing else (code + upper - 1) >> 1
        missing_left = found.side == 1 if some_missing else upto[WEIGHT, at] > n - upto[WEIGHT, at]
    return Split(found.score, feature.number, cut, missing_left, left)


@device
def best_pair(m, feature, criterion, limits, scan):
    """The best cut of a feature by its m running totals of two channels in `scan`; the last may be
    that of missing values."""
    upto, scores = scan.upto, scan.scores
    n_rows = np.int64(0)
    if limits.min_rows > 1:  # reading them always made fits of two classes 3 % slower
        n_rows = upto[ROWS, m - 1]
    whole = Bin(upto[WEIGHT, m - 1], upto[SECOND, m - 1], n_rows)
    some_missing = upto[CODE, m - 1] == feature.missing
    found, more = NOTHING, NO_BIN
    # 2. left sides, first without the missing values, then with them
    for side in range(2 if some_missing else 1):
        if side == 1:
            if m == 1:
                break
            more = Bin(
                whole.weight - upto[WEIGHT, m - 2],
                whole.second - upto[SECOND, m - 2],
                whole.rows - upto[ROWS, m - 2],
            )
        # 3. both sides hold rows
        last = m - 1 - side
        score_pairs(criterion, upto, whole, more, last, scores)
        # 4. the first of the highest
        found = first_highest(scores, upto, last, whole, more, limits, side, found)
    # 5. and 6. the middle of the gap, and where missing values go
    n_left, a_left = np.int64(0), np.int64(0)
    if found.at >= 0:
        n_left, a_left = upto[WEIGHT, found.at], upto[SECOND, found.at]
        if found.side == 1:
            n_left += more.weight
            a_left += more.second
    left = Bin(n_left, a_left, np.int64(0))
    return split_of(found, upto, whole.weight, feature, some_missing, left)


@device
def best_classes(m, slot, criterion, limits, scan, side, found):
    """The best cut of a compact feature of a class target: as first_highest."""
    upto, scores = scan.upto, scan.scores
    score_classes(criterion, upto, slot.weight, m - 1, scores)
    whole = Bin(slot.weight, np.int64(0), slot.n_rows)
    return first_highest(scores, upto, m - 1, whole, NO_BIN, limits, side, found)


@device
def compact_classes(hist, feature, criterion, sums, start, scan):
    """As compact_pairs, for any number of classes.

    start : Bin, the sums on the left of all bins, with the channel sums `scan.left`: those of
        missing values, or zeros; then missing values come last
    """
    bins, C, width, left, upto = (
        feature.bins, feature.n_channels, feature.width, scan.left, scan.upto,
    )  # fmt: skip
    m, n, n_rows, last = 0, start.weight, start.rows, bins if start.weight > 0 else bins + 1
    left_sum, right_sum = np.int64(0), np.int64(0)
    for c in range(C):
        left_sum += grown(criterion, 0, left[c])
        right_sum += grown(criterion, 0, sums[c] - left[c])
    for i in range(last):
        b = i if i < bins else feature.missing
        at, before = b * width, n
        left_sum, right_sum, n = add_bin(criterion, hist, at, left, sums, left_sum, right_sum, n)
        if n > before:
            if width > C:
                n_rows += np.int64(hist[U(at + C)])
                upto[ROWS, U(m)] = n_rows
            upto[WEIGHT, U(m)], upto[CODE, U(m)] = n, b
            upto[SECOND, U(m)], upto[THIRD, U(m)] = class_sides(
                criterion, left_sum, right_sum, left, sums, C
            )
            m += 1
    return m


@rare
def scan_classes(hist, feature, slot, criterion, limits, scan):
    """As best_of_bins, for a class target."""
    C, last = feature.n_channels, feature.missing * feature.width
    found, varies = NOTHING, False
    n_missing, rows_missing = np.int64(0), np.int64(0)
    for c in range(C):
        n_missing += np.int64(hist[last + c])
    if limits.min_rows > 1:
        rows_missing = np.int64(hist[last + C])
    # 2. left sides, first without the missing values, then with them
    for side in range(2 if n_missing > 0 else 1):
        for c in range(C):
            scan.left[c] = hist[last + c] * side
        start = Bin(n_missing * side, np.int64(0), rows_missing * side)
        m = compact_classes(hist, feature, criterion, slot.sums, start, scan)
        varies |= m > 1
        # 3. and 4. both sides hold rows; the first of the highest
        found = best_classes(m, slot, criterion, limits, scan, side, found)
    # 5. and 6. the middle of the gap, and where missing values go
    return varies, split_of(found, scan.upto, slot.weight, feature, n_missing > 0, NO_BIN)


@device
def compact_outputs(hist, feature, criterion, sums, side, scan):
    """As compact_classes, for several outputs; it also fills the scores of `scan`.

    side : 1 if missing values go left, else 0
    """
    C, width, left, upto = feature.n_channels, feature.width, scan.left, scan.upto
    last = feature.missing * width
    rows_left = hist[last + C] * side if width > C else 0
    for c in range(C):
        left[c] = hist[last + c] * side
    m = 0
    for i in range(feature.bins + 1 - side):
        b = i if i < feature.bins else feature.missing
        if hist[b * width] == 0:
            continue
        for c in range(C):
            left[c] += hist[b * width + c]
        if width > C:
            rows_left += hist[b * width + C]
            upto[ROWS, m] = rows_left
        upto[WEIGHT, m], upto[CODE, m] = left[0], b
        score = -np.inf
        if left[0] < sums[0]:
            score = moment_score(criterion, left, sums, C)
        scan.scores[m] = score
        m += 1
    return m


@rare
def scan_outputs(hist, feature, slot, criterion, limits, scan):
    """As best_of_bins, for several outputs."""
    n, n_missing = slot.sums[0], hist[feature.missing * feature.width]
    found, varies = NOTHING, False
    # 2. left sides, first without the missing values, then with them
    for side in range(2 if n_missing > 0 else 1):
        m = compact_outputs(hist, feature, criterion, slot.sums, side, scan)
        varies |= m > 1
        # 3. and 4. both sides hold rows; the first of the highest
        whole = Bin(n, np.int64(0), slot.n_rows)
        found = first_highest(
            scan.scores, scan.upto, m - 1, whole, NO_BIN, limits, side, found
        )  # fmt: skip
    # 5. and 6. the middle of the gap, and where missing values go
    return varies, split_of(found, scan.upto, n, feature, n_missing > 0, NO_BIN)


@device
def best_of_bins(hist, feature, slot, criterion, limits, scan):
    """The best cut of one feature from hist i64[B * width]: whether it varies, and the Split."""
    if feature.n_channels == 2:
        m = compact_pairs(hist, feature, scan.upto)
        return m > 1, best_pair(m, feature, criterion, limits, scan)
    if feature.is_classes:
        return scan_classes(hist, feature, slot, criterion, limits, scan)
    return scan_outputs(hist, feature, slot, criterion, limits, scan)
