"""Train a model on a file, and save it."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from gpuforest import estimate_memory
from gpuforest.common.progress import stage
from gpuforest.data.advice import nearly_numbers
from gpuforest.data.binned import Labels
from gpuforest.data.columns import MAX_CLASSES, Table, is_class_target, load_table, string_columns
from gpuforest.data.frames import listed
from gpuforest.data.values import Reading
from gpuforest.explain.model_facts import finite, model_facts
from gpuforest.tools.cli.facts import (
    category_rows,
    importance_rows,
    named,
    oob_rows,
    plain,
)
from gpuforest.tools.cli.file_options import (
    DATA,
    add_reading_options,
    names_of,
    reading_of,
    source_of,
)
from gpuforest.tools.cli.options import (
    ESTIMATORS,
    add_estimator_options,
    given_parameters,
    make_estimator,
)
from gpuforest.tools.cli.output import writable
from gpuforest.tools.cli.show import print_rows, progress_bar, say
from gpuforest.tools.cli.streaming import Streamed, TableBlocks, binned, streams


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    command.add_argument("data", metavar="DATA", help=DATA)
    command.add_argument("--target", metavar="COLUMN", required=True, help="the column to predict")
    command.add_argument("--out", metavar="MODEL", required=True, help="the model file to write")
    command.add_argument(
        "--task",
        choices=("auto", "classification", "regression"),
        default="auto",
        help="auto: classification if the target holds strings, booleans, or at most "
        f"{MAX_CLASSES} distinct whole numbers that occur twice on average (default: auto)",
    )
    command.add_argument(
        "--model",
        type=model_word,
        choices=tuple(dict.fromkeys(model for model, _ in ESTIMATORS)),
        default="forest",
        help="(default: forest)",
    )
    command.add_argument("--weight", metavar="COLUMN", help="the column of sample weights")
    command.add_argument(
        "--drop",
        metavar="COLS",
        action="append",
        default=[],
        help="columns to leave out, separated by commas; may be repeated",
    )
    command.add_argument(
        "--categorical",
        metavar="COLS",
        action="append",
        default=[],
        help="columns of numbers that are categories, separated by commas; may be repeated "
        "(columns of strings are categories by themselves)",
    )
    command.add_argument(
        "--test",
        metavar="FILE_OR_FRACTION",
        help="score the model on another file, or on a random fraction held out of DATA",
    )
    command.add_argument(
        "--drop-missing-target",
        action="store_true",
        help="leave out rows without a target, in place of refusing them",
    )
    command.add_argument(
        "--json", action="store_true", help="print one JSON object instead of the summary"
    )
    add_reading_options(command, kept=False)
    add_estimator_options(command)


def model_word(word: str) -> str:
    """The word of `--model`; one for isolation forests is answered."""
    if word.lower().startswith("isolation"):
        raise argparse.ArgumentTypeError(
            "isolation forests have no target, and train needs one: in Python, "
            "gpuforest.IsolationForest().fit(frame).save(path) writes a model that predict reads"
        )
    return word


def run(arguments: argparse.Namespace) -> None:
    """Load, train, save, score and show."""
    fraction = as_fraction(arguments.test)
    out = writable(arguments.out, arguments.data, arguments.test if fraction is None else None)
    drop, categorical = names_of(arguments.drop), names_of(arguments.categorical)
    reading = reading_of(arguments)
    given = given_parameters(arguments)
    with progress_bar() as seconds, ExitStack() as stack:
        names: dict[str, Any] = {"target": arguments.target, "weight": arguments.weight}
        more = {"drop_missing_target": arguments.drop_missing_target, "reading": reading}
        by_blocks = (
            fraction is None and not arguments.drop_missing_target and streams(arguments.data)
        )
        table: Any
        if by_blocks:
            blocks = TableBlocks(arguments.data, **names, drop=drop, reading=reading)
            table = blocks.first
        else:
            table = load_table(arguments.data, **names, **more, drop=drop)
        require_dates(table, reading)
        strings = string_columns(table.frame)
        notes = [*table.notes, *nearly_numbers(table.frame, strings, reading)]
        for note in notes:
            say(note)
        text = [*strings, arguments.target] if table.y.dtype.kind == "U" else strings
        given |= categories(table, categorical, given)
        test = None
        if fraction is not None:
            table, test = split(table, fraction, given.get("random_state"))
        elif arguments.test is not None:
            test = load_table(arguments.test, **names, **more, features=table.names, text=text)
        if by_blocks:
            folder = None
            if "memory_limit" in given:
                folder = Path(stack.enter_context(TemporaryDirectory(prefix="gpuforest-")))
            table = binned(blocks, likely_estimator(arguments, given), given, folder)
        task = arguments.task
        if task == "auto":
            task = "classification" if is_class_target(table.y) else "regression"
        estimator = make_estimator(arguments.model, task, given)
        memory = memory_of(estimator, table)
        if sys.stderr.isatty():  # before the work, so that it can be ended
            print(f"training takes {about(memory['total'])} of memory", file=sys.stderr)
        estimator.fit(table.X, table.y, sample_weight=table.weight)
        estimator.source_ = source_of(reading, arguments.target)
        with stage("saving"):
            save(estimator, out)
        score = None
        if test is not None:
            score = finite(estimator.score(test.X, test.y, sample_weight=test.weight))
    facts = describe(estimator, table)
    facts |= {"data": arguments.data, "target": arguments.target, "memory": memory}
    facts |= {"notes": notes}
    if test is not None:
        facts |= {"test_rows": len(test.y), "test_score": score}
    facts |= {"seconds": seconds, "file": str(out), "bytes": out.stat().st_size}
    if arguments.json:
        print(json.dumps(facts, default=plain, allow_nan=False))
    else:
        print_rows(summary(facts), "gpuforest train")


def save(estimator: Any, out: Path) -> None:
    """Save what was trained; where that fails, among the temporary files, so that no work is lost.

    Raises
    ------
    OSError : it is not where it should be; says where it is
    """
    try:
        estimator.save(out)
    except OSError as error:
        try:
            spare = Path(tempfile.mkdtemp(prefix="gpuforest-"), out.name)
            estimator.save(spare)
        except OSError:
            raise error from None
        said = f"{error.strerror}; the trained model is in {spare}"
        raise OSError(error.errno, said, os.fspath(out)) from error


def likely_estimator(arguments: argparse.Namespace, given: dict[str, Any]) -> Any:
    """An estimator of these parameters, before the target says what the task is."""
    if arguments.task != "auto":
        return make_estimator(arguments.model, arguments.task, given)
    try:
        return make_estimator(arguments.model, "classification", given)
    except ValueError:  # an option of regressions only
        return make_estimator(arguments.model, "regression", given)


def categories(table: Table, named: list[str], given: dict[str, Any]) -> dict[str, Any]:
    """`categorical_features` for columns of numbers that are named, beside those of strings."""
    if not named:
        return {}
    if "categorical_features" in given:
        raise ValueError("--categorical and --categorical-features say the same: give one of them")
    if other := [name for name in named if name not in table.names]:
        raise ValueError(f"--categorical: no feature of the name {listed(other)}")
    strings = string_columns(table.frame)
    return {"categorical_features": [n for n in table.names if n in {*named, *strings}]}


def require_dates(table: Table, reading: Reading) -> None:
    """Raise an error for a name in `--dates` that was no column, or was dropped."""
    if other := [name for name in reading.dates if f"{name}_year" not in table.names]:
        raise ValueError(f"--dates: no feature of the name {listed(other)}")


def describe(estimator: Any, table: Table | Streamed) -> dict[str, Any]:
    """Facts about the training, for a script."""
    return {
        "version": version("gpuforest"),
        **model_facts(estimator),
        "parameters": estimator.get_params(),
        "rows": len(table.y),
        "backend": estimator.backend_,
    }


def memory_of(estimator: Any, table: Table | Streamed) -> dict[str, int]:
    """The memory that training will take, in bytes."""
    y = table.y.codes if isinstance(table.y, Labels) else table.y
    n_classes = len(np.unique(y)) if is_classifier(estimator) else 1
    n_rows, n_features = len(y), table.frame.shape[1]
    found = estimate_memory(estimator, n_rows, n_features, n_classes=n_classes, dtype=np.float64)
    return {**vars(found), "total": found.total}


def about(n_bytes: int) -> str:
    return f"about {n_bytes / 1e6:,.1f} MB"


def summary(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """The facts as lines for a reader."""
    rows = [
        ("data", f"{facts['data']}: {facts['rows']:,} rows, {facts['features']:,} features"),
        ("target", f"{facts['target']}: {facts['task']}{named(facts['classes'])}"),
        ("model", f"{facts['estimator']}, seed {facts['seed']}, backend {facts['backend']}"),
        ("size", f"{facts['trees']:,} trees, {facts['nodes']:,} nodes, depth {facts['depth']:,}"),
        ("memory", f"{about(facts['memory']['total'])}, as estimated before"),
        *category_rows(facts),
        ("seconds", ", ".join(f"{name} {s:.2f}" for name, s in facts["seconds"].items())),
    ]
    rows += oob_rows(facts)
    if facts.get("test_score") is not None:
        rows.append(
            (f"test {facts['score']}", f"{facts['test_score']:.4f} on {facts['test_rows']:,} rows")
        )
    rows += importance_rows(facts)
    rows.append(("file", f"{facts['file']}, {facts['bytes']:,} bytes"))
    return rows


def split(table: Table, fraction: float, seed: int | None) -> tuple[Table, Table]:
    """Training and test rows, drawn at random; the same for the same seed."""
    n = len(table.y)
    n_test = round(n * fraction)
    if not 0 < n_test < n:
        raise ValueError(f"--test {fraction} of {n} rows leaves one side without rows")
    order = np.random.default_rng(seed).permutation(n)
    return table.take(np.sort(order[n_test:])), table.take(np.sort(order[:n_test]))


def as_fraction(text: str | None) -> float | None:
    """The fraction that `--test` names, or None if it names a file or nothing."""
    try:
        fraction = float(text or "")
    except ValueError:
        return None
    if not 0 < fraction < 1:
        raise ValueError(f"--test {text}: a fraction lies between 0 and 1")
    return fraction
