"""Write a report on a saved model for people: one HTML file, which loads nothing."""

from __future__ import annotations

import argparse
from typing import Any

import gpuforest
from gpuforest.data.values import Reading
from gpuforest.tools.cli.file_options import DATA, add_reading_options, read_for, target_of
from gpuforest.tools.cli.output import writable
from gpuforest.tools.cli.predict import add_runtime_options, choose, load_for, set_runtime
from gpuforest.tools.cli.show import printable, progress_bar, say


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    command.add_argument("model", metavar="MODEL", help="a file that `gpuforest train` wrote")
    command.add_argument("--out", metavar="FILE", required=True, help="the .html file to write")
    command.add_argument(
        "--data", metavar="FILE", help=f"rows that were not in the training, to test with: {DATA}"
    )
    command.add_argument(
        "--target",
        metavar="COLUMN",
        help="the column that the model predicts (default: as in training)",
    )
    command.add_argument(
        "--drop-missing-target", action="store_true", help="leave out rows without a target"
    )
    add_runtime_options(command)
    add_reading_options(command)


def run(arguments: argparse.Namespace) -> None:
    """Load, compute and write."""
    out = writable(arguments.out, arguments.model, arguments.data)
    if out.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--out {out}: a name that ends in .html")
    with progress_bar():
        model = gpuforest.load(arguments.model)
        rows, notes = rows_of(model, arguments)
        set_runtime(model, vars(arguments))
        model.report(*rows, path=out)
    for note in notes:
        say(note)
    print(printable(f"report written to {out}"))


def rows_of(model: Any, arguments: argparse.Namespace) -> tuple[tuple[Any, Any], tuple[str, ...]]:
    """Features and targets of --data, and notes on how they were read."""
    if arguments.data is None:
        given = [n for n in Reading.__dataclass_fields__ if getattr(arguments, n) is not None]
        for name in ("target", "drop_missing_target", *given):
            if getattr(arguments, name):
                option = name.replace("_", "-")
                raise ValueError(f"--{option} is about the rows of a file: add --data FILE")
        return (None, None), ()
    if not hasattr(model, "score"):  # it has no target
        return (choose(model, read_for(model, arguments, []))[0], None), ()
    target = target_of(model, arguments)
    dropping = arguments.drop_missing_target
    table = load_for(model, arguments, target, drop_missing_target=dropping)
    return (table.X, table.y), table.notes
