"""Reports of progress: a stage sends them, and a listener (the command line) may show them.

The listener is held in a context variable, so that reports cost nothing without one, and no
signature has to pass it on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

# (stage, done, total)
Listener = Callable[[str, int, int], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_stage: ContextVar[str] = ContextVar("stage", default="")
_seconds: ContextVar[dict[str, float] | None] = ContextVar("seconds", default=None)


@contextmanager
def heard_by(listener: Listener | None) -> Iterator[None]:
    """Send the reports inside to this listener alone."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def listening(listener: Listener | None = None) -> Iterator[dict[str, float]]:
    """Send reports to `listener`, and give a dict that fills with seconds by stage."""
    seconds: dict[str, float] = {}
    token = _seconds.set(seconds)
    try:
        with heard_by(listener):
            yield seconds
    finally:
        _seconds.reset(token)


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Name the work inside, and measure its time for the listener."""
    token, start = _stage.set(name), time.perf_counter()
    try:
        report(0, 1)
        yield
    finally:
        _stage.reset(token)
        if (seconds := _seconds.get()) is not None:
            seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - start


def report(done: int, total: int) -> None:
    """Report how far the current stage is."""
    if (listener := _listener.get()) is not None:
        listener(_stage.get(), done, total)


def also(listener: Listener) -> AbstractContextManager[None]:
    """Send reports to one listener more."""
    before = _listener.get()

    def both(stage: str, done: int, total: int) -> None:
        if before is not None:
            before(stage, done, total)
        listener(stage, done, total)

    return heard_by(both)


def counting_on(done: int, total: int) -> AbstractContextManager[None]:
    """Reports inside are of what comes after `done`, of a total."""
    before = _listener.get()
    if before is None:
        return nullcontext()
    return heard_by(lambda stage, n, _: before(stage, done + n, total))


def printing(verbose: int) -> AbstractContextManager[None]:
    """Print each stage as it begins, and from verbose=2 on how far it is; 0: nothing."""
    if not verbose:
        return nullcontext()

    def show(stage: str, done: int, total: int) -> None:
        if done == 0:
            print(f"gpuforest: {stage}", flush=True)
        elif verbose > 1:
            print(f"gpuforest: {stage}, {done} of {total}", flush=True)

    return also(show)
