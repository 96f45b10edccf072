"""Best split, compiled. The specification is numpy.py beside this file."""

import numpy as np

from gpuforest.common.dtypes import CATEGORICAL
from gpuforest.compiler.decorators import device, kernel
from gpuforest.compiler.types import I32s2, I64s, I64s3
from gpuforest.engine.nodes import SET_BIN
from gpuforest.engine.records import Data, Frontier, Rules, Splits
from gpuforest.kernels.best_split.limits import (
    feature_of,
    left_of,
    limits_of,
    random_of_bins,
    slot_at,
)
from gpuforest.kernels.best_split.scan import Scan, best_of_bins
from gpuforest.kernels.best_split.sets import best_set, compact_bins, set_sums, write_set
from gpuforest.kernels.histogram.numba import has_labels
from gpuforest.kernels.shared.records import NO_BIN, NO_SPLIT, Split


@device
def improve_by_set(hist, feature, slot, rules, best, found, scan, work):
    """Improve on `best` with a categorical feature: whether it varies, and the best split."""
    m = compact_bins(hist, feature, work)
    if m < 2:
        return False, best
    limits = limits_of(rules, slot, feature.number)
    cut = best_set(m, feature, slot, rules.criterion.number, limits, rules.random, scan, work)
    if cut.score > best.score:
        set_sums(m, cut, feature, work, found.left[slot.number])
        side = write_set(m, cut, feature, work, found.sets[slot.number])
        best = Split(cut.score, feature.number, np.int64(SET_BIN), side, NO_BIN)
    return True, best


@device
def improve_by_cut(hist, feature, slot, rules, best, found, scan):
    """As improve_by_set, with a numeric feature."""
    limits = limits_of(rules, slot, feature.number)
    if rules.random:
        varies, split = random_of_bins(
            hist, feature, slot, rules.criterion.number, limits, scan.left
        )
    else:
        varies, split = best_of_bins(hist, feature, slot, rules.criterion.number, limits, scan)
    if split.score > best.score:  # of equal scores the first wins
        best = split
        left_of(hist, feature, split.bin, split.missing_left, found.left[slot.number])
    return varies, best


@device
def slot_best(data, slot, hist, features, need, rules, best, found, scan, categories):
    """Improve on the Split `best` with one slot's histograms.

    found : Splits; its left sums and set of the slot are those of the best split
    categories : Categories; None: all features are numeric
    Returns the new best and how many features were tried.
    """
    tried, C = 0, len(slot.sums)
    for j in range(len(features)):
        if tried >= need:
            break
        if features[j] < 0:
            continue
        feature = feature_of(features[j], data, rules, C)
        if categories is not None and categories.kinds[feature.number] == CATEGORICAL:
            varies, best = improve_by_set(
                hist[j], feature, slot, rules, best, found, scan, categories.work
            )
        else:
            varies, best = improve_by_cut(hist[j], feature, slot, rules, best, found, scan)
        tried += varies
    return best, tried


@device
def put_best(best, s, found):
    """Write the best split of slot s."""
    found.score[s], found.feature[s], found.bin[s] = best.score, best.feature, best.bin
    found.missing_left[s] = best.missing_left


@device
def best_of_slot(data, slots, s, hist, features, need, rules, found, scan):
    """Write the best split of one slot."""
    slot = slot_at(slots, s, has_labels(data.y))
    best, found.tried[s] = slot_best(
        data, slot, hist, features, need, rules, NO_SPLIT, found, scan, None
    )
    put_best(best, s, found)


@kernel(code="uint8")
def best_split(
    data: Data, slots: Frontier, hist: I64s3, features: I32s2, need: I64s, rules: Rules,
    found: Splits, scan: Scan,
):  # fmt: skip
    """Write the best split of each slot to `found`; hist : i64[S, k, B * width]. It
    reads no codes."""
    for s in range(len(features)):
        best_of_slot(data, slots, s, hist[s], features[s], need[s], rules, found, scan)
