"""Threads over work that releases the GIL (NumPy's sorts, compiled kernels).

A plain pool made for each call: nothing survives a fork, several callers may run at
once, work is handed out as threads become free, and an interrupt drops what has not
begun.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def parallel_map(function: Callable[[T], R], items: Iterable[T], n_threads: int) -> list[R]:
    """`[function(item) for item in items]` on up to `n_threads` threads."""
    items = list(items)
    if n_threads <= 1 or len(items) <= 1:
        return [function(item) for item in items]
    pool = ThreadPoolExecutor(min(n_threads, len(items)))
    try:
        futures = [pool.submit(function, item) for item in items]
        wait(futures, return_when=FIRST_EXCEPTION)
        return [future.result() for future in futures]
    finally:
        # after an exception, an interrupt too, what has not begun is dropped and what has
        # is not waited for: it writes to arrays that nobody will read
        pool.shutdown(wait=False, cancel_futures=True)
