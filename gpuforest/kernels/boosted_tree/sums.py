"""Histograms of a tree of boosting, compiled.

A numeric feature's is of running sums: cell b holds the rows of bins 0 .. b. The last cell is that
of missing values alone.
"""

import numpy as np

from gpuforest.common.dtypes import CATEGORICAL
from gpuforest.kernels.boosted_tree.records import BEGIN, BLOCK, END
from gpuforest.kernels.decorators import device
from gpuforest.kernels.pairs import add_pair
from gpuforest.kernels.shared.hashing.numba import U

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
def fill(data, table, pool, rows, node, slot, first, last, part):
    """Fill the histograms of a node for the features first .. last - 1, by so few rows at a time
    that their stats stay in the first-level cache for all features."""
    begin, end = table.numbers[node, BEGIN], table.numbers[node, END]
    ordered, words, wanted = pool.ordered[part], data.stats.shape[1], pool.tried[2]
    hist = pool.hist[slot]
    for f in range(first, last):
        if wanted[f]:
            hist[f, :] = 0
    for at in range(begin, end, BLOCK):
        n = min(BLOCK, end - at)
        put_in_order(data.stats, rows, at, n, words, ordered)
        f = first
        while f < last:
            if not wanted[f]:
                f += 1
            elif f + 1 < last and wanted[f + 1]:
                add_two(
                    data.codes[f], data.codes[f + 1], rows, at, n, words, ordered, hist[f],
                    hist[f + 1],
                )  # fmt: skip
                f += 2
            else:
                add_one(data.codes[f], rows, at, n, words, ordered, hist[f])
                f += 1
    for f in range(first, last):
        if wanted[f] and data.kinds[f] != CATEGORICAL:
            add_up(hist[f], np.int64(data.n_bins[f]), words)


@device
def subtract(pool, slot, other, first, last):
    """Subtract one node's histograms from another's, which becomes its sibling's."""
    for f in range(first, last):
        if pool.tried[2, f]:
            left, right = pool.hist[slot, f], pool.hist[other, f]
            for i in range(len(left)):
                left[U(i)] -= right[U(i)]
