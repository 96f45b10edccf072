"""Gradients and hessians of a round as integers: the specification.

    raw, y, weight  ->  g, h f64  ->  stats i64[K, N, 2] or i64[K, N, 1]

A row's g and h are multiplied by powers of two and rounded, so that sums over any rows are exact
and free of any order. They share words with a 1 that counts the row:

    two words        g                   h << n_bits | 1
    one word         g << n_bits | 1                          where every hessian is 1

so that one addition adds two numbers. `n_bits` is wide enough for the number of all rows, and the
units leave room for the sums of all rows, so no carry reaches the other number.

The remainder of a rounded number is an integer, too, in a finer unit: 2**(RESIDUAL_BITS - n_bits)
of them are one unit. Leaves of losses with a log link add these up as well, where the hessians of
their rows are so small that the rounded sum has few digits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from gpuforest.common import sums
from gpuforest.common.elementary import exp, expit
from gpuforest.kernels.boosted_tree.records import LossOf, Scales, TreeRules

# the numbers of the losses, see losses.py; those after BINARY have several gradients a row
(
    SQUARED, ABSOLUTE, QUANTILE, HUBER, COUNTS, GAMMA, TWEEDIE, CROSS_ENTROPY, BINARY, MULTICLASS,
) = range(10)  # fmt: skip

MOST_GRADIENT = 1e307  # beyond it a fit diverges; sums of some stay finite
RESIDUAL_BITS = 62  # of sums of what rounding leaves of gradients


def derivatives(loss: Any) -> tuple[np.ndarray, np.ndarray]:
    """Gradients and hessians f64[K, N]."""
    if not isinstance(loss, LossOf):  # Python computes them, see host_losses.py
        found: tuple[np.ndarray, np.ndarray] = loss.derived
        return found
    y, raw, number, one = loss.y, loss.raw, loss.number, np.ones_like(loss.raw)
    if number == SQUARED:
        g, h = raw - y, one
    elif number == ABSOLUTE:
        g, h = np.where(y > raw, -1.0, 1.0), one
    elif number == QUANTILE:
        g, h = np.where(y >= raw, -loss.parameter, 1.0 - loss.parameter), one
    elif number == HUBER:
        g, h = np.minimum(np.maximum(raw - y, -loss.delta), loss.delta), one
    elif number == COUNTS:
        h = exp(raw)
        g = h - y
    elif number == GAMMA:
        h = y * exp(-raw)
        g = 1.0 - h
    elif number == TWEEDIE:
        below, above = 1.0 - loss.parameter, 2.0 - loss.parameter
        low, high = y * exp(below * raw), exp(above * raw)
        g, h = high - low, above * high - below * low
    else:
        if number <= BINARY:
            p, hit = expit(raw), y
        else:
            p = exp(raw - raw.max(axis=0))
            total = np.zeros(raw.shape[1])
            for row in p:  # one class after another: a fixed order
                total = total + row
            p, hit = p / total, y == np.arange(len(raw))[:, None]
        g, h = p - hit, p * (1.0 - p)
    return (g, h) if loss.weight is None else (g * loss.weight, h * loss.weight)


def largest(loss: Any) -> tuple[float, float]:
    """The largest size of a gradient, and of a hessian."""
    known = isinstance(loss, LossOf)
    g, h = sizes(derivatives(loss)) if known else loss.largest
    return g, h


def sizes(found: Iterable[np.ndarray]) -> tuple[float, float]:
    """The largest size of each of two arrays."""
    g, h = (float(np.abs(a).max(initial=0.0)) for a in found)
    return g, h


def power_of_two(bits: int, most: float) -> float:
    """The power of two that brings numbers up to `most` below 2**bits."""
    exponent = math.frexp(most)[1] if most > 0 else 0
    return math.ldexp(1.0, max(-1000, min(bits - exponent, 1000)))


def scales(most_g: float, most_h: float, g_bits: int, h_bits: int, one: bool) -> Scales:
    """Scales that bring gradients and hessians of these sizes to g_bits and h_bits bits. With
    `one`, hessians are 1. Gradients count as of size one: no square overflows."""
    g, h, sum_g = power_of_two(g_bits, most_g), power_of_two(h_bits, most_h), 2.0**-g_bits
    overflows = not max(most_g, most_h) <= MOST_GRADIENT
    return Scales(
        g, h, sum_g, 1.0 if one else 1.0 / h, float(overflows), 1.0 / g, 1.0 / (g * sum_g)
    )


def gradients(loss: LossOf, rules: TreeRules, stats: np.ndarray) -> None:
    """Fill `stats` i64[K, N, 1 or 2]."""
    (g, h), scale = derivatives(loss), rules.scale
    for part in sums.blocks(g.shape[1]):
        whole, out = np.floor(g[:, part] * scale.g + 0.5).astype(np.int64), stats[:, part]
        if stats.shape[2] == 1:
            out[:, :, 0] = (whole << rules.n_bits) + 1
            continue
        out[:, :, 0] = whole
        of_h = np.floor(h[:, part] * scale.h + 0.5).astype(np.int64)
        out[:, :, 1] = (of_h << rules.n_bits) + 1


def residual_bits(loss: LossOf, rules: TreeRules) -> np.ndarray:
    """What rounding leaves of each row's gradient and hessian, i64[K, N, 2]."""
    g, h = derivatives(loss)
    finer = 2.0 ** (RESIDUAL_BITS - rules.n_bits)
    scaled = np.stack([g * rules.scale.g, h * rules.scale.h], axis=2)
    left = scaled - np.floor(scaled + 0.5)
    return np.asarray(np.floor(left * finer + 0.5).astype(np.int64))
