"""A file's columns by their part: features, target, weights.

Frames are narwhals' here, of pyarrow or, where only that is installed, of pandas.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from gpuforest.common.progress import stage
from gpuforest.data.binned import Labels
from gpuforest.data.frames import listed, read_frame
from gpuforest.data.tables import is_number
from gpuforest.data.text import Reading

UNNAMED = "Unnamed: 0"  # an index that pandas wrote
MAX_CLASSES = 20  # an integer target with more distinct values is a quantity


@dataclass(frozen=True, eq=False)
class Table:
    """A file's columns by their part: host data."""

    frame: Any  # features [N, F] of narwhals, by name: numbers, truth values and strings
    y: np.ndarray  # target [N], without missing values
    weight: np.ndarray | None  # f64[N]
    notes: tuple[str, ...] = ()  # what a user should know of how it was made

    @property
    def X(self) -> Any:
        """The features as the frame that pyarrow or pandas has."""
        return self.frame.to_native()

    @property
    def names(self) -> list[str]:
        """The features' names."""
        return list(self.frame.columns)

    def take(self, rows: np.ndarray) -> Table:
        """Some of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        return replace(self, frame=self.frame[rows], y=self.y[rows], weight=weight)


def load_table(
    path: str | Path,
    target: str,
    *,
    reading: Reading | None = None,
    text: Collection[str] = (),
    **parts: Any,
) -> Table:
    """Read a file to train on, or to test with: `path`, `reading` and `text` as in `read_frame`,
    the name of the `target`, and `parts` as in `split_columns`. Errors say what is wrong with the
    file, or which column is absent or not fit for its part."""
    other = {target: "the target", parts.get("weight"): "the weight"}
    other |= dict.fromkeys(parts.get("drop", ()), "dropped")
    dates = reading.dates if reading else ()
    for name, part in other.items():
        if name is not None and name.strip() in dates:
            raise ValueError(f"--dates {name.strip()}: this column is {part}")
    frame = read_frame(path, reading, text)
    with stage("load"):
        return split_columns(frame, target, **parts)


def split_columns(
    frame: Any,
    target: str,
    *,
    weight: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    drop_missing_target: bool = False,
) -> Table:
    """Features, target and weights of a frame; parameters and errors as in `load_table`."""
    notes = []
    target, *drop = find_columns(frame, [target, *drop])
    if weight is not None:
        [weight] = find_columns(frame, [weight])
    if target in (weight, *drop):
        raise ValueError(f"column {target!r} is the target: it cannot be dropped or be the weight")
    missing = is_missing(frame[target])
    if drop_missing_target and missing.any():
        notes.append(
            f"{missing.sum():,} of {len(frame):,} rows have no {target!r} and are left out"
        )
        frame = frame.filter((~missing).tolist())
        if len(frame) == 0:
            raise ValueError(f"the target {target!r} is missing in all rows")
    y = _target(frame[target], drop_missing_target)
    weights = None if weight is None else _weights(frame[weight])
    if features is None:
        apart = {target, weight, *drop}
        if UNNAMED in frame.columns and UNNAMED not in apart:
            notes.append(f"column {UNNAMED!r}, an index that pandas wrote, is left out")
            apart.add(UNNAMED)
        features = [name for name in frame.columns if name not in apart]
    if not features:
        raise ValueError("no column is left to be a feature")
    return Table(select_features(frame, features)[0], y, weights, tuple(notes))


def select_features(frame: Any, names: Sequence[str]) -> tuple[Any, list[str]]:
    """The columns that a model was trained on, in its order, and those that it ignores; an error
    names columns that are absent, or neither numbers nor categories."""
    # a reader of files leaves out blanks around names, and pandas, by which a model may have been
    # trained, does not
    there = set(frame.columns)
    bare = {name.strip(): name for name in names if name not in there}
    frame = frame.rename({name: bare[name] for name in bare.keys() & there - set(names)})
    wanted, there = set(names), set(frame.columns)
    if absent := [name for name in names if name not in there]:
        raise ValueError(
            f"the model needs {_count(absent, 'column')} absent from the data: {listed(absent)}"
        )
    features = frame.select(names)
    columns = features.schema.items()
    if other := [name for name, dtype in columns if not _may_be(dtype, features, name)]:
        raise ValueError(
            f"{_count(other, 'feature column')} neither numeric nor of strings: {listed(other)}; "
            "leave such columns out with --drop, or read dates as numbers with --dates"
        )
    return features, [name for name in frame.columns if name not in wanted]


def is_class_target(y: np.ndarray | Labels) -> bool:
    """Whether a target names classes rather than a quantity.

    Strings and booleans do; whole numbers (1.0 is one) do where there are at most 20 distinct ones
    and each occurs twice on average; other numbers do not.
    """
    if isinstance(y, Labels) or y.dtype.kind not in "iuf":
        return True
    distinct = np.unique(y)
    is_whole = y.dtype.kind != "f" or bool((distinct == np.round(distinct)).all())
    return is_whole and len(distinct) <= MAX_CLASSES and 2 * len(distinct) <= len(y)


def find_columns(frame: Any, names: Sequence[str]) -> list[str]:
    """The columns of these names, which may have blanks around them here; the error of an absent
    one has names that it may have meant."""
    columns = [name if name in frame.columns else name.strip() for name in names]
    for name in columns:
        require_column(frame, name)
    return columns


def require_column(frame: Any, name: str) -> None:
    """Raise a ValueError that helps if there is no such column."""
    columns = list(frame.columns)
    if name in columns:
        return
    close = get_close_matches(name, columns, n=3)
    hint = f"did you mean {listed(close)}?" if close else f"there are {listed(columns)}"
    if all(is_number(c) for c in columns):
        hint += "; the first line should hold the columns' names, not numbers"
    raise ValueError(f"no column {name!r}: {hint}")


def _target(column: Any, had_gaps: bool = False) -> np.ndarray:
    n_missing = int(is_missing(column).sum())
    if n_missing:
        raise ValueError(
            f"the target {column.name!r} is missing in {n_missing} of {len(column)} rows; "
            "--drop-missing-target leaves these rows out"
        )
    y = column.to_numpy()
    is_whole = y.dtype.kind == "f" and bool((np.abs(y) < 2**53).all())
    if had_gaps and is_whole and (y == np.round(y)).all():
        y = y.astype(np.int64)  # beside gaps whole numbers are read as floats
    return np.asarray(y if y.dtype.kind in "biuf" else y.astype(np.str_))


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
    weights = np.asarray(column.to_numpy(), np.float64)
    n_wrong = int(((weights < 0) | np.isinf(weights)).sum())
    if n_wrong or not weights.any():
        what = f"negative or infinite in {n_wrong} of {len(weights)}" if n_wrong else "zero in all"
        raise ValueError(f"the weight column {column.name!r} is {what} rows")
    return weights


def _count(names: Sequence[str], noun: str) -> str:
    return f"a {noun} that is" if len(names) == 1 else f"{len(names)} {noun}s that are"
