"""Output of the commands: to a file, which is whole or not there, a pipe or a device."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol, TextIO

from gpuforest.data.files import PARQUET, named_files
from gpuforest.data.libraries import require_pyarrow
from gpuforest.export.container import is_stream, replaced


def writable(path: str, *inputs: str | None) -> Path:
    """The path, if a file can be written there: asked before the work, not after it.

    Parameters
    ----------
    path : what to write
    inputs : what the command reads, which must not be overwritten

    Raises
    ------
    OSError : nothing can be written there
    ValueError : it is one of the inputs
    """
    out = Path(path)
    if out.is_dir():
        raise IsADirectoryError(f"{out} is a directory, not a file")
    folder = Path(os.path.realpath(out)).parent  # of the file that a link leads to
    if not is_stream(out) and not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such directory")
    if not os.access(out if is_stream(out) else folder, os.W_OK):
        raise PermissionError(f"{out if is_stream(out) else folder}: no permission to write there")
    if is_stream(out):
        return out
    if out.exists():
        for given in filter(None, inputs):
            if any(Path(file).exists() and out.samefile(file) for file in named_files(given)):
                raise ValueError(f"--out {out} is the file {given}, which is read: choose another")
    return out


def is_stdout(path: Path) -> bool:
    """Whether a path is another name of standard output, such as /dev/stdout."""
    try:
        return path.exists() and os.path.samestat(path.stat(), os.fstat(sys.stdout.fileno()))
    except (OSError, ValueError):  # standard output is no file
        return False


def require_format(out: Path) -> None:
    """Raise an error unless a table can be written to a path of this name.

    Raises
    ------
    ValueError : it ends otherwise than in .csv or .parquet
    ImportError : Parquet without pyarrow
    """
    if out.suffix.lower() in PARQUET:
        require_pyarrow()
    elif out.suffix.lower() != ".csv" and not is_stream(out):
        raise ValueError(f"--out {out}: a name that ends in .csv or .parquet")


@contextmanager
def table_writer(out: Path | TextIO) -> Iterator[TableWriter]:
    """A writer of a CSV or Parquet file, which is there when all is written, or of a stream."""
    if not isinstance(out, Path):
        yield CsvWriter(out)
        return
    with replaced(out) as path:
        if out.suffix.lower() in PARQUET:
            with closing(ParquetWriter(path)) as writer:
                yield writer
        else:
            with path.open("w", encoding="utf-8", newline="") as file:
                yield CsvWriter(file)


class TableWriter(Protocol):
    """Writes a table, rows after rows."""

    def add(self, columns: dict[str, Any]) -> None:
        """Write rows: arrays of NumPy or pyarrow by name, the same names each time."""


class CsvWriter:
    """Numbers read back the same."""

    def __init__(self, file: TextIO) -> None:
        self._writer = csv.writer(file, lineterminator="\n")
        self._is_new = True

    def add(self, columns: dict[str, Any]) -> None:
        if self._is_new:
            self._writer.writerow(columns)
            self._is_new = False
        lists = [c.tolist() if hasattr(c, "tolist") else c.to_pylist() for c in columns.values()]
        self._writer.writerows(zip(*lists, strict=True))


class ParquetWriter:
    """All rows have the types of the first ones."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: Any = None

    def add(self, columns: dict[str, Any]) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        table = pa.table(columns)
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._path, table.schema)
        self._writer.write_table(table.cast(self._writer.schema))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
