"""The least bytes that each operation moves through the device's memory, by arithmetic.

Each input is read once and each output written once, whole sectors of 32 bytes where rows
are gathered; what a cache has already is not counted again. Over the time of the operation,
and over the bandwidth of a copy, that says how far from the limit it is.

    R rows of all slots    S slots    N rows of data    a row of codes: `stride` bytes
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

SECTOR = 32
ID = WEIGHT = 4
SUM = NODE = 8


def gathered(n: float, share: float, size: int) -> float:
    """Bytes read for n elements of `size` bytes: a random share of an array, in its order.

    A sector holds m elements, and is read with the probability 1 - (1 - share)^m.
    """
    if not n:
        return 0.0
    if size >= SECTOR:
        return n * math.ceil(size / SECTOR) * SECTOR
    m = SECTOR // size
    return n * SECTOR * (1 - (1 - min(share, 1.0)) ** m) / (m * share)


def looked_up(n: float, share: float, stride: int, k: int) -> float:
    """Bytes read for k random features of n rows of codes."""
    sectors = math.ceil(stride / SECTOR)
    if sectors == 1:
        return gathered(n, share, stride)
    return n * SECTOR * sectors * (1 - (1 - 1 / sectors) ** k)


def encode(X: Any, edges: Any, *, found: Any) -> float:
    return X.nbytes + found.nbytes  # values read, codes written


def bag(*_: Any, found: Any) -> float:
    return 2 * found.nbytes  # zeros, then counts


def in_bag(_: Any, bags: Any, *, found: Any) -> float:
    return 2 * bags.nbytes + found[0].nbytes + found[1].nbytes  # counted, then taken


def sums(training: Any, rows: Any, weights: Any, begin: Any, end: Any, *, found: Any) -> float:
    R, y = rows.shape[0], training.target.y
    share = R / max(1, begin.shape[0]) / y.shape[0]
    return R * (ID + WEIGHT) + gathered(R, share, y.nbytes // y.shape[0])


def level(training: Any, slots: Any, *, found: Any) -> float:
    """One round of features: histograms from rows, splits from histograms."""
    R, S, matrix = slots.n_held, slots.n_slots, training.matrix
    N, y = matrix.n_rows, training.target.y
    if not S:
        return 0.0
    share, stride = R / S / N, matrix.codes.shape[1] * matrix.codes.itemsize
    k = training.rules.n_tried
    cells = S * k * training.n_codes * training.n_channels
    return (
        R * (ID + WEIGHT)
        + gathered(R, share, y.nbytes // N)
        + looked_up(R, share, stride, k)
        + 2 * SUM * cells  # written as zeros and read; sums meet in the cache
    )


def partition(training: Any, slots: Any, *_: Any, found: Any) -> float:
    """Which way each row goes, as a bit; then rows and weights move."""
    R, S, matrix = slots.n_held, slots.n_slots, training.matrix
    N = matrix.n_rows
    share = R / max(1, S) / N
    stride = matrix.codes.shape[1] * matrix.codes.itemsize
    return R * (ID + 2 / 8 + 2 * (ID + WEIGHT)) + looked_up(R, share, stride, 1)


def grow_subtrees(training: Any, slots: Any, *, found: Any) -> float:
    """Rows are read once; nodes are written with gaps, two for each row, and then without."""
    R, S, matrix = slots.n_held, slots.n_slots, training.matrix
    N, y = matrix.n_rows, training.target.y
    share = R / max(1, S) / N
    stride = matrix.codes.shape[1] * matrix.codes.itemsize
    nodes, sums = found.nodes.nbytes, found.leaf_sums.nbytes
    return (
        R * (ID + WEIGHT)
        + gathered(R, share, stride)
        + gathered(R, share, y.nbytes // N)
        + 2 * (2 * R * NODE)  # zeros written; read when they are collected
        + 2 * nodes
        + 3 * sums
    )


def accumulate(
    forest: Any, codes: Any, trees: range, skip: Any, total: Any, *, found: Any
) -> float:
    return codes.nbytes + 2 * found.nbytes + (0 if skip is None else skip.nbytes)


def apply(forest: Any, codes: Any, *, found: Any) -> float:
    return codes.nbytes + found.nbytes


def asarray(host: Any, *, found: Any) -> float:
    return found.nbytes if isinstance(host, np.ndarray) else 0  # over the bus


def asnumpy(*_: Any, found: Any) -> float:
    return found.nbytes


TRAFFIC: dict[str, Callable[..., float]] = {
    f.__name__: f
    for f in (
        encode, bag, in_bag, sums, level, partition, grow_subtrees, accumulate, apply,
        asarray, asnumpy,
    )
}  # fmt: skip
