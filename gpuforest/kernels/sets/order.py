"""Categories are put in an order in which their best set is a cut, as for numbers.

    bins by code    a 3:1   b 0:2   c -     d 2:2   missing 1:0
    in order        b 0:2   d 2:2   a 3:1   missing 1:0   | c -         share of one class
    a cut           x in {b, d}     x in {a}, or missing

A histogram has its bins put in that order, the occupied ones first, and goes through `best_split`
as any other; then the bins up to the cut become a set. Missing values are a category like the
others. Categories that the node does not hold, or that training never saw, go to the heavier side.

The order depends on the targets. Categories that the node holds are "occupied".

===============================  ========================================================
two classes, or one real output  by the share of the second class, or the mean: the best of
                                 all sets is a cut of it (Fisher 1958; Breiman et al. 1984,
                                 theorem 4.5)
the same, if limits forbid that  with at most 6 occupied categories, the best of all allowed
cut                              sets comes first; with more, the order stays
more classes or outputs, at      the best of all sets comes first
most 6 occupied categories
the same, with more of them      along the first principal direction of the classes' shares
                                 (Coppersmith, Hong and Hosking 1999)
random cuts                      by a hash
===============================  ========================================================

This is O(nodes) work in any array-API namespace; numba.py in this folder is compiled for CPUs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpuforest.common.hashing import CUT, hash_at
from gpuforest.core.frontier import Splits
from gpuforest.core.nodes import SET_BIN
from gpuforest.core.rules import Rules

Array = Any

MOST_TRIED = 6  # with at most this many occupied categories all sets are tried: 31
ITERATIONS = 8  # of the power method; the order need not be the best one


def in_order(
    xp: Any, hist: Array, features: Array, is_set: Array, n_channels: int, rules: Rules, keys: Array
) -> tuple[Array, Array]:
    """Histograms i64[S, k, B, channels] with the bins of categorical features in their order, and
    the code at each position i64[S, k, B].

    features : i32[S, k], -1 for none
    is_set : bool[F], categorical features
    keys : u64[S], the slots' keys if cuts are random; else u64[0]"""
    S, k, B, width = hist.shape
    chosen = xp.reshape(xp.where(features < 0, 0, features), (-1,))
    mask = xp.take(is_set, chosen) & (xp.reshape(features, (-1,)) >= 0)
    codes = xp.arange(B, dtype=xp.int64, device=hist.device)
    at = xp.nonzero(mask)[0]
    if not at.shape[0]:
        return hist, xp.broadcast_to(codes, (S, k, B))
    hist, hashes = xp.reshape(hist, (S * k, B, width)), None
    if keys.shape[0]:
        stream = xp.astype(xp.take(chosen, at), xp.uint64) + CUT
        hashes = hash_at(xp.take(keys, at // k), stream)
    order = _orders(xp, xp.take(hist, at, axis=0), n_channels, rules, hashes)
    rank = xp.where(mask, xp.cumulative_sum(xp.astype(mask, xp.int64)) - 1, 0)
    order = xp.where(mask[:, None], xp.take(order, rank, axis=0), codes[None, :])
    hist = xp.take_along_axis(hist, order[:, :, None], axis=1)
    return xp.reshape(hist, (S, k, B, width)), xp.reshape(order, (S, k, B))


def as_sets(
    xp: Any, splits: Splits, hist: Array, order: Array, features: Array, is_set: Array,
    n_bins: Array, n_words: int, rules: Rules,
) -> Splits:  # fmt: skip
    """The splits found in histograms that `in_order` made, with cuts of categories as `sets`
    u64[S, n_words]: bit c of a slot's is set where code c goes left. n_bins : i32[F]"""
    S, _, B, _ = hist.shape
    feature = xp.where(splits.feature < 0, 0, splits.feature)
    mine = xp.take(is_set, feature) & (splits.feature >= 0)
    j = xp.argmax(xp.astype(features == splits.feature[:, None], xp.int8), axis=1)
    first = xp.arange(S, dtype=xp.int64, device=hist.device) * features.shape[1] + j
    codes = xp.take(xp.reshape(order, (-1, B)), first, axis=0)
    histograms = xp.take(xp.reshape(hist, (-1, *hist.shape[2:])), first, axis=0)
    C = splits.left.shape[1]
    occupied = rules.criterion.side_weight(xp, histograms[..., :C]) > 0
    # which side each position goes to, then each code
    position = xp.arange(B, dtype=xp.int64, device=hist.device)[None, :]
    left = xp.where(occupied, position <= splits.bin[:, None], splits.missing_left[:, None])
    left = xp.take_along_axis(left, xp.argsort(codes, axis=1), axis=1)
    bits = left & mine[:, None] & (position < xp.take(n_bins, feature)[:, None])
    return replace(
        splits,
        bin=xp.where(mine, SET_BIN, splits.bin),
        missing_left=xp.where(mine, left[:, -1], splits.missing_left),
        sets=packed(xp, bits, n_words),
    )


def packed(xp: Any, bits: Array, n_words: int) -> Array:
    """The bits bool[S, B] in words u64[S, n_words]; bits from B on are zero."""
    words = []
    for w in range(n_words):
        last = min(64 * w + 64, bits.shape[1])
        some = xp.astype(bits[:, 64 * w : last], xp.uint64)
        shift = xp.arange(some.shape[1], dtype=xp.uint64, device=bits.device)
        words.append(xp.sum(some << shift[None, :], axis=1, dtype=xp.uint64))
    if not words:
        return xp.zeros((bits.shape[0], 0), dtype=xp.uint64, device=bits.device)
    return xp.stack(words, axis=1)


def _orders(xp: Any, hist: Array, C: int, rules: Rules, hashes: Array | None) -> Array:
    """The codes in order, i64[P, B], the occupied ones first, from histograms i64[P, B, ...]."""
    P = hist.shape[0]
    occupied = rules.criterion.side_weight(xp, hist[..., :C]) > 0
    codes = xp.argsort(xp.astype(~occupied, xp.int8), axis=1, stable=True)
    n = xp.sum(xp.astype(occupied, xp.int64), axis=1)
    m = max(int(xp.max(n)), 1)
    codes_some = codes[:, :m]
    some = xp.take_along_axis(hist, codes_some[:, :, None], axis=1)
    if hashes is not None:
        drawn = hash_at(hashes[:, None], xp.astype(codes_some, xp.uint64))
        key = xp.astype(drawn >> 11, xp.float64)
    elif C == 2:
        key = rules.criterion.side_value(xp, some[..., :C])
    elif m <= MOST_TRIED:
        key = _best_of_all(xp, some, n, C, rules)
    else:
        few = (n <= MOST_TRIED)[:, None]
        best = _best_of_all(xp, some[:, :MOST_TRIED, :], n, C, rules)
        rest = xp.ones((P, m - MOST_TRIED), dtype=xp.float64, device=hist.device)
        key = xp.where(few, xp.concat([best, rest], axis=1), _along(xp, some[..., :C], rules))
    position = xp.arange(m, dtype=xp.int64, device=hist.device)[None, :]
    key = xp.where(position < n[:, None], key, xp.inf)
    order = xp.argsort(key, axis=1, stable=True)
    # rules can forbid the best cut of ordered categories, but allow another set
    forbids = rules.count_rows or rules.min_weight_leaf > 1 or rules.criterion.allowed is not None
    if hashes is None and C == 2 and forbids:
        ordered = xp.take_along_axis(some, order[:, :, None], axis=1)
        key = _best_allowed(xp, ordered[:, : min(m, MOST_TRIED), :], n, C, rules)
        rest = xp.ones((P, max(m - MOST_TRIED, 0)), dtype=xp.float64, device=hist.device)
        key = xp.concat([key, rest], axis=1)
        order = xp.take_along_axis(order, xp.argsort(key, axis=1, stable=True), axis=1)
    return xp.concat([xp.take_along_axis(codes_some, order, axis=1), codes[:, m:]], axis=1)


def _best_of_all(xp: Any, hist: Array, n: Array, C: int, rules: Rules) -> Array:
    """Zero for the categories of the best set, one for the others: f64[P, m]. Set number s holds
    category i if bit i of s is set, but never the last one; ties go to the lowest number.

    hist : i64[P, m <= 6, ...], row p has n[p] occupied categories if n[p] <= m"""
    m = hist.shape[1]
    score, best = _score_of_set(xp, hist, 0, n, C, rules), xp.zeros_like(n)
    for s in range(1, 2 ** (m - 1)):
        new = _score_of_set(xp, hist, s, n, C, rules)
        best = xp.where(new > score, s, best)
        score = xp.where(new > score, new, score)
    return _outside(xp, best, m)


def _best_allowed(xp: Any, hist: Array, n: Array, C: int, rules: Rules) -> Array:
    """`_best_of_all` for ordered categories whose best cut is forbidden. If it is allowed, or
    n[p] > m, zeros, which keep the order."""
    m = hist.shape[1]
    cuts = [2**i - 1 for i in range(1, m)]
    any_side = replace(rules.criterion, allowed=None)
    unlimited = replace(rules, min_rows_leaf=1, min_weight_leaf=1, criterion=any_side)
    highest = score = xp.full(n.shape, -xp.inf, dtype=xp.float64, device=hist.device)
    for s in cuts:
        highest = xp.maximum(highest, _score_of_set(xp, hist, s, n, C, unlimited))
        score = xp.maximum(score, _score_of_set(xp, hist, s, n, C, rules))
    forbidden, best = highest > score, xp.zeros_like(n)
    if bool(xp.any(forbidden)):
        for s in range(1, 2 ** (m - 1)):
            if s not in cuts:
                new = _score_of_set(xp, hist, s, n, C, rules)
                best = xp.where(forbidden & (new > score), s, best)
                score = xp.where(new > score, new, score)
    return xp.where((best > 0)[:, None], _outside(xp, best, m), 0.0)


def _score_of_set(xp: Any, hist: Array, s: int, n: Array, C: int, rules: Rules) -> Array:
    """The score of set number s of the categories, f64[P]; -inf if it is not allowed."""
    m = hist.shape[1]
    whole = xp.sum(hist, axis=1)
    left = xp.zeros_like(whole)
    for i in range(m):
        if s >> i & 1:
            left = left + hist[:, i, :]
    sides = (left, whole - left)
    allowed = (n > 0) & (n <= m) & (xp.ones_like(n) << xp.where(n > 0, n - 1, 0) > s) & (s > 0)
    for side in sides:
        if rules.count_rows:
            allowed = allowed & (side[:, C] >= rules.min_rows_leaf)
        weight = rules.criterion.side_weight(xp, side[:, :C])
        allowed = allowed & (weight >= rules.min_weight_leaf)
    scores = [rules.criterion.side_score(xp, side[:, :C]) for side in sides]
    return xp.where(allowed, scores[0] + scores[1], -xp.inf)


def _outside(xp: Any, sets: Array, m: int) -> Array:
    """Zero for the categories in each of the sets i64[P], one for the others: f64[P, m]."""
    bit = xp.arange(m, dtype=xp.int64, device=sets.device)[None, :]
    return xp.astype((sets[:, None] >> bit) & 1 == 0, xp.float64)


def _along(xp: Any, sums: Array, rules: Rules) -> Array:
    """Position of each category on the first principal direction of the shares, f64[P, m]. The
    power method starts from the category with most of the scatter; sums have a fixed order.

    sums : i64[P, m, C]"""
    P, m, C = sums.shape
    weight = rules.criterion.side_weight(xp, sums)
    whole = xp.sum(sums, axis=1)
    total = xp.astype(rules.criterion.side_weight(xp, whole), xp.float64)
    first = 0 if rules.criterion.of_classes else 1
    n = xp.astype(xp.where(weight > 0, weight, 1), xp.float64)
    means = xp.astype(whole[:, first:], xp.float64) / total[:, None]
    off = xp.astype(sums[:, :, first:], xp.float64) / n[:, :, None] - means[:, None, :]
    weights = xp.astype(weight, xp.float64)
    # 1. how the shares scatter: the upper half of a symmetric matrix
    scatter = xp.zeros((P, C - first, C - first), dtype=xp.float64, device=sums.device)
    for i in range(m):
        pull = weights[:, i, None] * off[:, i, :]
        scatter = scatter + pull[:, :, None] * off[:, i, None, :]
    row = xp.arange(C - first, dtype=xp.int64, device=sums.device)
    upper = row[None, :, None] <= row[None, None, :]
    scatter = xp.where(upper, scatter, xp.permute_dims(scatter, (0, 2, 1)))
    # 2. its direction
    matters = _in_order_sum(xp, off * off) * weights
    way = xp.take_along_axis(off, xp.argmax(matters, axis=1)[:, None, None], axis=1)[:, 0, :]
    for _ in range(ITERATIONS):
        turned = _in_order_sum(xp, scatter * way[:, None, :])
        largest = xp.max(xp.abs(turned), axis=1, keepdims=True)
        way = xp.where(largest > 0, turned / xp.where(largest > 0, largest, 1.0), way)
    return _in_order_sum(xp, off * way[:, None, :])


def _in_order_sum(xp: Any, terms: Array) -> Array:
    """Sum over the last axis, one term after another."""
    total = xp.zeros_like(terms[..., 0])
    for c in range(terms.shape[-1]):
        total = total + terms[..., c]
    return total
