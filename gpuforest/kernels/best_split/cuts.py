"""The best cut, or the one random cut, of one feature from its histogram, compiled; see numpy.py
in this folder.

A feature is first made compact: for each code that holds rows, in order, the running totals up to
it are in a `Scan`. Scoring is then a loop without branches."""

from typing import Annotated, Any, NamedTuple

import numpy as np

from gpuforest.compiler.decorators import device, rare
from gpuforest.compiler.types import new_arrays
from gpuforest.kernels.shared import numba as shared
from gpuforest.kernels.shared.numba import U1, U, has_labels, moment_score
from gpuforest.kernels.shared.records import NO_BIN, Bin, Feature, Limits, Slot, Split

Array = Any


class Scan(NamedTuple):
    """Scratch: running totals up to each code; with over two classes, score terms of both sides."""

    left: Annotated[Array, "i64[C]"]  # channel sums of the left side
    weight: Annotated[Array, "i64[P]"]  # one position more than there are codes is written
    second: Annotated[Array, "i64[P]"]
    third: Annotated[Array, "i64[P]"]
    rows: Annotated[Array, "i64[P]"]
    code: Annotated[Array, "i64[P]"]
    scores: Annotated[Array, "f64[P]"]


class Candidate(NamedTuple):
    """The best cut so far."""

    score: Any
    at: Any  # its position in the running totals, -1: none
    side: Any  # of missing values, 1 for left


NOTHING = Candidate(-np.inf, np.int64(-1), np.int64(0))


def scan_arrays(size: int, C: int) -> Scan:
    """Scratch for a scan of `size` codes."""
    return Scan(**new_arrays(Scan, np.zeros, C=C, P=size + 1))


@device
def weight_of(sums, is_classes):
    """The weight of rows with these channel sums."""
    n = np.int64(sums[0])
    for c in range(1, len(sums) if is_classes else 1):
        n += np.int64(sums[c])
    return n


@device
def slot_at(slots, s, is_classes):
    low, high = -np.inf, np.inf
    if len(slots.bounds):
        low, high = slots.bounds[s, 0], slots.bounds[s, 1]
    sums, n_rows = slots.sums[s], np.int64(slots.n_rows[s])
    weight, begin = weight_of(sums, is_classes), np.int64(slots.begin[s])
    return Slot(np.int64(s), begin, n_rows, weight, slots.key[s], sums, low, high)


@device
def feature_of(f, data, count_rows, n_channels):
    width = np.int64(n_channels + count_rows)
    bins, missing = np.int64(data.n_bins[f]), np.int64(data.n_codes - 1)
    return Feature(np.int64(f), bins, missing, np.int64(n_channels), width, has_labels(data.y))


@device
def limits_of(rules, slot, f):
    sign = np.int64(rules.signs[f]) if len(rules.signs) else np.int64(0)
    fewest, least = np.int64(rules.min_rows_leaf), np.int64(rules.min_weight_leaf)
    return Limits(fewest, least, sign, slot.low, slot.high)


@device
def by_rows(rules, count_rows):
    """The limits where a least number of rows is the only one: of weight, without `count_rows`."""
    one, fewest = np.int64(1), np.int64(rules.min_rows_leaf)
    if count_rows:
        return Limits(fewest, one, np.int64(0), -np.inf, np.inf)
    return Limits(one, fewest, np.int64(0), -np.inf, np.inf)


@device
def may_part(n_left, a_left, n, a, limits):
    """Whether the limits on weights and means allow sides of these weights and sums."""
    if n_left < limits.min_weight or n - n_left < limits.min_weight:
        return False
    if limits.sign == 0:
        return True
    left = np.float64(a_left) / np.float64(n_left)
    right = np.float64(a - a_left) / np.float64(n - n_left)
    in_order = left <= right if limits.sign > 0 else left >= right
    return in_order and min(left, right) >= limits.low and max(left, right) <= limits.high


@device
def draw_cut(key, f, low, high, bins):
    """A random cut between the first and the last bin with rows, and the side of missing values. If
    one bin alone holds rows, the cut separates it from missing values: they go right."""
    h = shared.hash_at(key, shared.CUT + np.int64(f))
    if high == low:
        return np.int64(bins) - 1, False
    return low + np.int64((h >> U1) % U(high - low)), h & U1 == U1


@device
def score_parts(left, n_left, rows_left, slot, criterion, limits):
    """The score of a cut's sides, -inf if forbidden; `left` becomes the right side's sums."""
    C, sums = len(slot.sums), slot.sums
    if rows_left < limits.min_rows or slot.n_rows - rows_left < limits.min_rows:
        return -np.inf
    if not may_part(n_left, left[C - 1], slot.weight, sums[C - 1], limits):
        return -np.inf
    score = shared.node_score(criterion, left, n_left, C)
    for c in range(C):
        left[c] = sums[c] - left[c]
    return score + shared.node_score(criterion, left, slot.weight - n_left, C)


@device
def left_of(hist, feature, cut, missing_left, left):
    """Fill `left` i64[C] with the sums of codes <= cut, and of missing values if they go left."""
    for c in range(feature.n_channels):
        left[c] = 0
    for b in range(cut + 1):
        for c in range(feature.n_channels):
            left[c] += hist[b * feature.width + c]
    if missing_left:
        for c in range(feature.n_channels):
            left[c] += hist[feature.missing * feature.width + c]


@rare
def random_of_bins(hist, feature, slot, criterion, limits, left):
    """As best_of_bins, for the one cut that is drawn; `left` i64[C] is scratch."""
    f, C = feature.number, feature.n_channels
    low, high = np.int64(-1), np.int64(-1)  # the first and the last bin that hold rows
    for b in range(feature.bins):
        at = b * feature.width
        if weight_of(hist[at : at + C], feature.is_classes) > 0:
            low, high = b if low < 0 else low, b
    at = feature.missing * feature.width
    n_missing = weight_of(hist[at : at + C], feature.is_classes)
    if low < 0 or (low == high and n_missing == 0):
        return False, Split(-np.inf, f, np.int64(0), False, NO_BIN)
    cut, side = draw_cut(slot.key, f, low, high, feature.bins)
    side &= n_missing > 0
    left_of(hist, feature, min(cut, high), side, left)
    n_left, rows_left = weight_of(left, feature.is_classes), np.int64(1)
    if limits.min_rows > 1:
        rows_left = np.int64(0)
        if side:
            rows_left = np.int64(hist[feature.missing * feature.width + C])
        for b in range(min(cut, high) + 1):
            rows_left += np.int64(hist[b * feature.width + C])
    sums_left = Bin(n_left, np.int64(left[C - 1]), rows_left)
    score = score_parts(left, n_left, rows_left, slot, criterion, limits)
    missing_left = side if n_missing > 0 else n_left > slot.weight - n_left
    return True, Split(score, f, cut, missing_left, sums_left)


@device
def compact_pairs(hist, feature, scan):
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
            scan.rows[U(m)] = n_rows
        scan.weight[U(m)], scan.second[U(m)], scan.code[U(m)] = n, a, b
        m += w > 0  # else the next bin overwrites this position
    return m


@device
def improved(scan, last, whole, more, limits, side, best):
    """Improve the Candidate `best` by the first highest score, for a side of the missing values.

    whole, more : see score_pairs"""
    scores, min_rows = scan.scores, limits.min_rows
    if min_rows > 1:
        for i in range(last):
            rows_left = scan.rows[i] + more.rows
            if rows_left < min_rows or whole.rows - rows_left < min_rows:
                scores[i] = -np.inf
    if limits.min_weight > 1 or limits.sign != 0:
        for i in range(last):
            n_left, a_left = scan.weight[i] + more.weight, scan.second[i] + more.second
            if not may_part(n_left, a_left, whole.weight, whole.second, limits):
                scores[i] = -np.inf
    highest, at = shared.first_highest(scores, np.int64(0), last)
    if highest > best.score or (highest == best.score and at < best.at):
        return Candidate(highest, np.int64(at), np.int64(side))
    return best


@device
def split_of(best, scan, n, feature, some_missing, left):
    """The split of a candidate; its cut is the middle of the gap behind its position."""
    at, cut, missing_left = best.at, np.int64(0), False
    if at >= 0:
        code, upper = scan.code[at], scan.code[at + 1]
        cut = feature.bins - 1 if upper == feature.missing else (code + upper - 1) >> 1
        missing_left = best.side == 1 if some_missing else scan.weight[at] > n - scan.weight[at]
    return Split(best.score, feature.number, cut, missing_left, left)


@device
def best_pair(m, feature, criterion, limits, scan):
    """The best cut by m running totals of two channels in `scan`; missing values may be last."""
    weight, second, n_rows = scan.weight, scan.second, np.int64(0)
    if limits.min_rows > 1:  # reading them always made fits of two classes 3 % slower
        n_rows = scan.rows[m - 1]
    whole = Bin(weight[m - 1], second[m - 1], n_rows)
    some_missing = scan.code[m - 1] == feature.missing
    best, more = NOTHING, NO_BIN
    # 2. left sides, first without the missing values, then with them
    for side in range(2 if some_missing else 1):
        if side == 1:
            if m == 1:
                break
            more = Bin(
                whole.weight - weight[m - 2], whole.second - second[m - 2],
                whole.rows - scan.rows[m - 2],
            )  # fmt: skip
        # 3. both sides hold rows
        last = m - 1 - side
        shared.score_pairs(criterion, scan, whole, more, last)
        # 4. the first of the highest
        best = improved(scan, last, whole, more, limits, side, best)
    # 5. and 6. the middle of the gap, and where missing values go
    n_left, a_left = np.int64(0), np.int64(0)
    if best.at >= 0:
        n_left, a_left = weight[best.at], second[best.at]
        if best.side == 1:
            n_left += more.weight
            a_left += more.second
    left = Bin(n_left, a_left, np.int64(0))
    return split_of(best, scan, whole.weight, feature, some_missing, left)


@device
def compact_channels(hist, feature, criterion, sums, start, scan):
    """compact_pairs for any number of channels; it also fills the scores of several outputs.

    start : sums left of all bins, with channel sums `scan.left`: of missing values; or zeros
    if missing values come last"""
    bins, C, width, left = feature.bins, feature.n_channels, feature.width, scan.left
    m, n, n_rows, last = 0, start.weight, start.rows, bins if start.weight > 0 else bins + 1
    left_sum, right_sum = np.int64(0), np.int64(0)
    if feature.is_classes:
        for c in range(C):
            left_sum += shared.grown(criterion, 0, left[c])
            right_sum += shared.grown(criterion, 0, sums[c] - left[c])
    for i in range(last):
        b = i if i < bins else feature.missing
        at, before = b * width, n
        if feature.is_classes:
            left_sum, right_sum, n = shared.add_bin(
                criterion, hist, at, left, sums, left_sum, right_sum, n
            )
        elif hist[U(at)] > 0:
            for c in range(C):
                left[U(c)] += hist[U(at + c)]
            n = left[0]
        if n == before:
            continue
        if width > C:
            n_rows += np.int64(hist[U(at + C)])
            scan.rows[U(m)] = n_rows
        scan.weight[U(m)], scan.code[U(m)] = n, b
        if feature.is_classes:
            scan.second[U(m)], scan.third[U(m)] = shared.class_sides(
                criterion, left_sum, right_sum, left, sums, C
            )
        else:
            scan.scores[U(m)] = moment_score(criterion, left, sums, C) if n < sums[0] else -np.inf
        m += 1
    return m


@rare
def scan_channels(hist, feature, slot, criterion, limits, scan):
    """As best_of_bins, for more than two classes or for several outputs."""
    C, last = feature.n_channels, feature.missing * feature.width
    best, varies = NOTHING, False
    n_missing, rows_missing = weight_of(hist[last : last + C], feature.is_classes), np.int64(0)
    if limits.min_rows > 1:
        rows_missing = np.int64(hist[last + C])
    # 2. left sides, first without the missing values, then with them
    for side in range(2 if n_missing > 0 else 1):
        for c in range(C):
            scan.left[c] = hist[last + c] * side
        start = Bin(n_missing * side, np.int64(0), rows_missing * side)
        m = compact_channels(hist, feature, criterion, slot.sums, start, scan)
        if feature.is_classes:
            shared.score_classes(criterion, scan, slot.weight, m - 1)
        varies |= m > 1
        # 3. and 4. both sides hold rows; the first of the highest
        whole = Bin(slot.weight, np.int64(0), slot.n_rows)
        best = improved(scan, m - 1, whole, NO_BIN, limits, side, best)
    # 5. and 6. the middle of the gap, and where missing values go
    return varies, split_of(best, scan, slot.weight, feature, n_missing > 0, NO_BIN)


@device
def best_of_bins(hist, feature, slot, criterion, limits, scan):
    """The best cut of one feature from hist i64[B * width]: whether it varies, and the Split."""
    if feature.n_channels == 2:
        m = compact_pairs(hist, feature, scan)
        return m > 1, best_pair(m, feature, criterion, limits, scan)
    return scan_channels(hist, feature, slot, criterion, limits, scan)
