"""Files become frames: of narwhals, of pyarrow or, where only that is installed, of pandas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import IO, Any

import numpy as np

from gpuforest.common.progress import stage
from gpuforest.data.files import (
    DAMAGED,
    PARQUET,
    frame_engine,
    named_files,
    opened,
    partition_of,
    require_pyarrow,
)
from gpuforest.data.text import Reading, read_text, typed

PARQUET_START = b"PAR1"


def read_frame(path: str | Path, reading: Reading | None = None, text: Collection[str] = ()) -> Any:
    """Read a CSV or Parquet file, a folder of Parquet files, a pattern that names some, or "-",
    standard input, as a frame of narwhals. `reading` says how it is written, and `text` names
    columns that hold strings though they may look like numbers."""
    name, reading = str(path), reading or Reading()
    with stage("load"):
        files = named_files(name)
        text = {column.strip() for column in (*text, *reading.dates)}
        frames = [_read_file(file, reading, text) for file in files]
        if files == [name] or not files[0].lower().endswith(PARQUET):
            [frame] = frames
        else:
            frame = _one_below_another(frames, files, name, text)
        if len(frame) == 0:
            raise ValueError(f"{name} has no rows")
        there = [column for column in reading.dates if column in frame.columns]
        return with_date_parts(frame, there, reading.date_format)


def _read_file(name: str, reading: Reading, text: Collection[str]) -> Any:
    try:
        with opened(name) as file:
            start = file.read(len(PARQUET_START))
            file.seek(0)
            if start == PARQUET_START or name.lower().endswith(PARQUET):
                return _read_parquet(file, name)
            names, columns = read_text(file, name)
    except (*DAMAGED, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # not of what is in the file
            raise
        raise ValueError(f"{name} is no whole compressed file: {error}") from error
    # as pandas calls those without a name
    names = [column.strip() or f"Unnamed: {i}" for i, column in enumerate(names)]
    require_unique(names, name)
    columns = typed(columns, reading, [column in text for column in names])
    return _frame(dict(zip(names, columns, strict=True)))


def _one_below_another(
    frames: list[Any], files: list[str], path: str, text: Collection[str]
) -> Any:
    """Frames of the same columns as one; what folders are called (year=2020) is a column, unless
    the files have one of that name."""
    import narwhals.stable.v2 as nw
    import pyarrow as pa

    for file, frame in zip(files, frames, strict=True):
        if other := {*frames[0].columns} ^ {*frame.columns}:
            raise ValueError(
                f"{path}: {file} has other columns than {files[0]}: {listed(sorted(other))}"
            )
    try:
        table = pa.concat_tables([f.to_native() for f in frames], promote_options="permissive")
    except pa.ArrowException as error:
        raise ValueError(f"{path}: the files do not fit together: {error}") from error
    rows = [len(frame) for frame in frames]
    parts = [partition_of(file, path) for file in files]
    for key in dict.fromkeys(key for part in parts for key in part):
        if key in table.column_names:
            continue
        values = np.repeat(np.array([p.get(key, "") for p in parts], object), rows)
        column = pa.chunked_array([pa.array(values, pa.string())])
        table = table.append_column(key, typed([column], Reading(), [key in text])[0])
    return nw.from_native(table, eager_only=True)


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


def _read_parquet(file: IO[bytes], name: str) -> Any:
    require_pyarrow()
    import narwhals.stable.v2 as nw
    import pyarrow as pa
    from pyarrow import parquet

    try:
        source = parquet.ParquetFile(pa.PythonFile(file, "r"))
        require_unique([column.strip() for column in source.schema_arrow.names], name)
        table = source.read()
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{name} is no Parquet file: {str(error).splitlines()[0]}") from error
    # pandas writes an index as a column
    index = (table.schema.pandas_metadata or {}).get("index_columns", [])
    table = table.drop_columns([c for c in index if isinstance(c, str)])
    table = table.rename_columns([column.strip() for column in table.column_names])
    return nw.from_native(table.replace_schema_metadata(), eager_only=True)


def require_unique(names: list[str], path: str) -> None:
    if len(set(names)) < len(names):
        twice = [name for name, n in Counter(names).items() if n > 1]
        raise ValueError(
            f"{path} has several columns of one name: {listed(twice)}; rename or remove all but one"
        )


def listed(names: Sequence[str], most: int = 10) -> str:
    """Names in quotes, the first few of many."""
    text = ", ".join(repr(n) for n in names[:most])
    return text if len(names) <= most else f"{text} and {len(names) - most} more"


PARTS = ("year", "month", "weekday", "seconds")
EXAMPLE = "2020-12-31 or 2020-12-31T23:59:59"


def with_date_parts(frame: Any, names: Sequence[str], form: str = "") -> Any:
    """The frame of narwhals with numbers instead of the dates in the columns of these names: `when`
    becomes `when_year`, `when_month` (1 to 12), `when_weekday` (0 is Monday) and `when_seconds`
    (since 1970, in UTC where the date has no zone). `form` is that of `Reading.date_format`."""
    import narwhals.stable.v2 as nw

    if not names:
        return frame
    columns = []
    for name in frame.columns:
        if name not in names:
            columns.append(frame[name])
            continue
        numbers = _parts(frame[name], form)
        for part, values in zip(PARTS, numbers.T, strict=True):
            if f"{name}_{part}" in frame.columns:
                raise ValueError(f"--dates {name}: there is a column {name}_{part} already")
            backend = frame.implementation
            columns.append(nw.new_series(f"{name}_{part}", np.array(values), backend=backend))
    return columns[0].to_frame().with_columns(*columns)


def _parts(column: Any, form: str) -> np.ndarray:
    """The parts f64[N, 4] of each date."""
    parts: dict[Any, tuple[float, ...]] = {None: (np.nan,) * len(PARTS)}
    missing = column.is_null().to_list()
    values = [None if m else v for v, m in zip(column.to_list(), missing, strict=True)]
    for value in dict.fromkeys(v for v in values if v is not None):
        when = _moment(value, form, column.name)
        zoned = when if when.tzinfo else when.replace(tzinfo=UTC)
        parts[value] = when.year, when.month, when.weekday(), zoned.timestamp()
    return np.array([parts[value] for value in values])


def _moment(value: Any, form: str, name: str) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    text = str(value).strip()
    try:
        return datetime.strptime(text, form) if form else datetime.fromisoformat(text)
    except ValueError as error:
        hint = (
            f"it is not of the form {form!r}"
            if form
            else f"write it as {EXAMPLE}, or say its form: --date-format '%d/%m/%Y'"
        )
        raise ValueError(f"--dates {name}: {text!r} is no date; {hint}") from error
