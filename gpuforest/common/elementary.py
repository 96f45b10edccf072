"""Exponentials and logarithms by IEEE operations, equal on every machine to the last bit.

Functions of libraries differ in the last bit from machine to machine, and models would, too.
Compiled kernels implement the same formulas.
"""

from __future__ import annotations

import math

import numpy as np

# ln 2 in two parts: products of the first with a whole number below 2**11 are exact
LN2_HIGH, LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
LOG2_E = 1.4426950408889634
# 1 / i!: for |x| <= ln(2) / 2 the first term left out is below 2**-56
FACTORIALS = tuple(1.0 / math.factorial(i) for i in range(14))
MOST = 708.0  # exp(708) is finite, and exp(-708) has full precision
SQRT2 = 1.4142135623730951
# 2 / (2 i + 1), the series of 2 atanh(t): for |t| < 0.172 its last term is below 1 ulp
ATANH = tuple(2.0 / (2 * i + 1) for i in range(10))
ODD = tuple(2.0 / (2 * i + 1) for i in range(18))  # the same, for |t| <= 1 / 3


def exp(x: np.ndarray) -> np.ndarray:
    """The exponentials of f64[...], whose parts beyond -708 and 708 count as these."""
    x = np.minimum(np.maximum(x, -MOST), MOST)
    k = np.floor(x * LOG2_E + 0.5)
    rest = (x - k * LN2_HIGH) - k * LN2_LOW
    return np.asarray(np.ldexp(np.polyval(FACTORIALS[::-1], rest), k.astype(np.int32)))


def log(x: np.ndarray) -> np.ndarray:
    """The natural logarithms of f64[...] > 0."""
    m, e = np.frexp(x)
    low = m * SQRT2 < 1.0
    m, e = np.where(low, 2.0 * m, m), e - low
    t = (m - 1.0) / (m + 1.0)
    k = e.astype(np.float64)
    return np.asarray(k * LN2_HIGH + (t * np.polyval(ATANH[::-1], t * t) + k * LN2_LOW))


def log1p_exp(x: np.ndarray) -> np.ndarray:
    """ln(1 + exp(x)) of f64[...]."""
    small = exp(-np.abs(x))
    # ln(1 + u) by the series of atanh(u / (2 + u)) is exact for small u as well
    t = small / (2.0 + small)
    series = np.polyval(ODD[::-1], t * t)
    return np.asarray(np.maximum(x, 0.0) + t * series)


def expit(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)) of f64[...]."""
    return np.asarray(1.0 / (1.0 + exp(-x)))
