"""What kernels do that Python has no word for, for one thread; lowering.py compiles it."""

from __future__ import annotations

from typing import Any

import numpy as np

LANES = 4  # float64 numbers at once, which kernels work on as one vector; in Python a NumPy array


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


def add_pair(cells: Any, at: Any, stats: Any, i: Any) -> None:
    """Add stats[i], stats[i + 1] to cells[at], cells[at + 1], i64[...], as one vector."""
    cells[at] += stats[i]
    cells[int(at) + 1] += stats[int(i) + 1]


def load_shared(array: Any, i: Any) -> Any:
    """array[i], which threads share, and all that its writer wrote before it."""
    return array[i]


def store_shared(array: Any, i: Any, value: Any) -> None:
    """Write array[i], after all that was written before."""
    array[i] = value


def add_shared(array: Any, i: Any, value: Any) -> Any:
    """Add to array[i], and return what it was."""
    before = array[i]
    array[i] += value
    return before


def pause() -> None:
    """Tell the processor that this thread waits for another one."""


def prefetch(array: Any, index: Any) -> None:
    """Fetch the contiguous array's item at this flat index into the cache, without waiting."""


def times(a: Any, b: Any) -> Any:
    """A product rounded before a sum, as the reference's; replaced on GPUs, where Numba fuses."""
    return a * b
