"""Words that threads share, in compiled kernels. As Python functions they serve one thread."""

from __future__ import annotations

from typing import Any


def load(array: Any, i: Any) -> Any:
    """array[i], and all that its writer wrote before it."""
    return array[i]


def store(array: Any, i: Any, value: Any) -> None:
    """Write array[i], after all that was written before."""
    array[i] = value


def add(array: Any, i: Any, value: Any) -> Any:
    """Add to array[i], and return what it was."""
    before = array[i]
    array[i] += value
    return before


def pause() -> None:
    """Tell the processor that this thread waits for another one."""
