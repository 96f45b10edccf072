"""Best split, compiled. The specification is numpy.py beside this file."""

import numpy as np

from gpuforest.criteria import SQUARED_ERROR
from gpuforest.dtypes import CATEGORICAL
from gpuforest.kernels.best_split.limits import left_of, random_of_bins, special_of
from gpuforest.kernels.best_split.scan import best_of_bins, new_scratch
from gpuforest.kernels.best_split.sets import best_set, compact_bins, set_sums, write_set
from gpuforest.kernels.compile import device, kernel
from gpuforest.nodes import SET_BIN


@device
def slot_best(
    hist, features, need, sums, n_rows, n_bins, criterion, min_rows, count_rows, labels, B,
    signs, special, best, left, scratch, kinds, work, words,
):  # fmt: skip
    """Improve on `best` = (score, feature, cut, missing_left) with one slot's histograms.

    special : min_weight, whether cuts are random, the slot's key, low, high
    kinds : u8[F], of features. None: all are numeric, and what follows is None too
    work, words : see sets.py; and a set u64[W], which follows the best
    Returns the new best and how many features were tried; `left` follows the best.
    """
    min_weight, is_random, key, low, high = special
    score, feature, cut, missing_left = best
    C, tried, n = len(sums), 0, np.int64(0)
    for c in range(C if labels else 1):
        n += sums[c]
    for j in range(len(features)):
        if tried >= need:
            break
        f = np.int64(features[j])
        if f < 0:
            continue
        sign = np.int64(signs[f]) if len(signs) else np.int64(0)
        limits = np.int64(min_rows), np.int64(min_weight), sign, low, high
        if kinds is not None and kinds[f] == CATEGORICAL:
            m = compact_bins(hist[j], n_bins[f], B - 1, C, C + count_rows, labels, work)
            if m < 2:
                continue
            tried += 1
            s, at, side, found = best_set(
                m, f, sums, n, n_rows, C, C + count_rows, criterion, limits, labels, is_random,
                key, scratch, work,
            )  # fmt: skip
            if s > score:
                score, feature, cut = s, f, np.int64(SET_BIN)
                set_sums(m, at, found, C, C + count_rows, labels, work, left)
                missing_left = write_set(m, at, side, n_bins[f], B - 1, work, words)
            continue
        if is_random:
            varies, s, at, side = random_of_bins(
                hist[j], f, n_bins[f], B, sums, n, n_rows, criterion, limits, labels, key,
                scratch[0],
            )  # fmt: skip
        else:
            varies, s, at, side, _ = best_of_bins(
                hist[j], n_bins[f], B, sums, n, n_rows, criterion, limits, labels, scratch
            )
        tried += varies
        if s > score:  # of equal ones the first stays
            score, feature, cut, missing_left = s, f, np.int64(at), side
            left_of(hist[j], B - 1, C, C + count_rows, at, side, left)
    return (score, feature, cut, missing_left), tried


@kernel
def best_split(
    hist, features, need, sums, n_rows, n_bins, criterion, min_rows, count_rows, min_weight,
    keys, signs, bounds, B, score, feature, bin, missing_left, left, tried,
):  # fmt: skip
    """hist i64[S, k, B * channels]; the results are written to the last six arguments."""
    scratch = new_scratch(B, sums.shape[1])
    for s in range(len(features)):
        best = (-np.inf, np.int64(-1), np.int64(0), False)
        best, tried[s] = slot_best(
            hist[s], features[s], need[s], sums[s], n_rows[s], n_bins, criterion, min_rows,
            count_rows, criterion < SQUARED_ERROR, B,
            signs, special_of(s, min_weight, keys, bounds), best, left[s], scratch, None, None,
            None,
        )  # fmt: skip
        score[s], feature[s], bin[s], missing_left[s] = best
