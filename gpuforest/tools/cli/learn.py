"""`refit` and `merge`: saved models that take new rows, or the trees of another model."""

from __future__ import annotations

import argparse
from typing import Any

import gpuforest
from gpuforest.common.progress import progress_bar, stage
from gpuforest.tools.cli import files, options, output, train

REFIT = """\
--out MODEL!  the model file to write
--target COLUMN  the column to predict (default: as in training)
--weight COLUMN  the column of sample weights
--drop-missing-target  leave out rows without a target
--add  add the rows to those that the leaves have, in place of filling them anew
--decay-rate RATE  the part of the old value of a leaf in the new one, from 0 to 1 (default: 0)"""
MERGE = "OTHER  another model file, whose trees come after those of MODEL"


def run_refit(arguments: argparse.Namespace) -> None:
    """Load, fill the leaves with the rows of a file, and save."""
    out = output.writable(arguments.out, arguments.model, arguments.data)
    rate = arguments.decay_rate
    if arguments.add and rate is not None:
        raise ValueError("--decay-rate is for leaves that are filled anew: leave out --add")
    with progress_bar():
        model = files.load_model(arguments)
        require(model, "refit", arguments.model)
        rows, dropping = files.ModelRows(model, arguments), arguments.drop_missing_target
        table = rows.table(weight=arguments.weight, drop_missing_target=dropping)
        with stage("filling leaves"):
            if arguments.add:
                model.add_rows(table.X, table.y, table.weight)
            else:
                model.refit(table.X, table.y, table.weight, decay_rate=rate or 0.0)
        source: dict[str, Any] = getattr(model, "source_", {})
        known = source.get("row_hashes", []) if arguments.add else []
        model.source_ = source | {"row_hashes": [*known, *train.kept_hashes(model, table)]}
        train.save(model, out)
    output.done(f"{len(table.y):,} rows {'added' if arguments.add else 'taken'}; written to", out)


def run_merge(arguments: argparse.Namespace) -> None:
    """Load two forests, and save one of the trees of both."""
    out = output.writable(arguments.out, arguments.model, arguments.other)
    first, second = (gpuforest.load(path) for path in (arguments.model, arguments.other))
    for model, path in ((first, arguments.model), (second, arguments.other)):
        require(model, "keep_trees", path)
    if type(first) is not type(second):
        names = f"{type(first).__name__} and a {type(second).__name__}"
        raise ValueError(f"a {names} have no common trees: merge two models of one kind")
    merged = first + second
    train.save(merged, out)
    output.done(f"{len(merged):,} trees written to", out)


def require(model: Any, method: str, path: str) -> None:
    """Raise a ValueError for a model that has not this method."""
    if not callable(getattr(model, method, None)):
        kinds = "forests and extra trees" if method != "refit" else "forests, extra trees and trees"
        raise ValueError(
            f"{path}: a {type(model).__name__} does not do that: it is for {kinds} of classes or "
            "numbers"
        )


COMMANDS = (  # name, help, options, function that runs
    (
        "refit",
        "Fill the leaves of a saved model with the rows of a file; the splits stay.",
        (options.MODEL, options.DATA, REFIT, options.declare_runtime, options.declare_reading),
        run_refit,
    ),
    (
        "merge",
        "Make one forest of the trees of two saved ones.",
        (options.MODEL, MERGE, "--out MODEL!  the model file to write"),
        run_merge,
    ),
)
