"""Loading: a file becomes a frame of numbers and categories, a target and weights."""

from __future__ import annotations

import gzip
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import IO, cast

import numpy as np
import pandas as pd
from pandas.api.types import (
    infer_dtype,
    is_bool_dtype,
    is_integer_dtype,
    is_numeric_dtype,
    is_string_dtype,
)

from gpuforest.progress import stage

MISSING = ("?",)  # beside pandas' own markers: the one of the UCI sets
SEPARATORS = ",;\t"
PARQUET = (".parquet", ".pq")
MAX_CLASSES = 20  # an integer target with more distinct values is a quantity


@dataclass(frozen=True, eq=False)
class Table:
    """A file's columns by their part: host data.

    X : features [N, F], by name: numbers, and strings or pandas' category
    y : target [N], without missing values
    weight : f64[N] or None
    """

    X: pd.DataFrame
    y: np.ndarray
    weight: np.ndarray | None


def load_table(
    path: str | Path,
    target: str,
    *,
    weight: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
) -> Table:
    """Read a file to train on, or to test with.

    Parameters
    ----------
    path : CSV (also .gz) with a header line, or Parquet
    target : name of the column to predict
    weight : name of the column of sample weights
    drop : names of columns to leave out
    features : names of the features, in their order; None: all columns that are left
    categorical : names of features that hold categories though they are numbers

    Raises
    ------
    OSError : the file cannot be read
    ValueError : the file is no table, or a column is absent or not fit for its part
    ImportError : Parquet without pyarrow
    """
    frame = read_frame(path)
    with stage("load"):
        return split_columns(
            frame, target, weight=weight, drop=drop, features=features, categorical=categorical
        )


def read_frame(path: str | Path) -> pd.DataFrame:
    """Read a CSV (also .gz) or Parquet file; errors as in `load_table`."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory, not a file")
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    with stage("load"):
        frame = _read_parquet(path) if path.suffix.lower() in PARQUET else _read_csv(path)
    if frame.shape[0] == 0:
        raise ValueError(f"{path} has no rows")
    if not frame.columns.is_unique:
        twice = list(dict.fromkeys(frame.columns[frame.columns.duplicated()]))
        raise ValueError(f"{path} has several columns of one name: {_listed(twice)}")
    return frame


def split_columns(
    frame: pd.DataFrame,
    target: str,
    *,
    weight: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
) -> Table:
    """Features, target and weights of a frame; parameters and errors as in `load_table`."""
    for name in (target, *drop, *categorical, *([] if weight is None else [weight])):
        require_column(frame, name)
    if target in (weight, *drop):
        raise ValueError(f"column {target!r} is the target: it cannot be dropped or be the weight")
    y = _target(frame[target])
    weights = None if weight is None else _weights(frame[weight])
    if features is None:
        features = [c for c in frame.columns if c not in {target, weight, *drop}]
    if not features:
        raise ValueError("no column is left to be a feature")
    if other := [name for name in categorical if name not in features]:
        raise ValueError(f"{_count(other, 'categorical column')} no feature: {_listed(other)}")
    X = select_features(frame, features)[0]
    return Table(X.astype(dict.fromkeys(categorical, "category")), y, weights)


def plain_features(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with its numbers in NumPy's dtypes, and its categories as they are.

    Raises
    ------
    ValueError : columns that are neither, by name
    """
    numeric = [c for c in frame.columns if is_numeric_dtype(frame[c])]
    other = [c for c in frame.columns if c not in numeric and not _may_be_feature(frame[c])]
    if other:
        raise ValueError(
            f"{_count(other, 'feature column')} neither numeric nor of strings: {_listed(other)}; "
            "leave such columns out with --drop, or encode them as numbers first"
        )
    # nullable and Arrow columns: their missing values become NaN
    foreign = [c for c in numeric if not isinstance(frame[c].dtype, np.dtype)]
    return frame.assign(**{c: frame[c].to_numpy(np.float64, na_value=np.nan) for c in foreign})


def select_features(frame: pd.DataFrame, names: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """The columns that a model was trained on, in its order, and those that it ignores.

    Raises
    ------
    ValueError : columns that are absent, by name, or neither numbers nor categories
    """
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise ValueError(
            f"the model needs {_count(absent, 'column')} absent from the data: {_listed(absent)}"
        )
    known = set(names)
    return plain_features(frame[list(names)]), [c for c in frame.columns if c not in known]


def is_class_target(y: np.ndarray) -> bool:
    """Whether a target names classes rather than a quantity.

    Strings and booleans do; whole numbers do where there are at most 20 distinct ones
    and each occurs twice on average; other numbers do not.
    """
    if y.dtype.kind in "iu":
        n_distinct = len(np.unique(y))
        return n_distinct <= MAX_CLASSES and 2 * n_distinct <= len(y)
    return y.dtype.kind != "f"


def require_column(frame: pd.DataFrame, name: str) -> None:
    """Raise a ValueError that helps if there is no such column."""
    if name in frame.columns:
        return
    columns = [str(c) for c in frame.columns]
    close = get_close_matches(name, columns, n=3)
    hint = f"did you mean {_listed(close)}?" if close else f"there are {_listed(columns)}"
    if all(_is_number(c) for c in columns):
        hint += "; the first line should hold the columns' names, not numbers"
    raise ValueError(f"no column {name!r}: {hint}")


def require_pyarrow() -> None:
    """Raise an ImportError that names the extra if Parquet cannot be read or written."""
    if find_spec("pyarrow") is None:
        raise ImportError("Parquet files need pyarrow, an extra: pip install 'gpuforest[parquet]'")


def _read_csv(path: Path) -> pd.DataFrame:
    try:
        with _open(path) as file:
            header = file.readline()
        if not header.strip():
            raise ValueError(f"{path} is empty, or its first line is")
        if b"\0" in header:
            raise ValueError(f"{path} is no CSV or Parquet file: it holds binary data")
        with warnings.catch_warnings():
            # rows longer than the header would be cut
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                path,
                sep=max(SEPARATORS, key=lambda s: header.count(s.encode())),
                na_values=list(MISSING),
                index_col=False,
                low_memory=False,  # whole columns have one type
                compression="gzip" if _is_gzip(path) else None,
            )
    except pd.errors.ParserWarning as error:
        raise ValueError(
            f"{path} is no CSV file: its rows have more fields than its first line"
        ) from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no CSV file in UTF-8: {error.reason}") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is no whole gzip file: {error}") from error
    except pd.errors.ParserError as error:
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise ValueError(f"{path} is no CSV file: {reason}") from error


def _open(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if _is_gzip(path) else path.open("rb")


def _is_gzip(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _read_parquet(path: Path) -> pd.DataFrame:
    require_pyarrow()
    try:
        frame = pd.read_parquet(path, engine="pyarrow")
    except (ValueError, OSError) as error:
        raise ValueError(f"{path} is no Parquet file: {str(error).splitlines()[0]}") from error
    return frame.rename(columns=str).reset_index(drop=True)


def _target(column: pd.Series) -> np.ndarray:
    n_missing = int(column.isna().sum())
    if n_missing:
        raise ValueError(
            f"the target {column.name!r} is missing in {n_missing} of {len(column)} rows; "
            "remove those rows first"
        )
    if isinstance(column.dtype, np.dtype) and is_numeric_dtype(column.dtype):
        return column.to_numpy()
    for is_kind, dtype in (
        (is_bool_dtype, np.bool_),
        (is_integer_dtype, np.int64),
        (is_numeric_dtype, np.float64),
    ):  # of nullable and Arrow columns
        if is_kind(column.dtype):
            return column.to_numpy(dtype)
    return column.astype(str).to_numpy(np.str_)


def _may_be_feature(column: pd.Series) -> bool:
    """Whether a column that is not numeric holds categories, or truth values and missing ones."""
    if column.dtype == object:
        return infer_dtype(column, skipna=True) in ("string", "boolean", "empty")
    return isinstance(column.dtype, pd.CategoricalDtype) or is_string_dtype(column.dtype)


def _weights(column: pd.Series) -> np.ndarray:
    if not is_numeric_dtype(column.dtype):
        raise ValueError(f"the weight column {column.name!r} is not numeric")
    n_missing = int(column.isna().sum())
    if n_missing:
        raise ValueError(
            f"the weight column {column.name!r} is missing in {n_missing} of {len(column)} rows"
        )
    return column.to_numpy(np.float64)


def _listed(names: Sequence[str], most: int = 10) -> str:
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
