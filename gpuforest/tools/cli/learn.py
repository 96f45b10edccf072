"""`refit`, `delete` and `merge`: saved models take new rows, forget rows, or join each other."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import gpuforest
from gpuforest.common.progress import progress_bar, stage
from gpuforest.data.frames import Table
from gpuforest.tools.cli import files, options, output, train

ROWS = f"""\
--out MODEL!  the model file to write
--target COLUMN  the column to predict (default: as in training)
--weight COLUMN  the column of sample weights (default of delete: as in training with --proof)
{options.DROP_MISSING}"""
REFIT = """\
--add  add the rows to those that the leaves have, in place of filling them anew
--decay-rate RATE  the part of the old value of a leaf in the new one, from 0 to 1 (default: 0)"""
DELETE = "--rows IDS!  ids of rows separated by commas, or a file with one on each line; without \
other ids they are the numbers of the rows, the first is 0"
MERGE = "OTHER  another model file, whose trees come after those of MODEL"


def run_refit(arguments: argparse.Namespace) -> None:
    """Load, fill the leaves with the rows of a file, and save."""
    rate, adds = arguments.decay_rate, arguments.add
    if adds and rate is not None:
        raise ValueError("--decay-rate is for leaves that are filled anew: leave out --add")
    out = output.writable(arguments.out, arguments.model, arguments.data)
    with progress_bar():
        names = ["add_rows"] if adds else ["refit_leaves", "refit"]  # of boosting, and of trees
        model, table = read(arguments, *names)
        method = next(m for name in names if callable(m := getattr(model, name, None)))
        with stage("filling leaves"):
            method(table.X, table.y, table.weight, **{} if adds else {"decay_rate": rate or 0.0})
        source: dict[str, Any] = getattr(model, "source_", {})
        keep(model, table, source, source.get("row_hashes", []) if adds else [], out)
    output.done(f"{len(table.y):,} rows {'added' if adds else 'taken'}; written to", out)


def run_delete(arguments: argparse.Namespace) -> None:
    """Load, make the forest that a fit without some rows gives, and save."""
    out = output.writable(arguments.out, arguments.model, arguments.data)
    path, text = Path(arguments.rows), arguments.rows
    try:
        gone = [
            int(word) for word in (path.read_text().split() if path.is_file() else text.split(","))
        ]
    except ValueError as error:
        raise ValueError(
            f"--rows {text} is no list of integers: give ids separated by commas, or a file that "
            "has one on each line"
        ) from error
    with progress_bar():
        model, table = read(arguments, "delete")
        source: dict[str, Any] = getattr(model, "source_", {})
        before = np.arange(len(table.y)) if model.row_ids_ is None else model.row_ids_
        with stage("growing"):
            model.delete(gone, table.X, table.y, table.weight)
        keep(model, table.take(np.flatnonzero(~np.isin(before, gone))), source, [], out)
    output.done(f"{len(gone):,} rows deleted; written to", out)


def run_merge(arguments: argparse.Namespace) -> None:
    """Load two forests, and save one of the trees of both."""
    out = output.writable(arguments.out, arguments.model, arguments.other)
    first, second = (gpuforest.load(path) for path in (arguments.model, arguments.other))
    if type(first) is not type(second) or not hasattr(first, "keep_trees"):
        names = f"{type(first).__name__} and a {type(second).__name__}"
        raise ValueError(f"a {names} have no common trees: merge two forests of one kind")
    merged = first + second
    train.save(merged, out)
    output.done(f"{len(merged):,} trees written to", out)


def read(arguments: argparse.Namespace, *methods: str) -> tuple[Any, Table]:
    """The model, which must have one of these methods, and the rows."""
    model = files.load_model(arguments)
    if not any(callable(getattr(model, method, None)) for method in methods):
        raise ValueError(
            f"{arguments.model}: a {type(model).__name__} takes no {methods[-1]}, which is for "
            "forests and extra trees (refit: also for trees and boosting) of classes or numbers"
        )
    rows, dropping = files.ModelRows(model, arguments), arguments.drop_missing_target
    weight, source = arguments.weight, getattr(model, "source_", {})
    if weight is None and "delete" in methods:  # which takes the rows of the fit
        weight = source.get("weight")
    return model, rows.table(weight=weight, drop_missing_target=dropping)


def keep(model: Any, table: Table, source: dict[str, Any], known: list[int], out: Path) -> None:
    """Save the model with the facts about its rows."""
    model.source_ = source | {"row_hashes": [*known, *train.kept_hashes(model, table)]}
    train.save(model, out)


OF_ROWS = (options.declare_runtime, options.declare_reading)
COMMANDS = (  # name, help, options, function that runs
    (
        "refit",
        "Fill the leaves of a saved model with the rows of a file; the splits stay.",
        (options.MODEL, options.DATA, ROWS, REFIT, *OF_ROWS),
        run_refit,
    ),
    (
        "delete",
        "Make the forest that a fit without some of its rows gives.",
        (options.MODEL, options.DATA, DELETE, ROWS, *OF_ROWS),
        run_delete,
    ),
    (
        "merge",
        "Make one forest of the trees of two saved ones.",
        (options.MODEL, MERGE, "--out MODEL!  the model file to write"),
        run_merge,
    ),
)
