"""Targets become integers: class codes, or fixed-point numbers (core/target.py); so do weights."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from gpuforest.backends.base import Array, Backend
from gpuforest.backends.numpy import HOST
from gpuforest.common.dtypes import LABEL, MAX_TOTAL_WEIGHT, MOMENT, WEIGHT
from gpuforest.common.sums import blocks, total_of
from gpuforest.core.target import MOMENT_BITS, SUM_BITS, Target, TargetCoding, moment_bits

# Scores are squares, in float64. If half of the distinct targets lie within this part of the whole
# range, squares around its middle would leave the gains among them few digits
FAR = 2.0**-16
MOST_SHIFT = 30  # bits by which the steps of earlier targets get wider, at most
# Bits of room above the range of chosen rows. Targets beyond 256 times their range take more room,
# so that all fit; then a row among those farthest out moves the scale
HEADROOM = 8
LOOK_ROWS = 2048  # evenly spaced rows that say whether all targets need to be looked at


def encode_classes(codes: Array, classes: np.ndarray) -> tuple[TargetCoding, Array]:
    """Coding and y i32[N, 1] of class codes [N], indices into `classes`, on the same device."""
    return TargetCoding(classes, np.zeros(1), 1.0), codes.astype(LABEL).reshape(-1, 1)


def encode_several(
    codes: list[Array], classes: list[np.ndarray], backend: Backend
) -> tuple[TargetCoding, Array]:
    """Coding and moments i64[N, K] of several class outputs, from the codes [N] of each."""
    xp = backend.xp
    y = xp.concat(
        [
            xp.astype(column[:, None] == xp.arange(len(c))[None, :], MOMENT)
            for column, c in zip(map(backend.asarray, codes), classes, strict=True)
        ],
        axis=1,
    )
    return TargetCoding(None, np.zeros(y.shape[1]), 1.0, tuple(classes)), y


def encode_moments(
    y: Array, total_weight: int, *, centred: bool = True, backend: Backend = HOST,
    chosen: np.ndarray | None = None,
) -> tuple[TargetCoding, Array]:  # fmt: skip
    """Coding and moments i64[N, K] of targets f64[N, K], on the backend's device or the host.
    Integer weights of a tree's rows sum to `total_weight` at most; `centred` False keeps zero at
    zero, for Poisson deviance. Rows `chosen` i64[n] say what centre and scale are; None: all."""
    xp, host = backend.xp, backend.asnumpy
    whole = host(xp.min(y, axis=0)), host(xp.max(y, axis=0))
    look, (low, high) = y, whole
    if chosen is not None:
        look = xp.take(y, backend.asarray(chosen), axis=0)
        low, high = host(xp.min(look, axis=0)), host(xp.max(look, axis=0))
    centre = np.zeros(y.shape[1])
    if centred:
        middle, half = low / 2 + high / 2, high / 2 - low / 2
        near, width = typical_ranges(look, half * FAR, backend)
        far_out = width < half * FAR
        middle, half = np.where(far_out, near, middle), np.where(far_out, width, half)
        # a round number near the middle, so that whole-number targets stay exact
        power = np.ceil(np.log2(np.where(half > 0, half, 1.0))) - 10
        grid = np.exp2(np.maximum(power, -1074))  # the least number above zero
        middle = np.where(half > 0, middle, 0.0)
        centre = np.where(half > 0, np.round(middle / grid) * grid, low)
    # 2**exponent > bound, of the least and the greatest target
    exponents = [
        int(np.frexp(bound)[1])
        for a, b in ((low, high), whole)
        if (bound := float(np.max(np.maximum(b - centre, centre - a)))) > 0
    ]
    scale = 1.0
    if exponents:
        exponent = max(exponents[-1], exponents[0] + HEADROOM * (chosen is not None))
        # a power below 2**-1000 would have no inverse
        scale = float(np.exp2(min(moment_bits(total_weight) - exponent, 1000)))
    moments = xp.astype(xp.round((y - backend.asarray(centre)) * scale), MOMENT)
    return TargetCoding(None, centre, scale), moments


def on_grid(
    coding: TargetCoding, y: np.ndarray, most_weight: int, held: float = 0.0
) -> tuple[TargetCoding, np.ndarray]:
    """A coding of numbers and the moments i64[N, K] of other targets f64[N, K] in it. Its steps are
    a power of two wider where the sums of rows of this total weight would overflow, or `held`: what
    sums have already. A ValueError if the steps would be too wide for the earlier targets."""
    with np.errstate(over="ignore"):
        most = float(np.abs(np.round((y - coding.centre) * coding.scale)).max(initial=0.0))
        total = most * most_weight + held
    shift = max(math.frexp(most)[1] - MOMENT_BITS - 1, math.frexp(total)[1] - SUM_BITS, 0)
    scale = coding.scale * 2.0**-shift
    if shift > MOST_SHIFT or not math.isfinite(total):
        raise ValueError(
            f"the forest holds targets in steps of {1 / coding.scale:.3g}, and y has numbers too "
            "far away for these: fit anew"
        )
    coding = replace(coding, scale=scale) if shift else coding
    return coding, np.round((y - coding.centre) * scale).astype(MOMENT)


def typical_ranges(y: Array, limits: np.ndarray, backend: Backend) -> tuple[np.ndarray, np.ndarray]:
    """Middle and width f64[K] of the narrowest range with half of the distinct values of each
    column of y f64[N, K]. All rows are read only if the sample's range is narrow compared
    with the limits f64[K]."""
    host = backend.asnumpy
    sample = host(y[:: -(-y.shape[0] // LOOK_ROWS), ...])
    middle, width = np.zeros((2, y.shape[1]))
    for k in range(y.shape[1]):
        middle[k], width[k] = _narrowest_half(sample[:, k])
        if width[k] < 64 * limits[k]:
            middle[k], width[k] = _narrowest_half(host(y[:, k]))
    return middle, width


def _narrowest_half(values: np.ndarray) -> tuple[float, float]:
    """The middle and the width of the narrowest range that holds half of the distinct values."""
    values = np.unique(values)
    n = len(values) // 2
    spans = values[n:] - values[: len(values) - n]
    i = int(np.argmin(spans))
    return float(values[i] + spans[i] / 2), float(spans[i])


def integer_weights(weights: np.ndarray, most: int = MAX_TOTAL_WEIGHT) -> np.ndarray:
    """User weights f64[N] >= 0 as integers i32[N]; whole numbers are kept. Other weights are scaled
    by a power of two to a total of at most `most`, and positive ones stay positive. Negative,
    not finite or all-zero weights are a ValueError: kernels would not end, or write anywhere."""
    total = total_of(weights)
    if total == math.inf:
        raise ValueError("the weights of the rows add up to infinity: divide them by the largest")
    if not total > 0 or weights.min() < 0:
        raise ValueError("the weights of the rows must be numbers >= 0, and not all zero")
    parts = [weights[rows] for rows in blocks(len(weights))]
    if total <= most and all(np.array_equal(part, np.round(part)) for part in parts):
        return weights.astype(WEIGHT)
    # rounding adds at most one a row to a total of less than half
    bits = int(most).bit_length() - 1 - math.frexp(total)[1]
    whole = np.empty(len(weights), WEIGHT)
    for rows, part in zip(blocks(len(weights)), parts, strict=True):
        whole[rows] = np.where(part > 0, np.maximum(np.round(np.ldexp(part, bits)), 1), 0)
    return whole


def placed(coding: TargetCoding, y: Array, backend: Backend) -> Target:
    """A target of y, made row-major on the backend: kernels read y[row * K + output]."""
    y, xp = backend.asarray(y), backend.xp
    flat = xp.reshape(y, (-1,))  # row by row; a copy only of another layout
    return Target(coding, xp.reshape(flat, y.shape))
