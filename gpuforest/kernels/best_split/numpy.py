"""Best split: the best way to cut each slot, from its histogram."""

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.common.dtypes import FEATURE, SCORE, STAT, Array
from gpuforest.common.hashing import CUT, hash_at
from gpuforest.core.frontier import Data, Frontier, Splits
from gpuforest.core.rules import Rules


def best_split(
    data: Data, slots: Frontier, hist: Array, features: Array, need: Array, rules: Rules
) -> Splits:
    """The best split of each slot by features that vary in it, without sets of categories.

    Parameters
    ----------
    hist : i64[S, k, B, C] or [S, k, B, C + 1]; the last bin is that of missing values
    features : i32[S, k], distinct in a slot, -1 for none
    need : i64[S], the number of varying features that may still be tried, in the order of
        `features`
    rules : with the `Criterion` itself in place of its number

    Of equal scores the first of `features` wins, then the lowest bin that holds rows, then
    missing values to the right. The cut is in the middle of the empty bins between the rows on
    its two sides. A random cut is where it was drawn: each bin from the first to the last but
    one that hold rows is equally likely.

    Example
    -------
    With two classes and Gini, let bins 0, 1, 4 hold (3, 0), (0, 2), (0, 1), and no value be
    missing. A cut after bin 0 scores 9/3 + 9/3 = 6, and after bin 1 9/5 + 4/5 + 1 = 3.6: the cut
    is bin 0. If bin 1 were empty, cuts after bins 0 .. 3 would be equal: (0 + 4 - 1) // 2 = 1.
    """
    S, k, B, _ = hist.shape
    C, slot, criterion = data.n_channels, np.arange(S), rules.criterion
    # 1. which bins hold rows, which features vary, and which of those are tried
    occupied = criterion.side_weight(xp, hist[..., :C]) > 0
    varies = (occupied.sum(axis=2) > 1) & (features >= 0)
    tried = varies & (np.cumsum(varies, axis=1) <= need[:, None])
    occupied, missing = occupied[:, :, :-1], hist[:, :, -1, :]
    # 2. both sides of each cut, i64[S, k, B - 1, 2, ...]: with missing values right, and left
    left = np.cumsum(hist[:, :, :-1, :], axis=2)
    left = np.stack([left, left + hist[:, :, None, -1, :]], axis=3)
    right = slots.sums[:, None, None, None, :] - left[..., :C]
    # 3. the cuts that are allowed
    some_missing = criterion.side_weight(xp, missing[..., :C]) > 0
    candidate = _within_limits(left, right, slots, features, C, rules)
    candidate &= tried[:, :, None, None] & occupied[..., None]
    candidate[..., 1] &= some_missing[:, :, None]
    drawn = None
    if rules.random:
        drawn, goes_left = _draw_cuts(occupied, features, slots.key)
        bins = np.arange(B - 1)  # the cut is behind the last one with rows up to the drawn one
        upto = np.where(occupied & (bins <= drawn[..., None]), bins, -1)
        candidate &= (bins == upto.max(axis=2, keepdims=True))[..., None]
        candidate &= goes_left[:, :, None, :] | ~some_missing[:, :, None, None]
    # 4. score them; the first of the highest, in the order of the features
    score = criterion.side_score(xp, left[..., :C]) + criterion.side_score(xp, right)
    score = np.where(candidate, score, -np.inf).reshape(S, -1)
    best = np.argmax(score, axis=1)
    j, b, side = np.unravel_index(best, (k, B - 1, 2))
    score, chosen = score[slot, best], features[slot, j]
    has_split = score > -np.inf
    # 5. the middle of the gap; a random cut where it was drawn
    cut = _middle_of_gap(
        occupied[slot, j], b, data.n_bins[chosen], None if drawn is None else drawn[slot, j]
    )
    # 6. if no value is missing, missing values seen later go to the heavier side
    none_missing = ~(missing[slot, j] != 0).any(axis=1)
    without = slot, j, b, 0
    n_left, n_right = (criterion.side_weight(xp, s[without][:, :C]) for s in (left, right))
    return Splits(
        score.astype(SCORE),
        np.where(has_split, chosen, -1).astype(FEATURE),
        np.where(has_split, cut, 0).astype(np.int32),
        np.where(none_missing, n_left > n_right, side == 1) & has_split,
        np.where(has_split[:, None], left[slot, j, b, side, :C], 0).astype(STAT),
        tried.sum(axis=1),
        np.zeros((S, 0), np.uint64),
    )


def _within_limits(
    left: np.ndarray, right: np.ndarray, slots: Frontier, features: np.ndarray, C: int, rules: Rules
) -> np.ndarray:
    """bool[S, k, B - 1, 2], true where rows go right and limits (weights, means, rows) allow it."""
    n_left, n_right = (rules.criterion.side_weight(xp, side) for side in (left[..., :C], right))
    allowed: np.ndarray = n_right > 0
    if rules.min_weight_leaf > 1:
        allowed &= np.minimum(n_left, n_right) >= rules.min_weight_leaf
    if slots.bounds is not None:
        allowed &= _is_monotonic(left[..., :C], right, features, rules, slots.bounds)
    if rules.count_rows:
        rows_left = left[..., C]
        rows_right = slots.n_rows[:, None, None, None] - rows_left
        allowed &= np.minimum(rows_left, rows_right) >= rules.min_rows_leaf
    return allowed


def _middle_of_gap(
    occupied: np.ndarray, b: np.ndarray, n_bins: np.ndarray, drawn: np.ndarray | None
) -> np.ndarray:
    """Cuts i64[S] behind bins b i64[S]: half-way to the next that is occupied bool[S, B - 1]."""
    after = occupied & (np.arange(occupied.shape[1]) > b[:, None])
    upper = np.where(after.any(axis=1), np.argmax(after, axis=1), -1)
    middle = (b + upper - 1) >> 1 if drawn is None else drawn
    return np.where(upper < 0, n_bins - 1, middle)


def _draw_cuts(
    occupied: np.ndarray, features: np.ndarray, keys: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Random cuts i64[S, k], and whether missing values may go right and left, bool[S, k, 2]. If
    one bin alone is occupied bool[S, k, B - 1], the cut separates it from missing values."""
    low = np.argmax(occupied, axis=2)
    high = occupied.shape[2] - 1 - np.argmax(occupied[:, :, ::-1], axis=2)
    hashes = hash_at(keys[:, None], np.maximum(features, 0).astype(np.uint64) + np.uint64(CUT))
    ways = np.maximum(high - low, 1)
    drawn = low + ((hashes >> np.uint64(1)) % ways.astype(np.uint64)).astype(np.int64)
    goes_left = (hashes & np.uint64(1) == 1) & (high > low)
    return drawn, np.stack([~goes_left, goes_left], axis=2)


def _is_monotonic(
    left: np.ndarray, right: np.ndarray, features: np.ndarray, rules: Rules, bounds: np.ndarray
) -> np.ndarray:
    """True where both sides' means are in order and within bounds, if the feature has a sign."""
    low, high = (rules.criterion.side_value(xp, side) for side in (left, right))
    sign = rules.signs[np.maximum(features, 0)][:, :, None, None]
    least, most = (bounds[:, i][:, None, None, None] for i in (0, 1))
    free = sign == 0
    inside = free | ((np.minimum(low, high) >= least) & (np.maximum(low, high) <= most))
    in_order: np.ndarray = inside & ((sign <= 0) | (low <= high)) & ((sign >= 0) | (low >= high))
    return in_order
