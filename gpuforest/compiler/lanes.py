"""Four float64 numbers at once, which compiled kernels work on as one vector.

LLVM does not make such vectors by itself of loops over parts of one array, because it cannot know
whether these overlap.

In Python four numbers are a NumPy array; compile.py has the code of kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

LANES = 4


def load(array: Any, i: Any) -> Any:
    """The numbers array[i:i + 4] of an f64 array; they can be added, multiplied and divided."""
    return array[int(i) : int(i) + LANES].copy()


def store(array: Any, i: Any, four: Any) -> None:
    """Write the numbers to array[i:i + 4]."""
    array[int(i) : int(i) + LANES] = four


def four_of(value: Any) -> Any:
    """The same number four times."""
    return np.full(LANES, value)


def total(four: Any) -> Any:
    """The sum of the numbers, in a fixed order."""
    return (four[0] + four[1]) + (four[2] + four[3])
