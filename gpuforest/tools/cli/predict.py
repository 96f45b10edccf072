"""Predict the rows of a file with a saved model."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_outlier_detector

import gpuforest
from gpuforest.common.progress import report
from gpuforest.data.columns import (
    Table,
    find_columns,
    load_table,
    select_features,
    string_columns,
)
from gpuforest.data.frames import listed
from gpuforest.data.tables import frame_to_array
from gpuforest.tools.cli.file_options import (
    DATA,
    add_reading_options,
    names_of,
    number_names,
    read_for,
    reading_for,
    reading_of,
    text_columns,
)
from gpuforest.tools.cli.options import PREFIX, Kinds, add_option
from gpuforest.tools.cli.output import is_stdout, require_format, table_writer, writable
from gpuforest.tools.cli.show import printable, progress_bar, say
from gpuforest.tools.cli.streaming import frames, streams


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    command.add_argument("model", metavar="MODEL", help="a file that `gpuforest train` wrote")
    command.add_argument("data", metavar="DATA", help=DATA)
    command.add_argument(
        "--out", metavar="FILE", help="a .csv or .parquet file to write (default: CSV to stdout)"
    )
    command.add_argument(
        "--proba", action="store_true", help="add a column for the probability of each class"
    )
    command.add_argument(
        "--keep",
        metavar="COLS",
        action="append",
        default=[],
        help="columns of DATA to write beside the predictions, such as an id, separated by commas",
    )
    add_runtime_options(command)
    add_reading_options(command)


def add_runtime_options(command: argparse.ArgumentParser) -> None:
    """Declare threads and backend."""
    add_option(command, "n_jobs", Kinds(integer=True), "threads (default: -1, all cores)")
    add_option(command, "backend", Kinds(text=True), "a backend's name (default: auto)")


def run(arguments: argparse.Namespace) -> None:
    """Load both, predict and write."""
    out = None
    if arguments.out is not None and not is_stdout(Path(arguments.out)):
        out = writable(arguments.out, arguments.model, arguments.data)
        require_format(out)
    with progress_bar():
        model = gpuforest.load(arguments.model)
        if not hasattr(model, "predict"):
            raise ValueError(
                f"{arguments.model}: a {type(model).__name__} predicts nothing; its transform() "
                "in Python gives the leaves"
            )
        if arguments.proba and not hasattr(model, "predict_proba"):
            raise ValueError("--proba: the model is a regression, which has no classes")
        if arguments.proba and model.n_outputs_ > 1:
            raise ValueError(
                "--proba: the model has several outputs; predict_proba has all of them"
            )
        set_runtime(model, vars(arguments))
        keep, rows = names_of(arguments.keep), 0
        ignored: list[str] = []
        with table_writer(sys.stdout if out is None else out) as writer:
            for frame in frames_for(model, arguments, keep):
                columns, ignored = predicted(model, frame, keep, arguments.proba)
                writer.add(columns)
                rows += len(frame)
                report(rows, rows)
    if ignored:
        say(f"columns ignored: {listed(ignored)}")
    if out is not None:
        print(printable(f"{rows:,} predictions written to {out}"))


def frames_for(model: Any, arguments: argparse.Namespace, keep: list[str]) -> Iterator[Any]:
    """The data as one frame, or as several one below another."""
    if streams(arguments.data):
        yield from frames(arguments.data, reading_for(model, arguments, keep))
    else:
        yield read_for(model, arguments, keep)


def predicted(
    model: Any, frame: Any, keep: list[str], proba: bool
) -> tuple[dict[str, Any], list[str]]:
    """The columns to write, and those of the data that the model ignores."""
    keep = find_columns(frame, keep)
    features = {name.strip() for name in used(model)}
    X, ignored = choose(model, frame.drop([name for name in keep if name not in features]))
    found = predict(model, X, proba)
    if twice := [name for name in keep if name in found]:
        raise ValueError(
            f"--keep: the predictions have a column of the name {listed(twice)} too; rename "
            "it in the data"
        )
    return kept(frame, keep) | found, ignored


def load_for(model: Any, arguments: argparse.Namespace, target: str, **parts: Any) -> Table:
    """A file's features that a model needs, and its target; `parts` as of `load_table`."""
    table = load_table(
        arguments.data,
        target,
        features=used(model),
        reading=reading_of(arguments, model),
        text=text_columns(model, target),
        **parts,
    )
    require_numbers(model, table.frame)
    return table


def used(model: Any) -> list[str]:
    """The names of the columns that a model needs."""
    return [str(name) for name in getattr(model, "feature_names_in_", [])]


def kept(frame: Any, names: list[str]) -> dict[str, Any]:
    """Columns of the data as they were read, missing values as None."""
    if frame.implementation.is_pyarrow():
        return {name: frame[name].to_native() for name in names}
    return {name: np.array(frame[name].to_list(), object) for name in names}


def set_runtime(model: Any, given: dict[str, Any]) -> None:
    """Threads and backend are a matter of this machine, not of the model."""
    wanted = {"n_jobs": given.get(PREFIX + "n_jobs", -1)}
    wanted["backend"] = given.get(PREFIX + "backend", "auto")
    known = model.get_params()
    model.set_params(**{name: value for name, value in wanted.items() if name in known})


def choose(model: Any, frame: Any) -> tuple[Any, list[str]]:
    """The model's features out of the frame, and the columns that are not among them."""
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        X, ignored = select_features(frame, list(names))
        require_numbers(model, X)
        return X.to_native(), ignored
    if frame.shape[1] != model.n_features_in_:
        raise ValueError(
            f"the model was trained on {model.n_features_in_} features without names; "
            f"the data has {frame.shape[1]} columns"
        )
    return frame_to_array(select_features(frame, frame.columns)[0])[0], []


def require_numbers(model: Any, frame: Any) -> None:
    """Raise an error for a column of strings that was one of numbers in training."""
    numbers = {*number_names(model)}
    for name in string_columns(frame):
        if name in numbers:
            found = frame[name].drop_nulls().unique(maintain_order=True).head(3).to_list()
            raise ValueError(
                f"column {name!r} held numbers in training, and is text here because of some of "
                f"{listed(found)}; --missing, --decimal, --thousands and --units say how to read it"
            )


def predict(model: Any, X: Any, proba: bool) -> dict[str, np.ndarray]:
    """A column `prediction`, and one for the probability of each class if asked; of anomalies one
    for the score."""
    if is_outlier_detector(model):
        score = model.score_samples(X)
        return {"prediction": np.where(score - model.offset_ < 0, -1, 1), "score": score}
    if not proba:
        found = model.predict(X)
        if found.ndim == 1:
            return {"prediction": found}
        return {f"prediction_{i}": column for i, column in enumerate(found.T)}
    probabilities = model.predict_proba(X)
    columns = {"prediction": model.classes_[probabilities.argmax(axis=1)]}
    for i, name in enumerate(model.classes_):
        columns[f"probability_{name}"] = probabilities[:, i]
    return columns
