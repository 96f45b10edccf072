"""Gradients and hessians of a round as integers: the specification.

    raw, y, weight  ->  g, h f64  ->  stats i64[K, N, 2] or i64[K, N, 1]

A row's g and h are multiplied by powers of two and rounded, so that sums over any rows are exact
and free of any order. They share words with a 1 that counts the row:

    two words        g                   h << n_bits | 1
    one word         g << n_bits | 1                          where every hessian is 1

so that one addition adds two numbers. `n_bits` is wide enough for the number of all rows, and the
units leave room for the sums of all rows, so no carry reaches the other number.

What rounding leaves of a number is a whole number as well, of a finer unit: 2**(REST_BITS - n_bits)
of it are one of the first. Leaves of losses with a log link add these up too, where hessians of
their rows are so much smaller than the largest that few digits of them are in the first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpuforest.common.elementary import exp, expit
from gpuforest.compiler import types

# the numbers of the losses, see boosting/losses.py; those after BINARY have several gradients a row
SQUARED, ABSOLUTE, QUANTILE, HUBER, COUNTS, GAMMA, BINARY, MULTICLASS = range(8)

MOST_STEP, MOST_GRADIENT = 1e304, 1e307  # beyond these a fit diverges; sums of some stay finite
REST_BITS = 62  # of sums of what rounding leaves of gradients


class LossNumbers(NamedTuple):
    """A loss as kernels take it.

    number : int, one of the above
    quantile : float, of the loss "quantile"
    delta : float, the largest residual that is not clipped, of a loss that clips them
    """

    number: types.I64
    quantile: types.F64
    delta: types.F64


class Units(NamedTuple):
    """How numbers become integers.

    g, h : float, powers of two by which gradients and hessians are multiplied
    n_bits : int, the bits of a word that count rows
    """

    g: types.F64
    h: types.F64
    n_bits: types.I64


def derivatives(
    loss: LossNumbers, y: np.ndarray, raw: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Gradients and hessians f64[K, N]; y f64[N] holds numbers or class codes, raw is f64[K, N],
    weight f64[N], or f64[0]: all weights are one."""
    number, one = loss.number, np.ones_like(raw)
    if number == SQUARED:
        g, h = raw - y, one
    elif number == ABSOLUTE:
        g, h = np.where(y > raw, -1.0, 1.0), one
    elif number == QUANTILE:
        g, h = np.where(y >= raw, -loss.quantile, 1.0 - loss.quantile), one
    elif number == HUBER:
        g, h = np.minimum(np.maximum(raw - y, -loss.delta), loss.delta), one
    elif number == COUNTS:
        h = exp(raw)
        g = h - y
    elif number == GAMMA:
        h = y * exp(-raw)
        g = 1.0 - h
    else:
        if number == BINARY:
            p, hit = expit(raw), y == 1.0
        else:
            p = exp(raw - raw.max(axis=0))
            total = np.zeros(raw.shape[1])
            for row in p:  # one class after another: a fixed order
                total = total + row
            p, hit = p / total, y == np.arange(len(raw))[:, None]
        g, h = p - hit, p * (1.0 - p)
    return (g * weight, h * weight) if len(weight) else (g, h)


def largest(
    loss: LossNumbers, y: np.ndarray, raw: np.ndarray, weight: np.ndarray
) -> tuple[float, float]:
    """The largest size of a gradient, and of a hessian."""
    g, h = (float(np.abs(a).max(initial=0.0)) for a in derivatives(loss, y, raw, weight))
    return g, h


def gradients(
    loss: LossNumbers,
    y: np.ndarray,
    raw: np.ndarray,
    weight: np.ndarray,
    units: Units,
    stats: np.ndarray,
) -> None:
    """Fill `stats` i64[K, N, 1 or 2]."""
    g, h = derivatives(loss, y, raw, weight)
    whole = np.floor(g * units.g + 0.5).astype(np.int64)
    if stats.shape[2] == 1:
        stats[:, :, 0] = (whole << units.n_bits) + 1
        return
    stats[:, :, 0] = whole
    stats[:, :, 1] = (np.floor(h * units.h + 0.5).astype(np.int64) << units.n_bits) + 1


def rests(
    loss: LossNumbers, y: np.ndarray, raw: np.ndarray, weight: np.ndarray, units: Units
) -> np.ndarray:
    """What rounding leaves of each row's gradient and hessian, i64[K, N, 2]."""
    g, h = derivatives(loss, y, raw, weight)
    finer = 2.0 ** (REST_BITS - units.n_bits)
    scaled = np.stack([g * units.g, h * units.h], axis=2)
    left = scaled - np.floor(scaled + 0.5)
    return np.asarray(np.floor(left * finer + 0.5).astype(np.int64))
