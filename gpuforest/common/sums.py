"""Work on many numbers in blocks, which take little memory and stay in a cache."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

BLOCK = 2**14


def blocks(n: int) -> Iterator[slice]:
    """Slices that cover n numbers."""
    return (slice(i, i + BLOCK) for i in range(0, n, BLOCK))


def exact_sum(parts: Iterable[np.ndarray]) -> float:
    """The sum of all numbers, rounded once, free of any order; OverflowError beyond float64."""
    # a list is summed several times as fast as an array
    return math.fsum(chain.from_iterable(part.tolist() for part in parts))


def total_of(numbers: np.ndarray) -> float:
    """The sum of numbers f64[N] >= 0, rounded once; infinity if it is too large for a float64."""
    try:
        return exact_sum(numbers[rows] for rows in blocks(len(numbers)))
    except OverflowError:
        return math.inf


def near_one(weight: np.ndarray) -> np.ndarray:
    """Weights f64[N] times a power of two, the largest in 0.5 .. 1, to avoid overflow."""
    return np.asarray(np.ldexp(weight, -int(np.frexp(float(weight.max()))[1])))
