"""Files: what a path names, opened once and decompressed, and the library that reads it."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import shutil
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from glob import glob, has_magic
from importlib.metadata import version
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any, cast

PARQUET = (".parquet", ".pq")
STDIN = "-"
IN_MEMORY = 2**26  # bytes of a pipe; what is longer goes to a temporary file
DAMAGED = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


def named_files(path: str) -> list[str]:
    """The files of a path, a folder of Parquet files or a pattern; an error if there are none."""
    if path == STDIN:
        return [path]
    if Path(path).is_dir():
        inside = sorted(p.relative_to(path) for p in Path(path).rglob("*"))
        # writers of folders begin names of their own files and folders by a dot or an underscore
        inside = [p for p in inside if not any(part.startswith((".", "_")) for part in p.parts)]
        names = [str(Path(path, p)) for p in inside if p.name.lower().endswith(PARQUET)]
        if not names:
            raise IsADirectoryError(f"{path} is a directory, not a file, and has no Parquet files")
        return names
    if Path(path).exists():
        return [path]
    names = sorted(glob(path, recursive=True)) if has_magic(path) else []
    if not names:
        raise FileNotFoundError(f"{path}: no such file")
    other = [p for p in names if not p.lower().endswith(PARQUET)]
    if other and len(names) > 1:
        raise ValueError(f"{path}: several files are read only of Parquet, and {other[0]} is none")
    return names


def partition_of(file: str, path: str) -> dict[str, str]:
    """Columns that folders below `path` give: {"year": "2020"} for year=2020/part-1.parquet."""
    spelled = Path(path).parts
    if not Path(path).is_dir():
        spelled = tuple(takewhile(lambda part: not has_magic(part), spelled))
    folders = Path(file).parts[len(spelled) : -1]
    return dict(folder.split("=", 1) for folder in folders if "=" in folder)


@contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """The decompressed, seekable bytes of a file, a pipe or standard input ("-"), opened once."""
    with ExitStack() as stack:
        if path != STDIN:
            raw: IO[bytes] = stack.enter_context(Path(path).open("rb"))
        elif sys.stdin is None:
            raise ValueError("-: standard input is closed")
        else:
            raw = sys.stdin.buffer
        if not raw.seekable():
            raw = stack.enter_context(_copied(raw))
        yield stack.enter_context(_decompressed(raw, path))


def _decompressed(raw: IO[bytes], path: str) -> IO[bytes]:
    """The file itself, or a reader of what it holds compressed."""
    start = raw.read(6)
    raw.seek(0)
    for kind, (magic, ending, reader) in COMPRESSED.items():
        if start.startswith(magic):
            return cast(IO[bytes], reader(raw))
        if path.lower().endswith(ending):
            raise ValueError(f"{path} is no whole {kind} file: it begins otherwise")
    return raw


def _zstd(raw: IO[bytes]) -> IO[bytes]:
    require_pyarrow(".zst files")
    import pyarrow as pa

    return _copied(pa.CompressedInputStream(pa.PythonFile(raw, "r"), "zstd"))


# how a compressed file begins, how its name ends, and what reads it
COMPRESSED: dict[str, tuple[bytes, str, Callable[[IO[bytes]], Any]]] = {
    "gzip": (b"\x1f\x8b", ".gz", lambda raw: gzip.GzipFile(fileobj=raw)),
    "bzip2": (b"BZh", ".bz2", bz2.BZ2File),
    "xz": (b"\xfd7zXZ\0", ".xz", lzma.LZMAFile),
    "zstd": (b"(\xb5/\xfd", ".zst", _zstd),
}


def _copied(stream: Any) -> IO[bytes]:
    """A seekable copy of what a stream gives."""
    copy = cast(IO[bytes], SpooledTemporaryFile(IN_MEMORY))  # noqa: SIM115 the caller closes it
    try:
        shutil.copyfileobj(stream, copy, io.DEFAULT_BUFFER_SIZE * 128)
    except BaseException:
        copy.close()
        raise
    copy.seek(0)
    return copy


OLDEST_PYARROW = 24  # 17, 20 and 22 changed the last byte of text next to missing values


def require_pyarrow(what: str = "Parquet files") -> None:
    """Raise an ImportError that names the extra if pyarrow is absent or too old."""
    if find_spec("pyarrow") is None or int(version("pyarrow").split(".")[0]) < OLDEST_PYARROW:
        raise ImportError(
            f"{what} need pyarrow {OLDEST_PYARROW} or newer, an extra: "
            "pip install 'gpuforest[files]'"
        )
