"""Threads over work that releases the GIL (NumPy's sorts, compiled kernels).

Each call makes its threads, so nothing survives a fork. They are daemons, so that an interrupt
drops work that has not begun: concurrent.futures would do it before the interpreter exits.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError
from contextvars import copy_context
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import numpy as np

CAN_MOVE = hasattr(os, "sched_setaffinity") and hasattr(ctypes.pythonapi, "sched_getcpu")

T = TypeVar("T")
R = TypeVar("R")

logger = logging.getLogger("gpuforest")
_warned: set[str] = set()  # the warnings that this process has given

_thread = threading.local()  # .stopped: set when the result of a pool's thread is not wanted


def check_wanted() -> None:
    """Raise CancelledError on a pool's thread whose result is no longer awaited."""
    stopped = getattr(_thread, "stopped", None)
    if stopped is not None and stopped.is_set():
        raise CancelledError


def start(work: Callable[[int], None], n: int) -> int:
    """Start daemons that call work(0), ..., work(n - 1) in the caller's context; returns their
    number, lower (and logged once) where the system starts no more."""
    for i in range(n):
        try:
            threading.Thread(target=copy_context().run, args=(work, i), daemon=True).start()
        except RuntimeError as error:
            if "threads" not in _warned:
                _warned.add("threads")
                what = "going on with fewer threads: lower n_jobs, or allow this process more"
                logger.warning("%s, %s", error, what)
            return i
    return n


def parallel_map(
    function: Callable[[T], R], items: Iterable[T], n_threads: int,
    done: Callable[[int], None] | None = None,
) -> list[R]:  # fmt: skip
    """`[function(item) for item in items]` on up to `n_threads` threads. `done` is called on the
    caller's thread with the number of finished items."""
    items = list(items)
    wanted = min(n_threads, len(items))
    team = Team(1 + wanted) if wanted > 1 else None
    results: list[Any] = []
    if team is None or team.n_threads == 1:
        for item in items:
            check_wanted()
            results.append(function(item))
            if done is not None:
                done(len(results))
        return results

    def work(i: int) -> None:
        _thread.stopped = stopped
        if not stopped.is_set():
            results[i] = function(items[i])

    results, stopped = [None] * len(items), threading.Event()
    try:
        ended = team.begin(work, len(items), helps=False)
        for n in range(1, len(items) + 1):
            if (error := ended.get()) is not None:
                raise error
            if done is not None:
                done(n)
        return results
    finally:
        # after an exception, an interrupt too, what has not begun is dropped and what has
        # is not waited for: it writes to arrays that are never read
        stopped.set()
        team.close()


class Team:
    """Threads that wait for work between calls, because starting them costs as much as their work.
    The caller works too; they are fewer where the system starts no more."""

    def __init__(self, n_threads: int) -> None:
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self.n_threads = n_threads
        try:
            self.n_threads = 1 + start(partial(_serve, self._tasks), n_threads - 1)
        except BaseException:  # an interrupt: threads that have started must not wait for ever
            self.close()
            raise

    def run(self, function: Callable[[int], Any], n: int) -> None:
        """Call function(0), ..., function(n - 1); an error drops later calls, and is raised."""
        if n == 1:  # no other thread is woken for it
            function(0)
            return
        errors: list[BaseException] = []

        def unless_failed(i: int) -> None:
            try:
                if not errors:
                    function(i)
            except BaseException as error:  # an interrupt too
                errors.append(error)

        done = self.begin(unless_failed, n)
        with contextlib.suppress(Empty):
            while (task := self._tasks.get_nowait()) is not None:
                _work(task)
        for _ in range(n):
            done.get()
        if errors:
            raise errors[0]

    def begin(
        self, function: Callable[[int], Any], n: int, helps: bool = True
    ) -> SimpleQueue[BaseException | None]:
        """Have other threads call function(0), ..., function(n - 1), and do not wait. The queue
        gets an error or None for each call that has ended. Where the caller `helps`, the others
        leave its processor."""
        done: SimpleQueue[BaseException | None] = SimpleQueue()
        for i in range(n):
            self._tasks.put((function, i, done, processor() if helps else -1))
        return done

    @property
    def has_tasks(self) -> bool:
        """Whether there is work that no thread has begun."""
        return not self._tasks.empty()

    def close(self) -> None:
        """End the threads."""
        for _ in range(self.n_threads - 1):
            self._tasks.put(None)


# a function, its argument, where its result goes, and the processor of who asks for it
Task = tuple[Callable[[int], Any], int, "SimpleQueue[BaseException | None]", int]


def _serve(tasks: SimpleQueue[Task | None], i: int) -> None:
    while (task := tasks.get()) is not None:
        leave(task[3], i)
        _work(task)
        del task  # it may hold a whole fit


def _work(task: Task) -> None:
    function, i, done, _ = task
    try:
        function(i)
        done.put(None)
    except BaseException as error:
        done.put(error)


def processor() -> int:
    """The number of the processor that this thread is on; -1 where the system does not say."""
    return int(ctypes.pythonapi.sched_getcpu()) if CAN_MOVE else -1


def leave(busy: int, i: int) -> None:
    """Move this thread, the i-th of several, to a processor other than the busy one. Linux often
    wakes a thread on the processor that wakes it, although another one is idle."""
    if busy < 0 or processor() != busy:
        return
    allowed = os.sched_getaffinity(0)
    if others := sorted(allowed - {busy}):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {others[i % len(others)]})
            os.sched_setaffinity(0, allowed)  # it is there now, and may be moved again


def cut_pieces(n_slots: int, n_features: int, n_threads: int) -> np.ndarray:
    """Pieces (slot, first feature, last) i64[p, 3], so that one slot gives work to all threads."""
    size = -(-n_features // (2 * n_threads)) if 2 * n_threads > n_slots else n_features
    ends = [(j, min(j + size, n_features)) for j in range(0, n_features, size)]
    return np.array([(s, *end) for s in range(n_slots) for end in ends])


def blocks(n: int, n_tasks: int, most: int, least: int = 1) -> list[slice]:
    """Blocks of `least` to `most` of n things, about one for each wanted task."""
    size = max(least, min(most, -(-n // n_tasks)))
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]


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
