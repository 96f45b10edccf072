"""Absolute split, compiled. The specification is numpy.py beside this file.

A Fenwick tree (Fenwick 1994) over the rows of a slot in the order of their targets holds the
weights and moments of the rows on one side of a cut. A row is added, and the median found, in
O(log n); so two passes over a feature's rows give the errors of both sides of all its cuts in
O(n log n).

    ranks of the targets, by code    3 5 | 1 | 0 2 4 | missing
    errors of left sides             ---->   one behind each group of one code
    errors of right sides            <----
"""

from typing import Any, NamedTuple

import numpy as np

from gpuforest.kernels.best_split.limits import draw_cut
from gpuforest.kernels.compile import device, kernel, maker, rare
from gpuforest.kernels.hashing.numba import U

WEIGHT, MOMENT = 0, 1  # columns of the tree
LOW_HALF = 0xFFFFFFFF


class Rows(NamedTuple):
    """The n rows of a slot: weights w i64[n], targets own i64[n, K], and of each output the rows
    by their targets i64[K, n], the rank of each i64[K, n], the targets in that order q i64[K, n]
    and the slot's error whole i64[K]."""

    w: Any
    own: Any
    by_target: Any
    rank: Any
    q: Any
    whole: Any


class Groups(NamedTuple):
    """The rows of a slot by their codes: order i64[n]; group g has the code `code[g]`, rows
    order[start[g]:start[g + 1]], and lies behind rows of the weight before[g]."""

    order: Any
    start: Any
    code: Any
    before: Any


class Work(NamedTuple):
    """Scratch: the Fenwick tree i64[n + 1, 2]; errors i64[4, n] and medians f64[4, n] of the
    left and the right sides, with missing values right and left; gains f64[2, n]; and what
    sorting takes."""

    tree: Any
    errors: Any
    medians: Any
    gains: Any
    goes_left: Any
    codes: Any
    keys: Any
    counts: Any


@maker
def new_scratch(n, K, B):
    """Of slots of at most n rows."""
    rows = Rows(
        np.empty(n, np.int64), np.empty((n, K), np.int64), np.empty((K, n), np.int64),
        np.empty((K, n), np.int64), np.empty((K, n), np.int64), np.empty(K, np.int64),
    )  # fmt: skip
    groups = Groups(
        np.empty(n, np.int64), np.empty(n + 1, np.int64), np.empty(n, np.int64),
        np.empty(n + 1, np.int64),
    )  # fmt: skip
    work = Work(
        np.empty((n + 1, 2), np.int64), np.empty((4, n), np.int64), np.empty((4, n)),
        np.empty((2, n)), np.empty(n, np.bool_), np.empty(n, np.int64), np.empty(n, np.int64),
        np.empty(B + 1, np.int64),
    )  # fmt: skip
    return rows, groups, work


@device
def add_row(tree, n, rank, w, moment):
    """Put a row of this rank into the tree."""
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
    while step > 0:  # as many ranks as lie below half of the weight
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
def side_errors(rows, groups, k, first, last, step, also, tree, wants, errors, medians):
    """Errors i64[m], and medians f64[m] where `wants`, of the rows of the groups first .. g, for
    each g on the way to `last`.

    also : a group whose rows are on that side too; -1: none
    """
    q, rank = rows.q[k], rows.rank[k]
    n, top, total, moment = groups.start[len(errors)], np.int64(1), np.int64(0), np.int64(0)
    while 2 * top <= n:
        top *= 2
    for i in range(n + 1):
        tree[U(i), WEIGHT] = 0
        tree[U(i), MOMENT] = 0
    g = also if also >= 0 else first
    while True:
        for i in range(groups.start[g], groups.start[g + 1]):
            r = groups.order[U(i)]
            w = rows.w[U(r)]
            product = w * rows.own[U(r), k]
            add_row(tree, n, rank[U(r)], w, product)
            total += w
            moment += product
        if g != also:
            errors[g], middle = lower_half(tree, n, top, total, moment, q)
            if wants:
                medians[g] = np.float64(middle + upper_half(tree, n, top, total, q)) * 0.5
            if g == last:
                return
        g = first if g == also else g + step


@maker  # it sorts
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
    else:  # a slot of few rows must not look at all bins
        for i in range(n):
            keys[i] = codes[i] << 32 | i
        keys[:n].sort()
        for i in range(n):
            order[i] = keys[i] & LOW_HALF
    weight = np.int64(0)
    for i in range(n):
        r = order[i]
        if i == 0 or codes[r] != code[m - 1]:
            start[m], code[m], before[m] = i, codes[r], weight
            m += 1
        weight += w[r]
    start[m], before[m] = n, weight
    return m


@maker  # it sorts
def take_rows(y, rows, weights, begin, n, out):
    """Fill `out` with a slot's rows; returns their weight."""
    total = np.int64(0)
    for i in range(n):
        out.w[i] = weights[begin + i]
        total += out.w[i]
        for k in range(y.shape[1]):
            out.own[i, k] = y[rows[begin + i], k]
    for k in range(y.shape[1]):
        out.by_target[k, :n] = np.argsort(out.own[:n, k])
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
    """Error and median of the rows that go to a side, found in the order of their targets."""
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
def is_allowed(g, side, n, total, groups, n_missing, w_missing, sign, a, b, limits):
    """Whether limits allow the cut behind group g, whose sides have the medians a and b."""
    min_rows, min_weight, low, high = limits
    n_left = groups.start[g + 1] + n_missing * side
    w_left = groups.before[g + 1] + w_missing * side
    if min(n_left, n - n_left) < min_rows or min(w_left, total - w_left) < min_weight:
        return False
    if sign == 0:
        return True
    in_order = a <= b if sign > 0 else a >= b
    return in_order and min(a, b) >= low and max(a, b) <= high


@rare
def all_gains(rows, groups, m, some_missing, factors, wants, work):
    """What each cut takes off the slot's error, to work.gains: behind each group, with missing
    values right and left."""
    errors, medians, gains = work.errors, work.medians, work.gains
    for k in range(len(factors)):
        for side in range(2 if some_missing and m > 2 else 1):
            also, last = (m - 1, m - 2) if side == 1 else (-1, m - 1)
            left, right = 2 * side, 2 * side + 1
            side_errors(
                rows, groups, k, 0, last - 1, 1, also, work.tree, wants and k == 0,
                errors[left, :m], medians[left],
            )  # fmt: skip
            side_errors(
                rows, groups, k, last, 1, -1, -1, work.tree, wants and k == 0,
                errors[right, :m], medians[right],
            )  # fmt: skip
            for g in range(last):
                gain = rows.whole[k] - errors[left, g] - errors[right, g + 1]
                before = gains[side, g] if k > 0 else 0.0
                gains[side, g] = before + factors[k] * np.float64(gain)


@rare
def best_cut(rows, groups, m, n_missing, w_missing, factors, sign, limits, work):
    """(score, group behind which the cut lies, whether missing values go left)."""
    best, n, total = (-np.inf, 0, False), groups.start[m], groups.before[m]
    all_gains(rows, groups, m, n_missing > 0, factors, sign != 0, work)
    for g in range(m - 1):
        for side in range(2 if n_missing > 0 and g < m - 2 else 1):
            a, b = work.medians[2 * side, g], work.medians[2 * side + 1, g + 1]
            if work.gains[side, g] > best[0] and is_allowed(
                g, side, n, total, groups, n_missing, w_missing, sign, a, b, limits
            ):
                best = work.gains[side, g], g, side == 1
    return best


@rare
def random_cut(
    rows, groups, m, n_missing, w_missing, factors, sign, limits, work, drawn, side
):  # fmt: skip
    """As best_cut, of the one cut that was drawn."""
    n, total, g, n_present = groups.start[m], groups.before[m], 0, m - (n_missing > 0)
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
    if not is_allowed(
        g, side, n, total, groups, n_missing, w_missing, sign, a, b, limits
    ):  # fmt: skip
        score = -np.inf
    return score, g, side


@device
def add_left(rows, groups, m, g, side, some_missing, left):
    """Weight and moments of the left side, to `left` i64[1 + K] of zeros."""
    for i in range(groups.start[m]):
        in_values = i < groups.start[g + 1]
        if in_values or (side and some_missing and i >= groups.start[m - 1]):
            r = groups.order[i]
            left[0] += rows.w[r]
            for k in range(len(left) - 1):
                left[1 + k] += rows.w[r] * rows.own[r, k]


@kernel
def absolute_split(
    codes, y, rows, weights, begin, end, features, n_bins, missing, factors, min_rows,
    min_weight, keys, signs, bounds, slots, firsts, lasts, score, varies, cut, missing_left, left,
):  # fmt: skip
    """Fills score .. left for the pieces (slot, first .. last - 1 of k)."""
    most, has_bounds = np.int64(0), len(bounds) > 0
    for s in slots:
        most = max(most, end[s] - begin[s])
    own, groups, work = new_scratch(most, y.shape[1], missing + 1)
    for p in range(len(slots)):
        s = slots[p]
        n = end[s] - begin[s]
        total = take_rows(y, rows, weights, begin[s], n, own)
        low, high = (bounds[s, 0], bounds[s, 1]) if has_bounds else (-np.inf, np.inf)
        limits = min_rows, min_weight, low, high
        for j in range(firsts[p], lasts[p]):
            f = np.int64(features[s, j])
            if f < 0:
                continue
            for i in range(n):
                work.codes[i] = codes[rows[begin[s] + i], f]
            m = group_rows(work.codes, own.w, n, missing, groups, work)
            if m < 2:
                continue
            varies[s, j] = True
            # 1. to 3. the cuts, their limits and errors
            sign = np.int64(signs[f]) if len(signs) else np.int64(0)
            some_missing = groups.code[m - 1] == missing
            n_present, n_missing, w_missing = m - some_missing, np.int64(0), np.int64(0)
            if some_missing:
                n_missing, w_missing = n - groups.start[m - 1], total - groups.before[m - 1]
            drawn = np.int64(-1)
            if len(keys):
                lowest, highest = groups.code[0], groups.code[n_present - 1]
                drawn, goes = draw_cut(keys[s], f, lowest, highest, n_bins[f])
                best, g, side = random_cut(
                    own, groups, m, n_missing, w_missing, factors, sign, limits, work, drawn,
                    goes and some_missing,
                )  # fmt: skip
            else:
                best, g, side = best_cut(
                    own, groups, m, n_missing, w_missing, factors, sign, limits, work
                )
            if best == -np.inf:
                continue
            # 4. the middle of the gap, and where missing values go
            if g + 1 >= n_present:
                cut[s, j] = n_bins[f] - 1
            elif drawn >= 0:
                cut[s, j] = drawn
            else:
                cut[s, j] = (groups.code[g] + groups.code[g + 1] - 1) >> 1
            heavier = 2 * groups.before[g + 1] > total
            missing_left[s, j] = side if some_missing else heavier
            score[s, j] = best
            add_left(own, groups, m, g, side, some_missing, left[s, j])
