"""Digests of training rows, which do not depend on their order.

A digest is the sum, modulo 2**2048, of a hash of each row (SHAKE-128, 2048 bits), so a row is taken
away by subtracting its hash (Bellare and Micciancio, "A new paradigm for collision-free hashing",
EUROCRYPT 1997). With 256 bits the generalised birthday attack (Wagner, CRYPTO 2002) would find
other rows of the same sum in some 2**32 steps; with 2048 bits and at most 2**32 rows it takes more
than 2**90.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from scipy.sparse import issparse

from gpuforest.data import arrays, validation
from gpuforest.data.binned import BinnedData
from gpuforest.data.categories import factorize

BITS = 2048  # of a row's hash, and of their sum
BLOCK = 2**14  # rows whose bytes are in memory at once


def data_digest(
    X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, blocks: Any = None,
    row_ids: Any = None,
) -> str:  # fmt: skip
    """A digest of training rows, which does not depend on their order.

    The hash of a row is that of its id and its values: numbers as float64 (all missing values are
    the same, and -0.0 is 0.0), categories and labels by their text. The digest is the sum of the
    hashes modulo 2**2048. Without some rows it is the difference of two digests.

    Parameters
    ----------
    X, y, sample_weight, groups, blocks : the data, as of `fit`; without weights each is one
    row_ids : array-like of shape (n_samples,) of different integers, default=None
        None: the positions of the rows.

    Returns
    -------
    str
        512 hexadecimal digits.

    Raises
    ------
    TypeError
        Binned data, whose values are not known, or values other than numbers and categories.
    ValueError
        Ids that repeat or are no integers, or arrays of other lengths.
    """
    if isinstance(X, BinnedData):
        raise TypeError("BinnedData have codes, not the values of rows: pass the table itself")
    n = arrays.count_rows(X)
    ids: Any = validation.check_ids(np.arange(n) if row_ids is None else row_ids, n)
    weight = np.ones(n) if sample_weight is None else sample_weight
    parts = {"X": X, "y": y, "sample_weight": weight, "groups": groups, "blocks": blocks}
    kinds, columns = "", [ids.astype(np.uint64)[:, None]]
    for name, part in parts.items():
        found = [] if part is None else _columns(part, name)
        kinds += name + "".join(str(words.shape[1]) for words in found)
        if wrong := [len(words) for words in found if len(words) != n]:
            raise ValueError(f"{name} has {wrong[0]} rows, and X has {n}")
        columns += found
    head = np.frombuffer(hashlib.sha256(kinds.encode()).digest(), "<u8")
    shake, total = hashlib.shake_128, 0
    for begin in range(0, n, BLOCK):
        block = [words[begin : begin + BLOCK] for words in columns]
        table = np.concatenate([np.broadcast_to(head, (len(block[0]), 4)), *block], axis=1)
        data, width = table.astype("<u8").tobytes(), 8 * table.shape[1]
        rows = (data[at : at + width] for at in range(0, len(data), width))
        total += sum(int.from_bytes(shake(row).digest(BITS // 8), "little") for row in rows)
    return f"{total % 2**BITS:0{BITS // 4}x}"


def _columns(part: Any, name: str) -> list[np.ndarray]:
    """Words u64[N, 1] of each column of numbers, u64[N, 4] of each one of text."""
    part = arrays.to_host(part, name)
    if arrays.is_frame(part):
        return [_words(c.to_numpy(), name) for c in arrays.open_frame(part, name).iter_columns()]
    table = part.toarray() if issparse(part) else np.asarray(part)
    return [_words(column, name) for column in table.reshape(len(table), -1).T]


def _words(column: np.ndarray, name: str) -> np.ndarray:
    """Hashes of texts, zero where one is missing, or bits of numbers, also of those among objects:
    with one pattern of missing values and one zero."""
    if column.dtype.kind not in "biuf":
        codes, known, _ = factorize(column, name)
        codes = np.asarray(codes)
        if any(isinstance(value, str) for value in known):
            digests = [hashlib.sha256(str(value).encode()).digest() for value in known]
            words = np.frombuffer(b"".join([*digests, bytes(32)]), "<u8").reshape(-1, 4)
            return np.asarray(words[codes])
        column = np.array([*known, np.nan], np.float64)[codes]
    values = np.asarray(column, np.float64).reshape(-1, 1) + 0.0  # -0.0 becomes 0.0
    values[np.isnan(values)] = np.nan
    return np.ascontiguousarray(values).view(np.uint64)
