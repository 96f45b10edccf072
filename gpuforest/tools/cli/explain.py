"""Write the SHAP values of the rows of a file: what each feature adds to each prediction."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

import gpuforest
from gpuforest.common.progress import report
from gpuforest.data.frames import listed
from gpuforest.tools.cli.file_options import DATA, add_reading_options, read_for
from gpuforest.tools.cli.output import is_stdout, require_format, table_writer, writable
from gpuforest.tools.cli.predict import add_runtime_options, choose, frames_for, set_runtime
from gpuforest.tools.cli.show import printable, progress_bar, say

EXPECTED = "expected_value"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    command.add_argument("model", metavar="MODEL", help="a file that `gpuforest train` wrote")
    command.add_argument("data", metavar="DATA", help=DATA)
    command.add_argument(
        "--out", metavar="FILE", help="a .csv or .parquet file to write (default: CSV to stdout)"
    )
    add_background(command)
    add_runtime_options(command)
    add_reading_options(command)


def add_background(command: argparse.ArgumentParser) -> None:
    """Declare the background."""
    command.add_argument(
        "--background",
        metavar="FILE",
        help="rows whose values features have while they are not known (default: the shares of the "
        "training rows in the trees' nodes)",
    )


def run(arguments: argparse.Namespace) -> None:
    """Load both, explain and write."""
    out = None
    if arguments.out is not None and not is_stdout(Path(arguments.out)):
        out = writable(arguments.out, arguments.model, arguments.data, arguments.background)
        require_format(out)
    with progress_bar():
        model, rows = gpuforest.load(arguments.model), 0
        set_runtime(model, vars(arguments))
        background, ignored = background_of(model, arguments), list[str]()
        with table_writer(sys.stdout if out is None else out) as writer:
            for frame in frames_for(model, arguments, []):
                X, ignored = choose(model, frame)
                writer.add(explained(model, X, background))
                rows += len(frame)
                report(rows, rows)
    if ignored:
        say(f"columns ignored: {listed(ignored)}")
    if out is not None:
        print(printable(f"{rows:,} explanations written to {out}"))


def background_of(model: Any, arguments: argparse.Namespace) -> Any:
    """The features of the background; None: there is none."""
    if (path := arguments.background) is None:
        return None
    if path == "-" == arguments.data:
        raise ValueError("--background -: standard input is DATA already")
    try:
        own = argparse.Namespace(**vars(arguments) | {"data": path})
        return choose(model, read_for(model, own, []))[0]
    except ValueError as error:
        raise ValueError(f"--background: {error}") from error


def explained(model: Any, X: Any, background: Any = None) -> dict[str, np.ndarray]:
    """A column for each feature, and one for the expected value; of each class, where there are
    several, with its name behind the feature's."""
    values = model.shap_values(X, background=background)
    known = background is not None
    expected = np.atleast_1d(model.expected_value(background) if known else model.expected_value_)
    names = getattr(model, "feature_names_in_", [f"x{f}" for f in range(model.n_features_in_)])
    if values.ndim == 2:
        values, outputs = values[..., None], [""]
    else:
        labels = getattr(model, "classes_", None)
        if labels is None or len(labels) != values.shape[2]:
            labels = range(values.shape[2])
        outputs = [f"_{label}" for label in labels]
    found: dict[str, np.ndarray] = {}
    for k, output in enumerate(outputs):
        columns = {f"{name}{output}": values[:, f, k] for f, name in enumerate(names)}
        columns[f"{EXPECTED}{output}"] = np.full(len(values), expected[k])
        if twice := [name for name in columns if name in found]:
            raise ValueError(f"two columns would have the name {listed(twice)}: rename the feature")
        if len(columns) <= len(names):
            raise ValueError(f"a feature has the name {EXPECTED}{output}: rename it in the data")
        found |= columns
    return found
