"""Histogram, compiled. The specification is numpy.py beside this file."""

import numpy as np

from gpuforest.kernels.compile import device, kernel
from gpuforest.kernels.hashing.numba import U


@device
def has_labels(y):
    """Class codes, not moments: known when compiled, so that one branch is left out."""
    return y.itemsize == 4


@device
def accumulate(
    codes, y, rows, weights, begin, end, features, first, last, hist, C, count_rows
):  # fmt: skip
    """Add one slot's rows to `hist` i64[k, B * channels], features first .. last - 1."""
    channels = np.int64(C + count_rows)
    for i in range(begin, end):
        r, w = rows[i], np.int64(weights[i])
        for j in range(first, last):
            f = features[U(j)]
            if f < 0:
                continue
            # 1. the row's bin
            at = np.int64(codes[U(r), U(f)]) * channels
            # 2. its weight, or weight and moments
            if has_labels(y):
                hist[U(j), U(at + y[U(r), 0])] += w
            else:
                hist[U(j), U(at)] += w
                for k in range(C - 1):
                    hist[U(j), U(at + 1 + k)] += w * y[U(r), k]
            # 3. its count
            if count_rows:
                hist[U(j), U(at + C)] += 1


@kernel
def histogram(
    codes, y, rows, weights, begin, end, features, C, count_rows, slots, firsts, lasts,
    hist,
):  # fmt: skip
    """Fills hist i64[S, k, B * channels] for the pieces (slot, first .. last - 1 of k)."""
    for p in range(len(slots)):
        s = slots[p]
        accumulate(
            codes, y, rows, weights, begin[s], end[s], features[s],
            firsts[p], lasts[p], hist[s], C, count_rows,
        )  # fmt: skip
