"""A file's columns by their part: features, target, weights.

Frames are narwhals' here, of pyarrow or, where only that is installed, of pandas.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from gpuforest.loading.engine import frame_engine, require_pyarrow
from gpuforest.loading.files import DAMAGED, PARQUET, opened
from gpuforest.loading.text import read_text
from gpuforest.loading.values import Reading, typed
from gpuforest.progress import stage

MAX_CLASSES = 20  # an integer target with more distinct values is a quantity


@dataclass(frozen=True, eq=False)
class Table:
    """A file's columns by their part: host data.

    frame : features [N, F] of narwhals, by name: numbers, truth values and strings
    y : target [N], without missing values
    weight : f64[N] or None
    """

    frame: Any
    y: np.ndarray
    weight: np.ndarray | None

    @property
    def X(self) -> Any:
        """The features as the frame that pyarrow or pandas has."""
        return self.frame.to_native()

    @property
    def names(self) -> list[str]:
        """What the features are called."""
        return list(self.frame.columns)

    def take(self, rows: np.ndarray) -> Table:
        """Some of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        return Table(self.frame[rows], self.y[rows], weight)


def load_table(
    path: str | Path,
    target: str,
    *,
    weight: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    reading: Reading | None = None,
    text: Collection[str] = (),
) -> Table:
    """Read a file to train on, or to test with.

    Parameters
    ----------
    path : CSV (also compressed) with a header line, or Parquet; "-" is standard input
    target : name of the column to predict
    weight : name of the column of sample weights
    drop : names of columns to leave out
    features : names of the features, in their order; None: all columns that are left
    reading, text : as in `read_frame`

    Raises
    ------
    OSError : the file cannot be read
    ValueError : the file is no table, or a column is absent or not fit for its part
    ImportError : what the file needs is not installed
    """
    frame = read_frame(path, reading, text)
    with stage("load"):
        return split_columns(frame, target, weight=weight, drop=drop, features=features)


def read_frame(path: str | Path, reading: Reading | None = None, text: Collection[str] = ()) -> Any:
    """Read a CSV or Parquet file; errors as in `load_table`.

    Parameters
    ----------
    path : file, or "-" for standard input
    reading : how a CSV file's numbers and missing values are written
    text : names of columns that hold strings though they may look like numbers

    Returns
    -------
    frame of narwhals
    """
    name = str(path)
    if Path(name).is_dir():
        raise IsADirectoryError(f"{name} is a directory, not a file")
    if name != "-" and not Path(name).exists():
        raise FileNotFoundError(f"{name}: no such file")
    with stage("load"):
        if name.lower().endswith(PARQUET):
            frame = _read_parquet(name)
        else:
            frame = _read_csv(name, reading or Reading(), text)
    if len(frame) == 0:
        raise ValueError(f"{name} has no rows")
    return frame


def split_columns(
    frame: Any,
    target: str,
    *,
    weight: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
) -> Table:
    """Features, target and weights of a frame; parameters and errors as in `load_table`."""
    for name in (target, *drop, *([] if weight is None else [weight])):
        require_column(frame, name)
    if target in (weight, *drop):
        raise ValueError(f"column {target!r} is the target: it cannot be dropped or be the weight")
    y = _target(frame[target])
    weights = None if weight is None else _weights(frame[weight])
    if features is None:
        apart = {target, weight, *drop}
        features = [name for name in frame.columns if name not in apart]
    if not features:
        raise ValueError("no column is left to be a feature")
    return Table(select_features(frame, features)[0], y, weights)


def select_features(frame: Any, names: Sequence[str]) -> tuple[Any, list[str]]:
    """The columns that a model was trained on, in its order, and those that it ignores.

    Raises
    ------
    ValueError : columns that are absent, by name, or neither numbers nor categories
    """
    known, there = set(names), set(frame.columns)
    if absent := [name for name in names if name not in there]:
        raise ValueError(
            f"the model needs {_count(absent, 'column')} absent from the data: {listed(absent)}"
        )
    found = frame.select(names)
    if other := [name for name, dtype in found.schema.items() if not _may_be(dtype, found, name)]:
        raise ValueError(
            f"{_count(other, 'feature column')} neither numeric nor of strings: {listed(other)}; "
            "leave such columns out with --drop, or encode them as numbers first"
        )
    return found, [name for name in frame.columns if name not in known]


def is_class_target(y: np.ndarray) -> bool:
    """Whether a target names classes rather than a quantity.

    Strings and booleans do; whole numbers do where there are at most 20 distinct ones
    and each occurs twice on average; other numbers do not.
    """
    if y.dtype.kind in "iu":
        n_distinct = len(np.unique(y))
        return n_distinct <= MAX_CLASSES and 2 * n_distinct <= len(y)
    return y.dtype.kind != "f"


def require_column(frame: Any, name: str) -> None:
    """Raise a ValueError that helps if there is no such column."""
    columns = list(frame.columns)
    if name in columns:
        return
    close = get_close_matches(name, columns, n=3)
    hint = f"did you mean {listed(close)}?" if close else f"there are {listed(columns)}"
    if all(_is_number(c) for c in columns):
        hint += "; the first line should hold the columns' names, not numbers"
    raise ValueError(f"no column {name!r}: {hint}")


def _read_csv(name: str, reading: Reading, text: Collection[str]) -> Any:
    try:
        with opened(name) as file:
            names, columns = read_text(file, name)
    except DAMAGED as error:
        raise ValueError(f"{name} is no whole compressed file: {error}") from error
    _require_unique(names, name)
    as_text = frozenset(text)
    columns = typed(columns, reading, [column in as_text for column in names])
    return _frame(dict(zip(names, columns, strict=True)))


def _frame(columns: dict[str, Any]) -> Any:
    """A frame of columns as `typed` gives them."""
    import narwhals.stable.v2 as nw

    if frame_engine() == "pyarrow":
        import pyarrow as pa

        return nw.from_native(pa.table(columns), eager_only=True)
    import pandas as pd

    for name, column in columns.items():
        if column.dtype == object and any(value is True or value is False for value in column):
            columns[name] = pd.array(column, dtype="boolean")
    return nw.from_native(pd.DataFrame(columns), eager_only=True)


def _read_parquet(name: str) -> Any:
    require_pyarrow()
    import narwhals.stable.v2 as nw
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with opened(name) as file:
            source = parquet.ParquetFile(pa.PythonFile(file, "r"))
            names = source.schema_arrow.names
            _require_unique(names, name)
            table = source.read()
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{name} is no Parquet file: {str(error).splitlines()[0]}") from error
    # pandas writes an index as a column
    index = (table.schema.pandas_metadata or {}).get("index_columns", [])
    table = table.drop_columns([c for c in index if isinstance(c, str)])
    return nw.from_native(table.replace_schema_metadata(), eager_only=True)


def _require_unique(names: list[str], path: str) -> None:
    if len(set(names)) < len(names):
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        raise ValueError(
            f"{path} has several columns of one name: {listed(twice)}; rename or remove all but one"
        )


def _target(column: Any) -> np.ndarray:
    n_missing = int(is_missing(column).sum())
    if n_missing:
        raise ValueError(
            f"the target {column.name!r} is missing in {n_missing} of {len(column)} rows; "
            "remove those rows first"
        )
    found = column.to_numpy()
    return np.asarray(found if found.dtype.kind in "biuf" else found.astype(np.str_))


def is_missing(column: Any) -> np.ndarray:
    """Which values of a series are missing: null or NaN, bool[N]."""
    missing = column.is_null()
    return np.asarray(
        (missing | column.is_nan() if column.dtype.is_float() else missing).to_numpy()
    )


def _may_be(dtype: Any, frame: Any, name: str) -> bool:
    """Whether a column may be a feature: of numbers, truth values, categories, or nothing."""
    import narwhals.stable.v2 as nw

    if dtype.is_numeric() or isinstance(dtype, nw.Boolean | nw.String | nw.Categorical | nw.Enum):
        return True
    return isinstance(dtype, nw.Unknown) and frame[name].null_count() == len(frame)


def string_columns(frame: Any) -> list[str]:
    """The columns of strings, which are categories by themselves."""
    import narwhals.stable.v2 as nw

    kinds = nw.String | nw.Categorical | nw.Enum
    return [name for name, dtype in frame.schema.items() if isinstance(dtype, kinds)]


def _weights(column: Any) -> np.ndarray:
    if not column.dtype.is_numeric():
        raise ValueError(f"the weight column {column.name!r} is not numeric")
    if n_missing := int(is_missing(column).sum()):
        raise ValueError(
            f"the weight column {column.name!r} is missing in {n_missing} of {len(column)} rows"
        )
    return np.asarray(column.to_numpy(), np.float64)


def listed(names: Sequence[str], most: int = 10) -> str:
    """Names in quotes, the first few of many."""
    text = ", ".join(repr(n) for n in names[:most])
    return text if len(names) <= most else f"{text} and {len(names) - most} more"


def _count(names: Sequence[str], noun: str) -> str:
    return f"a {noun} that is" if len(names) == 1 else f"{len(names)} {noun}s that are"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
