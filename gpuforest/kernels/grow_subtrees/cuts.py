"""The best cut of one feature in one node, in time proportional to the node's rows.

    many rows    fill a histogram; very many fill those of several features at once
    few rows     are sorted by code, and the cuts between them are scored
    random cuts  one cut between the lowest and the highest code is drawn and scored

The candidates, their order and their scores are the same in each way.
"""

import numpy as np

from gpuforest.compiler.decorators import device
from gpuforest.engine.nodes import SET_BIN
from gpuforest.kernels.best_split.limits import by_rows, draw_cut, score_parts, weight_of
from gpuforest.kernels.best_split.scan import best_of_bins, best_pair
from gpuforest.kernels.best_split.sets import best_set, compact_bins, write_set
from gpuforest.kernels.grow_subtrees.sorting import (
    MOST_SORTED,
    POSITION,
    SIXTEEN,
    compact_sorted,
    scan_sorted_classes,
    scan_sorted_outputs,
    sort_by_code,
)
from gpuforest.kernels.histogram.numba import has_labels
from gpuforest.kernels.shared.goes_left.numba import goes_left
from gpuforest.kernels.shared.hashing.numba import U
from gpuforest.kernels.shared.records import NO_BIN, Bin, Split

# A histogram is for nodes of more rows than a quarter of its cells, and than 24: against
# a sixteenth, two classes took 0.70 to 1.01 of the time and six 0.62 to 0.93 (three runs)
HIST_ROWS, HIST_SHARE = 24, 4
NEAR_ROWS = 1024


@device
def most_sorted(bins, channels):
    """Nodes of more rows than this fill histograms instead of sorting."""
    return min(MOST_SORTED, max(HIST_ROWS, bins * channels // HIST_SHARE))


@device
def clear(hist, feature):
    """Clear a feature's bins and the one for missing values; others stay as they are."""
    missing, width = feature.missing, feature.width
    for i in range(feature.bins * width):
        hist[U(i)] = 0
    for i in range(missing * width, (missing + 1) * width):
        hist[U(i)] = 0


@device
def add_two(hist, code, own, i, C):
    """Add row i of the order to a histogram of class sums, or of two channels."""
    if has_labels(own):
        hist[U(np.int64(code) * C + own[U(i), 0])] += own[U(i), 1]
    else:
        hist[U(np.int64(code) * 2)] += own[U(i), 0]
        hist[U(np.int64(code) * 2 + 1)] += own[U(i), 1]


@device
def add_all(hist, code, own, i, C, width):
    """As add_two, for any number of channels; if width > C, the last channel counts rows."""
    b = np.int64(code) * width
    if has_labels(own):
        hist[U(b + own[U(i), 0])] += own[U(i), 1]
    else:
        for c in range(C):
            hist[U(b + c)] += own[U(i), U(c)]
    if width > C:
        hist[U(b + C)] += 1


@device
def fill(hist, column, order, begin, n, C, width):
    """Add n rows of the order to the histogram [B * width] of one feature."""
    positions, own = order
    if width == C and (has_labels(own) or C == 2):  # a loop without a branch
        for i in range(begin, begin + n):
            add_two(hist, column[U(positions[U(i)])], own, i, C)
    else:
        for i in range(begin, begin + n):
            add_all(hist, column[U(positions[U(i)])], own, i, C, width)


@device
def fill_two(one, two, first, second, order, begin, n, C, width):
    """As fill, for two features at once, so that rows are read once."""
    positions, own = order
    if width == C and (has_labels(own) or C == 2):
        for i in range(begin, begin + n):
            position = U(positions[U(i)])
            add_two(one, first[position], own, i, C)
            add_two(two, second[position], own, i, C)
    else:
        fill(one, first, order, begin, n, C, width)
        fill(two, second, order, begin, n, C, width)


@device
def fill_batch(work, m, table, order, slot, C, width):
    """Fill the histograms [m, B * width] of m features, by so few rows at a time that these stay
    in the first-level cache for all features."""
    hists, batch, end = work.hists, work.batch, slot.begin + slot.n_rows
    for begin in range(slot.begin, end, NEAR_ROWS):
        n = min(NEAR_ROWS, end - begin)
        for j in range(0, m - 1, 2):
            fill_two(
                hists[j], hists[j + 1], table[batch[j]], table[batch[j + 1]], order, begin, n, C,
                width,
            )  # fmt: skip
        if m % 2 == 1:
            fill(hists[m - 1], table[batch[m - 1]], order, begin, n, C, width)


@device
def fills(slot, feature):
    """Whether a histogram is filled for a node with the slot's number of rows."""
    return slot.n_rows > most_sorted(feature.bins, feature.width)


@device
def histogram_of(column, feature, slot, order, hist, is_filled):
    """Fill the histogram of one feature in one node, unless it is filled."""
    if not is_filled:
        clear(hist, feature)
        fill(hist, column, order, slot.begin, slot.n_rows, feature.n_channels, feature.width)


@device
def take_codes(column, slot, order, code):
    """Copy the codes of a node's rows to `code`, and return whether they vary."""
    first, varies = column[U(order.positions[U(slot.begin)])], False
    for i in range(slot.n_rows):
        c = column[U(order.positions[U(slot.begin + i)])]
        code[U(i)] = c
        varies |= c != first
    return varies


@device
def best_cut(column, feature, slot, order, criterion, limits, work, hist, is_filled):
    """The best cut of one feature in one node: whether it varies, and the Split.

    column : the feature's codes in the block
    hist : scratch, unless it is filled
    """
    own = order.own
    if is_filled or fills(slot, feature):
        histogram_of(column, feature, slot, order, hist, is_filled)
        return best_of_bins(hist, feature, slot, criterion, limits, work.scan)
    if not take_codes(column, slot, order, work.code):
        return False, Split(-np.inf, feature.number, np.int64(0), False, NO_BIN)
    sort_by_code(slot.n_rows, work)
    if feature.n_channels == 2:
        m = compact_sorted(work.keys, slot.n_rows, own, slot.begin, work.scan.upto)
        return True, best_pair(m, feature, criterion, limits, work.scan)
    if feature.is_classes:
        return True, scan_sorted_classes(work, slot, own, feature, criterion, limits)
    return True, scan_sorted_outputs(work, slot, own, feature, criterion, limits)


@device
def compact_set(column, feature, slot, order, work, hist, is_filled, categories):
    """Copy the categories that a node holds of a feature, and their sums, to `categories`, and
    return their number. It is 0 if the feature does not vary.

    categories : CategoryWork
    """
    if is_filled or fills(slot, feature):
        histogram_of(column, feature, slot, order, hist, is_filled)
        return compact_bins(hist, feature, categories)
    if not take_codes(column, slot, order, work.code):
        return 0
    sort_by_code(slot.n_rows, work)
    return compact_rows(work.keys, slot, order.own, feature, categories)


@device
def set_of_rows(column, feature, slot, rules, scratch, hist, is_filled, best, random, sets):
    """As best_cut, for a categorical feature; the set is written to `sets.best` if its score is
    above `best`."""
    work = scratch.work
    m = compact_set(column, feature, slot, scratch.order, work, hist, is_filled, sets.work)
    if m < 2:
        return False, Split(-np.inf, feature.number, np.int64(SET_BIN), False, NO_BIN)
    found = best_set(
        m,
        feature,
        slot,
        rules.criterion.number,
        by_rows(rules),
        random is not None,
        work.scan,
        sets.work,
    )
    side = False
    if found.score > best:
        side = write_set(m, found, feature, sets.work, sets.best)
    return True, Split(found.score, feature.number, np.int64(SET_BIN), side, found.left)


@device
def compact_rows(keys, slot, own, feature, categories):
    """As compact_bins, from a node's rows sorted by code."""
    codes, some, m, width = categories.codes, categories.some, 0, feature.width
    for i in range(slot.n_rows):
        key = keys[U(i)]
        code, row = np.int64(key >> SIXTEEN), slot.begin + np.int64(key & POSITION)
        if m == 0 or codes[m - 1] != code:
            codes[m] = code
            for c in range(width):
                some[m * width + c] = 0
            m += 1
        add_all(some, m - 1, own, row, feature.n_channels, width)
    return m


@device
def left_totals(column, order, slot, split, missing, words, left):
    """Fill the channel sums of the rows that go left."""
    positions, own = order
    for c in range(len(left)):
        left[c] = 0
    for i in range(slot.begin, slot.begin + slot.n_rows):
        code = np.int64(column[U(positions[U(i)])])
        if goes_left(code, split, missing, words, 0):
            if has_labels(own):
                left[U(own[U(i), 0])] += np.int64(own[U(i), 1])
            else:
                for c in range(len(left)):
                    left[U(c)] += own[U(i), U(c)]


@device
def sum_left(code, own, slot, split, missing, count_rows, left):
    """As left_totals, from a contiguous array of a node's codes and without branches, which would
    be mispredicted. Returns how many rows go left, if they are to be counted."""
    C, rows_left, n, low = len(left), np.int64(1), slot.n_rows, slot.begin
    # in the dtype of the codes, so that the compiler vectorises the loops
    last = code.dtype.type(split.bin)
    also = code.dtype.type(missing if split.missing_left else split.bin)  # goes left too
    if count_rows:
        rows_left = np.int64(0)
        for i in range(n):
            rows_left += (code[U(i)] <= last) | (code[U(i)] == also)
    for c in range(C):
        left[c] = 0
    if C == 2:
        a, b = np.int64(0), np.int64(0)
        for i in range(n):
            goes = -np.int64((code[U(i)] <= last) | (code[U(i)] == also))
            first, second = np.int64(own[U(low + i), 0]), np.int64(own[U(low + i), 1])
            if has_labels(own):
                a += second & goes
                b += second & goes & -first  # of the second class
            else:
                a += first & goes
                b += second & goes
        left[0], left[1] = a - b if has_labels(own) else a, b
        return rows_left
    for i in range(n):
        goes = -np.int64((code[U(i)] <= last) | (code[U(i)] == also))
        if has_labels(own):
            left[U(own[U(low + i), 0])] += np.int64(own[U(low + i), 1]) & goes
        else:
            for c in range(C):
                left[U(c)] += own[U(low + i), U(c)] & goes
    return rows_left


@device
def ends_of(code, n, missing):
    """The lowest and the highest of a node's codes that are not missing, and whether some are."""
    lowest = highest = code[0]
    for i in range(n):
        lowest = min(lowest, code[U(i)])
    for i in range(n):
        highest = max(highest, code[U(i)])
    if highest < missing:
        return np.int64(lowest), np.int64(highest), False
    top = np.int64(-1)
    for i in range(n):
        c = np.int64(code[U(i)])
        top = max(top, c if c < missing else np.int64(-1))
    return np.int64(lowest), top, True


@device
def random_cut(column, feature, slot, order, criterion, limits, work):
    """As best_cut, for the one cut that is drawn."""
    f, missing, left, code = feature.number, feature.missing, work.scan.left, work.code
    for i in range(slot.n_rows):
        code[U(i)] = column[U(order.positions[U(slot.begin + i)])]
    lowest, highest, some_missing = ends_of(code, slot.n_rows, missing)
    if lowest == missing or (lowest == highest and not some_missing):
        return False, Split(-np.inf, f, np.int64(0), False, NO_BIN)
    cut, side = draw_cut(slot.key, f, lowest, highest, feature.bins)
    side &= some_missing
    drawn = Split(-np.inf, f, cut, side, NO_BIN)
    rows_left = sum_left(code, order.own, slot, drawn, missing, limits.min_rows > 1, left)
    n_left = weight_of(left, feature.is_classes)
    sums_left = Bin(n_left, left[len(left) - 1], rows_left)
    score = score_parts(left, n_left, rows_left, slot, criterion, limits)
    heavier = n_left > slot.weight - n_left
    return True, Split(score, f, cut, side if some_missing else heavier, sums_left)
