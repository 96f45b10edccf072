"""Best split: the best way to cut each slot, from its histogram."""

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.criteria import side_score, side_weight
from gpuforest.dtypes import FEATURE, SCORE, STAT


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
    between the rows on its two sides.

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
    candidate[..., 1] &= (side_weight(xp, missing[..., :C], criterion) > 0)[:, :, None]
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
