"""CSV: bytes become columns of text, one way by pyarrow and one by Python alone.

Python's is the definition. pyarrow's is some ten times as fast and takes the files that it finds
no fault with; the others go to Python's, so what is refused, and in which words, does not depend
on what is installed.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import islice
from typing import IO, Any

import numpy as np

from gpuforest.data.libraries import frame_engine

SEPARATORS = ",;\t"
BLOCK_ROWS = 20_000  # rows that are Python objects at once
BLOCK_BYTES = 2**24  # of a block of pyarrow's, in which a row must fit


def read_text(file: IO[bytes], name: str) -> tuple[list[str], list[Any]]:
    """The header of a CSV file, and its columns as text, each of as many rows.

    Returns
    -------
    names : of the columns
    columns : of each a pyarrow.ChunkedArray of strings, or an array of NumPy's StringDType

    Raises
    ------
    ValueError : no CSV file in UTF-8, or its rows have more or fewer fields than its first line
    """
    first = file.readline()
    file.seek(0)
    if not first.strip():
        raise ValueError(f"{name} is empty, or its first line is")
    if b"\0" in first:
        raise ValueError(f"{name} is no CSV or Parquet file: it holds binary data")
    separator = max(SEPARATORS, key=lambda s: first.count(s.encode()))
    limit = csv.field_size_limit(2**31 - 1)
    try:
        names = next(_rows(file, separator, name))
        columns = None
        if frame_engine() == "pyarrow":
            file.seek(0)
            columns = _arrow_columns(file, separator, len(names))
        if columns is None:
            file.seek(0)
            columns = list(_plain_columns(file, separator, name))
        _check_end(file, columns, name)
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is no CSV file in UTF-8: {error.reason}") from error
    except csv.Error as error:
        raise ValueError(f"{name} is no CSV file: {error}") from error
    finally:
        csv.field_size_limit(limit)
    return names, columns


def _arrow_columns(file: IO[bytes], separator: str, n: int) -> list[Any] | None:
    """The columns as pyarrow reads them; None if it finds a fault."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    names = [str(i) for i in range(n)]
    try:
        table = arrow.read_csv(
            pa.PythonFile(file, "r"),  # which leaves the file open
            read_options=arrow.ReadOptions(column_names=names, block_size=BLOCK_BYTES),
            parse_options=arrow.ParseOptions(delimiter=separator, newlines_in_values=True),
            convert_options=arrow.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid:
        return None
    return [column.slice(1) for column in table.columns]


def _plain_columns(file: IO[bytes], separator: str, name: str) -> Iterator[np.ndarray]:
    """The columns as Python's csv module reads them."""
    rows = _rows(file, separator, name)
    blocks: list[list[Any]] = []
    n = len(next(rows))
    while block := list(islice(rows, BLOCK_ROWS)):
        texts: list[Any] = [np.array(c, np.dtypes.StringDType()) for c in zip(*block, strict=True)]
        blocks.append(texts)
    for i in range(n):
        parts = [block[i] for block in blocks]
        yield np.concatenate(parts) if parts else np.zeros(0, np.dtypes.StringDType())
        for texts in blocks:
            texts[i] = None  # its memory is free


def _rows(file: IO[bytes], separator: str, name: str) -> Iterator[list[str]]:
    """The rows that are not blank, all as long as the first."""
    text, n = io.TextIOWrapper(file, "utf-8-sig", newline=""), 0
    try:
        reader = csv.reader(text, delimiter=separator)
        for row in reader:
            if not row or (len(row) == 1 < n and not row[0].strip()):
                continue
            if n and len(row) != n:
                more = "more" if len(row) > n else "fewer"
                raise ValueError(
                    f"{name} is no CSV file: line {reader.line_num} has {more} fields than its "
                    f"first line, {len(row)} and not {n}"
                )
            n = len(row)
            yield row
    finally:
        text.detach()  # the file stays open


def _check_end(file: IO[bytes], columns: list[Any], name: str) -> None:
    """A quotation mark that is never closed takes the rest of the file into the last value."""
    last = str(columns[-1][-1]) if len(columns[-1]) else ""
    if "\n" in last or "\r" in last:
        file.seek(0, io.SEEK_END)
        file.seek(max(0, file.tell() - len(last.encode()) - 4))
        if not file.read().rstrip().endswith(b'"'):
            raise ValueError(f"{name} is no CSV file: a quotation mark is never closed")
