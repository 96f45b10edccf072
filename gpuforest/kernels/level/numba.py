"""Level: histogram and best split of a slot in one go, its histograms still in cache.

The specification is `Backend.level`: histogram, best split, and more features while
fewer than k of those tried varied.
"""

import numpy as np

from gpuforest.kernels.best_split.limits import special_of
from gpuforest.kernels.best_split.numba import slot_best
from gpuforest.kernels.best_split.scan import new_scratch
from gpuforest.kernels.compile import kernel
from gpuforest.kernels.hashing.numba import domain, order_of, permute
from gpuforest.kernels.histogram.numba import accumulate, has_labels

HIST_BYTES = 2**18  # of histograms filled in one pass over the rows: within a core's L2


@kernel
def level(
    codes, y, rows, weights, begin, end, keys, sums, n_bins, criterion, k, min_rows,
    count_rows, min_weight, cut_keys, signs, bounds, tree, allowed, B, C, slots, score,
    feature, bin, missing_left, left, tried, sets, kinds, work,
):  # fmt: skip
    """Best splits of `slots`, written to `score` .. `sets` at the slots' places.

    kinds : u8[F], of features. None: all are numeric, and `work` is None too
    work : on categories, see best_split/sets.py
    """
    F = codes.shape[1]
    mask, shift = domain(F)
    width = B * (C + count_rows)
    batch = max(1, min(k, HIST_BYTES // (8 * width)))
    hist = np.empty((batch, width), np.int64)
    features, scratch = np.empty(batch, np.int32), new_scratch(B, C)
    for s in slots:
        best = (-np.inf, np.int64(-1), np.int64(0), False)
        order, need, position = order_of(keys[s]), k, 0
        while need > 0 and position < F:
            n = min(batch, need, F - position)
            for j in range(n):
                at = position + j
                f = at if k >= F else permute(order, at, F, mask, shift)
                features[j] = f if len(allowed) == 0 or allowed[tree[s], f] else -1
            hist[:n] = 0
            accumulate(
                codes, y, rows, weights, begin[s], end[s], features, 0, n, hist, C,
                count_rows,
            )  # fmt: skip
            best, varied = slot_best(
                hist, features[:n], need, sums[s], end[s] - begin[s], n_bins, criterion, min_rows,
                count_rows, has_labels(y), B,
                signs, special_of(s, min_weight, cut_keys, bounds), best, left[s], scratch,
                kinds, work, sets[s],
            )  # fmt: skip
            need -= varied
            position += n
        tried[s] = k - need
        score[s], feature[s], bin[s], missing_left[s] = best
