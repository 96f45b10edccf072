"""The rows of leaf tables: equal ones are found by their hashes, and kept once."""

from __future__ import annotations

from typing import Any

import array_api_compat.numpy as host
import numpy as np

from gpuforest.common.hashing import hash_at

Array = Any

SUMS_AT_ONCE = 2**18  # channel sums that are copied at once, at most


def distinct_rows(xp: Any, sums: Array) -> tuple[Array, Array]:
    """The distinct rows of `sums` i64[V, C] in a canonical order, and each row's number among
    them, i64[V]."""
    found = xp.unique_all(row_keys(xp, sums))
    table, number = xp.take(sums, found.indices, axis=0), found.inverse_indices
    same = rows_are(xp, table, number, sums)
    return (table, number) if same else distinct_sorted(xp, sums)


def row_blocks(sums: Array) -> list[tuple[int, int]]:
    V, C = sums.shape
    step = max(1, SUMS_AT_ONCE // C)
    return [(i, min(i + step, V)) for i in range(0, V, step)]


def row_keys(xp: Any, sums: Array) -> Array:
    """A hash u64[V] of each row i64[V, C]."""
    column = xp.arange(sums.shape[1], dtype=xp.uint64, device=sums.device)
    factors = hash_at(xp.zeros_like(column), column) | 1

    def keys(i: int, j: int) -> Array:
        return xp.sum(xp.astype(sums[i:j, :], xp.uint64) * factors, axis=1)

    return xp.concat([keys(i, j) for i, j in row_blocks(sums)])


def rows_are(xp: Any, table: Array, number: Array, sums: Array) -> bool:
    """Whether table[number] equals `sums` i64[V, C]; number : i64[V]."""
    same = xp.ones(sums.shape[1], dtype=xp.bool, device=sums.device)
    for i, j in row_blocks(sums):
        same = same & xp.all(xp.take(table, number[i:j], axis=0) == sums[i:j, :], axis=0)
    return bool(xp.all(same))


def distinct_sorted(xp: Any, sums: Array) -> tuple[Array, Array]:
    """As `distinct_rows`, by sorting, for the case that two different rows have the same hash."""
    order = xp.argsort(sums[:, -1], stable=True)
    for c in range(sums.shape[1] - 2, -1, -1):
        order = xp.take(order, xp.argsort(xp.take(sums[:, c], order), stable=True))
    rows = xp.take(sums, order, axis=0)
    one = xp.ones(1, dtype=xp.bool, device=sums.device)
    first = xp.concat([one, xp.any(rows[1:, :] != rows[:-1, :], axis=1)])
    number = xp.cumulative_sum(xp.astype(first, xp.int64)) - 1
    return rows[first], xp.take(number, xp.argsort(order))


def distinct_of_all(tables: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """`distinct_rows` of several tables on the host, without a copy of all of them."""
    keys = np.concatenate([row_keys(host, t) for t in tables])
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    table, begin, same = np.empty((len(first), tables[0].shape[1]), np.int64), 0, True
    for own in tables:
        here = (first >= begin) & (first < begin + len(own))
        table[here] = own[first[here] - begin]
        begin += len(own)
    begin = 0
    for own in tables:
        same = same and rows_are(host, table, number[begin : begin + len(own)], own)
        begin += len(own)
    return (table, number) if same else distinct_sorted(host, np.concatenate(tables))
