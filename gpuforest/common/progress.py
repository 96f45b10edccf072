"""Reports of progress from stages to a listener, such as the command line.

A context variable holds the listener: reports cost nothing without one, and no signature has it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TypeVar

Listener = Callable[[str, int, int], None]  # of stage, done, total
Note = Callable[[], str]
T = TypeVar("T")
PAUSE = 1.0  # seconds between lines of a stage

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_stage: ContextVar[str] = ContextVar("stage", default="")
_seconds: ContextVar[dict[str, float] | None] = ContextVar("seconds", default=None)
_before: ContextVar[tuple[int, int] | None] = ContextVar("before", default=None)
_lines: ContextVar[Lines | None] = ContextVar("lines", default=None)


class Lines:
    """Prints stages with their seconds, notes once a second, from verbose=2 on counts too."""

    def __init__(self, verbose: int) -> None:
        self.counts, self.pause = verbose > 1, PAUSE / 10 if verbose > 1 else PAUSE
        self.around = _stage.get()  # what is printed is within it
        self.begin()

    def begin(self) -> None:
        """A stage begins."""
        self.begun = self.shown = time.perf_counter()
        self.waiting: Note | None = None  # the last text, if it was not printed

    def report(self, name: str, done: int, total: int, note: Note | None) -> None:
        """Print how far the stage is, or keep it for later."""
        if note is None and not self.counts:
            return
        now, self.waiting = time.perf_counter(), note or (lambda: f"{name}, {done} of {total}")
        if now - self.shown >= self.pause:
            left = (now - self.begun) / done * (total - done)
            self.print_waiting(f", {left:.1f} s left" if left > 0 else "")
            self.shown = now

    def print_waiting(self, end: str = "") -> None:
        """Print the last text, if there is one."""
        if self.waiting is not None:
            print(f"gpuforest: {self.waiting()}{end}", flush=True)
        self.waiting = None

    def end(self, name: str) -> None:
        """The stage has ended."""
        self.print_waiting()
        print(f"gpuforest: {name}, {time.perf_counter() - self.begun:.2f} s", flush=True)


@contextmanager
def listening(listener: Listener | None = None) -> Iterator[dict[str, float]]:
    """Send reports to `listener`, and give a dict that fills with seconds by stage."""
    seconds: dict[str, float] = {}
    with _with(_seconds, seconds), heard_by(listener):
        yield seconds


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Name the work inside and time it for the listener; a stage within a stage is a part of it."""
    lines = _lines.get()
    if lines is not None and _stage.get() != lines.around:
        lines = None
    token, start = _stage.set(name), time.perf_counter()
    try:
        if lines is not None:
            lines.begin()
        if _listener.get() is not None:
            report(0, 1)
        yield
    finally:
        _stage.reset(token)
        if (seconds := _seconds.get()) is not None:
            seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - start
    if lines is not None:
        lines.end(name)


def report(done: int, total: int, note: Note | None = None) -> None:
    """Report how far the current stage is; `note` makes the text to print instead of the counts."""
    if (before := _before.get()) is not None:
        done, total = before[0] + done, before[1]
    if (listener := _listener.get()) is not None:
        listener(_stage.get(), done, total)
    if done and (lines := _lines.get()) is not None:
        lines.report(_stage.get(), done, total, note)


def also(listener: Listener) -> AbstractContextManager[None]:
    """Send reports to one listener more."""
    before = _listener.get()

    def both(stage: str, done: int, total: int) -> None:
        for each in filter(None, (before, listener)):
            each(stage, done, total)

    return heard_by(both)


@contextmanager
def _with(variable: ContextVar[T], value: T) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def heard_by(listener: Listener | None) -> AbstractContextManager[None]:
    """Send the reports inside to this listener alone."""
    return _with(_listener, listener)


def counting_on(done: int, total: int) -> AbstractContextManager[None]:
    """Reports inside are of what comes after `done`, of a total."""
    return _with(_before, (done, total))


def printing(verbose: int) -> AbstractContextManager[None]:
    """Print the stages inside, see `Lines`; verbose=0: nothing."""
    return _with(_lines, Lines(verbose)) if verbose else nullcontext()


@contextmanager
def progress_bar() -> Iterator[dict[str, float]]:
    """A bar for each stage on stderr if it is a terminal; gives the seconds by stage."""
    if not sys.stderr.isatty():
        with listening() as seconds:
            yield seconds
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}{task.fields[count]}"),
        BarColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, TaskID] = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                for task in tasks.values():  # stages follow one another
                    bar.update(task, total=1, completed=1)
                    bar.stop_task(task)
                tasks[stage] = bar.add_task(stage, total=None, count="")
            # a stage that never counts has a bar that only moves
            counts = {"total": total, "count": f": {done} of {total}"} if done else {"total": None}
            bar.update(tasks[stage], completed=done, **counts)

        with listening(show) as seconds:
            yield seconds


def is_heard() -> bool:
    """Whether somebody listens to reports."""
    return _listener.get() is not None
