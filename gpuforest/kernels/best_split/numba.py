"""Histograms, best splits, and both, compiled; numpy.py here and in ../histogram specify them.

`level` takes one slot after another, so that histograms stay in cache.
"""

import numpy as np

from gpuforest.common.dtypes import CATEGORICAL
from gpuforest.compiler.decorators import device, kernel
from gpuforest.compiler.types import I64, I32s2, I64s, I64s3
from gpuforest.core.frontier import Data, Frontier, Splits
from gpuforest.core.nodes import SET_BIN
from gpuforest.core.rules import Rules
from gpuforest.kernels.best_split import cuts
from gpuforest.kernels.histogram.numba import histogram
from gpuforest.kernels.sets.numba import Sets, compact_bins, split_by_set
from gpuforest.kernels.shared.numba import domain, has_labels, order_of, permute
from gpuforest.kernels.shared.records import NO_SPLIT

HIST_BYTES = 2**18  # of histograms filled in one pass over the rows: within a core's L2


@device
def improve(hist, feature, slot, rules, best, splits, scan, sets):
    """Improve on `best` with a feature: whether it varies, and the best split. Left sums and sets
    are in `splits`."""
    limits, criterion = cuts.limits_of(rules, slot, feature.number), rules.criterion.number
    left = splits.left[slot.number]
    if sets.kinds[feature.number] == CATEGORICAL:
        m, words = compact_bins(hist, feature, sets.work), splits.sets[slot.number]
        if m < 2:
            return False, best
        varies = True
        split = split_by_set(m, feature, slot, rules, limits, scan, sets.work, best.score, words)
    elif rules.random:
        varies, split = cuts.random_of_bins(hist, feature, slot, criterion, limits, scan.left)
    else:
        varies, split = cuts.best_of_bins(hist, feature, slot, criterion, limits, scan)
    if split.score > best.score:  # of equal scores the first wins
        best = split
        if split.bin != SET_BIN:
            cuts.left_of(hist, feature, split.bin, split.missing_left, left)
        elif len(left) == 2:
            weight, left[1] = split.left.weight, split.left.second
            left[0] = weight - left[1] if feature.is_classes else weight
        else:
            for c in range(len(left)):
                left[c] = scan.left[c]  # as `best_set` leaves them
    return varies, best


@device
def best_split(data, slot, hist, features, need, rules, best, splits, scan, sets):
    """Improve the Split `best` by a slot's histograms; returns it, and how many features varied."""
    tried = 0
    for j in range(len(features)):
        if tried >= need:
            break
        if features[j] >= 0:
            feature = cuts.feature_of(features[j], data, rules.count_rows, len(slot.sums))
            varies, best = improve(hist[j], feature, slot, rules, best, splits, scan, sets)
            tried += varies
    return best, tried


@device
def draw(features, n, slots, s, k, position, order, order_domain, F):
    """Put features at n positions of a slot's order into `features`, -1: not drawn for the tree."""
    mask, shift = order_domain
    for j in range(n):
        at = position + j
        f = at if k >= F else permute(order, at, F, mask, shift)
        drawn = len(slots.allowed) == 0 or slots.allowed[slots.tree[s], f]
        features[j] = f if drawn else -1


@device
def search_slot(data, slots, s, rules, order_domain, splits, hist, batch, need, scan, sets, fills):
    """Write a slot's best split by the given histograms; or, if it `fills` histograms itself, by
    those of the features that fit `batch` at once."""
    F, k = len(data.n_bins), rules.n_tried
    slot, best = cuts.slot_at(slots, s, has_labels(data.y)), NO_SPLIT
    order, left, position = order_of(slot.key), need, 0
    while left > 0 and position < F:
        n = len(batch)
        if fills:
            n = min(n, left, F - position)
            draw(batch, n, slots, s, k, position, order, order_domain, F)
            hist[:n] = 0
            histogram(data, slots, batch, rules.count_rows, s, 0, n, hist)
        best, varied = best_split(
            data, slot, hist, batch[:n], left, rules, best, splits, scan, sets
        )
        left -= varied
        position += n if fills else F
    splits.score[s], splits.feature[s], splits.bin[s] = best.score, best.feature, best.bin
    splits.missing_left[s], splits.tried[s] = best.missing_left, need - left


# One kernel has all steps, because searches take most of the time to compile. By histograms of
# whole chunks, trees that grow level by level to their leaves took 4.5 to 6 times as long
@kernel(plain={})
def level(
    data: Data, slots: Frontier, rules: Rules, first: I64, last: I64, splits: Splits, hist: I64s3,
    features: I32s2, need: I64s, begin: I64, end: I64, scan: cuts.Scan, sets: Sets,
):  # fmt: skip
    """Work on the slots first .. last - 1.

    begin < end : fill hist i64[S, k, B * width] for the features begin .. end - 1 of i32[S, k]
    need i64[S] : write the best splits by these histograms to `splits`; it reads no codes
    neither : write the best splits; scratch is hist i64[1, n, B * width], for n features at once
    """
    order_domain, fills = domain(len(data.n_bins)), len(need) == 0
    for s in range(first, last):
        h = np.int64(0) if fills and begin == end else s
        if begin < end:
            histogram(data, slots, features[h], rules.count_rows, s, begin, end, hist[h])
            continue
        wanted = rules.n_tried if fills else need[s]
        search_slot(
            data, slots, s, rules, order_domain, splits, hist[h], features[h], wanted, scan, sets,
            fills,
        )  # fmt: skip
