"""What becomes of the open nodes of a depth (slots): functions of any array-API namespace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from gpuforest.common.dtypes import Array
from gpuforest.common.hashing import hash_at
from gpuforest.core.frontier import Frontier
from gpuforest.core.training import Training

SUMS_AT_ONCE = 2**18  # channel sums that are copied at once, at most


def true_positions(xp: Any, upto: Array, n: int) -> Array:
    """Positions i64[n] at which a mask of running count `upto` i64[S] is true. `xp.nonzero` would
    wait for a device to learn n."""
    return xp.searchsorted(upto, xp.arange(1, n + 1, dtype=xp.int64, device=upto.device))


def pairs(xp: Any, a: Array, b: Array) -> Array:
    """a[0], b[0], a[1], b[1], ...: [2 n, ...] from [n, ...]."""
    return xp.reshape(xp.stack([a, b], axis=1), (2 * a.shape[0], *a.shape[1:]))


def bounds_below(xp: Any, slots: Frontier, values: Array, sign: Array) -> Array:
    """Bounds f64[2 S, 2] of both sides of each slot's split by a feature of sign -1 or 1 (i8[S]).
    The middle of the sides' values f64[2 S] divides the slot's bounds."""
    assert slots.bounds is not None
    sides = xp.reshape(values, (-1, 2))
    middle, (least, most) = (sides[:, 0] + sides[:, 1]) * 0.5, (slots.bounds[:, i] for i in (0, 1))
    sides = [
        xp.stack(
            [xp.where(sign == -way, middle, least), xp.where(sign == way, middle, most)], axis=1
        )
        for way in (1, -1)
    ]
    return xp.reshape(xp.stack(sides, axis=1), (-1, 2))


def all_equal(
    xp: Any, training: Training, sums: Array, begin: Array, end: Array,
    differs: Callable[[Array, Array], Array],
) -> Array:  # fmt: skip
    """True for slots whose targets are all equal, bool[S], from sums i64[S, C]. Sums of classes
    show it. Equal moments have a whole mean: slots with one are compared with means i64[S, K] by
    `differs`, which takes their ends (equal to `begin` where nothing is compared)."""
    if not sums.shape[0]:
        return begin > end
    if training.target.coding.is_classes:
        return xp.max(sums, axis=1) == xp.sum(sums, axis=1)
    weight, moments = xp.maximum(sums[:, :1], 1), sums[:, 1:]
    mean = moments // weight
    whole = xp.all(mean * weight == moments, axis=1)
    return whole & ~differs(xp.where(whole, end, begin), mean)


def distinct_rows(tables: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows of tables i64[..., C] in canonical order, by hashes; number of each row
    i64[V]."""
    keys = np.concatenate([row_keys(table) for table in tables])
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    table, begin = np.empty((len(first), tables[0].shape[1]), np.int64), 0
    for rows in tables:
        inside = (first >= begin) & (first < begin + len(rows))
        table[inside] = rows[first[inside] - begin]
        begin += len(rows)
    begin, same = 0, True
    for rows in tables:
        for i, j in row_blocks(rows):
            same = same and np.array_equal(table[number[begin + i : begin + j]], rows[i:j])
        begin += len(rows)
    return (table, number) if same else distinct_sorted(np.concatenate(tables))


def row_blocks(sums: np.ndarray) -> list[tuple[int, int]]:
    """Ranges of rows that are copied at once."""
    V, C = sums.shape
    step = max(1, SUMS_AT_ONCE // C)
    return [(i, min(i + step, V)) for i in range(0, V, step)]


def row_keys(sums: np.ndarray) -> np.ndarray:
    """A hash u64[V] of each row i64[V, C]."""
    column = np.arange(sums.shape[1], dtype=np.uint64)
    factors, keys = hash_at(np.zeros_like(column), column) | np.uint64(1), [sums[:0, 0]]
    keys += [np.sum(sums[i:j].astype(np.uint64) * factors, axis=1) for i, j in row_blocks(sums)]
    return np.concatenate(keys, dtype=np.uint64, casting="unsafe")


def distinct_sorted(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As `distinct_rows`, by sorting, for the case that two different rows have the same hash."""
    table, number = np.unique(sums, axis=0, return_inverse=True)
    return table, number.reshape(-1)


def gathered(xp: Any, slots: Frontier) -> Frontier:
    """The slots with rows one after another, numbered 0, 1, ..."""
    count, position = slots.local_rows, held(xp, slots)[1]
    end = xp.cumulative_sum(count)
    return replace(
        slots,
        rows=xp.arange(position.shape[0], dtype=xp.int32),
        weights=xp.take(slots.weights, position),
        begin=end - count,
        end=end,
        max_rows=int(position.shape[0]),
        allowed=None,
    )


def held(xp: Any, slots: Frontier) -> tuple[Array, Array]:
    """The slot of every row of all slots, in order, and its position in `rows`, i64[n] both."""
    count = slots.local_rows
    slot = xp.repeat(xp.arange(slots.n_slots, dtype=xp.int64), count)
    number = xp.arange(slot.shape[0], dtype=xp.int64)
    move = slots.begin - (xp.cumulative_sum(count) - count)
    return slot, number + xp.take(move, slot)
