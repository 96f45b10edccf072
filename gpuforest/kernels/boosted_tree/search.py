"""Histograms of a node of boosting and its best split among some features, compiled. The
specification is numpy.py in this folder.

A numeric feature's histogram is of running sums: cell b holds the rows of bins 0 .. b. The last
cell is that of missing values alone. Where features share a column, its sums become the
features' sums; that is exact, because they are integers.
"""

from typing import Any, NamedTuple

import numpy as np

from gpuforest.common.dtypes import CATEGORICAL
from gpuforest.compiler.decorators import device, rare
from gpuforest.compiler.intrinsics import add_pair
from gpuforest.core.nodes import SET_BIN
from gpuforest.kernels.boosted_tree.records import BLOCK, CATEGORY_ROWS
from gpuforest.kernels.sets.numba import write_set
from gpuforest.kernels.shared.numba import U, first_highest, merge_sort

ONE = U(1)


class Histogram(NamedTuple):
    """A node's sums by the codes of one feature, and what its splits are compared with.

    cells : i64[cells * words], running sums for a numeric feature (is_running)
    n_bins : bins without the missing one, which is the last cell
    words, bits : words of a cell, and bits of the last one that count rows; more than two words
        begin with several sums of gradients
    g, h, n, low, high, score : the node's sums, bounds of its value, its score
    scale_g, scale_h, l2, min_hessian : see `Scales` and `TreeRules`"""

    cells: Any
    is_running: Any
    n_bins: Any
    words: Any
    bits: Any
    g: Any
    h: Any
    n: Any
    low: Any
    high: Any
    score: Any
    scale_g: Any
    scale_h: Any
    l2: Any
    min_hessian: Any


@device
def put_in_order(stats, rows, first, n, words, ordered):
    """Copy the stats of n rows to `ordered` i64[BLOCK * words]."""
    if words == 2:
        for i in range(n):
            r = U(rows[U(first + i)])
            ordered[U(2 * i)] = stats[r, 0]
            ordered[U(2 * i + 1)] = stats[r, 1]
    elif words > 2:
        for i in range(n):
            r = U(rows[U(first + i)])
            for w in range(words):
                ordered[U(i * words + w)] = stats[r, w]
    else:
        for i in range(n):
            ordered[U(i)] = stats[U(rows[U(first + i)]), 0]


@device
def add_some(column, rows, first, n, words, ordered, cells):
    """Add n rows of several sums of gradients to the histogram of one feature."""
    for i in range(n):
        at = np.int64(column[U(rows[U(first + i)])]) * words
        for w in range(words):
            cells[U(at + w)] += ordered[U(i * words + w)]


@device
def add_one(column, rows, first, n, words, ordered, cells):
    """Add n rows to the histogram of one feature."""
    if words == 2:
        for i in range(n):
            at = U(column[U(rows[U(first + i)])]) << ONE
            add_pair(cells, at, ordered, U(2 * i))
    elif words > 2:
        add_some(column, rows, first, n, words, ordered, cells)
    else:
        for i in range(n):
            cells[U(column[U(rows[U(first + i)])])] += ordered[U(i)]


@device
def add_two(one, two, rows, first, n, words, ordered, cells, others):
    """Add n rows to the histograms of two features, so that rows are read once."""
    if words == 2:
        for i in range(n):
            r = U(rows[U(first + i)])
            add_pair(cells, U(one[r]) << ONE, ordered, U(2 * i))
            add_pair(others, U(two[r]) << ONE, ordered, U(2 * i))
    elif words > 2:
        add_some(one, rows, first, n, words, ordered, cells)
        add_some(two, rows, first, n, words, ordered, others)
    else:
        for i in range(n):
            r, g = U(rows[U(first + i)]), ordered[U(i)]
            cells[U(one[r])] += g
            others[U(two[r])] += g


@device
def add_up(cells, n_bins, words):
    """Turn the sums of bins into running sums: those of a cut's left side."""
    if words == 2:
        g, last = np.int64(0), np.int64(0)
        for b in range(n_bins):
            g += cells[U(2 * b)]
            last += cells[U(2 * b + 1)]
            cells[U(2 * b)], cells[U(2 * b + 1)] = g, last
    elif words > 2:
        for i in range(words, n_bins * words):
            cells[U(i)] += cells[U(i - words)]
    else:
        total = np.int64(0)
        for b in range(n_bins):
            total += cells[U(b)]
            cells[U(b)] = total


@device
def is_wanted(data, wanted, c):
    """Whether any feature of a column has a histogram."""
    any_wanted = False
    for f in range(data.starts[c], data.starts[c + 1]):
        any_wanted |= wanted[f]
    return any_wanted


@device
def ends_of(data, c):
    """Where the part of a histogram that belongs to a column begins and ends."""
    words = data.stats.shape[1]
    return data.cells[data.starts[c]] * words, data.cells[data.starts[c + 1]] * words


@device
def take_apart(data, cells, c, words):
    """Split a column's histogram by features, the last first: each cell moves up or stays."""
    begin, end = data.starts[c], data.starts[c + 1]
    start = data.cells[begin]
    for w in range(words):
        total = np.int64(0)
        for i in range(data.cells[end] - start):
            total += cells[U(i * words + w)]
        for f in range(end - 1, begin - 1, -1):
            source, target, rest = np.int64(data.first[f]), data.cells[f] - start, data.rest[f]
            n_bins, others = data.cells[f + 1] - data.cells[f] - 1, np.int64(0)
            for i in range(n_bins, -1, -1):
                if i != rest:
                    value = cells[U((source + i - (i > rest)) * words + w)]
                    cells[U((target + i) * words + w)] = value
                    others += value
            cells[U((target + rest) * words + w)] = total - others


@device
def fill(data, rules, table, rows, node, slot, first, last, part):
    """Fill a node's histograms of columns first .. last - 1, in blocks with stats in L1."""
    begin, end = node.begin, node.end
    ordered, words, wanted = table.ordered[part], data.stats.shape[1], table.tried[2]
    hist = table.hist[slot]
    for c in range(first, last):
        if is_wanted(data, wanted, c):
            a, b = ends_of(data, c)
            hist[a:b] = 0
    for at in range(begin, end, BLOCK):
        n = min(BLOCK, end - at)
        put_in_order(data.stats, rows, at, n, words, ordered)
        c = first
        while c < last:
            a, b = ends_of(data, c)
            if not is_wanted(data, wanted, c):
                c += 1
            elif c + 1 < last and is_wanted(data, wanted, c + 1):
                _, d = ends_of(data, c + 1)
                add_two(
                    data.codes[c], data.codes[c + 1], rows, at, n, words, ordered, hist[a:b],
                    hist[b:d],
                )  # fmt: skip
                c += 2
            else:
                add_one(data.codes[c], rows, at, n, words, ordered, hist[a:b])
                c += 1
    for c in range(first, last):
        if is_wanted(data, wanted, c):
            if data.starts[c + 1] - data.starts[c] > 1:
                a, b = ends_of(data, c)
                take_apart(data, hist[a:b], c, words)
            for f in range(data.starts[c], data.starts[c + 1]):
                if rules.kinds[f] != CATEGORICAL:
                    a, b = data.cells[f], data.cells[f + 1] - 1
                    add_up(hist[a * words : b * words], b - a, words)


@device
def subtract(data, table, slot, other, first, last):
    """Subtract one node's histograms from another's, which becomes its sibling's."""
    for c in range(first, last):
        if is_wanted(data, table.tried[2], c):
            a, b = ends_of(data, c)
            left, right = table.hist[slot, a:b], table.hist[other, a:b]
            for i in range(b - a):
                left[U(i)] -= right[U(i)]


@device
def value_of(g, h, rules, low, high):
    """What a node with these sums predicts."""
    bottom = np.float64(h) * rules.scale[0].sum_h + rules.l2
    value = -(np.float64(g) * rules.scale[0].sum_g) / (bottom if bottom > 0.0 else 1.0)
    return min(max(value if bottom > 0.0 else 0.0, low), high)


@device
def gain_of(g, h, hist, sign):
    """The gain of a split with these left sums and enough rows; 0: forbidden. Without a branch."""
    g_left, h_left = np.float64(g) * hist.scale_g, np.float64(h) * hist.scale_h
    g_right = np.float64(hist.g - g) * hist.scale_g
    h_right = np.float64(hist.h - h) * hist.scale_h
    left = min(max(-g_left / (h_left + hist.l2), hist.low), hist.high)
    right = min(max(-g_right / (h_right + hist.l2), hist.low), hist.high)
    gain = (-g_left * left + -g_right * right) - hist.score
    hessians = (h_left >= hist.min_hessian) & (h_right >= hist.min_hessian)
    return gain if hessians & (sign * (left - right) <= 0.0) else 0.0


@device
def first_with(cells, n_bins, words, mask, wanted):
    """The first bin at which the running count of rows reaches `wanted`; n_bins if none does."""
    low, high = np.int64(0), n_bins
    while low < high:
        middle = (low + high) >> 1
        enough = cells[U(middle * words + words - 1)] & mask >= wanted
        low, high = low if enough else middle + 1, middle if enough else high
    return low


@device
def sums_in(cells, b, words, bits):
    """The three sums of one bin."""
    last = cells[b * words + words - 1]
    n = last & ((np.int64(1) << bits) - 1)
    if words > 1:
        return cells[b * words], last >> bits, n
    return last >> bits, n, n


@device
def sums_of(hist, b):
    return sums_in(hist.cells, b, hist.words, hist.bits)


@device
def total_of(hist, j):
    """The sum j of gradients of all rows of the node."""
    words, last = hist.words, hist.n_bins * hist.words + j
    total = hist.cells[last]
    for b in range(hist.n_bins - 1 if hist.is_running else 0, hist.n_bins):
        total += hist.cells[b * words + j]
    return total


@device
def gains_of_several(hist, cells, first, last, missing_left, scores):
    """Gains of the cuts first .. last - 1 to scores[0], of several sums of gradients: what both
    sides score is added up, and what the node scores taken off."""
    words, bits, left, right = hist.words, hist.bits, scores[0], scores[1]
    h_more, node = np.int64(0), 0.0
    if missing_left:
        h_more = hist.cells[hist.n_bins * words + words - 1] >> bits
    left[first:last] = 0.0
    right[first:last] = 0.0
    for j in range(words - 1):
        total, more = total_of(hist, j), np.int64(0)
        if missing_left:
            more = hist.cells[hist.n_bins * words + j]
        bottom = np.float64(hist.h) * hist.scale_h + hist.l2
        g_node = np.float64(total) * hist.scale_g
        value = -g_node / (bottom if bottom > 0.0 else 1.0) if bottom > 0.0 else 0.0
        node += -g_node * min(max(value, hist.low), hist.high)
        for b in range(first, last):
            g = cells[U(b * words + j)] + more
            h = (cells[U(b * words + words - 1)] >> bits) + h_more
            g_left, h_left = np.float64(g) * hist.scale_g, np.float64(h) * hist.scale_h
            g_right = np.float64(total - g) * hist.scale_g
            h_right = np.float64(hist.h - h) * hist.scale_h
            of_left = min(max(-g_left / (h_left + hist.l2), hist.low), hist.high)
            of_right = min(max(-g_right / (h_right + hist.l2), hist.low), hist.high)
            left[U(b)] += -g_left * of_left
            right[U(b)] += -g_right * of_right
    for b in range(first, last):
        h = (cells[U(b * words + words - 1)] >> bits) + h_more
        h_left, h_right = np.float64(h) * hist.scale_h, np.float64(hist.h - h) * hist.scale_h
        enough = (h_left >= hist.min_hessian) & (h_right >= hist.min_hessian)
        left[U(b)] = (left[U(b)] + right[U(b)]) - node if enough else 0.0


@device
def improve(hist, cells, n_cells, missing_left, min_rows, sign, both, split):
    """Whether a cut of running sums has a higher gain than `split`, which then has its sums.

    missing_left : whether missing values go left at every cut
    both : f64[2, n_cells], overwritten"""
    words, bits, scores = hist.words, hist.bits, both[0]
    g, h, n = np.int64(0), np.int64(0), np.int64(0)
    if missing_left:
        g, h, n = sums_of(hist, hist.n_bins)
    mask = (np.int64(1) << bits) - 1
    # cuts with enough rows on both sides
    first = first_with(cells, n_cells, words, mask, min_rows - n)
    last = first_with(cells, n_cells, words, mask, hist.n - min_rows - n + 1)
    if words == 2:
        for b in range(first, last):
            scores[U(b)] = gain_of(
                cells[U(b * 2)] + g, (cells[U(b * 2 + 1)] >> bits) + h, hist, sign
            )
    elif words > 2:
        gains_of_several(hist, cells, first, last, missing_left, both)
    else:
        for b in range(first, last):
            cell = cells[U(b)]
            scores[U(b)] = gain_of((cell >> bits) + g, (cell & mask) + n, hist, sign)
    highest, at = first_highest(scores, first, last)
    if not highest > split.gain:
        return False
    left = sums_in(cells, at, words, bits)
    split.gain, split.bin = highest, at
    split.g, split.h, split.n = left[0] + g, left[1] + h, left[2] + n
    return True


@device
def best_cut(rules, hist, f, scores, split):
    """The best split by a numeric feature."""
    missing, sign = sums_of(hist, hist.n_bins), np.float64(rules.signs[f])
    for side in range(2 if missing[2] > 0 else 1):
        missing_left = side > 0
        if improve(
            hist, hist.cells, hist.n_bins, missing_left, rules.min_rows, sign, scores, split
        ):
            heavier = missing[2] == 0 and 2 * split.n > hist.n
            split.feature, split.missing_left = f, missing_left | heavier


@rare
def best_set(rules, hist, f, keys, order, sums, split, bitset):
    """Best split by a categorical feature; overwrites keys f64[2, B + 1], order i64[2, B + 1], and
    sums i64[B * words]."""
    for j in range(max(1, hist.words - 1)):
        best_set_by(rules, hist, f, j, keys, order, sums, split, bitset)


@device
def best_set_by(rules, hist, f, j, keys, order, sums, split, bitset):
    """The same, among the sets in the order of sum j of gradients."""
    m, words = 0, hist.words
    for code in range(hist.n_bins + 1):
        g, h, n = sums_of(hist, code)
        if n >= CATEGORY_ROWS:
            if j > 0:
                g = hist.cells[code * words + j]
            order[0, m] = code
            bottom = np.float64(h) * hist.scale_h + CATEGORY_ROWS
            keys[0, m] = np.float64(g) * hist.scale_g / bottom
            m += 1
    if m < 2:
        return
    merge_sort(keys[0], order[0], keys[1], order[1], m)
    missing, unknown = hist.n_bins, hist.n_bins - 1  # unknown: values that binning has not seen
    for backwards in range(2):
        for i in range(m // 2 if backwards else 0):
            order[0, i], order[0, m - 1 - i] = order[0, m - 1 - i], order[0, i]
        half = (m + 1) // 2
        for i in range(half * words):
            sums[i] = hist.cells[order[0, i // words] * words + i % words]
        add_up(sums, half, words)
        if not improve(hist, sums, half, False, rules.min_rows, 0.0, keys, split):
            continue
        side = write_set(m, split.bin, False, missing, missing, order[0], bitset)
        if sums_of(hist, missing)[2] == 0:
            side = 2 * split.n > hist.n
        if side and sums_of(hist, unknown)[2] == 0:
            bitset[unknown >> 6] |= ONE << U(unknown & 63)
        split.feature, split.bin, split.missing_left = f, SET_BIN, side


@device
def best_among(data, rules, table, node, slot, first, last, part, which):
    """The best split of a node by the features of the columns first .. last - 1."""
    words, split = data.stats.shape[1], table.splits[which, part]
    g, h, n, low, high = node.g, node.h, node.n, node.low, node.high
    scale_g, scale_h = rules.scale[0].sum_g, rules.scale[0].sum_h
    score = -(np.float64(g) * scale_g) * value_of(g, h, rules, low, high)
    split.gain, split.feature = 0.0, -1
    for f in range(data.starts[first], data.starts[last]):
        if not table.tried[which, f]:
            continue
        begin, end = data.cells[f], data.cells[f + 1]
        hist = Histogram(
            table.hist[slot, begin * words : end * words], rules.kinds[f] != CATEGORICAL,
            end - begin - 1, words, rules.n_bits, g, h, n, low, high, score, scale_g, scale_h,
            rules.l2, rules.min_hessian,
        )  # fmt: skip
        scores, order, sums = table.scores[part], table.order[part], table.ordered[part]
        if rules.kinds[f] == CATEGORICAL:
            best_set(rules, hist, f, scores, order, sums, split, table.split_sets[which, part])
        else:
            best_cut(rules, hist, f, scores, split)


@device
def search_part(data, rules, table, rows, first, last, part):
    """Fill histograms of a search's nodes for columns first .. last - 1, and find best splits."""
    state = table.states[0]
    if state.first >= 0:
        node, slot = table.nodes[state.first], state.first_slot
        fill(data, rules, table, rows, node, slot, first, last, part)
        best_among(data, rules, table, node, slot, first, last, part, 0)
    if state.second >= 0:
        node, slot = table.nodes[state.second], state.second_slot
        if state.subtract:
            subtract(data, table, slot, state.first_slot, first, last)
        else:
            fill(data, rules, table, rows, node, slot, first, last, part)
        best_among(data, rules, table, node, slot, first, last, part, 1)
