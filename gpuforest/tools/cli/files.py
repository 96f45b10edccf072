"""What the commands read: rows of files as a saved model needs them, and blocks to train on."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

import gpuforest
from gpuforest.common.arguments import draw_seed
from gpuforest.core.bins import categories_of
from gpuforest.data import arrays, frames, passes, text
from gpuforest.data.binned import binned_blocks
from gpuforest.data.blocks import Block, Blocks, named
from gpuforest.data.files import PARQUET, named_files
from gpuforest.data.frames import Table, listed
from gpuforest.explain.model_facts import is_effects, is_survival
from gpuforest.tools.cli import options

LISTS = ("missing", "dates")
OF_ROWS = ("weight", "groups", "time")  # options of columns that a proof covers
OPTIONS = tuple(text.Reading.__dataclass_fields__)  # of reading


def reading_of(arguments: argparse.Namespace, model: Any = None) -> text.Reading:
    """How to read a file: as for the training of the model, except where options are given."""
    source: dict[str, Any] = getattr(model, "source_", {})
    values = {name: source[name] for name in OPTIONS if name in source}
    for name, value in options.options_of(arguments, *OPTIONS).items():
        values[name] = names_of(value) if name in LISTS else value
    return text.Reading(**values | {name: tuple(values[name]) for name in LISTS if name in values})


def source_of(reading: text.Reading, arguments: argparse.Namespace) -> dict[str, Any]:
    """Facts about training data that a model keeps: columns, and how files were read."""
    source = options.options_of(arguments, "target", "event", "treatment", "instrument")
    if arguments.proof:
        source |= options.options_of(arguments, *OF_ROWS)
    for name in OPTIONS:
        if (value := getattr(reading, name)) != getattr(text.Reading(), name):
            source[name] = list(value) if name in LISTS else value
    return source


def labels_of_rows(arguments: argparse.Namespace) -> tuple[str, str]:
    """The option that names a column of labels of rows, and what `fit` calls these."""
    if arguments.groups and arguments.time:
        raise ValueError("--groups and --time judge rows in two ways: give one of them")
    return ("time", "blocks") if arguments.time else ("groups", "groups")


def names_of(lists: list[str] | None) -> list[str]:
    """Names separated by commas, blanks around them left out; quotes keep a comma in a name."""
    try:
        rows = [*csv.reader(lists or [], skipinitialspace=True)]
    except csv.Error as error:
        raise ValueError(
            f"{', '.join(lists or [])!r} is no list of names: commas stand between them, and "
            "quotes around a name that has a comma or a line break"
        ) from error
    return [name.strip() for row in rows for name in row if name.strip()]


def load_model(arguments: argparse.Namespace) -> Any:
    """The saved model; threads and backend are a matter of this machine, not of the model."""
    model = gpuforest.load(arguments.model)
    wanted = options.given_parameters(arguments)
    known = model.get_params()
    return model.set_params(**{name: value for name, value in wanted.items() if name in known})


class ModelRows:
    """The rows of a file, read as a saved model needs them."""

    def __init__(self, model: Any, arguments: argparse.Namespace, path: str | None = None) -> None:
        self.model, self.path = model, path or arguments.data
        self.arguments, self.reading = arguments, reading_of(arguments, model)
        self.names = [str(name) for name in getattr(model, "feature_names_in_", [])]
        known = model.forest_.edges.known if self.names else {}
        categories = {f: categories_of(c) for f, c in known.items()}
        # features whose categories are strings, however much a file's look like numbers
        self.texts = [self.names[f] for f, c in categories.items() if c and isinstance(c[0], str)]
        self.numbers = [name for f, name in enumerate(self.names) if f not in categories]

    @property
    def target(self) -> str:
        """The column to compare predictions with: that of --target, or of the training."""
        if is_effects(self.model):
            raise ValueError(
                "no row shows the effect on it, so there is no column to compare effects with: "
                "gpuforest plot effect-calibration compares averages"
            )
        target = self.arguments.target or getattr(self.model, "source_", {}).get("target")
        if target is None:
            raise ValueError("the model does not say what its target is called: add --target")
        several = self.model.n_outputs_ > 1 and not is_survival(self.model)
        if not self.names or not hasattr(self.model, "predict") or several:
            raise ValueError(
                "only models of one target and of features with names are compared with data"
            )
        return str(target)

    @property
    def event(self) -> str | None:
        """The column of events of a survival forest: that of --event, or of training."""
        event: str | None = vars(self.arguments).get("event")
        if not is_survival(self.model):
            if event is not None:
                raise ValueError("--event: the model is no survival forest")
            return None
        if not (event := event or getattr(self.model, "source_", {}).get("event")):
            raise ValueError("the model does not say which column has its events: add --event")
        return event

    def frames(self, keep: Sequence[str] = ()) -> Iterator[Any]:
        """The data as one frame, or as several one below another, with columns to keep."""
        for name in keep:
            if name in self.reading.dates:
                raise ValueError(f"--keep {name}: it is read as a date; keep {name}_seconds")
        if not streams(self.path):
            yield self._frame(keep)
            return
        blocks = Blocks(self.path)
        if not blocks.n_rows:
            raise ValueError(f"{self.path} has no rows")
        for block in blocks:
            with named(block.name):  # which errors say
                yield frames.with_date_parts(arrays.open_frame(block.X), self.reading)

    def _frame(self, keep: Sequence[str] = ()) -> Any:
        numbers = {name.strip() for name in self.numbers}
        return frames.read_frame(self.path, self.reading, {*self.texts, *keep} - numbers)

    def features(self) -> Any:
        """The features alone, as `choose` gives them."""
        return self.choose(self._frame())[0]

    def choose(self, frame: Any) -> tuple[Any, list[str]]:
        """The model's features out of the frame, and the columns that are not among them."""
        n = self.model.n_features_in_
        if not self.names and frame.shape[1] != n:
            raise ValueError(
                f"the model was trained on {n} features without names; the data has "
                f"{frame.shape[1]} columns"
            )
        X, ignored = frames.select_features(frame, self.names or frame.columns)
        self._require_numbers(X)
        return X.to_native() if self.names else arrays.frame_to_array(X)[0], ignored

    def table(self, **parts: Any) -> Table:
        """The features that the model needs, and the target; `parts` as of `load_table`."""
        classes = getattr(self.model, "classes_", np.zeros(0))
        target, event = self.target, self.event
        texts = [*self.texts, target] if classes.dtype.kind in "OU" else self.texts
        table = frames.load_table(
            self.path, target if event is None else (target, event),
            features=self.names, reading=self.reading, text=texts, **parts,
        )  # fmt: skip
        self._require_numbers(table.frame)
        return table

    def _require_numbers(self, frame: Any) -> None:
        """Raise an error for a column of strings that was one of numbers in training."""
        for name in frames.string_columns(frame):
            if name in self.numbers:
                values = frame[name].drop_nulls().unique(maintain_order=True).head(3).to_list()
                raise ValueError(
                    f"column {name!r} held numbers in training, and is text here because of some "
                    f"of {listed(values)}; --missing, --decimal, --thousands and --units say how "
                    "to read it"
                )


def has_data(arguments: argparse.Namespace) -> bool:
    """Whether --data is given, which the options about its rows need."""
    if arguments.data is not None:
        return True
    given = options.options_of(arguments, "target", "drop_missing_target", *OPTIONS)
    if about_rows := [options.flag_of(name) for name, value in given.items() if value is not False]:
        raise ValueError(f"{about_rows[0]} is about the rows of a file: add --data FILE")
    return False


def background_of(model: Any, arguments: argparse.Namespace) -> Any:
    """The features of the background data set; None if there is none."""
    if (path := arguments.background) is None:
        return None
    if path == "-" == arguments.data:
        raise ValueError("--background -: standard input is DATA already")
    try:
        return ModelRows(model, arguments, path).features()
    except ValueError as error:
        raise ValueError(f"--background: {error}") from error


def streams(path: str) -> bool:
    """Whether a path names Parquet files, which can be read by blocks."""
    return all(file.lower().endswith(PARQUET) for file in named_files(path))


class TableBlocks(Blocks):
    """Blocks of features, target, weights and groups (`labels` as of `labels_of_rows`, `names` as
    of `split_columns`); `first` is the first one as a table."""

    def __init__(self, path: str, labels: str, reading: text.Reading, **names: Any) -> None:
        super().__init__(path)
        self.labels, self._reading, self._names = labels, reading, names
        self.first: Any = None
        if next(iter(self), None) is None:
            raise ValueError(f"{path} has no rows")

    def _parts(self, name: str, block: Any) -> Block:
        frame = frames.with_date_parts(arrays.open_frame(block), self._reading)
        table = frames.split_columns(frame, **self._names)
        self.first = self.first or table
        return Block(name, table.X, table.y, table.weight, **{self.labels: table.groups})


def binned(
    blocks: TableBlocks, estimator: Any, task: str, params: dict[str, Any], folder: Path | None
) -> Bunch:
    """What `train` needs of a table: data binned for the estimator, and the first block's frame.
    The seed of the bins is added to the estimator's `params`."""
    by_class = {"classification": True, "regression": False}.get(task, frames.is_class_target)
    reader = passes.Reader.of(estimator, draw_seed(estimator.random_state), by_class)
    path, n_jobs = folder and folder / "binned", getattr(estimator, "n_jobs", None)
    data = binned_blocks(blocks, reader, path, n_jobs, memory_limit=None, verbose=0)
    params["random_state"] = data.seed
    of_rows = {"y": data.y, "weight": data.sample_weight, "groups": getattr(data, blocks.labels)}
    return Bunch(X=data, frame=blocks.first.frame, **of_rows)  # which fit is given
