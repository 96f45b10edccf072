"""Splits by absolute error, compiled.

A Fenwick tree (Fenwick 1994) holds the weights and moments of the rows on one side of a cut, in
the order of their targets. Adding a row and finding the median take O(log n) each. Two passes
over a feature's rows therefore give the errors of both sides of all its cuts in O(n log n).

    ranks of the targets, by code    3 5 | 1 | 0 2 4 | missing
    errors of left sides             ---->   one behind each group of one code
    errors of right sides            <----
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from gpuforest.compiler.decorators import device, kernel, rare
from gpuforest.compiler.types import F64s, I32s2, I64s2
from gpuforest.core.frontier import Data, Frontier
from gpuforest.core.rules import Rules
from gpuforest.kernels.best_split.cuts import draw_cut, limits_of, slot_at
from gpuforest.kernels.shared.numba import U, merge_sort
from gpuforest.kernels.shared.records import Bin, Cuts

Array = Any


class AbsoluteScratch(NamedTuple):
    """n rows of a slot in groups of equal codes: group g has order[start[g]:start[g + 1]]."""

    w: Annotated[Array, "i64[n]"]  # weights
    y: Annotated[Array, "i64[n, K]"]  # targets
    by_target: Annotated[Array, "i64[K, n]"]  # for each output, the rows in the order of targets
    rank: Annotated[Array, "i64[K, n]"]  # each row's rank
    q: Annotated[Array, "i64[K, n]"]  # the targets in that order
    whole: Annotated[Array, "i64[K]"]  # the slot's error
    order: Annotated[Array, "i64[n]"]
    start: Annotated[Array, "i64[m]"]
    code: Annotated[Array, "i64[n]"]
    before: Annotated[Array, "i64[m]"]  # the weight of the groups before it
    tree_weight: Annotated[Array, "i64[m]"]  # the Fenwick tree
    tree_moment: Annotated[Array, "i64[m]"]
    # of the left and the right sides, with missing values right and left
    errors: Annotated[Array, "i64[S, n]"]
    medians: Annotated[Array, "f64[S, n]"]
    gains: Annotated[Array, "f64[S, n]"]
    goes_left: Annotated[Array, "bool[n]"]
    codes: Annotated[Array, "i64[n]"]
    keys: Annotated[Array, "i64[n]"]
    counts: Annotated[Array, "i64[C]"]


@device
def ranks_below(work, n, top, total):
    """How many ranks lie below half of `total` weight, and their weight and moment.

    top : the highest power of two <= n"""
    rank, before, moment, step = np.int64(0), np.int64(0), np.int64(0), top
    while step > 0:
        at = rank + step
        if at <= n and 2 * (before + work.tree_weight[U(at)]) < total:
            rank = at
            before += work.tree_weight[U(at)]
            moment += work.tree_moment[U(at)]
        step >>= 1
    return rank, before, moment


@rare
def side_errors(work, k, first, last, step, also, side, m, wants):
    """Fill errors of a side, and medians if `wants`: of the rows of all groups up to g, for each of
    the m groups g from first to last in steps of 1 or -1.

    also : a group on that side from the start, or -1"""
    q, rank, errors = work.q[k], work.rank[k], work.errors[side]
    n, top, total, moment = work.start[m], np.int64(1), np.int64(0), np.int64(0)
    while 2 * top <= n:
        top *= 2
    work.tree_weight[: n + 1] = 0
    work.tree_moment[: n + 1] = 0
    g = also if also >= 0 else first
    while True:
        for i in range(work.start[g], work.start[g + 1]):
            r = work.order[U(i)]
            w = work.w[U(r)]
            product = w * work.y[U(r), k]
            at = rank[U(r)] + 1
            while at <= n:
                work.tree_weight[U(at)] += w
                work.tree_moment[U(at)] += product
                at += at & -at
            total += w
            moment += product
        if g != also:
            at, before, below = ranks_below(work, n, top, total)
            middle = q[U(at)]
            errors[g] = (moment - below) - middle * (total - before) + (middle * before - below)
            if wants:
                upper = q[U(ranks_below(work, n, top, total + 1)[0])]
                work.medians[side, g] = np.float64(middle + upper) * 0.5
            if g == last:
                return
        g = first if g == also else g + step


@rare
def group_rows(n, missing, work):
    """Put the rows of the codes in `work` into groups, and return their number m."""
    order, start, code, before, codes = work.order, work.start, work.code, work.before, work.codes
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
        weight += work.w[r]
    start[m], before[m] = n, weight
    return m


@rare
def take_rows(y, slots, begin, n, work):
    """Copy a slot's rows, and find their order and their error."""
    total = np.int64(0)
    for i in range(n):
        work.w[i] = slots.weights[begin + i]
        total += work.w[i]
        for k in range(y.shape[1]):
            work.y[i, k] = y[slots.rows[begin + i], k]
    for k in range(y.shape[1]):
        by_target = work.by_target[k]
        for i in range(n):
            work.keys[i], by_target[i] = work.y[i, k], i
        merge_sort(work.keys, by_target, work.errors[0], work.errors[1], n)
        upto, middle, error = np.int64(0), np.int64(0), np.int64(0)
        for i in range(n):
            r = by_target[i]
            work.rank[k, r], work.q[k, i] = i, work.y[r, k]
            middle = work.q[k, i] if 2 * upto < total else middle
            upto += work.w[r]
        for i in range(n):
            error += work.w[i] * abs(work.y[i, k] - middle)
        work.whole[k] = error


@rare
def error_of_side(work, n, k, side):
    """The error and the median of the rows on one side, found in the order of their targets."""
    total, upto, at = np.int64(0), np.int64(0), 0
    low, high, error, goes_left = np.int64(0), np.int64(0), np.int64(0), work.goes_left
    for i in range(n):
        total += work.w[i] * (goes_left[i] == side)
    while 2 * upto <= total:
        r = work.by_target[k, at]
        if goes_left[r] == side:
            high = work.y[r, k]
            low = high if 2 * upto < total else low
            upto += work.w[r]
        at += 1
    for i in range(n):
        if goes_left[i] == side:
            error += work.w[i] * abs(work.y[i, k] - low)
    return error, np.float64(low + high) * 0.5


@device
def is_allowed(g, side, whole, absent, work, a, b, limits):
    """Whether limits allow the cut behind group g; the medians of its sides are a and b."""
    n_left = work.start[g + 1] + absent.rows * side
    w_left = work.before[g + 1] + absent.weight * side
    if min(n_left, whole.rows - n_left) < limits.min_rows:
        return False
    if min(w_left, whole.weight - w_left) < limits.min_weight:
        return False
    if limits.sign == 0:
        return True
    in_order = a <= b if limits.sign > 0 else a >= b
    return in_order and min(a, b) >= limits.low and max(a, b) <= limits.high


@rare
def best_cut(m, whole, absent, factors, limits, work):
    """The best cut between m groups: (score, group before it, whether missing values go left).

    whole, absent : Bins, sums of the slot and of its missing values, the last group"""
    best, errors, gains = (-np.inf, 0, False), work.errors, work.gains
    for k in range(len(factors)):
        for side in range(2 if absent.rows > 0 and m > 2 else 1):
            also, last = (m - 1, m - 2) if side == 1 else (-1, m - 1)
            left, right, wants = 2 * side, 2 * side + 1, limits.sign != 0 and k == 0
            side_errors(work, k, 0, last - 1, 1, also, left, m, wants)
            side_errors(work, k, last, 1, -1, -1, right, m, wants)
            for g in range(last):
                gain = work.whole[k] - errors[left, g] - errors[right, g + 1]
                before = gains[side, g] if k > 0 else 0.0
                gains[side, g] = before + factors[k] * np.float64(gain)
    for g in range(m - 1):
        for side in range(2 if absent.rows > 0 and g < m - 2 else 1):
            a, b = work.medians[2 * side, g], work.medians[2 * side + 1, g + 1]
            is_better = gains[side, g] > best[0]
            if is_better and is_allowed(g, side, whole, absent, work, a, b, limits):
                best = gains[side, g], g, side == 1
    return best


@rare
def random_cut(m, whole, absent, factors, limits, work, drawn, side):
    """As best_cut, for the one cut that was drawn."""
    n, g, n_present = whole.rows, 0, m - (absent.rows > 0)
    while g + 1 < n_present and work.code[g + 1] <= drawn:
        g += 1
    for i in range(n):
        work.goes_left[work.order[i]] = i < work.start[g + 1] or (
            side and i >= work.start[n_present]
        )
    score, medians = 0.0, (0.0, 0.0)
    for k in range(len(factors)):
        left, a = error_of_side(work, n, k, True)
        right, b = error_of_side(work, n, k, False)
        score += factors[k] * np.float64(work.whole[k] - left - right)
        medians = (a, b) if k == 0 else medians
    a, b = medians
    if not is_allowed(g, side, whole, absent, work, a, b, limits):
        score = -np.inf
    return score, g, side


@device
def cut_groups(data, slot, j, f, m, n, rules, factors, work, cuts):
    """Write the best or random cut between a feature's m groups in a slot of n rows."""
    n_bins, limits, drawn, s = data.n_bins[f], limits_of(rules, slot, f), np.int64(-1), slot.number
    zero, whole = np.int64(0), Bin(slot.weight, np.int64(0), np.int64(n))
    absent = Bin(zero, zero, zero)
    if work.code[m - 1] == data.n_codes - 1:
        absent = Bin(slot.weight - work.before[m - 1], zero, n - work.start[m - 1])
    n_present = m - (absent.rows > 0)
    # 1. to 3. the cuts, their limits and errors
    if rules.random:
        lowest, highest = work.code[0], work.code[n_present - 1]
        drawn, goes = draw_cut(slot.key, f, lowest, highest, n_bins)
        goes = goes and absent.rows > 0
        best, g, side = random_cut(m, whole, absent, factors, limits, work, drawn, goes)
    else:
        best, g, side = best_cut(m, whole, absent, factors, limits, work)
    if best == -np.inf:
        return
    # 4. the middle of the gap, and where missing values go
    if g + 1 >= n_present:
        cuts.bin[s, j] = n_bins - 1
    elif drawn >= 0:
        cuts.bin[s, j] = drawn
    else:
        cuts.bin[s, j] = (work.code[g] + work.code[g + 1] - 1) >> 1
    heavier = 2 * work.before[g + 1] > slot.weight
    cuts.missing_left[s, j] = side if absent.rows > 0 else heavier
    cuts.score[s, j] = best
    left = cuts.left[s, j]  # holds zeros
    for i in range(n):
        if i < work.start[g + 1] or (side and i >= n - absent.rows):
            r = work.order[i]
            left[0] += work.w[r]
            for k in range(len(factors)):
                left[1 + k] += work.w[r] * work.y[r, k]


@kernel(plain={}, target="int64")
def absolute_split(
    data: Data, slots: Frontier, features: I32s2, rules: Rules, factors: F64s, pieces: I64s2,
    cuts: Cuts, work: AbsoluteScratch,
):  # fmt: skip
    """Fill `cuts` for pieces i64[p, 3]: slot, features first .. last - 1; scratch fits all
    slots."""
    missing = data.n_codes - 1
    for p in range(len(pieces)):
        s, first, last = pieces[p, 0], pieces[p, 1], pieces[p, 2]
        slot, n = slot_at(slots, s, False), slots.end[s] - slots.begin[s]
        take_rows(data.y, slots, slot.begin, n, work)
        for j in range(first, last):
            f = np.int64(features[s, j])
            if f < 0:
                continue
            for i in range(n):
                work.codes[i] = data.codes[f, slots.rows[slot.begin + i]]
            m = group_rows(n, missing, work)
            cuts.varies[s, j] = m > 1
            if m > 1:
                cut_groups(data, slot, j, f, m, n, rules, factors, work, cuts)
