"""Threads over work that releases the GIL (NumPy's sorts, compiled kernels).

A plain pool made for each call: nothing survives a fork, several callers may run at
once, work is handed out as threads become free, and an interrupt drops what has not
begun, also of the calls inside a call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from typing import TypeVar

import numpy as np

T = TypeVar("T")
R = TypeVar("R")

_thread = threading.local()  # .stopped: set when the result of a pool's thread is not wanted


def check_wanted() -> None:
    """Raise CancelledError on a pool's thread whose result nobody waits for any more."""
    stopped = getattr(_thread, "stopped", None)
    if stopped is not None and stopped.is_set():
        raise CancelledError


def parallel_map(
    function: Callable[[T], R],
    items: Iterable[T],
    n_threads: int,
    done: Callable[[int], None] = lambda n: None,
) -> list[R]:
    """`[function(item) for item in items]` on up to `n_threads` threads.

    `done` is told, on the caller's thread, how many are.
    """
    items, results = list(items), []
    if n_threads <= 1 or len(items) <= 1:
        for item in items:
            check_wanted()
            results.append(function(item))
            done(len(results))
        return results

    stopped = threading.Event()

    def in_pool(item: T) -> R:
        _thread.stopped = stopped
        return function(item)

    pool = ThreadPoolExecutor(min(n_threads, len(items)))
    try:
        futures = [pool.submit(in_pool, item) for item in items]
        for n, future in enumerate(as_completed(futures), 1):
            future.result()  # raises what was raised there
            done(n)
        return [future.result() for future in futures]
    finally:
        # after an exception, an interrupt too, what has not begun is dropped and what has
        # is not waited for: it writes to arrays that nobody will read
        stopped.set()
        pool.shutdown(wait=False, cancel_futures=True)


def cut_evenly(sizes: np.ndarray, most: int) -> list[slice]:
    """Consecutive slices of items whose sizes add up to `most`, or of one item."""
    total = np.cumsum(sizes)
    slices, first = [], 0
    while first < len(sizes):
        before = total[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(total, before + most, side="right")))
        slices.append(slice(first, last))
        first = last
    return slices
