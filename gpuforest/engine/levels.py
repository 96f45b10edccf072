"""Levels: what became of the slots of each depth, and where their nodes lie in the trees.

The sizes of subtrees give each node its position: sizes are added up from the deepest level to
the roots, and positions follow from the roots down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpuforest.engine.slots import pairs
from gpuforest.kernels.shared.constants import DEEP, NONE, WIDE

Array = Any


@dataclass(frozen=True, eq=False)
class Level:
    """What became of the S slots of one depth, on the backend's device.

    kind : i8[S], NONE, LEAF, DEEP or WIDE
    tree : i32[S]
    sums : i64[S, C]
    rank : i64[S], the number of a wide slot among the wide ones, of a deep slot among the deep
    wide : i64[W], the wide slots; slots 2 i and 2 i + 1 of the next level are below wide[i]
    feature, bin, missing_left : i32[W], i32[W], bool[W], the splits of the wide slots; a feature
        of -1 means that the split was refused and the slot is a leaf
    sets : u64[W, ...], the sets of splits by categories, see frontier.Splits
    n_deep : int, number of deep slots
    """

    kind: Array
    tree: Array
    sums: Array
    rank: Array
    wide: Array
    feature: Array
    bin: Array
    missing_left: Array
    sets: Array
    n_deep: int


def exclusive(xp: Any, mask: Array) -> Array:
    """The number of true elements before each position of a mask bool[S]: i64[S]."""
    count = xp.astype(mask, xp.int64)
    return xp.cumulative_sum(count) - count


def spread(xp: Any, mask: Array, rank: Array, values: Array) -> Array:
    """i64[S]: values[rank] where `mask` bool[S] is true, and zero elsewhere.

    rank : i64[S]; values : i64[n > 0]
    """
    return xp.where(mask, xp.take(values, xp.where(mask, rank, 0)), 0)


def subtree_sizes(levels: list[Level], blocks: Array, xp: Any) -> list[Array]:
    """The number of nodes at and below each slot, i64[S] for each level.

    blocks : i64[D], these numbers for the deep slots of all levels
    """
    sizes: list[Array] = []
    more, last = blocks - 1, blocks.shape[0]
    for level in reversed(levels):
        first, kind = last - level.n_deep, level.kind
        size = xp.astype(kind > NONE, xp.int64)
        if level.n_deep:
            size = size + spread(xp, kind == DEEP, level.rank, more[first:last])
        if level.wide.shape[0]:
            below = sizes[-1][0::2] + sizes[-1][1::2]  # nothing below a refused split
            size = size + spread(xp, kind == WIDE, level.rank, below)
        sizes.append(size)
        last = first
    return sizes[::-1]


def node_positions(levels: list[Level], sizes: list[Array], xp: Any) -> list[tuple[Array, Array]]:
    """For each level, the position of each slot's node in its tree, i64[S], and the position
    where its descendants begin, i64[S]."""
    position = xp.zeros_like(sizes[0])
    below = position + 1
    found = [(position, below)]
    for level, children in zip(levels, sizes[1:], strict=False):
        first = xp.take(below, level.wide)
        position = pairs(xp, first, first + 1)
        below = pairs(xp, first + 2, first + 1 + children[0::2])
        found.append((position, below))
    return found


def positions(levels: list[Level], blocks: Array, xp: Any) -> tuple[Array, Array, Array]:
    """The number of nodes of each tree, i64[T]; and for the slots of all levels, the position of
    each slot's node in its tree, and where its descendants begin, both i64[...].

    blocks : i64[D], the number of nodes of the subtrees of the deep slots of all levels
    """
    sizes = subtree_sizes(levels, blocks, xp)
    position, below = zip(*node_positions(levels, sizes, xp), strict=True)
    return sizes[0], xp.concat(list(position)), xp.concat(list(below))
