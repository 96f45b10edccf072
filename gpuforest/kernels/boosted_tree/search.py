"""The best split of a node of boosting among some features, compiled. The specification is
numpy.py beside this file."""

import numpy as np

from gpuforest.common.dtypes import CATEGORICAL
from gpuforest.compiler.decorators import device, rare
from gpuforest.engine.nodes import SET_BIN
from gpuforest.kernels.best_split.set_order import merge_sort
from gpuforest.kernels.boosted_tree.records import (
    CATEGORY_ROWS,
    FIRST,
    FIRST_SLOT,
    HIGH,
    LOW,
    MIN_HESSIAN,
    ROWS,
    SECOND,
    SECOND_SLOT,
    SUBTRACT,
    G,
    H,
)
from gpuforest.kernels.boosted_tree.sums import fill, subtract
from gpuforest.kernels.shared.hashing.numba import U

ONE = U(1)


@device
def value_of(g, h, rules, low, high):
    """What a node with these sums predicts."""
    bottom = np.float64(h) * rules.h + rules.l2
    value = -(np.float64(g) * rules.g) / (bottom if bottom > 0.0 else 1.0)
    return min(max(value if bottom > 0.0 else 0.0, low), high)


@device
def gain_of(g, h, numbers, bounds, whole, rules, sign):
    """The gain of a split with these left sums and enough rows on both sides; 0 if it is not
    allowed. Without a branch."""
    low, high = bounds[LOW], bounds[HIGH]
    g_left, h_left = np.float64(g) * rules.g, np.float64(h) * rules.h
    g_right = np.float64(numbers[G] - g) * rules.g
    h_right = np.float64(numbers[H] - h) * rules.h
    left = min(max(-g_left / (h_left + rules.l2), low), high)
    right = min(max(-g_right / (h_right + rules.l2), low), high)
    gain = (-g_left * left + -g_right * right) - whole
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
def keep(pool, part, which, gain, feature, bin, side, g, h, n):
    """The best split found so far in a part."""
    pool.gains[part, which] = gain
    found = pool.found[part, which]
    found[0], found[1], found[2], found[3], found[4], found[5] = feature, bin, side, g, h, n


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
def best_cut(data, rules, pool, part, which, f, cells, numbers, bounds, whole):
    """The best split by a numeric feature, whose cells are running sums."""
    words, bits, n_bins = data.stats.shape[1], rules.n_bits, data.cells[f + 1] - data.cells[f] - 1
    scores, mask = pool.scores[part, 0], (np.int64(1) << bits) - 1
    missing = sums_in(cells, n_bins, words, bits)
    sign = np.float64(rules.signs[f])
    for missing_left in range(2 if missing[2] > 0 else 1):
        g, h, n = missing if missing_left else (np.int64(0), np.int64(0), np.int64(0))
        # cuts with enough rows on both sides
        first = first_with(cells, n_bins, words, mask, rules.min_rows - n)
        last = first_with(cells, n_bins, words, mask, numbers[ROWS] - rules.min_rows - n + 1)
        if words == 2:
            for b in range(first, last):
                scores[U(b)] = gain_of(
                    cells[U(b * 2)] + g, (cells[U(b * 2 + 1)] >> bits) + h, numbers, bounds, whole,
                    rules, sign,
                )  # fmt: skip
        else:
            for b in range(first, last):
                cell = cells[U(b)]
                scores[U(b)] = gain_of(
                    (cell >> bits) + g, (cell & mask) + n, numbers, bounds, whole, rules, sign
                )
        highest = highest_of(scores, first, last)
        if highest > pool.gains[part, which]:
            at = first
            while scores[U(at)] != highest:
                at += 1
            left = sums_in(cells, at, words, bits)
            n += left[2]
            heavier = missing[2] == 0 and 2 * n > numbers[ROWS]
            keep(
                pool,
                part,
                which,
                highest,
                f,
                at,
                missing_left | heavier,
                left[0] + g,
                left[1] + h,
                n,
            )


@rare
def best_set(data, rules, pool, part, which, f, cells, numbers, bounds, whole):
    """The best split by a categorical feature."""
    words, bits, n_bins = data.stats.shape[1], rules.n_bits, data.cells[f + 1] - data.cells[f] - 1
    missing, order, keys = n_bins, pool.order[part], pool.scores[part]
    m = 0
    for code in range(n_bins + 1):
        g, h, n = sums_in(cells, code, words, bits)
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
            code = order[0, m - 1 - i if backwards else i]
            sums = sums_in(cells, code, words, bits)
            g, h, n = g + sums[0], h + sums[1], n + sums[2]
            if min(n, numbers[ROWS] - n) < rules.min_rows:
                continue
            gain = gain_of(g, h, numbers, bounds, whole, rules, 0.0)
            if gain > pool.gains[part, which]:
                best = i
                keep(pool, part, which, gain, f, SET_BIN, False, g, h, n)
        if best >= 0:
            write_set(pool, part, which, m, best, backwards, missing, cells, n_bins, numbers,
                      words, bits)  # fmt: skip


@device
def write_set(
    pool, part, which, m, best, backwards, missing, cells, n_bins, numbers, words, bits
):  # fmt: skip
    """Write the set of the first categories in the order, and which side missing values go to."""
    bitset, order, side = pool.sets[part, which], pool.order[part, 0], False
    for w in range(len(bitset)):
        bitset[w] = U(0)
    for i in range(best + 1):
        code = order[m - 1 - i if backwards else i]
        if code == missing:
            side = True
        else:
            bitset[code >> 6] |= ONE << U(code & 63)
    if sums_in(cells, missing, words, bits)[2] == 0:
        side = 2 * pool.found[part, which, 5] > numbers[ROWS]
    if side and sums_in(cells, n_bins - 1, words, bits)[2] == 0:  # of unknown values
        bitset[(n_bins - 1) >> 6] |= ONE << U((n_bins - 1) & 63)
    pool.found[part, which, 2] = side


@device
def best_among(data, rules, table, pool, node, slot, first, last, part, which):
    """The best split of a node by the features of the columns first .. last - 1."""
    numbers, bounds, words = table.numbers[node], table.floats[node], data.stats.shape[1]
    value = value_of(numbers[G], numbers[H], rules, bounds[LOW], bounds[HIGH])
    whole = -(np.float64(numbers[G]) * rules.g) * value
    pool.gains[part, which] = 0.0
    pool.found[part, which, 0] = -1
    for f in range(data.starts[first], data.starts[last]):
        if not pool.tried[which, f]:
            continue
        cells = pool.hist[slot, data.cells[f] * words : data.cells[f + 1] * words]
        if data.kinds[f] == CATEGORICAL:
            best_set(data, rules, pool, part, which, f, cells, numbers, bounds, whole)
        else:
            best_cut(data, rules, pool, part, which, f, cells, numbers, bounds, whole)


@device
def search_part(data, rules, table, pool, state, rows, first, last, part):
    """Fill the histograms of the one or two nodes of a search for the columns first .. last - 1,
    and find their best splits among these."""
    a, b = state[FIRST], state[SECOND]
    if a >= 0:
        fill(data, table, pool, rows, a, state[FIRST_SLOT], first, last, part)
        best_among(data, rules, table, pool, a, state[FIRST_SLOT], first, last, part, 0)
    if b >= 0:
        if state[SUBTRACT]:
            subtract(data, pool, state[SECOND_SLOT], state[FIRST_SLOT], first, last)
        else:
            fill(data, table, pool, rows, b, state[SECOND_SLOT], first, last, part)
        best_among(data, rules, table, pool, b, state[SECOND_SLOT], first, last, part, 1)
