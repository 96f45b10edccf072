"""Gradients, compiled. The specification is numpy.py in this folder."""

import math

import numpy as np

from gpuforest.common import elementary
from gpuforest.compiler.decorators import device, kernel
from gpuforest.compiler.types import F64, I64, F64s, F64s2, I32s, I64s, I64s2, I64s3
from gpuforest.kernels.boosted_tree.records import Leaves, LossOf, TreeRules
from gpuforest.kernels.gradients import numpy as reference
from gpuforest.kernels.gradients.numpy import RESIDUAL_BITS

BLOCK = 1024  # rows at once, whose numbers stay in the first-level cache
LOG2_E, MOST = elementary.LOG2_E, elementary.MOST
LN2_HIGH, LN2_LOW = elementary.LN2_HIGH, elementary.LN2_LOW
FACTORIALS, ATANH, SQRT2 = elementary.FACTORIALS, elementary.ATANH, elementary.SQRT2
ODD = elementary.ODD
FRACTION, HALF = np.int64(2**52 - 1), np.int64(1022 << 52)  # of the bits of a float64
POWERS = np.ldexp(1.0, np.arange(-1022, 1024))  # of two: LLVM has no vectors of ldexp


@device
def exp_of(x):
    """The exponential of common/elementary.py, without a branch."""
    x = min(max(x, -MOST), MOST)
    k = math.floor(x * LOG2_E + 0.5)
    rest = (x - k * LN2_HIGH) - k * LN2_LOW
    series = FACTORIALS[13]
    for i in range(12, -1, -1):
        series = series * rest + FACTORIALS[i]
    return series * POWERS[np.int64(k) + 1022]


@device
def log_of(x):
    """The logarithm of common/elementary.py, of numbers from 1 on."""
    bits = np.float64(x).view(np.int64)
    m, e = np.int64((bits & FRACTION) | HALF).view(np.float64), (bits >> 52) - 1022
    low = m * SQRT2 < 1.0
    m, k = (2.0 * m if low else m), np.float64(e - low)
    t = (m - 1.0) / (m + 1.0)
    series = ATANH[9]
    for i in range(8, -1, -1):
        series = series * (t * t) + ATANH[i]
    return k * LN2_HIGH + (t * series + k * LN2_LOW)


@device
def log1p_exp(x, t, out):
    """As common/elementary.py's, of f64[n] x; the loops over rows become vectors."""
    n = len(x)
    for i in range(n):
        small = exp_of(-abs(x[i]))
        t[i] = small / (2.0 + small)
        out[i] = ODD[17]
    for k in range(16, -1, -1):
        term = ODD[k]
        for i in range(n):
            out[i] = out[i] * (t[i] * t[i]) + term
    for i in range(n):
        out[i] = max(x[i], 0.0) + t[i] * out[i]


@device
def one_class(loss, first, n, g, h):
    """Derivatives of rows first .. first + n - 1, unweighted, of a loss with one raw prediction."""
    number, y, raw = loss.number, loss.y, loss.raw
    for i in range(n):
        h[i] = 1.0
    if number == reference.SQUARED:
        for i in range(n):
            g[i] = raw[0, first + i] - y[first + i]
    elif number == reference.ABSOLUTE:
        for i in range(n):
            g[i] = -1.0 if y[first + i] > raw[0, first + i] else 1.0
    elif number == reference.QUANTILE:
        for i in range(n):
            below = y[first + i] >= raw[0, first + i]
            g[i] = -loss.parameter if below else 1.0 - loss.parameter
    elif number == reference.HUBER:
        delta = loss.delta[0]
        for i in range(n):
            g[i] = min(max(raw[0, first + i] - y[first + i], -delta), delta)
    elif number == reference.COUNTS:
        for i in range(n):
            h[i] = exp_of(raw[0, first + i])
            g[i] = h[i] - y[first + i]
    elif number == reference.GAMMA:
        for i in range(n):
            h[i] = y[first + i] * exp_of(-raw[0, first + i])
            g[i] = 1.0 - h[i]
    elif number == reference.TWEEDIE:
        below, above = 1.0 - loss.parameter, 2.0 - loss.parameter
        for i in range(n):
            high = exp_of(above * raw[0, first + i])
            low = y[first + i] * exp_of(below * raw[0, first + i])
            g[i] = high - low
            h[i] = above * high - below * low
    else:
        for i in range(n):
            p = 1.0 / (1.0 + exp_of(-raw[0, first + i]))
            g[i] = p - y[first + i]
            h[i] = p * (1.0 - p)


@device
def shares_of_rows(raw, first, n, top, total, shares):
    """exp(raw - the row's highest raw prediction) of each class, and their sum."""
    for i in range(n):
        top[i] = raw[0, first + i]
    for k in range(1, len(raw)):
        for i in range(n):
            top[i] = max(top[i], raw[k, first + i])
    for i in range(n):
        total[i] = 0.0
    for k in range(len(raw)):
        share = shares[k]
        for i in range(n):
            share[i] = exp_of(raw[k, first + i] - top[i])
            total[i] += share[i]


@device
def derive(loss, k, first, n, scratch):
    """Derivatives by raw prediction k to scratch[0], scratch[1]. Class 0 also fills the rest of
    `scratch`, which later classes read."""
    g, h, weight = scratch[0], scratch[1], loss.weight
    if loss.number < 0:  # the host has computed them
        for i in range(n):
            g[i], h[i] = loss.raw[k, first + i], loss.raw[loss.K + k, first + i]
    elif loss.number <= reference.BINARY:
        one_class(loss, first, n, g, h)
    else:
        if k == 0:
            shares_of_rows(loss.raw, first, n, g, scratch[2], scratch[3:])
        total, share = scratch[2], scratch[3 + k]
        for i in range(n):
            p = share[i] / total[i]
            g[i] = p - np.float64(loss.y[first + i] == np.float64(k))
            h[i] = p * (1.0 - p)
    if len(weight) > 0:
        for i in range(n):
            g[i] *= weight[first + i]
            h[i] *= weight[first + i]


@kernel
def gradients(
    loss: LossOf, rules: TreeRules, stats: I64s3, most: F64s, begin: I64, end: I64, scratch: F64s2
):  # fmt: skip
    """As numpy.py's, of the rows begin .. end - 1; scratch f64[3 + K, BLOCK].

    most : f64[2], raised to the sizes of numpy.py's `largest`, while stats stay; or f64[0]"""
    bits, scale_g, scale_h = rules.n_bits, rules.scale[0].g, rules.scale[0].h
    for first in range(begin, end, BLOCK):
        n = min(BLOCK, end - first)
        for k in range(loss.K):
            derive(loss, k, first, n, scratch)
            out = stats[k]
            if len(most):
                for i in range(n):
                    most[0] = max(most[0], abs(scratch[0, i]))
                    most[1] = max(most[1], scratch[1, i])
            elif out.shape[1] == 1:
                for i in range(n):
                    whole = np.int64(math.floor(scratch[0, i] * scale_g + 0.5))
                    out[first + i, 0] = (whole << bits) + 1
            else:
                for i in range(n):
                    out[first + i, 0] = np.int64(math.floor(scratch[0, i] * scale_g + 0.5))
                    whole = np.int64(math.floor(scratch[1, i] * scale_h + 0.5))
                    out[first + i, 1] = (whole << bits) + 1


@kernel
def losses(loss: LossOf, begin: I64, end: I64, out: F64s, scratch: F64s2):
    """The losses f64[N] of the rows begin .. end - 1, unweighted, as losses.py has them, where the
    link is no identity; scratch f64[3 + K, BLOCK]."""
    number, y = loss.number, loss.y
    for first in range(begin, end, BLOCK):
        n = min(BLOCK, end - first)
        raw, own = loss.raw[0, first : first + n], out[first : first + n]
        if number == reference.MULTICLASS:
            shares_of_rows(loss.raw, first, n, scratch[0], scratch[2], scratch[3:])
            for i in range(n):
                of_class = loss.raw[np.int64(y[first + i]), first + i]
                own[i] = log_of(scratch[2, i]) + scratch[0, i] - of_class
        elif number == reference.COUNTS:
            for i in range(n):
                own[i] = exp_of(raw[i]) - y[first + i] * raw[i]
        elif number == reference.GAMMA:
            for i in range(n):
                own[i] = raw[i] + y[first + i] * exp_of(-raw[i])
        elif number == reference.TWEEDIE:
            below, above = 1.0 - loss.parameter, 2.0 - loss.parameter
            for i in range(n):
                low = y[first + i] * exp_of(below * raw[i])
                own[i] = exp_of(above * raw[i]) / above - low / below
        else:
            log1p_exp(raw, scratch[0, :n], own)
            for i in range(n):
                own[i] -= y[first + i] * raw[i]


@device
def rest_of(x, finer):
    """What rounding leaves of a number, in a finer unit."""
    return np.int64(math.floor((x - math.floor(x + 0.5)) * finer + 0.5))


@kernel
def residual_bits(
    loss: LossOf, rules: TreeRules, rows: I32s, leaves: Leaves, begin: I64, end: I64, out: I64s2,
    scratch: F64s2,
):  # fmt: skip
    """Sums i64[L, 2] as in numpy.py over the rows of the leaves begin .. end - 1; K = 1.

    scratch : f64[7, BLOCK]; a loss with two rows of `raw` has no weights"""
    finer = POWERS[RESIDUAL_BITS - rules.n_bits + 1022]  # `**` would call exp2 of the C library
    scale_g, scale_h = rules.scale[0].g, rules.scale[0].h
    y, raw = scratch[4], scratch[5 : 5 + len(loss.raw)]
    weight = scratch[6, : min(len(loss.weight), BLOCK)]
    block = LossOf(y, weight, raw, BLOCK, 1, loss.number, loss.parameter, loss.delta)
    for leaf in range(begin, end):
        g, h = np.int64(0), np.int64(0)
        for first in range(leaves[leaf].begin, leaves[leaf].end, BLOCK):
            n = min(BLOCK, leaves[leaf].end - first)
            for i in range(n):
                r = rows[first + i]
                y[i] = loss.y[r]
                for k in range(len(raw)):
                    raw[k, i] = loss.raw[k, r]
                if len(weight) > 0:
                    weight[i] = loss.weight[r]
            derive(block, 0, 0, n, scratch)
            for i in range(n):
                g += rest_of(scratch[0, i] * scale_g, finer)
                h += rest_of(scratch[1, i] * scale_h, finer)
        out[leaf, 0], out[leaf, 1] = g, h


@kernel
def cox(
    raw: F64s, top: F64, order: I64s, place: I64s, own: F64s, event: F64s, first: I64s,
    events: F64s, hazards: F64s2, out: F64s2,
):  # fmt: skip
    """Derivatives of `ProportionalHazards` to out f64[2, N].

    raw : f64[N], top the highest
    order .. events : those of `RiskSets`
    hazards : scratch f64[T, 2]"""
    for i in range(len(raw)):
        out[0, i] = max(np.rint(exp_of(raw[i] - top) * own[i]), 1.0)
    for i in range(len(raw)):  # by itself, because then its reads do not wait for the sums
        out[1, i] = out[0, order[i]]
    at_risk, hazard, square = np.int64(0), 0.0, 0.0
    for i in range(len(raw)):
        at_risk += np.int64(out[1, i])
    for t in range(len(events)):
        rate = events[t] / np.float64(at_risk)
        hazard += rate
        square += rate / np.float64(at_risk)
        hazards[t, 0], hazards[t, 1] = hazard, square
        for i in range(first[t], first[t + 1]):
            at_risk -= np.int64(out[1, i])
    for i in range(len(raw)):
        relative = out[0, i]
        g = relative * hazards[place[i], 0]
        out[0, i] = g - event[i]
        out[1, i] = max(g - relative * relative * hazards[place[i], 1], 0.0)
