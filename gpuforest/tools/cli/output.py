"""What the commands write and print: files that are whole or not there, progress, summaries."""

from __future__ import annotations

import csv
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from gpuforest.data.files import PARQUET, named_files
from gpuforest.export.container import is_stream, replaced

# control characters, and characters that change the direction of text
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")

Rows = dict[str, str | list[str]]  # the lines of a summary by their names


def printable(text: str) -> str:
    """Text whose characters steer no terminal: an escape is shown as \\x1b."""
    return UNPRINTABLE.sub(lambda match: ascii(match[0])[1:-1], text)


def say(message: str) -> None:
    """Print one line on stderr."""
    print("gpuforest:", printable(" ".join(message.split())), file=sys.stderr)


def done(message: str, out: Path | None) -> None:
    """Print that a file was written, where standard output is not that file."""
    if out is not None and not is_stdout(out):
        print(printable(f"{message} {out}"))


def print_facts(
    facts: dict[str, Any], as_json: bool, summary: Callable[[dict[str, Any]], Rows]
) -> None:
    """Print facts as JSON, or their summary as aligned text."""
    if as_json:
        print(json.dumps(facts, default=plain, allow_nan=False))
        return
    rows = {name: value for name, value in summary(facts).items() if value}
    width = max(map(len, rows))
    for name, value in rows.items():
        for i, text in enumerate([value] if isinstance(value, str) else value):
            shown = printable(" ".join(text.split("\n")))
            print(f"{'' if i else name:<{width}}  {shown}")


def plain(value: Any) -> Any:
    """A NumPy value as a Python one, for JSON."""
    return value.item() if isinstance(value, np.generic) else str(value)


def writable(
    path: str, *inputs: str | None, endings: tuple[str, ...] = (), flag: str = "--out"
) -> Path:
    """The path of an output, once it is sure that it can be written and is no input."""
    out = Path(path)
    if out.is_dir():
        raise IsADirectoryError(f"{out} is a directory, not a file")
    folder = Path(os.path.realpath(out)).parent  # of the file that a link leads to
    if not is_stream(out) and not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such directory")
    if not os.access(out if is_stream(out) else folder, os.W_OK):
        raise PermissionError(f"{out if is_stream(out) else folder}: no permission to write there")
    if out.exists() and not is_stream(out):
        for name in filter(None, inputs):
            if any(Path(file).exists() and out.samefile(file) for file in named_files(name)):
                raise ValueError(f"{flag} {out} is the file {name}, which is read: choose another")
    if endings and out.suffix.lower() not in endings:
        shown = ", ".join(endings[:-1]) + " or " * (len(endings) > 1) + endings[-1]
        raise ValueError(f"{flag} {out}: a name that ends in {shown}")
    return out


def is_stdout(path: Path) -> bool:
    """Whether a path is another name of standard output, such as /dev/stdout."""
    try:
        return path.exists() and os.path.samestat(path.stat(), os.fstat(sys.stdout.fileno()))
    except (OSError, ValueError):  # standard output is no file
        return False


def table_path(path: str | None, *inputs: str | None, flag: str = "--out") -> Path | None:
    """Where a table is written, once it is sure that it can be; None: to standard output."""
    if path is None or is_stdout(Path(path)):
        return None
    out = writable(path, *inputs, flag=flag)
    if out.suffix.lower() not in (".csv", *PARQUET) and not is_stream(out):
        raise ValueError(f"{flag} {out}: a name that ends in .csv or .parquet")
    return out


def columns_of(frame: Any, names: Iterable[str]) -> dict[str, Any]:
    """Columns of a frame of narwhals over pyarrow, to write."""
    return {name: frame[name].to_native() for name in names}


def write_table(out: Path | None, blocks: Iterator[dict[str, Any]]) -> None:
    """Write blocks of rows, columns by name, to a whole file or none, or to standard output."""
    if out is None:
        _write_csv(sys.stdout, blocks)
        return
    with replaced(out) as path:
        if out.suffix.lower() in PARQUET:
            _write_parquet(path, blocks)
        else:
            with path.open("w", encoding="utf-8", newline="") as file:
                _write_csv(file, blocks)


def _write_csv(file: TextIO, blocks: Iterator[dict[str, Any]]) -> None:
    """Numbers read back the same."""
    writer = csv.writer(file, lineterminator="\n")
    for i, columns in enumerate(blocks):
        if i == 0:
            writer.writerow(columns)
        lists = [c.tolist() if hasattr(c, "tolist") else c.to_pylist() for c in columns.values()]
        writer.writerows(zip(*lists, strict=True))


def _write_parquet(path: Path, blocks: Iterator[dict[str, Any]]) -> None:
    """All rows have the types of the first block."""
    import pyarrow as pa
    from pyarrow import parquet

    first = pa.table(next(blocks))
    with parquet.ParquetWriter(path, first.schema) as writer:
        writer.write_table(first)
        for columns in blocks:
            writer.write_table(pa.table(columns).cast(first.schema))
