"""Predict the rows of a file with a saved model."""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import numpy as np

import gpuforest
from gpuforest.cli.options import PREFIX, Kinds, add_option
from gpuforest.cli.show import progress_bar
from gpuforest.cli.train import writable
from gpuforest.loading import (
    PARQUET,
    read_frame,
    require_pyarrow,
    select_features,
)
from gpuforest.tables import frame_to_array


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    command.add_argument("model", metavar="MODEL", help="a file that `gpuforest train` wrote")
    command.add_argument("data", metavar="DATA", help="CSV (also .gz) with a header, or Parquet")
    command.add_argument(
        "--out", metavar="FILE", help="a .csv or .parquet file to write (default: CSV to stdout)"
    )
    command.add_argument(
        "--proba", action="store_true", help="add a column for the probability of each class"
    )
    add_option(command, "n_jobs", Kinds(integer=True), "threads (default: -1, all cores)")
    add_option(command, "backend", Kinds(text=True), "a backend's name (default: auto)")


def run(arguments: argparse.Namespace) -> None:
    """Load both, predict and write."""
    out = None if arguments.out is None else writable(arguments.out)
    if out is not None and out.suffix.lower() in PARQUET:
        require_pyarrow()
    elif out is not None and out.suffix.lower() != ".csv":
        raise ValueError(f"--out {out}: a name that ends in .csv or .parquet")
    with progress_bar():
        model = gpuforest.load(arguments.model)
        if arguments.proba and not hasattr(model, "predict_proba"):
            raise ValueError("--proba: the model is a regression, which has no classes")
        set_runtime(model, vars(arguments))
        frame = read_frame(arguments.data, text=category_names(model))
        X, ignored = choose(model, frame)
        columns = predict(model, X, arguments.proba)
    if ignored:
        names = ", ".join(repr(c) for c in ignored)
        print(f"gpuforest: columns ignored: {names}", file=sys.stderr)
    if out is None:
        write_csv(columns, sys.stdout)
        return
    with replaced(out) as path:
        if out.suffix.lower() in PARQUET:
            write_parquet(columns, path)
        else:
            with path.open("w", encoding="utf-8", newline="") as file:
                write_csv(columns, file)
    print(f"{len(columns['prediction']):,} predictions written to {out}")


def set_runtime(model: Any, given: dict[str, Any]) -> None:
    """Threads and backend are a matter of this machine, not of the model."""
    wanted = {"n_jobs": given.get(PREFIX + "n_jobs", -1)}
    wanted["backend"] = given.get(PREFIX + "backend", "auto")
    known = model.get_params()
    model.set_params(**{name: value for name, value in wanted.items() if name in known})


def category_names(model: Any) -> list[str]:
    """The features whose categories are strings, however much a file's look like numbers."""
    names = getattr(model, "feature_names_in_", [])
    known = model.forest_.edges.categories if len(names) else {}
    return [str(names[f]) for f, found in known.items() if found and isinstance(found[0], str)]


def choose(model: Any, frame: Any) -> tuple[Any, list[str]]:
    """The model's features out of the frame, and the columns that are not among them."""
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        X, ignored = select_features(frame, list(names))
        return X.to_native(), ignored
    if frame.shape[1] != model.n_features_in_:
        raise ValueError(
            f"the model was trained on {model.n_features_in_} features without names; "
            f"the data has {frame.shape[1]} columns"
        )
    return frame_to_array(select_features(frame, frame.columns)[0])[0], []


def predict(model: Any, X: Any, proba: bool) -> dict[str, np.ndarray]:
    """A column `prediction`, and one for the probability of each class if asked."""
    if not proba:
        return {"prediction": model.predict(X)}
    probabilities = model.predict_proba(X)
    columns = {"prediction": model.classes_[probabilities.argmax(axis=1)]}
    for i, name in enumerate(model.classes_):
        columns[f"probability_{name}"] = probabilities[:, i]
    return columns


def write_csv(columns: dict[str, np.ndarray], file: TextIO) -> None:
    """Columns as CSV; numbers read back the same."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*[column.tolist() for column in columns.values()], strict=True))


def write_parquet(columns: dict[str, np.ndarray], path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table(columns), path)


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A file beside `path` to write to, which takes its place once it is whole."""
    path = path.resolve()
    temporary = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
