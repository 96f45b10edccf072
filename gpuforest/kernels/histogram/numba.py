"""Histogram, compiled by `level` in ../best_split; numpy.py in this folder specifies it."""

import numpy as np

from gpuforest.compiler.decorators import device
from gpuforest.kernels.shared.numba import U, has_labels


@device
def histogram(data, slots, features, count_rows, s, first, last, hist):
    """Add one slot's rows to `hist` i64[k, B * width], for the features first .. last - 1."""
    codes, y, C = data.codes, data.y, data.n_channels
    rows, weights, width = slots.rows, slots.weights, np.int64(C + count_rows)
    for i in range(slots.begin[s], slots.end[s]):
        r, w = rows[i], np.int64(weights[i])
        for j in range(first, last):
            f = features[U(j)]
            if f < 0:
                continue
            # 1. the row's bin
            at = np.int64(codes[U(f), U(r)]) * width
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
