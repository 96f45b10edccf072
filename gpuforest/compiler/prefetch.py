"""A hint to the processor, which Numba lacks: memory that will be read soon."""

from typing import Any


def prefetch(array: Any, index: Any) -> None:
    """Fetch the contiguous array's item at this flat index into cache, without waiting.

    As a Python function it does nothing; compile.py has its code.
    """
