"""The best cut of one feature in one node, in work that grows with the node's rows.

    many rows   fill a histogram; very many those of several features at once
    few         are sorted by their code, and the cuts between them scored
    random      its ends are looked for, and one cut between them is drawn and scored

The same candidates, in the same order and with the same scores, each way.
"""

import numpy as np

from gpuforest.kernels.best_split.limits import by_rows, draw_cut, score_parts
from gpuforest.kernels.best_split.scan import NO_SUMS, best_of_bins, best_pair
from gpuforest.kernels.best_split.sets import best_set, compact_bins, has_code
from gpuforest.kernels.compile import device
from gpuforest.kernels.grow_subtrees.sorting import (
    MOST_SORTED,
    PLACE,
    SIXTEEN,
    compact_sorted,
    scan_sorted_classes,
    scan_sorted_outputs,
    sort_by_code,
)
from gpuforest.kernels.hashing.numba import U
from gpuforest.kernels.histogram.numba import has_labels
from gpuforest.nodes import SET_BIN

# A histogram is for nodes of more rows than a quarter of its cells, and than 24: against
# a sixteenth, two classes took 0.70 to 1.01 of the time and six 0.62 to 0.93 (three runs)
HIST_ROWS, HIST_SHARE = 24, 4
NEAR_ROWS = 1024


@device
def most_sorted(bins, channels):
    """Nodes of more rows than this fill histograms of so many bins."""
    return min(MOST_SORTED, max(HIST_ROWS, bins * channels // HIST_SHARE))


@device
def clear(hist, bins, missing, channels):
    """A feature's bins and the one for missing values; others are left as they are."""
    for i in range(bins * channels):
        hist[U(i)] = 0
    for i in range(missing * channels, (missing + 1) * channels):
        hist[U(i)] = 0


@device
def add_two(hist, code, own, i, C):
    """A row of the order to the histogram of class sums, or of two channels."""
    if has_labels(own):
        hist[U(np.int64(code) * C + own[U(i), 0])] += own[U(i), 1]
    else:
        hist[U(np.int64(code) * 2)] += own[U(i), 0]
        hist[U(np.int64(code) * 2 + 1)] += own[U(i), 1]


@device
def add_all(hist, code, own, i, C, channels):
    """The same with any number of channels, and of rows if there is one channel more."""
    b = np.int64(code) * channels
    if has_labels(own):
        hist[U(b + own[U(i), 0])] += own[U(i), 1]
    else:
        for c in range(C):
            hist[U(b + c)] += own[U(i), U(c)]
    if channels > C:
        hist[U(b + C)] += 1


@device
def fill(hist, column, places, own, low, n, C, channels):
    """Add a node's rows to the histogram [B * channels] of one feature."""
    if channels == C and (has_labels(own) or C == 2):  # a loop without a branch
        for i in range(low, low + n):
            add_two(hist, column[U(places[U(i)])], own, i, C)
    else:
        for i in range(low, low + n):
            add_all(hist, column[U(places[U(i)])], own, i, C, channels)


@device
def fill_two(one, two, first, second, places, own, low, n, C, channels):
    """The same of two features, rows read once."""
    if channels == C and (has_labels(own) or C == 2):
        for i in range(low, low + n):
            place = U(places[U(i)])
            add_two(one, first[place], own, i, C)
            add_two(two, second[place], own, i, C)
    else:
        fill(one, first, places, own, low, n, C, channels)
        fill(two, second, places, own, low, n, C, channels)


@device
def fill_batch(hists, batch, m, table, places, own, low, n, n_bins, B, C, channels):
    """The histograms [m, B * channels] of m features, by so few rows at once that these
    stay in the nearest cache until all features have passed."""
    for j in range(m):
        clear(hists[j], np.int64(n_bins[batch[j]]), B - 1, channels)
    for begin in range(low, low + n, NEAR_ROWS):
        rows = min(NEAR_ROWS, low + n - begin)
        for j in range(0, m - 1, 2):
            fill_two(
                hists[j], hists[j + 1], table[batch[j]], table[batch[j + 1]], places, own, begin,
                rows, C, channels,
            )  # fmt: skip
        if m % 2 == 1:
            fill(hists[m - 1], table[batch[m - 1]], places, own, begin, rows, C, channels)


@device
def best_cut(
    table, f, places, own, low, n, sums, n_weight, n_bins, rules, B, work, hist, is_filled
):  # fmt: skip
    """One feature in one node: (varies, score, cut, missing_left, left); of two channels
    `left` are the weight and the second channel on the left.

    hist : scratch, unless it is filled
    """
    criterion, _, _, _, min_rows, _ = rules
    code, keys, spare_keys, counts, _, _, scratch = work
    C, missing, bins, labels = len(sums), B - 1, np.int64(n_bins[f]), has_labels(own)
    channels = np.int64(C + (min_rows > 1))
    column, limits = table[f], by_rows(min_rows)
    if is_filled or n > most_sorted(bins, channels):
        if not is_filled:
            clear(hist, bins, missing, channels)
            fill(hist, column, places, own, low, n, C, channels)
        return best_of_bins(hist, bins, B, sums, n_weight, n, criterion, limits, labels, scratch)
    first, varies = column[U(places[U(low)])], False
    for i in range(n):
        c = column[U(places[U(low + i)])]
        code[U(i)] = c
        varies |= c != first
    if not varies:
        return False, -np.inf, np.int64(0), False, NO_SUMS
    sort_by_code(code, n, keys, spare_keys, counts)
    if C == 2:
        _, upto, scores = scratch
        m = compact_sorted(keys, n, own, low, upto)
        score, cut, side, left = best_pair(upto, m, missing, bins, criterion, limits, scores)
        return True, score, cut, side, left
    if labels:
        score, cut, side = scan_sorted_classes(
            keys, n, own, low, missing, sums, n_weight, bins, criterion, limits, scratch
        )
    else:
        score, cut, side = scan_sorted_outputs(
            keys, n, own, low, missing, sums, bins, criterion, limits, scratch
        )
    return True, score, cut, side, NO_SUMS


@device
def compact_set(table, f, places, own, low, n, n_bins, rules, B, work, hist, is_filled, C, sets):
    """Put the occupied categories of a feature in one node, and their sums, into `sets`; how
    many. Of a feature that does not vary there is none.

    sets : work on categories, see sets.py
    """
    code, keys, spare_keys, counts, _, _, _ = work
    missing, bins, labels = B - 1, np.int64(n_bins[f]), has_labels(own)
    channels, column = np.int64(C + (rules[4] > 1)), table[f]
    if is_filled or n > most_sorted(bins, channels):
        if not is_filled:
            clear(hist, bins, missing, channels)
            fill(hist, column, places, own, low, n, C, channels)
        return compact_bins(hist, bins, missing, C, channels, labels, sets)
    first, varies = column[U(places[U(low)])], False
    for i in range(n):
        c = column[U(places[U(low + i)])]
        code[U(i)] = c
        varies |= c != first
    if not varies:
        return 0
    sort_by_code(code, n, keys, spare_keys, counts)
    return compact_rows(keys, n, own, low, C, channels, sets)


@device
def set_of_rows(
    table, f, places, own, low, n, sums, n_weight, n_bins, rules, B, work, hist, is_filled,
    is_random, key, sets,
):  # fmt: skip
    """As best_cut, of a categorical feature: (m, score, place, heavier, left) of its m occupied
    categories, see `best_set`.

    sets : work on categories, see sets.py
    """
    criterion, C, labels = rules[0], len(sums), has_labels(own)
    channels, limits, scratch = np.int64(C + (rules[4] > 1)), by_rows(rules[4]), work[6]
    m = compact_set(table, f, places, own, low, n, n_bins, rules, B, work, hist, is_filled, C, sets)
    if m < 2:
        return m, -np.inf, np.int64(0), False, NO_SUMS
    score, at, side, left = best_set(
        m, f, sums, n_weight, n, C, channels, criterion, limits, labels, is_random, key, scratch,
        sets,
    )  # fmt: skip
    return m, score, at, side, left


@device
def compact_rows(keys, n, own, low, C, channels, sets):
    """As compact_bins, from a node's rows sorted by code."""
    codes, some, m = sets[0], sets[4], 0
    for i in range(n):
        key = keys[U(i)]
        code, row = np.int64(key >> SIXTEEN), low + np.int64(key & PLACE)
        if m == 0 or codes[m - 1] != code:
            codes[m] = code
            for c in range(channels):
                some[m * channels + c] = 0
            m += 1
        add_all(some, m - 1, own, row, C, channels)
    return m


@device
def put_set(set_words, n_words, words, bins):
    """Write a set of so many bins; how many words are then in use."""
    for w in range((np.int64(bins) + 63) >> 6):
        set_words[n_words + w] = words[w]
    return n_words + ((np.int64(bins) + 63) >> 6)


@device
def goes_left(code, cut, missing_left, missing, words):
    """words : a set, which a cut SET_BIN asks; None: no feature is categorical"""
    if words is not None and cut == SET_BIN and code != missing:
        return has_code(words, 0, code)
    return missing_left if code == missing else code <= cut


@device
def left_totals(column, places, own, low, high, cut, missing_left, missing, words, left):
    """Fill the channel sums of the rows that go left."""
    for c in range(len(left)):
        left[c] = 0
    for i in range(low, high):
        code = np.int64(column[U(places[U(i)])])
        if goes_left(code, cut, missing_left, missing, words):
            if has_labels(own):
                left[U(own[U(i), 0])] += np.int64(own[U(i), 1])
            else:
                for c in range(len(left)):
                    left[U(c)] += own[U(i), U(c)]


@device
def sum_left(code, n, own, low, cut, missing_left, missing, count_rows, left):
    """As left_totals, from a node's codes one behind another, without a branch: which way a
    row goes is a coin's toss. Returns how many rows go left, if they are to be counted."""
    C, rows_left = len(left), np.int64(1)
    # in the codes' own type, so that the loops become vectors
    last = code.dtype.type(cut)
    also = code.dtype.type(missing if missing_left else cut)  # a second code that goes left
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
def random_cut(table, f, places, own, low, n, sums, n_weight, n_bins, rules, B, work, key):
    """As best_cut, of the one cut that is drawn."""
    criterion, missing, column, left, code = rules[0], B - 1, table[f], work[6][0], work[0]
    for i in range(n):
        code[U(i)] = column[U(places[U(low + i)])]
    lowest, highest, some_missing = ends_of(code, n, missing)
    if lowest == missing or (lowest == highest and not some_missing):
        return False, -np.inf, np.int64(0), False, NO_SUMS
    cut, side = draw_cut(key, f, lowest, highest, n_bins[f])
    side &= some_missing
    limits = by_rows(rules[4])
    rows_left = sum_left(code, n, own, low, cut, side, missing, rules[4] > 1, left)
    n_left = np.int64(left[0])
    for c in range(1, len(left) if has_labels(own) else 1):
        n_left += left[c]
    second = left[len(left) - 1]
    score = score_parts(left, sums, n_left, n_weight, rows_left, n, criterion, limits)
    return True, score, cut, side if some_missing else n_left > n_weight - n_left, (n_left, second)
