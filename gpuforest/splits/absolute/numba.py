"""Absolute split, compiled. The specification is numpy.py beside this file.

A Fenwick tree (Fenwick 1994) holds the weights and moments of the rows on one side of a cut, in
the order of their targets. Adding a row takes O(log n), and so does finding the median. Two passes
over a feature's rows therefore give the errors of both sides of all its cuts in O(n log n).

    ranks of the targets, by code    3 5 | 1 | 0 2 4 | missing
    errors of left sides             ---->   one behind each group of one code
    errors of right sides            <----
"""

import numpy as np

from gpuforest.compiler.decorators import device, kernel, rare
from gpuforest.compiler.types import F64s, I32s2, I64s2
from gpuforest.engine.records import Data, Frontier, Rules
from gpuforest.kernels.best_split.limits import draw_cut
from gpuforest.kernels.best_split.set_order import merge_sort
from gpuforest.kernels.shared.hashing.numba import U
from gpuforest.kernels.shared.records import Cuts, Limits
from gpuforest.splits.absolute.scratch import AbsoluteScratch, Held, Way

WEIGHT, MOMENT = 0, 1  # columns of the tree


@device
def add_row(tree, n, rank, w, moment):
    """Add the row of this rank to the tree."""
    at = rank + 1
    while at <= n:
        tree[U(at), WEIGHT] += w
        tree[U(at), MOMENT] += moment
        at += at & -at


@device
def lower_half(tree, n, top, total, total_moment, q):
    """The absolute error of the rows in the tree, and the value at which half of their weight
    `total` is reached.

    top : the highest power of two that is at most n
    """
    rank, before, moment, step = np.int64(0), np.int64(0), np.int64(0), top
    while step > 0:  # find the number of ranks below half of the weight
        at = rank + step
        if at <= n and 2 * (before + tree[U(at), WEIGHT]) < total:
            rank = at
            before += tree[U(at), WEIGHT]
            moment += tree[U(at), MOMENT]
        step >>= 1
    middle = q[U(rank)]
    error = (total_moment - moment) - middle * (total - before) + (middle * before - moment)
    return error, middle


@device
def upper_half(tree, n, top, total, q):
    """The value at which more than half of the weight is reached."""
    rank, before, step = np.int64(0), np.int64(0), top
    while step > 0:
        at = rank + step
        if at <= n and 2 * (before + tree[U(at), WEIGHT]) <= total:
            rank = at
            before += tree[U(at), WEIGHT]
        step >>= 1
    return q[U(rank)]


@rare
def side_errors(rows, groups, k, way, tree, wants, errors, medians):
    """Fill the errors i64[m], and if `wants` the medians f64[m], of the rows of all groups up to g,
    for each group g on the way."""
    q, rank = rows.q[k], rows.rank[k]
    n, top, total, moment = groups.start[len(errors)], np.int64(1), np.int64(0), np.int64(0)
    while 2 * top <= n:
        top *= 2
    for i in range(n + 1):
        tree[U(i), WEIGHT] = 0
        tree[U(i), MOMENT] = 0
    g = way.also if way.also >= 0 else way.first
    while True:
        for i in range(groups.start[g], groups.start[g + 1]):
            r = groups.order[U(i)]
            w = rows.w[U(r)]
            product = w * rows.own[U(r), k]
            add_row(tree, n, rank[U(r)], w, product)
            total += w
            moment += product
        if g != way.also:
            errors[g], middle = lower_half(tree, n, top, total, moment, q)
            if wants:
                medians[g] = np.float64(middle + upper_half(tree, n, top, total, q)) * 0.5
            if g == way.last:
                return
        g = way.first if g == way.also else g + way.step


@rare
def group_rows(codes, w, n, missing, groups, work):
    """Fill `groups` with the rows of these codes i64[n]; returns the number m of groups."""
    order, start, code, before = groups
    m, B, counts, keys = 0, missing + 1, work.counts, work.keys
    if 4 * n >= B:
        counts[:] = 0
        for i in range(n):
            counts[codes[i] + 1] += 1
        for b in range(B):
            counts[b + 1] += counts[b]
        for i in range(n):
            order[counts[codes[i]]] = i
            counts[codes[i]] += 1
    else:  # a slot of few rows must not go through all bins
        for i in range(n):
            keys[i], order[i] = codes[i], i
        merge_sort(keys, order, work.errors[0], work.errors[1], n)
    weight = np.int64(0)
    for i in range(n):
        r = order[i]
        if i == 0 or codes[r] != code[m - 1]:
            start[m], code[m], before[m] = i, codes[r], weight
            m += 1
        weight += w[r]
    start[m], before[m] = n, weight
    return m


@rare
def take_rows(y, rows, weights, begin, n, out, work):
    """Fill `out` with a slot's rows, and return their weight."""
    total = np.int64(0)
    for i in range(n):
        out.w[i] = weights[begin + i]
        total += out.w[i]
        for k in range(y.shape[1]):
            out.own[i, k] = y[rows[begin + i], k]
    for k in range(y.shape[1]):
        by_target = out.by_target[k]
        for i in range(n):
            work.keys[i], by_target[i] = out.own[i, k], i
        merge_sort(work.keys, by_target, work.errors[0], work.errors[1], n)
        upto, middle, error = np.int64(0), np.int64(0), np.int64(0)
        for i in range(n):
            r = out.by_target[k, i]
            out.rank[k, r], out.q[k, i] = i, out.own[r, k]
            middle = out.q[k, i] if 2 * upto < total else middle
            upto += out.w[r]
        for i in range(n):
            error += out.w[i] * abs(out.own[i, k] - middle)
        out.whole[k] = error
    return total


@rare
def error_of_side(rows, n, k, goes_left, side):
    """The error and the median of the rows on one side, found in the order of their targets."""
    total, upto, at = np.int64(0), np.int64(0), 0
    low, high, error = np.int64(0), np.int64(0), np.int64(0)
    for i in range(n):
        total += rows.w[i] * (goes_left[i] == side)
    while 2 * upto <= total:
        r = rows.by_target[k, at]
        if goes_left[r] == side:
            high = rows.own[r, k]
            low = high if 2 * upto < total else low
            upto += rows.w[r]
        at += 1
    for i in range(n):
        if goes_left[i] == side:
            error += rows.w[i] * abs(rows.own[i, k] - low)
    return error, np.float64(low + high) * 0.5


@device
def is_allowed(g, side, held, groups, a, b, limits):
    """Whether limits allow the cut behind group g; the medians of its sides are a and b."""
    n_left = groups.start[g + 1] + held.n_missing * side
    w_left = groups.before[g + 1] + held.w_missing * side
    if min(n_left, held.n - n_left) < limits.min_rows:
        return False
    if min(w_left, held.weight - w_left) < limits.min_weight:
        return False
    if limits.sign == 0:
        return True
    in_order = a <= b if limits.sign > 0 else a >= b
    return in_order and min(a, b) >= limits.low and max(a, b) <= limits.high


@rare
def all_gains(rows, groups, held, factors, wants, work):
    """Fill work.gains f64[2, m]: what the cut behind each group takes off the slot's error, with
    missing values right and left."""
    errors, medians, gains, m = work.errors, work.medians, work.gains, held.m
    for k in range(len(factors)):
        for side in range(2 if held.n_missing > 0 and m > 2 else 1):
            also, last = (m - 1, m - 2) if side == 1 else (-1, m - 1)
            left, right = 2 * side, 2 * side + 1
            side_errors(
                rows, groups, k, Way(0, last - 1, 1, also), work.tree, wants and k == 0,
                errors[left, :m], medians[left],
            )  # fmt: skip
            side_errors(
                rows, groups, k, Way(last, 1, -1, -1), work.tree, wants and k == 0,
                errors[right, :m], medians[right],
            )  # fmt: skip
            for g in range(last):
                gain = rows.whole[k] - errors[left, g] - errors[right, g + 1]
                before = gains[side, g] if k > 0 else 0.0
                gains[side, g] = before + factors[k] * np.float64(gain)


@rare
def best_cut(rows, groups, held, factors, limits, work):
    """The best cut: (score, group behind which it lies, whether missing values go left)."""
    best = (-np.inf, 0, False)
    all_gains(rows, groups, held, factors, limits.sign != 0, work)
    for g in range(held.m - 1):
        for side in range(2 if held.n_missing > 0 and g < held.m - 2 else 1):
            a, b = work.medians[2 * side, g], work.medians[2 * side + 1, g + 1]
            if work.gains[side, g] > best[0] and is_allowed(
                g, side, held, groups, a, b, limits
            ):  # fmt: skip
                best = work.gains[side, g], g, side == 1
    return best


@rare
def random_cut(rows, groups, held, factors, limits, work, drawn, side):
    """As best_cut, for the one cut that was drawn."""
    n, g, n_present = held.n, 0, held.m - (held.n_missing > 0)
    while g + 1 < n_present and groups.code[g + 1] <= drawn:
        g += 1
    for i in range(n):
        work.goes_left[groups.order[i]] = i < groups.start[g + 1] or (
            side and i >= groups.start[n_present]
        )
    score, medians = 0.0, (0.0, 0.0)
    for k in range(len(factors)):
        left, a = error_of_side(rows, n, k, work.goes_left, True)
        right, b = error_of_side(rows, n, k, work.goes_left, False)
        score += factors[k] * np.float64(rows.whole[k] - left - right)
        medians = (a, b) if k == 0 else medians
    a, b = medians
    if not is_allowed(g, side, held, groups, a, b, limits):
        score = -np.inf
    return score, g, side


@device
def add_left(rows, groups, held, g, side, left):
    """Fill `left` i64[1 + K], which holds zeros, with the weight and moments of the left side."""
    for i in range(held.n):
        in_values = i < groups.start[g + 1]
        if in_values or (side and i >= held.n - held.n_missing):
            r = groups.order[i]
            left[0] += rows.w[r]
            for k in range(len(left) - 1):
                left[1 + k] += rows.w[r] * rows.own[r, k]


@device
def limits_in(slots, s, f, rules):
    """The limits on a feature's cuts in a slot."""
    low, high = -np.inf, np.inf
    if len(slots.bounds):
        low, high = slots.bounds[s, 0], slots.bounds[s, 1]
    sign = np.int64(rules.signs[f]) if len(rules.signs) else np.int64(0)
    return Limits(np.int64(rules.min_rows_leaf), np.int64(rules.min_weight_leaf), sign, low, high)


@device
def held_of(groups, m, n, weight, missing):
    """The record of the groups of a feature."""
    n_missing, w_missing = np.int64(0), np.int64(0)
    if groups.code[m - 1] == missing:
        n_missing, w_missing = n - groups.start[m - 1], weight - groups.before[m - 1]
    return Held(np.int64(m), np.int64(n), weight, n_missing, w_missing)


@device
def cut_groups(data, slots, s, j, f, held, rules, factors, scratch, cuts):
    """Write the best cut of one feature in one slot, or the random cut."""
    rows, groups, work = scratch
    n_bins, limits, drawn = data.n_bins[f], limits_in(slots, s, f, rules), np.int64(-1)
    n_present = held.m - (held.n_missing > 0)
    # 1. to 3. the cuts, their limits and errors
    if rules.random:
        lowest, highest = groups.code[0], groups.code[n_present - 1]
        drawn, goes = draw_cut(slots.key[s], f, lowest, highest, n_bins)
        best, g, side = random_cut(
            rows, groups, held, factors, limits, work, drawn, goes and held.n_missing > 0
        )
    else:
        best, g, side = best_cut(rows, groups, held, factors, limits, work)
    if best == -np.inf:
        return
    # 4. the middle of the gap, and where missing values go
    if g + 1 >= n_present:
        cuts.bin[s, j] = n_bins - 1
    elif drawn >= 0:
        cuts.bin[s, j] = drawn
    else:
        cuts.bin[s, j] = (groups.code[g] + groups.code[g + 1] - 1) >> 1
    heavier = 2 * groups.before[g + 1] > held.weight
    cuts.missing_left[s, j] = side if held.n_missing > 0 else heavier
    cuts.score[s, j] = best
    add_left(rows, groups, held, g, side, cuts.left[s, j])


@kernel(target="int64")
def absolute_split(
    data: Data, slots: Frontier, features: I32s2, rules: Rules, factors: F64s, pieces: I64s2,
    cuts: Cuts, scratch: AbsoluteScratch,
):  # fmt: skip
    """Fill `cuts` for the pieces i64[p, 3]: a slot, and the features first .. last - 1 of k.

    scratch : for the slot of most rows
    """
    missing, (rows, groups, work) = data.n_codes - 1, scratch
    for p in range(len(pieces)):
        s, first, last = pieces[p, 0], pieces[p, 1], pieces[p, 2]
        begin = slots.begin[s]
        n = slots.end[s] - begin
        weight = take_rows(data.y, slots.rows, slots.weights, begin, n, rows, work)
        for j in range(first, last):
            f = np.int64(features[s, j])
            if f < 0:
                continue
            for i in range(n):
                work.codes[i] = data.codes[f, slots.rows[begin + i]]
            m = group_rows(work.codes, rows.w, n, missing, groups, work)
            cuts.varies[s, j] = m > 1
            if m > 1:
                held = held_of(groups, m, n, weight, missing)
                cut_groups(data, slots, s, j, f, held, rules, factors, scratch, cuts)
