"""The outside of a model file: safetensors, with a version, a checksum and a text in its header.

    8 bytes     n, little-endian
    n bytes     JSON {"__metadata__": {"gpuforest": "<version> <checksum> <text>"},
                "<array>": {"dtype": "U64", "shape": [9], "data_offsets": [0, 72]}, ...}
    the rest    the arrays, one behind another

safetensors reads and writes it. Before it reads, the header is held against the length of the file
and a table of the arrays that may be there, so nothing is allocated that the file does not hold.
"""

from __future__ import annotations

import json
import math
import os
import re
import zlib
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import numpy as np

from gpuforest.errors import ModelFormatError, need

FORMAT = "gpuforest"
VERSION = 1
MAX_HEADER = 2**25  # bytes; as JSON objects they may take 25 times as much
MAX_ENTRIES = 2**12  # bytes of it that describe the arrays, of which there are few
SIZES = {"BOOL": 1, "U8": 1, "I8": 1, "U16": 2, "I16": 2, "F16": 2, "U32": 4, "I32": 4, "F32": 4}
SIZES |= {"U64": 8, "I64": 8, "F64": 8}  # bytes of an item, by safetensors' name of its dtype

# arrays that a file may hold: the dtypes and the number of dimensions of each
Layout = dict[str, tuple[tuple[str, ...], int]]


def write(path: Path, text: str, arrays: dict[str, np.ndarray]) -> None:
    """Replace the file at `path` as a whole, or not at all.

    Raises
    ------
    ValueError : the text is too long
    """
    from safetensors.numpy import save_file

    if len(json.dumps(text)) > MAX_HEADER - MAX_ENTRIES:
        raise ValueError(
            f"names of features, categories and classes of {len(text)} letters are more than a "
            "model file holds: pickle the estimator instead"
        )
    # safetensors holds little-endian, contiguous arrays
    arrays = {n: np.ascontiguousarray(a, a.dtype.newbyteorder("<")) for n, a in arrays.items()}
    # one entry, because safetensors writes several in any order
    metadata = {FORMAT: f"{VERSION} {checksum(text, arrays)} {text}"}
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        unfinished = file.name
    try:
        save_file(arrays, unfinished, metadata)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(unfinished, 0o666 & ~umask)  # a temporary file is its owner's alone
        os.replace(unfinished, path)
    except BaseException:
        os.unlink(unfinished)
        raise


def read(path: Path, layout: Layout) -> tuple[str, dict[str, np.ndarray]]:
    """The text and the arrays of a whole, undamaged file of a known version.

    Raises
    ------
    ModelFormatError : any other file
    OSError : the file cannot be read
    """
    from safetensors import safe_open

    header, n_bytes = _read_header(path)
    expected, text = _open_metadata(header.pop("__metadata__", None))
    _check_layout(header, n_bytes, layout)
    with safe_open(path, framework="numpy") as file:
        arrays = {name: file.get_tensor(name) for name in header}
    need(checksum(text, arrays) == expected, "its checksum does not match")
    return text, arrays


def checksum(text: str, arrays: dict[str, np.ndarray]) -> int:
    """CRC-32 of the text and of the names, dtypes, shapes and bytes of the arrays."""
    crc = zlib.crc32(text.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        crc = zlib.crc32(f"{name} {array.dtype.str} {array.shape}".encode(), crc)
        crc = zlib.crc32(array.data, crc)
    return crc


def parse_object(text: str) -> dict[str, Any]:
    """A JSON object in which, at any depth, no key comes twice."""
    found = json.loads(text, object_pairs_hook=_object)
    need(isinstance(found, dict), "a header that is no JSON object")
    return dict(found)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    need(len(found) == len(pairs), "a key that comes twice in one JSON object")
    return found


def _read_header(path: Path) -> tuple[dict[str, Any], int]:
    """safetensors' header and how many bytes of arrays follow it."""
    if path.is_fifo() or path.is_char_device():
        raise ModelFormatError("not a file but a pipe or a device: copy it to a file first")
    with path.open("rb") as file:
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
        dtypes, n_dims = layout[name]
        need(dtype in dtypes, f"{name} of another dtype")
        need(_are_sizes(shape) and len(shape) == n_dims, f"{name} of another shape")
        need(_are_sizes(span) and len(span) == 2, f"{name} from nowhere to nowhere")
        need(math.prod(shape) * SIZES[dtype] == span[1] - span[0], f"{name} does not fit its place")
        spans.append(span)
    end = 0
    for begin, after in sorted(spans):
        need(begin == end, "arrays that do not lie one behind another")
        end = after
    need(end == n_bytes, "it is cut, or longer than its arrays")


def _are_sizes(numbers: Any) -> bool:
    return isinstance(numbers, list) and all(type(n) is int and 0 <= n < 2**63 for n in numbers)
