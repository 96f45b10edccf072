"""Level: histograms and best split of one slot after another, so that histograms stay in cache.

The specification is `Backend.level`: histogram, best split, and more features while
fewer than k of those tried varied.
"""

import numpy as np

from gpuforest.kernels.best_split.limits import slot_at
from gpuforest.kernels.best_split.numba import put_best, slot_best
from gpuforest.kernels.best_split.scan import new_scratch
from gpuforest.kernels.compile import device, kernel
from gpuforest.kernels.histogram.numba import accumulate, has_labels
from gpuforest.kernels.shared.hashing.numba import domain, order_of, permute
from gpuforest.kernels.shared.records import NO_SPLIT

HIST_BYTES = 2**18  # of histograms filled in one pass over the rows: within a core's L2


@device
def draw(features, n, slots, s, k, position, order, order_domain, F):
    """Put the features at the next n positions of the slot's order into `features`, -1 for those
    that its tree did not draw."""
    mask, shift = order_domain
    for j in range(n):
        at = position + j
        f = at if k >= F else permute(order, at, F, mask, shift)
        drawn = len(slots.allowed) == 0 or slots.allowed[slots.tree[s], f]
        features[j] = f if drawn else -1


@device
def level_of_slot(data, slots, s, rules, hist, features, order_domain, scan, found, categories):
    """Write the best split of one slot.

    hist, features : i64[n, B * width] and i32[n], scratch of so many features at once
    """
    F, k = data.codes.shape[1], rules.n_tried
    slot, best = slot_at(slots, s, has_labels(data.y)), NO_SPLIT
    order, need, position = order_of(slot.key), k, 0
    while need > 0 and position < F:
        n = min(len(features), need, F - position)
        draw(features, n, slots, s, k, position, order, order_domain, F)
        hist[:n] = 0
        accumulate(data, slots, s, features, 0, n, hist, rules.count_rows)
        best, varied = slot_best(
            data, slot, hist, features[:n], need, rules, best, found, scan, categories
        )
        need -= varied
        position += n
    found.tried[s] = k - need
    put_best(best, s, found)


@kernel
def level(data, slots, rules, first, last, found, categories):
    """Write the best splits of the slots first .. last - 1 to `found`.

    categories : Categories; None: all features are numeric
    """
    width = data.n_codes * (data.n_channels + rules.count_rows)
    batch = max(1, min(rules.n_tried, HIST_BYTES // (8 * width)))
    hist, features = np.empty((batch, width), np.int64), np.empty(batch, np.int32)
    scan, order_domain = new_scratch(data.n_codes, data.n_channels), domain(data.codes.shape[1])
    for s in range(first, last):
        level_of_slot(
            data, slots, s, rules, hist, features, order_domain, scan, found, categories
        )  # fmt: skip
