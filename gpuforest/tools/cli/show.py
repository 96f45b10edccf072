"""Messages of the commands: progress while they work, and a summary at the end."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from gpuforest.common.progress import listening

# control characters, and those that change the direction of text
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Text whose characters steer no terminal: an escape is shown as \\x1b."""
    return UNPRINTABLE.sub(lambda found: ascii(found[0])[1:-1], text)


def say(message: str) -> None:
    """Print one line on stderr."""
    print("gpuforest:", printable(" ".join(message.split())), file=sys.stderr)


@contextmanager
def progress_bar() -> Iterator[dict[str, float]]:
    """A bar for each stage on stderr if it is a terminal; gives the seconds by stage."""
    if not sys.stderr.isatty():
        with listening() as seconds:
            yield seconds
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, TaskID] = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                for task in tasks.values():  # stages follow one another
                    bar.update(task, total=1, completed=1)
                    bar.stop_task(task)
                tasks[stage] = bar.add_task(stage, total=None)
            # a stage that never counts has a bar that only moves
            bar.update(tasks[stage], completed=done, total=total if done else None)

        with listening(show) as seconds:
            yield seconds


def print_rows(rows: list[tuple[str, str]], title: str) -> None:
    """Names and values on stdout: a table on a terminal, aligned text elsewhere."""
    rows = [(name, printable(" ".join(value.split("\n")))) for name, value in rows]
    if not sys.stdout.isatty():
        width = max(len(name) for name, _ in rows)
        for name, value in rows:
            print(f"{name:<{width}}  {value}")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, show_header=False)
    for name, value in rows:
        table.add_row(Text(name), Text(value))  # Text: brackets in names are no markup
    Console().print(table)
