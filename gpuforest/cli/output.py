"""Output of the commands: to a file, which is whole or not there, a pipe or a device."""

from __future__ import annotations

import csv
import os
import sys
from pathlib import Path
from typing import TextIO

import numpy as np

from gpuforest.data.files import PARQUET, named_files
from gpuforest.data.libraries import require_pyarrow
from gpuforest.export.replacing import is_stream, replaced


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


def write_table(columns: dict[str, np.ndarray], out: Path) -> None:
    """Columns as a CSV or Parquet file."""
    with replaced(out) as path:
        if out.suffix.lower() in PARQUET:
            import pyarrow as pa
            from pyarrow import parquet

            parquet.write_table(pa.table(columns), path)
        else:
            with path.open("w", encoding="utf-8", newline="") as file:
                write_csv(columns, file)


def write_csv(columns: dict[str, np.ndarray], file: TextIO) -> None:
    """Columns as CSV; numbers read back the same."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*[column.tolist() for column in columns.values()], strict=True))
