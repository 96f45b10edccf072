"""Files become frames: of narwhals, of pyarrow or, where only that is installed, of pandas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from gpuforest.common.progress import stage
from gpuforest.data.csv_text import read_text
from gpuforest.data.dates import with_date_parts
from gpuforest.data.files import DAMAGED, PARQUET, named_files, opened, partition_of
from gpuforest.data.libraries import frame_engine, require_pyarrow
from gpuforest.data.values import Reading, typed

PARQUET_START = b"PAR1"


def read_frame(path: str | Path, reading: Reading | None = None, text: Collection[str] = ()) -> Any:
    """Read a CSV or Parquet file; errors as in `load_table`.

    Parameters
    ----------
    path : file, a folder of Parquet files, a pattern that names some, or "-", standard input
    reading : how numbers and missing values are written, and which columns are dates
    text : names of columns that hold strings though they may look like numbers

    Returns
    -------
    frame of narwhals
    """
    name, reading = str(path), reading or Reading()
    with stage("load"):
        found = named_files(name)
        text = {column.strip() for column in (*text, *reading.dates)}
        frames = [_read_file(each, reading, text) for each in found]
        if found == [name] or not found[0].lower().endswith(PARQUET):
            [frame] = frames
        else:
            frame = _one_below_another(frames, found, name, text)
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
