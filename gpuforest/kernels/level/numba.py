"""Level: histograms and best split of one slot after another, so that histograms stay in cache.

The specification is `Backend.level`: histogram, best split, and more features while
fewer than k of those tried varied.
"""

from typing import NamedTuple

import numpy as np

from gpuforest.compiler.decorators import device, kernel
from gpuforest.compiler.types import I64, I32s, I64s2
from gpuforest.engine.records import Data, Frontier, Rules, Splits
from gpuforest.kernels.best_split.limits import slot_at
from gpuforest.kernels.best_split.numba import put_best, slot_best
from gpuforest.kernels.best_split.scan import Scan, scan_arrays
from gpuforest.kernels.best_split.sets import Categories
from gpuforest.kernels.histogram.numba import accumulate, has_labels
from gpuforest.kernels.shared.hashing.numba import domain, order_of, permute
from gpuforest.kernels.shared.records import NO_SPLIT

HIST_BYTES = 2**18  # of histograms filled in one pass over the rows: within a core's L2


class LevelScratch(NamedTuple):
    """hist i64[n, B * width] and features i32[n], for so many features at once; and a scan's."""

    hist: I64s2
    features: I32s
    scan: Scan


def level_arrays(n_tried: int, n_codes: int, n_channels: int, width: int) -> LevelScratch:
    """Scratch; `width` is the number of channels of a histogram."""
    batch = max(1, min(n_tried, HIST_BYTES // (8 * n_codes * width)))
    return LevelScratch(
        np.empty((batch, n_codes * width), np.int64),
        np.empty(batch, np.int32),
        scan_arrays(n_codes, n_channels),
    )


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
def level_of_slot(data, slots, s, rules, order_domain, found, scratch, categories):
    """Write the best split of one slot."""
    F, k, (hist, features, scan) = data.codes.shape[0], rules.n_tried, scratch
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
def level(
    data: Data, slots: Frontier, rules: Rules, first: I64, last: I64, found: Splits,
    scratch: LevelScratch, categories: Categories | None,
):  # fmt: skip
    """Write the best splits of the slots first .. last - 1 to `found`.

    categories : Categories; None: all features are numeric
    """
    order_domain = domain(data.codes.shape[0])
    for s in range(first, last):
        level_of_slot(data, slots, s, rules, order_domain, found, scratch, categories)
