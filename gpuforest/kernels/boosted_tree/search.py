"""The best split of a node of boosting among some features, compiled. The specification is
numpy.py beside this file."""

from typing import Any, NamedTuple

import numpy as np

from gpuforest.common.dtypes import CATEGORICAL
from gpuforest.compiler.decorators import device, rare
from gpuforest.engine.nodes import SET_BIN
from gpuforest.kernels.boosted_tree.records import CATEGORY_ROWS, MIN_HESSIAN
from gpuforest.kernels.boosted_tree.sums import fill, subtract
from gpuforest.kernels.shared.numba import U, merge_sort

ONE = U(1)


class Whole(NamedTuple):
    """A node whose splits are compared: its sums, the bounds of its value, and its score."""

    g: Any
    h: Any
    n: Any
    low: Any
    high: Any
    score: Any


class Histogram(NamedTuple):
    """A node's sums by the codes of one feature.

    cells : i64[cells * words]; of a numeric feature they are running sums
    n_bins : the bins, without the one for missing values, which is the last cell
    words, bits : the words of a cell, and the bits of the last one that count rows
    """

    cells: Any
    n_bins: Any
    words: Any
    bits: Any


@device
def value_of(g, h, rules, low, high):
    """What a node with these sums predicts."""
    bottom = np.float64(h) * rules.h + rules.l2
    value = -(np.float64(g) * rules.g) / (bottom if bottom > 0.0 else 1.0)
    return min(max(value if bottom > 0.0 else 0.0, low), high)


@device
def gain_of(g, h, whole, rules, sign):
    """The gain of a split with these left sums and enough rows on both sides; 0 if it is not
    allowed. Without a branch."""
    g_left, h_left = np.float64(g) * rules.g, np.float64(h) * rules.h
    g_right = np.float64(whole.g - g) * rules.g
    h_right = np.float64(whole.h - h) * rules.h
    left = min(max(-g_left / (h_left + rules.l2), whole.low), whole.high)
    right = min(max(-g_right / (h_right + rules.l2), whole.low), whole.high)
    gain = (-g_left * left + -g_right * right) - whole.score
    hessians = (h_left >= MIN_HESSIAN) & (h_right >= MIN_HESSIAN)
    return gain if hessians & (sign * (left - right) <= 0.0) else 0.0


@device
def first_with(cells, n_bins, words, mask, wanted):
    """The first bin up to which there are so many rows, or n_bins."""
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
    if words == 2:
        return cells[b * 2], last >> bits, n
    return last >> bits, n, n


@device
def sums_of(hist, b):
    return sums_in(hist.cells, b, hist.words, hist.bits)


@device
def keep(split, gain, feature, bin, missing_left, g, h, n):
    """Keep the best split so far."""
    split.gain, split.feature, split.bin, split.missing_left = gain, feature, bin, missing_left
    split.g, split.h, split.n = g, h, n


@device
def highest_of(scores, first, last):
    """The highest of some scores, or 0. Each maximum waits for the one before it, so there are
    several of them."""
    a, b, c, d, at = 0.0, 0.0, 0.0, 0.0, first
    while at + 4 <= last:
        a, b = max(a, scores[U(at)]), max(b, scores[U(at + 1)])
        c, d = max(c, scores[U(at + 2)]), max(d, scores[U(at + 3)])
        at += 4
    while at < last:
        a = max(a, scores[U(at)])
        at += 1
    return max(max(a, b), max(c, d))


@device
def best_cut(rules, hist, whole, f, scores, split):
    """The best split by a numeric feature."""
    cells, n_bins, words, bits = hist.cells, hist.n_bins, hist.words, hist.bits
    mask, missing = (np.int64(1) << bits) - 1, sums_of(hist, n_bins)
    sign = np.float64(rules.signs[f])
    for missing_left in range(2 if missing[2] > 0 else 1):
        g, h, n = missing if missing_left else (np.int64(0), np.int64(0), np.int64(0))
        # cuts with enough rows on both sides
        first = first_with(cells, n_bins, words, mask, rules.min_rows - n)
        last = first_with(cells, n_bins, words, mask, whole.n - rules.min_rows - n + 1)
        if words == 2:
            for b in range(first, last):
                scores[U(b)] = gain_of(
                    cells[U(b * 2)] + g, (cells[U(b * 2 + 1)] >> bits) + h, whole, rules, sign
                )
        else:
            for b in range(first, last):
                cell = cells[U(b)]
                scores[U(b)] = gain_of((cell >> bits) + g, (cell & mask) + n, whole, rules, sign)
        highest = highest_of(scores, first, last)
        if highest > split.gain:
            at = first
            while scores[U(at)] != highest:
                at += 1
            left = sums_of(hist, at)
            n += left[2]
            heavier = missing[2] == 0 and 2 * n > whole.n
            keep(split, highest, f, at, missing_left | heavier, left[0] + g, left[1] + h, n)


@rare
def best_set(rules, hist, whole, f, keys, order, split, bitset):
    """The best split by a categorical feature; keys f64[2, B + 1] and order i64[2, B + 1] are
    overwritten."""
    m = 0
    for code in range(hist.n_bins + 1):
        g, h, n = sums_of(hist, code)
        if n >= CATEGORY_ROWS:
            order[0, m] = code
            keys[0, m] = (np.float64(g) * rules.g) / (np.float64(h) * rules.h + CATEGORY_ROWS)
            m += 1
    if m < 2:
        return
    merge_sort(keys[0], order[0], keys[1], order[1], m)
    for backwards in range(2):
        g, h, n, best = np.int64(0), np.int64(0), np.int64(0), -1
        for i in range((m + 1) // 2):
            sums = sums_of(hist, order[0, m - 1 - i if backwards else i])
            g, h, n = g + sums[0], h + sums[1], n + sums[2]
            if min(n, whole.n - n) < rules.min_rows:
                continue
            gain = gain_of(g, h, whole, rules, 0.0)
            if gain > split.gain:
                best = i
                keep(split, gain, f, SET_BIN, False, g, h, n)
        if best >= 0:
            write_set(hist, whole, order[0], m, best, backwards, split, bitset)


@device
def write_set(hist, whole, order, m, best, backwards, split, bitset):
    """Write the set of the first categories in the order, and which side missing values go to."""
    side, missing = False, hist.n_bins
    for w in range(len(bitset)):
        bitset[w] = U(0)
    for i in range(best + 1):
        code = order[m - 1 - i if backwards else i]
        if code == missing:
            side = True
        else:
            bitset[code >> 6] |= ONE << U(code & 63)
    if sums_of(hist, missing)[2] == 0:
        side = 2 * split.n > whole.n
    unknown = missing - 1  # the code of values that binning has not seen
    if side and sums_of(hist, unknown)[2] == 0:
        bitset[unknown >> 6] |= ONE << U(unknown & 63)
    split.missing_left = side


@device
def best_among(data, rules, scratch, node, slot, first, last, part, which):
    """The best split of a node by the features of the columns first .. last - 1."""
    words, split = data.stats.shape[1], scratch.splits[part, which]
    value = value_of(node.g, node.h, rules, node.low, node.high)
    score = -(np.float64(node.g) * rules.g) * value
    whole = Whole(node.g, node.h, node.n, node.low, node.high, score)
    split.gain, split.feature = 0.0, -1
    for f in range(data.starts[first], data.starts[last]):
        if not scratch.tried[which, f]:
            continue
        begin, end = data.cells[f], data.cells[f + 1]
        cells = scratch.hist[slot, begin * words : end * words]
        hist = Histogram(cells, end - begin - 1, words, rules.n_bits)
        scores, order = scratch.scores[part], scratch.order[part]
        if data.kinds[f] == CATEGORICAL:
            best_set(rules, hist, whole, f, scores, order, split, scratch.sets[part, which])
        else:
            best_cut(rules, hist, whole, f, scores[0], split)


@device
def search_part(data, rules, table, scratch, rows, first, last, part):
    """Fill the histograms of the one or two nodes of a search for the columns first .. last - 1,
    and find their best splits among these."""
    state = table.state[0]
    if state.first >= 0:
        node, slot = table.nodes[state.first], state.first_slot
        fill(data, scratch, rows, node, slot, first, last, part)
        best_among(data, rules, scratch, node, slot, first, last, part, 0)
    if state.second >= 0:
        node, slot = table.nodes[state.second], state.second_slot
        if state.subtract:
            subtract(data, scratch, slot, state.first_slot, first, last)
        else:
            fill(data, scratch, rows, node, slot, first, last, part)
        best_among(data, rules, scratch, node, slot, first, last, part, 1)
