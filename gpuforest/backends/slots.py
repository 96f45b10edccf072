"""Slots: what becomes of the open nodes of a depth, and the slots below those that are split.

`Nodes` does this O(nodes) work in any array-API namespace. The CUDA backend does the same in a few
kernels of its own, because a device takes microseconds for each small operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpuforest.backends.base import Array, Backend, Moved
from gpuforest.common.hashing import hash_at
from gpuforest.core.fit import Fit
from gpuforest.core.frontier import Frontier, Splits
from gpuforest.core.training import Training
from gpuforest.kernels.shared.constants import DEEP, LEAF, NONE, WIDE


def true_positions(xp: Any, upto: Array, n: int) -> Array:
    """The positions i64[n] at which a mask of the running count `upto` i64[S] is true. `xp.nonzero`
    would wait for a device to learn n."""
    return xp.searchsorted(upto, xp.arange(1, n + 1, dtype=xp.int64, device=upto.device))


def pairs(xp: Any, a: Array, b: Array) -> Array:
    """a[0], b[0], a[1], b[1], ...: [2 n, ...] from [n, ...]."""
    return xp.reshape(xp.stack([a, b], axis=1), (2 * a.shape[0], *a.shape[1:]))


class Nodes:
    """The O(nodes) work between kernels, for every backend that has no faster one. It holds
    nothing: the backend is an argument, or that of the training."""

    def in_bag(self, backend: Backend, bags: Array) -> tuple[Array, Array, Array]:
        """Rows and weights i32[R] of bags i32[T, N], tree by tree, and offsets i64[T + 1]."""
        xp = backend.xp
        drawn = bags > 0
        count = xp.astype(xp.count_nonzero(drawn, axis=1), xp.int64)
        rows = xp.astype(xp.nonzero(drawn)[1], xp.int32)
        return rows, bags[drawn], xp.cumulative_sum(count, include_initial=True)

    def roots(self, training: Training, held: tuple[Array, Array, Array], keys: Array) -> Frontier:
        """The slots of depth 0, from what `in_bag` returned and the roots' keys u64[T], without
        bounds or features drawn for trees."""
        backend, xp, (rows, weights, offsets) = training.backend, training.backend.xp, held
        begin, end, T = offsets[:-1], offsets[1:], keys.shape[0]
        sums, constant = backend.totals(training, rows, weights, begin, end)
        return Frontier(
            tree=xp.arange(T, dtype=xp.int32),
            key=keys,
            n_rows=end - begin,
            begin=begin,
            end=end,
            sums=sums,
            constant=constant,
            depth=xp.zeros(T, dtype=xp.int32),
            rows=rows,
            weights=weights,
            n_held=rows.shape[0],
        )

    def sort_out(
        self, training: Training, slots: Frontier, deep_rows: int
    ) -> tuple[Array, Frontier, Frontier]:
        """The kind of each slot, i8[S] of NONE, LEAF, DEEP and WIDE, and the wide and the deep
        slots, which have at most `deep_rows` rows. Nothing else in a level waits for the device."""
        backend, xp, n_rows = training.backend, training.backend.xp, slots.n_rows
        kind = xp.where(n_rows <= deep_rows, xp.asarray(DEEP, dtype=xp.int8), WIDE)
        kind = xp.where(slots.must_end(xp, training.rules), LEAF, kind)
        kind = xp.where(n_rows == 0, NONE, kind)
        masks = xp.stack([kind == WIDE, kind == DEEP])
        upto = xp.cumulative_sum(xp.astype(masks, xp.int64), axis=1)
        held = xp.sum(xp.where(masks, slots.n_stored[None, :], 0), axis=1)
        numbers = backend.asnumpy(xp.concat([upto[:, -1], held]))
        n_wide, n_deep, rows_wide, rows_deep = numbers.tolist()
        wide = slots.take(xp, true_positions(xp, upto[0, :], n_wide), rows_wide)
        return kind, wide, slots.take(xp, true_positions(xp, upto[1, :], n_deep), rows_deep)

    def children(
        self, training: Training, wide: Frontier, splits: Splits, moved: Moved
    ) -> Frontier:
        """Two slots for each wide slot, left before right, without bounds, from what
        `Backend.partition` returned; they hold no rows if it is a leaf."""
        backend, xp, (rows, weights, n_left) = training.backend, training.backend.xp, moved
        size = rows.shape[0]
        begin = (wide.begin + size // 2) % max(size, 1)  # in the other half
        middle = begin + n_left
        end = begin + xp.where(splits.feature >= 0, wide.n_stored, 0)
        begin, end = pairs(xp, begin, middle), pairs(xp, middle, end)
        sums = pairs(xp, splits.left, wide.sums - splits.left)
        sides = xp.arange(2, dtype=xp.uint64)
        return Frontier(
            tree=xp.repeat(wide.tree, 2),
            key=xp.reshape(hash_at(wide.key[:, None], sides[None, :]), (-1,)),
            n_rows=end - begin,
            begin=begin,
            end=end,
            sums=sums,
            constant=backend.totals(training, rows, weights, begin, end, sums)[1],
            depth=xp.repeat(wide.depth + 1, 2),
            rows=rows,
            weights=weights,
            n_held=wide.n_held,
            allowed=wide.allowed,
        )

    def join(
        self, backend: Backend, parts: list[Frontier], rows: Array, weights: Array
    ) -> Frontier:
        """The slots of several frontiers of one wave, which hold these rows."""
        return Frontier.join(backend.xp, parts, rows, weights)

    def distinct_rows(self, backend: Backend, sums: Array) -> tuple[np.ndarray, np.ndarray]:
        """The distinct rows of `sums` i64[V, C] in a canonical order, and the number of each row
        among them, i64[V], both on the host: see assembly.py."""
        return distinct_rows([backend.asnumpy(sums)])

    def wave_bytes(self, backend: Backend, fit: Fit, n_trees: int) -> float:
        """Bytes of a wave of trees while it grows or is pruned, without bags and grown trees: a
        level takes the budget, the rows in two halves, and the nodes."""
        return backend.memory_budget + n_trees * fit.bag_rows * (48 + 12 * fit.n_channels)


def bounds_below(xp: Any, slots: Frontier, values: Array, sign: Array) -> Array:
    """Bounds f64[2 S, 2] of the two sides of each slot's split: one by a feature of sign -1 or 1
    (i8[S]) divides the slot's bounds at the middle of the values f64[2 S] of its sides.
    """
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
    training: Training, sums: Array, begin: Array, end: Array,
    differs: Callable[[Array, Array], Array],
) -> Array:  # fmt: skip
    """Whether all targets of a slot are equal, bool[S], from its sums i64[S, C]: of classes these
    show it. Equal moments equal their mean, so it is a whole number: only
    rows of slots with such a mean are compared with it, by `differs` of the slots' ends, which are
    their beginnings where there is nothing to compare, and means i64[S, K].
    """
    xp = training.backend.xp
    if not sums.shape[0]:
        return begin > end
    if training.target.coding.is_classes:
        return xp.max(sums, axis=1) == xp.sum(sums, axis=1)
    weight, moments = xp.maximum(sums[:, :1], 1), sums[:, 1:]
    mean = moments // weight
    whole = xp.all(mean * weight == moments, axis=1)
    return whole & ~differs(xp.where(whole, end, begin), mean)


SUMS_AT_ONCE = 2**18  # channel sums that are copied at once, at most


def distinct_rows(tables: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows of tables i64[..., C] in a canonical order, and the number among them of
    each row of all tables, i64[V]. Equal rows are found by their hashes."""
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
