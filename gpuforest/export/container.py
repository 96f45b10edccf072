"""The outside of a model file: safetensors, with a version, a checksum and a text in its header.

    8 bytes     n, little-endian
    n bytes     JSON {"__metadata__": {"gpuforest": "<version> <checksum> <text>"},
                "<array>": {"dtype": "U64", "shape": [9], "data_offsets": [0, 72]}, ...}
    the rest    the arrays, one behind another

Before the arrays are read, the header is held against the length of the file and a table of the
arrays that may be there, so nothing is allocated that the file does not hold. Files are replaced
as a whole or not at all.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import secrets
import shutil
import zlib
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from gpuforest.common.errors import ModelFormatError, need

FORMAT = "gpuforest"
VERSION = 1
MAX_HEADER = 2**25  # bytes; as JSON objects they may take 25 times as much
MAX_ENTRIES = 2**12  # bytes of it that describe the few arrays
# safetensors' dtypes, in the order in which their arrays lie, and NumPy's: little-endian
DTYPES = {"U64": "<u8", "I64": "<i8", "F64": "<f8", "F32": "<f4", "U32": "<u4", "I32": "<i4"}
DTYPES |= {"F16": "<f2", "U16": "<u2", "I16": "<i2", "I8": "|i1", "U8": "|u1", "BOOL": "|b1"}

Arrays = dict[str, np.ndarray]  # by their names in a file
# arrays that a file may hold: the dtypes of each, a letter for each dimension, a check of values
Layout = dict[str, tuple[tuple[str, ...], str, Callable[[Any], Any] | None]]


def write(path: Path, text: str, arrays: Arrays) -> None:
    """Replace the file at `path` as a whole, or not at all, see `replaced`."""
    if len(json.dumps(text)) > MAX_HEADER - MAX_ENTRIES:
        raise ValueError(
            f"names of features, categories and classes of {len(text)} letters are more than a "
            "model file holds: pickle the estimator instead"
        )
    arrays = {n: np.ascontiguousarray(a, a.dtype.newbyteorder("<")) for n, a in arrays.items()}
    numpy_dtypes, dtypes = list(DTYPES.values()), list(DTYPES)
    places = {name: numpy_dtypes.index(array.dtype.str) for name, array in arrays.items()}
    arrays = {name: arrays[name] for name in sorted(arrays, key=lambda n: (places[n], n))}
    header: dict[str, Any] = {
        "__metadata__": {FORMAT: f"{VERSION} {checksum(text, arrays)} {text}"}
    }
    end = 0
    for name, array in arrays.items():
        begin, end, shape = end, end + array.nbytes, list(array.shape)
        dtype = dtypes[places[name]]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    encoded = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)  # so that the arrays are aligned
    with replaced(path) as temporary, temporary.open("wb") as file:
        _write_all(file, len(encoded).to_bytes(8, "little") + encoded, arrays)


def _write_all(file: BinaryIO, start: bytes, arrays: Arrays) -> None:
    file.write(start)
    for array in arrays.values():
        file.write(array.data)


def read(path: Path, layout: Layout) -> tuple[str, Arrays]:
    """The text and the arrays of a whole, undamaged file of a known version.

    The path is opened once: who replaces the file meanwhile does not disturb the reader.
    """
    if path.is_fifo() or path.is_char_device():
        raise ModelFormatError("not a file but a pipe or a device: copy it to a file first")
    with path.open("rb") as file:
        header, n_bytes = _read_header(file)
        expected, text = _open_metadata(header.pop("__metadata__", None))
        _check_layout(header, n_bytes, layout)
        arrays = {}
        for name in sorted(header, key=lambda name: header[name]["data_offsets"]):
            array = np.empty(header[name]["shape"], DTYPES[header[name]["dtype"]])
            need(file.readinto(array.data) == array.nbytes, "it is cut")
            arrays[name] = array
    need(checksum(text, arrays) == expected, "its checksum does not match")
    return text, {n: a.astype(a.dtype.newbyteorder("="), copy=False) for n, a in arrays.items()}


def checksum(text: str, arrays: Arrays) -> int:
    """CRC-32 of all pieces."""
    return reduce(lambda crc, piece: zlib.crc32(piece, crc), pieces(text, arrays), 0)


def pieces(text: str, arrays: Arrays) -> Iterator[Any]:
    """The text and the names, dtypes, shapes and little-endian bytes of the arrays."""
    yield text.encode()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name], arrays[name].dtype.newbyteorder("<"))
        yield f"{name} {array.dtype.str} {array.shape}".encode()
        yield array.data


def parse_object(text: str) -> dict[str, Any]:
    """A JSON object in which, at any depth, no key comes twice."""
    parsed = json.loads(text, object_pairs_hook=_object)
    need(isinstance(parsed, dict), "a header that is no JSON object")
    return dict(parsed)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    parsed = dict(pairs)
    need(len(parsed) == len(pairs), "a key that comes twice in one JSON object")
    return parsed


def _read_header(file: BinaryIO) -> tuple[dict[str, Any], int]:
    """safetensors' header and how many bytes of arrays follow it."""
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    need(size >= 8 and 0 < length <= size - 8, "it is cut, or no model file")
    need(length <= MAX_HEADER, f"a header of more than {MAX_HEADER} bytes")
    return parse_object(file.read(length).decode("utf-8")), size - 8 - length


def _open_metadata(metadata: Any) -> tuple[int, str]:
    """The checksum and the text, where the version is known."""
    if not isinstance(metadata, dict) or not isinstance(metadata.get(FORMAT), str):
        raise ModelFormatError("this file was not written by gpuforest: give one that save() wrote")
    match = re.fullmatch(r"([1-9]\d{0,8}) (\d{1,10}) (.*)", metadata[FORMAT], re.ASCII | re.DOTALL)
    if match is None or len(metadata) > 1:
        raise ModelFormatError("its metadata are not gpuforest's: give a file that save() wrote")
    version, expected, text = match.groups()
    if int(version) > VERSION:
        raise ModelFormatError(
            f"it was written by a newer gpuforest (format version {version}, this one reads up "
            f"to {VERSION}): upgrade gpuforest"
        )
    return int(expected), text


def _check_layout(entries: dict[str, Any], n_bytes: int, layout: Layout) -> None:
    """Arrays of the layout, which lie one behind another and fill the file."""
    spans = []
    for name, entry in entries.items():
        need(name in layout, f"an unknown array {name!r:.80}")
        need(entry.keys() == {"dtype", "shape", "data_offsets"}, f"{name} is not described")
        dtype, shape, span = entry["dtype"], entry["shape"], entry["data_offsets"]
        dtypes, letters, _ = layout[name]
        need(dtype in dtypes, f"{name} of another dtype")
        need(_are_sizes(shape) and len(shape) == len(letters), f"{name} of another shape")
        need(_are_sizes(span) and len(span) == 2, f"{name} from nowhere to nowhere")
        need(
            math.prod(shape) * np.dtype(DTYPES[dtype]).itemsize == span[1] - span[0],
            f"{name} does not fit its place",
        )
        spans.append(span)
    end = 0
    for begin, after in sorted(spans):
        need(begin == end, "arrays that do not lie one behind another")
        end = after
    need(end == n_bytes, "it is cut, or longer than its arrays")


def _are_sizes(numbers: Any) -> bool:
    return isinstance(numbers, list) and all(type(n) is int and 0 <= n < 2**63 for n in numbers)


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A file to write to, which takes the place of the one at `path` once it is whole.

    A link stays, and the file that it leads to is replaced. The new file has the mode, and where
    that is allowed the owner, of the old one. What is no file (a pipe, a device) is written into.
    On Linux the new file has no name until it is whole, so a killed process leaves nothing.
    """
    target = Path(os.path.realpath(path))  # which links that lead to themselves pass
    stream = is_stream(path)
    named = target.with_name(f".gpuforest-{secrets.token_hex(8)}")
    nameless = None if stream else _nameless(target.parent)
    written = path if stream else named if nameless is None else Path(f"/proc/self/fd/{nameless}")
    try:
        yield written
        if nameless is not None:
            os.link(written, named, src_dir_fd=nameless)  # by linkat, which follows links
            written = named
        if target.exists() and not stream:
            old = target.stat()
            with contextlib.suppress(OSError, AttributeError):  # not ours to give; Windows
                os.chown(written, old.st_uid, old.st_gid)
            shutil.copymode(target, written)
        if not stream:
            os.replace(written, target)
    except OSError as error:
        if error.errno is None or error.filename not in (None, os.fspath(written)):
            raise  # it is about another file
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    finally:
        if nameless is not None:
            os.close(nameless)
        if not stream:
            named.unlink(missing_ok=True)


def _nameless(folder: Path) -> int | None:
    """A new file without a name in a folder, open; None where the system has none."""
    try:
        return os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o666)
    except (OSError, AttributeError):
        return None


def is_stream(path: Path) -> bool:
    """Whether a path is a device or a pipe: it is written to, not replaced."""
    return os.path.exists(path) and not os.path.isfile(path)
