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
from gpuforest.kernels.best_split.cuts import (
    Scan,
    best_of_bins,
    feature_of,
    left_of,
    limits_of,
    random_of_bins,
    slot_at,
)
from gpuforest.kernels.histogram.numba import histogram
from gpuforest.kernels.sets.numba import Sets, best_set, compact_bins, set_sums, write_set
from gpuforest.kernels.shared.numba import domain, has_labels, order_of, permute
from gpuforest.kernels.shared.records import NO_BIN, NO_SPLIT, Split

HIST_BYTES = 2**18  # of histograms filled in one pass over the rows: within a core's L2


@device
def improve_by_set(hist, feature, slot, rules, best, splits, scan, work):
    """Improve on `best` with a categorical feature: whether it varies, and the best split."""
    m = compact_bins(hist, feature, work)
    if m < 2:
        return False, best
    limits = limits_of(rules, slot, feature.number)
    cut = best_set(m, feature, slot, rules.criterion.number, limits, rules.random, scan, work)
    if cut.score > best.score:
        set_sums(m, cut, feature, work, splits.left[slot.number])
        side = write_set(m, cut, feature, work, splits.sets[slot.number])
        best = Split(cut.score, feature.number, np.int64(SET_BIN), side, NO_BIN)
    return True, best


@device
def improve_by_cut(hist, feature, slot, rules, best, splits, scan):
    """As improve_by_set, with a numeric feature."""
    limits, criterion = limits_of(rules, slot, feature.number), rules.criterion.number
    if rules.random:
        varies, split = random_of_bins(hist, feature, slot, criterion, limits, scan.left)
    else:
        varies, split = best_of_bins(hist, feature, slot, criterion, limits, scan)
    if split.score > best.score:  # of equal scores the first wins
        best = split
        left_of(hist, feature, split.bin, split.missing_left, splits.left[slot.number])
    return varies, best


@device
def best_split(data, slot, hist, features, need, rules, best, splits, scan, sets):
    """Improve the Split `best` by a slot's histograms; returns it, and how many features were
    tried. Left sums and sets are in `splits`."""
    tried, C = 0, len(slot.sums)
    for j in range(len(features)):
        if tried >= need:
            break
        if features[j] < 0:
            continue
        feature = feature_of(features[j], data, rules, C)
        if sets.kinds[feature.number] == CATEGORICAL:
            varies, best = improve_by_set(
                hist[j], feature, slot, rules, best, splits, scan, sets.work
            )
        else:
            varies, best = improve_by_cut(hist[j], feature, slot, rules, best, splits, scan)
        tried += varies
    return best, tried


@device
def put_best(best, tried, s, splits):
    """Write the best split of slot s."""
    splits.score[s], splits.feature[s], splits.bin[s] = best.score, best.feature, best.bin
    splits.missing_left[s], splits.tried[s] = best.missing_left, tried


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
    slot, best = slot_at(slots, s, has_labels(data.y)), NO_SPLIT
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
    put_best(best, need - left, s, splits)


# One kernel has all steps, because searches take most of the time to compile. By histograms of
# whole chunks, trees that grow level by level to their leaves took 4.5 to 6 times as long
@kernel(plain={})
def level(
    data: Data, slots: Frontier, rules: Rules, first: I64, last: I64, splits: Splits, hist: I64s3,
    features: I32s2, need: I64s, begin: I64, end: I64, scan: Scan, sets: Sets,
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
