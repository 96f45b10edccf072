"""Histograms of a tree of boosting, compiled."""

import numpy as np

from gpuforest.kernels.boosted_tree.records import BEGIN, BLOCK, END
from gpuforest.kernels.decorators import device
from gpuforest.kernels.shared.hashing.numba import U


@device
def add_rows(column, rows, first, n, ordered, cells):
    """Add n rows to the histogram of one feature."""
    if ordered.shape[1] == 2:
        for i in range(n):
            at = np.int64(column[U(rows[U(first + i)])]) * 2
            cells[U(at)] += ordered[U(i), 0]
            cells[U(at + 1)] += ordered[U(i), 1]
    else:
        for i in range(n):
            cells[U(column[U(rows[U(first + i)])])] += ordered[U(i), 0]


@device
def fill(data, table, pool, rows, node, slot, first, last, part):
    """Fill the histograms of a node for the features first .. last - 1, by so few rows at a time
    that their stats stay in the first-level cache for all features."""
    begin, end = table.numbers[node, BEGIN], table.numbers[node, END]
    ordered, stats, words = pool.ordered[part], data.stats, data.stats.shape[1]
    for f in range(first, last):
        if pool.tried[2, f]:
            pool.hist[slot, f, :] = 0
    for at in range(begin, end, BLOCK):
        n = min(BLOCK, end - at)
        for i in range(n):
            r = U(rows[U(at + i)])
            for w in range(words):
                ordered[U(i), U(w)] = stats[r, U(w)]
        for f in range(first, last):
            if pool.tried[2, f]:
                add_rows(data.codes[f], rows, at, n, ordered, pool.hist[slot, f])


@device
def subtract(pool, slot, other, first, last):
    """Subtract one node's histograms from another's, which becomes its sibling's."""
    for f in range(first, last):
        if pool.tried[2, f]:
            left, right = pool.hist[slot, f], pool.hist[other, f]
            for i in range(len(left)):
                left[U(i)] -= right[U(i)]
