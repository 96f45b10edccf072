"""Options that say how a file is read; a model keeps those that it was trained with."""

from __future__ import annotations

import argparse
import csv
from typing import Any

import numpy as np

from gpuforest.data.frames import read_frame
from gpuforest.data.values import Reading

DATA = (
    "CSV with a header line (also .gz, .bz2, .xz, .zst), Parquet, a folder of Parquet files, or - "
    "for standard input"
)
LISTS = ("missing", "dates")


def add_reading_options(command: argparse.ArgumentParser, kept: bool = True) -> None:
    """Declare the options; `kept`: those of the model hold where they are not given."""
    text = "In place of what the model was trained with." if kept else None
    group = command.add_argument_group("how the data are written", text)
    group.add_argument("--decimal", metavar="C", help="the decimal mark of numbers (default: .)")
    group.add_argument("--thousands", metavar="C", help="the mark between groups of digits")
    group.add_argument(
        "--missing",
        metavar="WORDS",
        action="append",
        help="markers of missing values, separated by commas, beside empty fields, NA, ? and "
        "others; may be repeated (write --missing=- for -)",
    )
    group.add_argument(
        "--units", metavar="CHARS", help="characters to ignore around numbers, such as '$%%'"
    )
    group.add_argument(
        "--dates",
        metavar="COLS",
        action="append",
        help="columns of dates, separated by commas: each becomes four columns of numbers, "
        "COL_year, COL_month, COL_weekday (0 is Monday) and COL_seconds (since 1970)",
    )
    group.add_argument(
        "--date-format",
        metavar="F",
        help="how dates are written, such as %%d/%%m/%%Y (default: as 2020-12-31, with a time or "
        "without)",
    )


def reading_of(arguments: argparse.Namespace, model: Any = None) -> Reading:
    """How to read a file: as for the training of the model, except where options are given.

    Raises
    ------
    ValueError : marks that are part of numbers
    """
    source: dict[str, Any] = getattr(model, "source_", {})
    options: dict[str, Any] = {k: value for k, value in source.items() if k != "target"}
    for name in Reading.__dataclass_fields__:
        if (given := getattr(arguments, name)) is not None:
            options[name] = names_of(given) if name in LISTS else given
    options |= {name: tuple(options[name]) for name in LISTS if name in options}
    return Reading(**options)


def source_of(reading: Reading, target: str) -> dict[str, Any]:
    """The facts about its training data that a model keeps: the target, and how they were read."""
    plain = Reading()
    found: dict[str, Any] = {"target": target}
    for name in Reading.__dataclass_fields__:
        if (value := getattr(reading, name)) != getattr(plain, name):
            found[name] = list(value) if name in LISTS else value
    return found


def names_of(given: list[str]) -> list[str]:
    """Names separated by commas, blanks around them left out; quotes keep a comma in a name.

    Raises
    ------
    ValueError : a line break without quotes
    """
    try:
        rows = [*csv.reader(given, skipinitialspace=True)]
    except csv.Error as error:
        raise ValueError(
            f"{', '.join(given)!r} is no list of names: commas stand between them, and quotes "
            "around a name that has a comma or a line break"
        ) from error
    return [name.strip() for row in rows for name in row if name.strip()]


def read_for(model: Any, arguments: argparse.Namespace, keep: list[str]) -> Any:
    """A frame with the columns of a model as they were in training."""
    reading = reading_for(model, arguments, keep)
    numbers = {name.strip() for name in number_names(model)}
    return read_frame(arguments.data, reading, {*category_names(model), *keep} - numbers)


def reading_for(model: Any, arguments: argparse.Namespace, keep: list[str]) -> Reading:
    """How to read a file for a model, of which columns are kept."""
    reading = reading_of(arguments, model)
    for name in keep:
        if name in reading.dates:
            raise ValueError(f"--keep {name}: it is read as a date; keep {name}_seconds")
    return reading


def target_of(model: Any, arguments: argparse.Namespace) -> str:
    """The column to compare a model's predictions with.

    Raises
    ------
    ValueError : nothing says what it is called, or the model is not of one target and of features
        with names
    """
    target = arguments.target or getattr(model, "source_", {}).get("target")
    if target is None:
        raise ValueError("the model does not say what its target is called: add --target")
    named = hasattr(model, "feature_names_in_")
    if not named or not hasattr(model, "predict") or model.n_outputs_ > 1:
        raise ValueError(
            "only models of one target and of features with names are compared with data"
        )
    return str(target)


def text_columns(model: Any, target: str) -> list[str]:
    """Columns of strings, the target among them where its classes are strings."""
    classes = getattr(model, "classes_", np.zeros(0))
    return [*category_names(model), *([target] if classes.dtype.kind in "OU" else [])]


def category_names(model: Any) -> list[str]:
    """The features whose categories are strings, however much a file's look like numbers."""
    names = getattr(model, "feature_names_in_", [])
    known = model.forest_.edges.categories if len(names) else {}
    return [str(names[f]) for f, found in known.items() if found and isinstance(found[0], str)]


def number_names(model: Any) -> list[str]:
    """The features that are numbers."""
    known = model.forest_.edges.categories
    names = getattr(model, "feature_names_in_", [])
    return [str(name) for f, name in enumerate(names) if f not in known]
