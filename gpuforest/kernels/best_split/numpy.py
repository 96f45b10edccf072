"""Best split: the best way to cut each slot, from its histogram."""

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.criteria import side_score, side_value, side_weight
from gpuforest.dtypes import FEATURE, SCORE, STAT
from gpuforest.hashing import CUT, hash_at


def best_split(
    hist: np.ndarray,
    features: np.ndarray,
    need: np.ndarray,
    sums: np.ndarray,
    n_rows: np.ndarray,
    n_bins: np.ndarray,
    criterion: int,
    min_rows: int,
    count_rows: bool,
    min_weight: int,
    keys: np.ndarray,
    signs: np.ndarray,
    bounds: np.ndarray,
) -> tuple[np.ndarray, ...]:
    """Best split of every slot among the features that vary in it.

    Parameters
    ----------
    hist : i64[S, k, B, C] or [S, k, B, C + 1], the last bin that of missing values
    features : i32[S, k], distinct in a slot, -1 for none
    need : i64[S], how many features that vary may still be tried; the first so many in
        the order of `features` are
    sums : i64[S, C], the slot's totals
    n_rows : i64[S], its rows
    n_bins : i32[F], bins of each feature, without the missing one
    criterion : int, see criteria.py
    min_rows : int, rows that either side must have
    count_rows : bool, whether the last channel counts rows (where min_rows > 1)
    min_weight : int, what either side must weigh
    keys : u64[S], random keys: each feature has one cut, drawn at random; u64[0]: all cuts
    signs : i8[F], -1 or 1: the mean of the second channel must not rise, or fall, from left
        to right; i8[0]: there are no such constraints
    bounds : f64[S, 2], with them: between what the means of both sides must then lie

    Returns
    -------
    score : f64[S], -inf where no split is allowed
    feature : i32[S], -1 where no split is allowed
    bin : i32[S], codes <= bin go left
    missing_left : bool[S]; if none is missing there, the heavier side
    left : i64[S, C], channel sums of the left side
    tried : i64[S], features that varied and were tried

    Among equal scores the first of `features` wins, then the lowest bin that holds
    rows, then missing values to the right. The cut lies in the middle of the empty bins
    between the rows on its two sides; a random one where it was drawn, each bin from the
    first to the last but one that hold rows as likely as another.

    Example
    -------
    Two classes, bins 0, 1, 4 hold (3, 0), (0, 2), (0, 1), none is missing, Gini: after
    bin 0 the score is 9/3 + 9/3 = 6, after bin 1 9/5 + 4/5 + 1 = 3.6: the cut is bin 0.
    Were bin 1 empty, bins 0 .. 3 would cut alike, and (0 + 4 - 1) // 2 = 1 is chosen.
    """
    S, k, B, _ = hist.shape
    C = sums.shape[1]
    slot = np.arange(S)
    # 1. which bins hold rows, which features vary, and which of those are tried
    weight = side_weight(xp, hist[..., :C], criterion)
    occupied = weight > 0
    varies = (occupied.sum(axis=2) > 1) & (features >= 0)
    tried = varies & (np.cumsum(varies, axis=1) <= need[:, None])
    # 2. left sides: [S, k, bin, missing right or left, channels]
    missing = hist[:, :, -1, :]
    left = np.cumsum(hist[:, :, :-1, :], axis=2)
    left = np.stack([left, left + missing[:, :, None, :]], axis=3)
    right = sums[:, None, None, None, :] - left[..., :C]
    # 3. candidates: the bin holds rows, both sides do, and the side of missing matters
    n_left = side_weight(xp, left[..., :C], criterion)
    n_right = side_weight(xp, right, criterion)
    occupied = occupied[:, :, :-1]
    candidate = tried[:, :, None, None] & occupied[..., None] & (n_right > 0)
    missing_weight = side_weight(xp, missing[..., :C], criterion)
    candidate[..., 1] &= (missing_weight > 0)[:, :, None]
    if min_weight > 1:
        candidate &= (n_left >= min_weight) & (n_right >= min_weight)
    if len(signs):
        candidate &= _is_monotonic(left[..., :C], right, features, criterion, signs, bounds)
    drawn = None
    if len(keys):
        drawn, drawn_side = _draw_cuts(occupied, features, keys)
        upto = np.where(occupied & (np.arange(B - 1) <= drawn[..., None]), np.arange(B - 1), -1)
        candidate &= (np.arange(B - 1) == upto.max(axis=2, keepdims=True))[..., None]
        candidate &= drawn_side[:, :, None, :] | (missing_weight == 0)[:, :, None, None]
    if count_rows:
        rows_left = left[..., C]
        candidate &= (rows_left >= min_rows) & (n_rows[:, None, None, None] - rows_left >= min_rows)
    # 4. score them; the first of the highest, in the order of the features
    score = side_score(xp, left[..., :C], criterion) + side_score(xp, right, criterion)
    score = np.where(candidate, score, -np.inf).reshape(S, -1)
    best = np.argmax(score, axis=1)
    j, b, side = np.unravel_index(best, (k, B - 1, 2))
    score = score[slot, best]
    found = score > -np.inf
    # 5. the middle of the gap: next bin that holds rows, or all but the missing ones
    bins = np.arange(B - 1)
    after = occupied[slot, j] & (bins > b[:, None])
    upper = np.where(after.any(axis=1), np.argmax(after, axis=1), -1)
    chosen = features[slot, j]
    cut = np.where(upper < 0, n_bins[chosen] - 1, (b + upper - 1) >> 1)
    if drawn is not None:
        cut = np.where(upper < 0, cut, drawn[slot, j])
    # 6. where none is missing, a missing value seen later goes with the heavier side
    none_missing = ~(missing[slot, j] != 0).any(axis=1)
    heavier = n_left[slot, j, b, 0] > n_right[slot, j, b, 0]
    missing_left = np.where(none_missing, heavier, side == 1)
    return (
        score.astype(SCORE),
        np.where(found, chosen, -1).astype(FEATURE),
        np.where(found, cut, 0).astype(np.int32),
        missing_left & found,
        np.where(found[:, None], left[slot, j, b, side, :C], 0).astype(STAT),
        tried.sum(axis=1),
    )


def _draw_cuts(
    occupied: np.ndarray, features: np.ndarray, keys: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A random cut of each feature, i64[S, k], and whether missing values may go right and
    left, bool[S, k, 2]; where one bin alone holds rows that are not missing, it is cut from
    those that are.

    occupied : bool[S, k, B - 1]
    """
    low = np.argmax(occupied, axis=2)
    high = occupied.shape[2] - 1 - np.argmax(occupied[:, :, ::-1], axis=2)
    hashes = hash_at(keys[:, None], np.maximum(features, 0).astype(np.uint64) + np.uint64(CUT))
    ways = np.maximum(high - low, 1)
    drawn = low + ((hashes >> np.uint64(1)) % ways.astype(np.uint64)).astype(np.int64)
    goes_left = (hashes & np.uint64(1) == 1) & (high > low)
    return drawn, np.stack([~goes_left, goes_left], axis=2)


def _is_monotonic(
    left: np.ndarray,
    right: np.ndarray,
    features: np.ndarray,
    criterion: int,
    signs: np.ndarray,
    bounds: np.ndarray,
) -> np.ndarray:
    """Whether the means of the two sides i64[S, k, ..., C] are in order, and in bounds, where
    the feature has a sign."""
    low, high = (side_value(xp, side, criterion) for side in (left, right))
    sign = signs[np.maximum(features, 0)][:, :, None, None]
    least, most = (bounds[:, i][:, None, None, None] for i in (0, 1))
    free = sign == 0
    inside = free | ((np.minimum(low, high) >= least) & (np.maximum(low, high) <= most))
    in_order: np.ndarray = inside & ((sign <= 0) | (low <= high)) & ((sign >= 0) | (low >= high))
    return in_order
