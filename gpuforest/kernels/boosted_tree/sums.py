"""Histograms of a tree of boosting, compiled.

A numeric feature's is of running sums: cell b holds the rows of bins 0 .. b. The last cell is that
of missing values alone. Where features share a column, its sums become theirs afterwards; that is
exact, because they are integers.
"""

import numpy as np

from gpuforest.common.dtypes import CATEGORICAL
from gpuforest.compiler.decorators import device
from gpuforest.compiler.intrinsics import add_pair
from gpuforest.kernels.boosted_tree.records import BLOCK
from gpuforest.kernels.shared.numba import U

ONE = U(1)


@device
def put_in_order(stats, rows, first, n, words, ordered):
    """Copy the stats of n rows to `ordered` i64[BLOCK * words]."""
    if words == 2:
        for i in range(n):
            r = U(rows[U(first + i)])
            ordered[U(2 * i)] = stats[r, 0]
            ordered[U(2 * i + 1)] = stats[r, 1]
    else:
        for i in range(n):
            ordered[U(i)] = stats[U(rows[U(first + i)]), 0]


@device
def add_one(column, rows, first, n, words, ordered, cells):
    """Add n rows to the histogram of one feature."""
    if words == 2:
        for i in range(n):
            at = U(column[U(rows[U(first + i)])]) << ONE
            add_pair(cells, at, ordered, U(2 * i))
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
    """Turn the histogram of a column into those of its features: the last feature and the last
    cell first, because each moves up or stays."""
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
def fill(data, scratch, rows, node, slot, first, last, part):
    """Fill the histograms of a node for the columns first .. last - 1, by so few rows at a time
    that their stats stay in the first-level cache for all columns."""
    begin, end = node.begin, node.end
    ordered, words, wanted = scratch.ordered[part], data.stats.shape[1], scratch.tried[2]
    hist = scratch.hist[slot]
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
                if data.kinds[f] != CATEGORICAL:
                    a, b = data.cells[f], data.cells[f + 1] - 1
                    add_up(hist[a * words : b * words], b - a, words)


@device
def subtract(data, scratch, slot, other, first, last):
    """Subtract one node's histograms from another's, which becomes its sibling's."""
    for c in range(first, last):
        if is_wanted(data, scratch.tried[2], c):
            a, b = ends_of(data, c)
            left, right = scratch.hist[slot, a:b], scratch.hist[other, a:b]
            for i in range(b - a):
                left[U(i)] -= right[U(i)]
