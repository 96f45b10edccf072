"""Predict the rows of a file with a saved model."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

import gpuforest
from gpuforest.cli.options import PREFIX, Kinds, add_option
from gpuforest.cli.show import progress_bar
from gpuforest.cli.train import writable
from gpuforest.loading import PARQUET, read_frame, require_pyarrow, select_features


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
        X, ignored = choose(model, read_frame(arguments.data))
        predictions = predict(model, X, arguments.proba)
    if ignored:
        names = ", ".join(repr(c) for c in ignored)
        print(f"gpuforest: columns ignored: {names}", file=sys.stderr)
    if out is None:
        predictions.to_csv(sys.stdout, index=False)
        return
    with replaced(out) as path:
        if out.suffix.lower() in PARQUET:
            predictions.to_parquet(path, index=False, engine="pyarrow")
        else:
            predictions.to_csv(path, index=False)
    print(f"{len(predictions):,} predictions written to {out}")


def set_runtime(model: Any, given: dict[str, Any]) -> None:
    """Threads and backend are a matter of this machine, not of the model."""
    wanted = {"n_jobs": given.get(PREFIX + "n_jobs", -1)}
    wanted["backend"] = given.get(PREFIX + "backend", "auto")
    known = model.get_params()
    model.set_params(**{name: value for name, value in wanted.items() if name in known})


def choose(model: Any, frame: pd.DataFrame) -> tuple[Any, list[str]]:
    """The model's features out of the frame, and the columns that are not among them."""
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        return select_features(frame, list(names))
    if frame.shape[1] != model.n_features_in_:
        raise ValueError(
            f"the model was trained on {model.n_features_in_} features without names; "
            f"the data has {frame.shape[1]} columns"
        )
    return select_features(frame, list(frame.columns))[0].to_numpy(), []


def predict(model: Any, X: Any, proba: bool) -> pd.DataFrame:
    """A column `prediction`, and one for the probability of each class if asked."""
    if not proba:
        return pd.DataFrame({"prediction": model.predict(X)})
    probabilities = model.predict_proba(X)
    columns = {"prediction": model.classes_[probabilities.argmax(axis=1)]}
    for i, name in enumerate(model.classes_):
        columns[f"probability_{name}"] = probabilities[:, i]
    return pd.DataFrame(columns)


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
