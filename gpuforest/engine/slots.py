"""Slots: what becomes of the open nodes of a depth, and the slots below those that are split.

This is O(nodes) work in any array-API namespace. The CUDA backend does the same in a few kernels
of its own (kernels/slots), because a device takes microseconds for each small operation; its
results are equal to these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuforest.common.hashing import hash_at
from gpuforest.engine.records import Frontier, Rules, Splits, Training
from gpuforest.kernels.shared.constants import DEEP, LEAF, NONE, WIDE

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend

Array = Any


def true_positions(xp: Any, upto: Array, n: int) -> Array:
    """The positions i64[n] at which a mask bool[S] is true.

    `upto` i64[S] is the mask's running count. `xp.nonzero` would wait for a device to learn n.
    """
    return xp.searchsorted(upto, xp.arange(1, n + 1, dtype=xp.int64, device=upto.device))


def pairs(xp: Any, a: Array, b: Array) -> Array:
    """a[0], b[0], a[1], b[1], ...: [2 n, ...] from [n, ...]."""
    return xp.reshape(xp.stack([a, b], axis=1), (2 * a.shape[0], *a.shape[1:]))


def exclusive(xp: Any, mask: Array) -> Array:
    """The number of true elements before each position of a mask bool[S]: i64[S]."""
    count = xp.astype(mask, xp.int64)
    return xp.cumulative_sum(count) - count


def sort_out(
    backend: Backend, slots: Frontier, rules: Rules, deep_rows: int
) -> tuple[Array, Frontier, Frontier]:
    """The kind of each slot, i8[S] of NONE, LEAF, DEEP and WIDE, and the wide and the deep slots.
    Nothing else in a level waits for the device."""
    xp, n_rows, stored = backend.xp, slots.n_rows, slots.n_stored
    deep = xp.asarray(DEEP, dtype=xp.int8, device=backend.device)
    kind = xp.where(n_rows <= deep_rows, deep, WIDE)
    kind = xp.where(slots.must_end(xp, rules), LEAF, kind)
    kind = xp.where(n_rows == 0, NONE, kind)
    masks = xp.stack([kind == WIDE, kind == DEEP])
    upto = xp.cumulative_sum(xp.astype(masks, xp.int64), axis=1)
    held = xp.sum(xp.where(masks, stored[None, :], 0), axis=1)
    numbers = backend.asnumpy(xp.concat([upto[:, -1], held]))
    n_wide, n_deep, rows_wide, rows_deep = numbers.tolist()
    wide = slots.take(xp, true_positions(xp, upto[0, :], n_wide), rows_wide)
    return kind, wide, slots.take(xp, true_positions(xp, upto[1, :], n_deep), rows_deep)


def roots(training: Training, rows: Array, weights: Array, offsets: Array, keys: Array) -> Frontier:
    """The slots of depth 0, without bounds or features drawn for trees.

    rows, weights, offsets : what `Backend.in_bag` returned
    keys : u64[T]
    """
    backend, xp = training.backend, training.backend.xp
    begin, end, T = offsets[:-1], offsets[1:], keys.shape[0]
    sums = backend.totals(training, rows, weights, begin, end)
    return Frontier(
        tree=xp.arange(T, dtype=xp.int32, device=backend.device),
        key=keys,
        n_rows=end - begin,
        begin=begin,
        end=end,
        sums=sums,
        constant=all_equal(training, sums, rows, begin, end),
        depth=xp.zeros(T, dtype=xp.int32, device=backend.device),
        rows=rows,
        weights=weights,
        n_held=rows.shape[0],
    )


def children(
    training: Training, wide: Frontier, splits: Splits, rows: Array, weights: Array, n_left: Array
) -> Frontier:
    """Two slots for each wide slot, left before right, without bounds; they hold no rows if it is
    a leaf.

    rows, weights, n_left : what `Backend.partition` returned
    """
    backend, xp = training.backend, training.backend.xp
    size = rows.shape[0]
    begin = (wide.begin + size // 2) % max(size, 1)  # in the other half
    middle = begin + n_left
    end = begin + xp.where(splits.feature >= 0, wide.n_stored, 0)
    begin, end = pairs(xp, begin, middle), pairs(xp, middle, end)
    sums = pairs(xp, splits.left, wide.sums - splits.left)
    sides = xp.arange(2, dtype=xp.uint64, device=backend.device)
    return Frontier(
        tree=xp.repeat(wide.tree, 2),
        key=xp.reshape(hash_at(wide.key[:, None], sides[None, :]), (-1,)),
        n_rows=end - begin,
        begin=begin,
        end=end,
        sums=sums,
        constant=all_equal(training, sums, rows, begin, end),
        depth=xp.repeat(wide.depth + 1, 2),
        rows=rows,
        weights=weights,
        n_held=wide.n_held,
        allowed=wide.allowed,
    )


def bounds_below(xp: Any, slots: Frontier, means: Array, sign: Array) -> Array:
    """Bounds f64[2 S, 2] of the two sides of each slot's split.

    A split by a feature of sign -1 or 1 (`sign` i8[S]) divides the slot's bounds at the middle of
    the means (or medians) f64[2 S] of its two sides.
    """
    assert slots.bounds is not None
    middle, (least, most) = (means[0::2] + means[1::2]) * 0.5, (slots.bounds[:, i] for i in (0, 1))
    sides = [
        xp.stack(
            [xp.where(sign == -way, middle, least), xp.where(sign == way, middle, most)], axis=1
        )
        for way in (1, -1)
    ]
    return xp.reshape(xp.stack(sides, axis=1), (-1, 2))


def all_equal(training: Training, sums: Array, rows: Array, begin: Array, end: Array) -> Array:
    """Whether all targets of a slot are equal, bool[S], from its sums i64[S, C].

    For classes, the sums show it. Equal moments equal their mean, so it is a whole number: only
    slots with such a mean compare their rows with it.
    """
    xp = training.backend.xp
    if not sums.shape[0]:
        return begin > end
    if training.target.coding.is_classes:
        return xp.max(sums, axis=1) == xp.sum(sums, axis=1)
    weight, moments = xp.maximum(sums[:, :1], 1), sums[:, 1:]
    mean = moments // weight
    whole = xp.all(mean * weight == moments, axis=1)
    end = xp.where(whole, end, begin)
    return whole & ~training.backend.differs(training, rows, begin, end, mean)
