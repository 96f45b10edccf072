"""The limits on cuts, and random cuts, compiled."""

import numpy as np

from gpuforest.compiler.decorators import device, rare
from gpuforest.kernels.histogram.numba import has_labels
from gpuforest.kernels.shared.hashing.numba import CUT, U1, U, hash_at
from gpuforest.kernels.shared.records import NO_BIN, Bin, Feature, Limits, Slot, Split
from gpuforest.kernels.shared.scoring.numba import node_score


@device
def weight_of(sums, is_classes):
    """The weight of rows with these channel sums."""
    n = np.int64(sums[0])
    for c in range(1, len(sums) if is_classes else 1):
        n += np.int64(sums[c])
    return n


@device
def slot_at(slots, s, is_classes):
    """The record of slot s."""
    low, high = -np.inf, np.inf
    if len(slots.bounds):
        low, high = slots.bounds[s, 0], slots.bounds[s, 1]
    sums, n_rows = slots.sums[s], np.int64(slots.n_rows[s])
    weight, begin = weight_of(sums, is_classes), np.int64(slots.begin[s])
    return Slot(np.int64(s), begin, n_rows, weight, slots.key[s], sums, low, high)


@device
def feature_of(f, data, rules, n_channels):
    """The record of feature f."""
    width = np.int64(n_channels + rules.count_rows)
    bins, missing = np.int64(data.n_bins[f]), np.int64(data.n_codes - 1)
    return Feature(np.int64(f), bins, missing, np.int64(n_channels), width, has_labels(data.y))


@device
def limits_of(rules, slot, f):
    """The limits on a feature's cuts in a slot."""
    sign = np.int64(rules.signs[f]) if len(rules.signs) else np.int64(0)
    fewest, least = np.int64(rules.min_rows_leaf), np.int64(rules.min_weight_leaf)
    return Limits(fewest, least, sign, slot.low, slot.high)


@device
def by_rows(rules):
    """The limits if only the number of rows is limited."""
    return Limits(np.int64(rules.min_rows_leaf), np.int64(1), np.int64(0), -np.inf, np.inf)


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
    """A random cut between the first and the last bin that hold rows, and the side of missing
    values. If one bin alone holds rows, the cut separates it from missing values: they go right."""
    h = hash_at(key, CUT + np.int64(f))
    if high == low:
        return np.int64(bins) - 1, False
    return low + np.int64((h >> U1) % U(high - low)), h & U1 == U1


@device
def score_parts(left, n_left, rows_left, slot, criterion, limits):
    """The score of a cut's sides, -inf if the limits forbid it. It changes `left` to the right
    side's sums."""
    C, sums = len(slot.sums), slot.sums
    if rows_left < limits.min_rows or slot.n_rows - rows_left < limits.min_rows:
        return -np.inf
    if not may_part(n_left, left[C - 1], slot.weight, sums[C - 1], limits):
        return -np.inf
    score = node_score(criterion, left, n_left, C)
    for c in range(C):
        left[c] = sums[c] - left[c]
    return score + node_score(criterion, left, slot.weight - n_left, C)


@device
def left_of(hist, feature, cut, missing_left, left):
    """Fill `left` i64[C] with the sums of the codes <= cut, and of missing values if they go
    left."""
    for c in range(feature.n_channels):
        left[c] = 0
    for b in range(cut + 1):
        for c in range(feature.n_channels):
            left[c] += hist[b * feature.width + c]
    if missing_left:
        for c in range(feature.n_channels):
            left[c] += hist[feature.missing * feature.width + c]


@device
def ends_of_bins(hist, feature):
    """The first and the last bin that hold rows, or -1, and the weight of missing values."""
    low, high, n_missing = np.int64(-1), np.int64(-1), np.int64(0)
    for i in range(feature.bins + 1):
        b = i if i < feature.bins else feature.missing
        w = np.int64(0)
        for c in range(feature.n_channels if feature.is_classes else 1):
            w += hist[b * feature.width + c]
        if b == feature.missing:
            n_missing = w
        elif w > 0:
            low, high = b if low < 0 else low, b
    return low, high, n_missing


@rare
def random_of_bins(hist, feature, slot, criterion, limits, left):
    """As best_of_bins, for the one cut that is drawn; `left` i64[C] is scratch."""
    f, C = feature.number, feature.n_channels
    low, high, n_missing = ends_of_bins(hist, feature)
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
