"""Multiway splits: a branch for each category, as ID3 and C4.5 grow them (Quinlan 1986, 1993).

A forest stores such a split as a chain of binary splits on one feature. Each separates the lowest
category that is left from the others, so predicting, pruning and importances need no extra code:

    outlook: sunny | overcast | rainy        x in {sunny}?  -- yes: its branch
                                                 no: x in {overcast}?  -- yes, no: theirs

The slot of "the others" is pending: at the next level it takes the next link of its chain, at the
same depth. A feature is not used again below its multiway split. Missing values are the last
category; categories that the node does not hold go to the heaviest branch. Numeric features have
binary splits.

This is O(nodes) work in any array-API namespace. The version for CPUs,
kernels/grow_subtrees/multiway.py, makes a whole chain at once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpuforest.common.dtypes import CATEGORICAL
from gpuforest.engine.criteria import xlogx
from gpuforest.engine.frontier import Frontier, Rules, Splits, draw_features
from gpuforest.engine.nodes import SET_BIN
from gpuforest.kernels.best_split.category_order import packed

if TYPE_CHECKING:
    from gpuforest.engine.binning import BinnedMatrix
    from gpuforest.engine.training import Training

Array = Any
BINS_AT_ONCE = 32  # of histograms: what is computed of them takes little memory beside them


def level(training: Training, slots: Frontier) -> tuple[Splits, Array]:
    """The best split of each slot, and the feature whose chain goes on to its right, i32[S], or
    -1. As `Backend.level`, it works on chunks of slots whose histograms fit the budget.
    """
    xp, S = training.backend.xp, slots.n_slots
    if not S:
        return Splits.empty(xp, slots, training.n_words), slots.tree
    each = 8 * training.n_features * training.n_codes * (training.n_channels + 1)
    size = max(1, training.backend.memory_budget // (4 * each))  # scores and copies take more
    found, more = [], []
    for s in range(0, S, size):
        part = slots.part(slice(s, min(s + size, S)))
        splits, goes_on = _level_chunk(training, part)
        found.append(splits)
        more.append(goes_on)
    return Splits.join(xp, found), xp.concat(more)


def _level_chunk(training: Training, slots: Frontier) -> tuple[Splits, Array]:
    """As `level`, for one chunk: in each slot's order, the first k features that vary are tried."""
    matrix, rules, backend = training.matrix, training.rules, training.backend
    xp, F, C = backend.xp, training.n_features, training.n_channels
    pending, used = slots.pending, slots.used
    assert pending is not None
    assert used is not None
    features = draw_all(xp, slots.key, F, rules.n_tried < F)
    if slots.allowed is not None:
        features = slots.only_allowed(xp, features)
    features = xp.where(_per_slot(xp, used, features), -1, features)
    first = xp.arange(F, dtype=xp.int64, device=backend.device)[None, :] == 0
    features = xp.where(pending[:, None] >= 0, xp.where(first, pending[:, None], -1), features)
    hist = backend.histogram(training, slots, features)
    weight = rules.criterion.side_weight(xp, hist[..., :C])
    varies = (xp.sum(xp.astype(weight > 0, xp.int64), axis=2) > 1) & (features >= 0)
    tried = varies & (xp.cumulative_sum(xp.astype(varies, xp.int64), axis=1) <= rules.n_tried)
    is_set = backend.asarray(matrix.edges.kinds == CATEGORICAL)
    is_set = xp.take(is_set, xp.reshape(xp.where(features < 0, 0, features), (-1,)))
    is_set = xp.reshape(is_set, features.shape) & tried
    # 1. each feature's split: of all its categories, or the best cut
    ways, spread = all_branches(xp, hist, C, rules)
    cuts = [
        _cut(training, slots, hist, xp.where(tried & ~is_set, features, -1), j) for j in range(F)
    ]
    scores = xp.stack([cut.score for cut in cuts], axis=1)
    scores = xp.where(is_set, ways, scores)
    if rules.criterion.by_ratio:
        spread = xp.where(is_set, spread, _cut_spread(xp, slots, cuts, rules))
    # 2. the best feature
    worth = xp.where(pending[:, None] >= 0, 0.0, _worth(xp, scores, spread, slots, rules))
    worth = xp.where(tried, worth, -xp.inf)
    j = xp.argmax(worth, axis=1)
    rows = xp.arange(slots.n_slots, dtype=xp.int64, device=backend.device)
    at = rows * F + j
    ok = xp.take(xp.reshape(worth, (-1,)), at) > -xp.inf
    mine = xp.take(xp.reshape(is_set, (-1,)), at) & ok
    best = Splits(
        score=xp.take(xp.reshape(scores, (-1,)), at),
        feature=xp.where(ok, xp.take(xp.reshape(features, (-1,)), at), -1),
        bin=_taken(xp, [cut.bin for cut in cuts], at),
        missing_left=_taken(xp, [cut.missing_left for cut in cuts], at),
        left=xp.take(xp.reshape(xp.stack([c.left for c in cuts], axis=1), (-1, C)), at, axis=0),
        tried=xp.sum(xp.astype(tried, xp.int64), axis=1),
        sets=xp.zeros((slots.n_slots, 0), dtype=xp.uint64, device=backend.device),
    )
    own = xp.take(xp.reshape(hist, (-1, *hist.shape[2:])), at, axis=0)
    return first_link(xp, best, own, mine, pending, matrix, rules)


def below(
    training: Training, slots: Frontier, above: Frontier, feature: Array, goes_on: Array
) -> Frontier:
    """`slots`, two below each slot of `above`, with `pending`, `used` and `depth` for chains.

    feature : i32[S], the features of the splits; goes_on : i32[S], see `level`
    """
    backend, matrix, n_features = training.backend, training.matrix, training.n_features
    xp = backend.xp
    assert above.used is not None
    goes_on = xp.where(feature >= 0, goes_on, -1)
    none = xp.full_like(goes_on, -1)
    pending = xp.reshape(xp.stack([none, goes_on], axis=1), (-1,))
    is_set = backend.asarray(matrix.edges.kinds == CATEGORICAL)
    is_set = xp.take(is_set, xp.where(feature < 0, 0, feature)) & (feature >= 0)
    numbers = xp.arange(n_features, dtype=xp.int32, device=backend.device)
    own = is_set[:, None] & (feature[:, None] == numbers[None, :])
    used = xp.repeat(above.used | own, 2, axis=0)
    depth = xp.where(pending >= 0, slots.depth - 1, slots.depth)
    return replace(slots, pending=pending, used=used, depth=depth)


def draw_all(xp: Any, keys: Array, n_features: int, random: bool) -> Array:
    """Each slot's order of the features, i32[S, F]; not random if all of them are tried."""
    if not random:
        return draw_features(xp, keys, 0, n_features, n_features)
    parts = [draw_features(xp, keys, i, 1, n_features) for i in range(n_features)]
    return xp.concat(parts, axis=1)


def all_branches(xp: Any, hist: Array, C: int, rules: Rules) -> tuple[Array, Array]:
    """The score of each feature's split into all its categories, -inf if a branch is too small,
    and C4.5's split information, both f64[S, k].

    hist : i64[S, k, B, C] or [S, k, B, C + 1]

    The information n ln n - sum of n_b ln n_b has the unit of entropy's scores.
    """
    S, k, B, _ = hist.shape
    score = xp.zeros((S, k), dtype=xp.float64, device=hist.device)
    parts = xp.zeros((S, k), dtype=xp.int64, device=hist.device)
    total = xp.zeros_like(parts)
    for first in range(0, B, BINS_AT_ONCE):
        sums = hist[:, :, first : min(first + BINS_AT_ONCE, B), :]
        weight = rules.criterion.side_weight(xp, sums[..., :C])
        enough = weight >= rules.min_weight_leaf
        if rules.count_rows:
            enough = enough & (sums[..., C] >= rules.min_rows_leaf)
        own = xp.where(enough, rules.criterion.side_score(xp, sums[..., :C]), -xp.inf)
        own = xp.where(weight > 0, own, 0.0)
        for b in range(own.shape[2]):  # one bin after another: a fixed order
            score = score + own[:, :, b]
        parts = parts + xp.sum(xlogx(xp, weight), axis=2)
        total = total + xp.sum(weight, axis=2)
    return score, xp.astype(xlogx(xp, total) - parts, xp.float64)


def _cut(training: Training, slots: Frontier, hist: Array, features: Array, j: int) -> Splits:
    """The best cut of the j-th of the features i32[S, F]."""
    need = training.backend.xp.ones_like(slots.begin)
    own, feature = hist[:, j : j + 1, ...], features[:, j : j + 1]
    return training.backend.best_split(training, slots, own, feature, need)


def _cut_spread(xp: Any, slots: Frontier, cuts: list[Splits], rules: Rules) -> Array:
    """Split information of cuts, f64[S, F]."""
    found = []
    whole = rules.criterion.side_weight(xp, slots.sums)
    for cut in cuts:
        left = rules.criterion.side_weight(xp, cut.left)
        parts = xlogx(xp, left) + xlogx(xp, whole - left)
        found.append(xp.astype(xlogx(xp, whole) - parts, xp.float64))
    return xp.stack(found, axis=1)


def _worth(xp: Any, scores: Array, spread: Array, slots: Frontier, rules: Rules) -> Array:
    """The values f64[S, F] by which features are chosen: scores, or C4.5's gain ratios for
    features whose gain is at least the mean of all positive gains (Quinlan 1993, 2.2)."""
    if not rules.criterion.by_ratio:
        return scores
    gain = scores - rules.criterion.side_score(xp, slots.sums)[:, None]
    some = gain > -xp.inf
    total, count = xp.zeros_like(gain[:, 0]), xp.zeros_like(gain[:, 0])
    for j in range(gain.shape[1]):  # a fixed order
        total = total + xp.where(some[:, j], gain[:, j], 0.0)
        count = count + xp.astype(some[:, j], xp.float64)
    mean = total / xp.where(count > 0, count, 1.0)
    # a gain that is below the mean by a rounding error only equals it
    worthy = some & (gain >= (mean - 1e-9 * xp.abs(mean))[:, None]) & (spread > 0)
    return xp.where(worthy, gain / xp.where(spread > 0, spread, 1.0), -xp.inf)


def first_link(
    xp: Any,
    best: Splits,
    hist: Array,
    mine: Array,
    pending: Array,
    matrix: BinnedMatrix,
    rules: Rules,
) -> tuple[Splits, Array]:
    """`best`, with each split by a categorical feature (`mine` bool[S]) replaced by the first link
    of its chain; and the feature whose chain goes on to the right, i32[S], or -1.

    hist : i64[S, B, ...], the histogram of each slot's best feature
    """
    S, B, _ = hist.shape
    C = best.left.shape[1]
    weight = rules.criterion.side_weight(xp, hist[..., :C])
    occupied = weight > 0
    first = xp.argmax(xp.astype(occupied, xp.int8), axis=1)
    heaviest = xp.argmax(weight, axis=1)
    code = xp.arange(B, dtype=xp.int64, device=hist.device)[None, :]
    left = (code == first[:, None]) | (~occupied & (first == heaviest)[:, None])
    feature = xp.where(best.feature < 0, 0, best.feature)
    inside = code < xp.take(matrix.n_bins, feature)[:, None]
    rows = xp.arange(S, dtype=xp.int64, device=hist.device) * B + first
    sums = xp.take(xp.reshape(hist, (S * B, -1)), rows, axis=0)[:, :C]
    n = xp.sum(xp.astype(occupied, xp.int64), axis=1)
    found = Splits(
        score=xp.where(pending >= 0, xp.inf, best.score),  # a chain is chosen as a whole
        feature=best.feature,
        bin=xp.where(mine, SET_BIN, best.bin),
        missing_left=xp.where(mine, left[:, -1], best.missing_left),
        left=xp.where(mine[:, None], sums, best.left),
        tried=best.tried,
        sets=packed(xp, left & mine[:, None] & inside, matrix.edges.most_words),
    )
    return found, xp.where(mine & (n > 2), best.feature, -1)


def _taken(xp: Any, parts: list[Array], at: Array) -> Array:
    """The elements at the flat indices `at` i64[S] of k arrays [S] stacked to [S, k]."""
    return xp.take(xp.reshape(xp.stack(parts, axis=1), (-1,)), at)


def _per_slot(xp: Any, flags: Array, features: Array) -> Array:
    """flags[s, features[s, j]], bool[S, k], and False where the feature is -1.

    flags : bool[S, F]; features : i32[S, k]
    """
    S, F = flags.shape
    rows = xp.arange(S, dtype=xp.int64, device=flags.device)[:, None] * F
    at = xp.reshape(rows + xp.where(features < 0, 0, features), (-1,))
    found = xp.reshape(xp.take(xp.reshape(flags, (-1,)), at), features.shape)
    return found & (features >= 0)
