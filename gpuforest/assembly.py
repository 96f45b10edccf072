"""Assembly: the levels of a wave become trees in the order of nodes.py.

Where a node lies follows from the sizes of subtrees: sizes add up from the deepest level
to the roots, places are handed down from the roots. Subtrees grown whole are contiguous
in that order and are moved as blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import array_api_compat.numpy as host
import numpy as np

from gpuforest.dtypes import OFFSET
from gpuforest.frontier import Subtrees
from gpuforest.hashing import hash_at
from gpuforest.nodes import CHILD_SHIFT, LEAF_MASK, LEAF_WORD, is_leaf

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend
    from gpuforest.target import TargetCoding

Array = Any


# What a slot is; a wide one whose split was refused becomes a leaf. NONE: no slot at all,
# one of the two that follow a leaf
NONE, LEAF, DEEP, WIDE = range(4)


@dataclass(frozen=True, eq=False)
class Level:
    """What became of the S slots of one depth, on the backend's device.

    kind : i8[S], above; WIDE is a split
    tree : i32[S]
    word : u64[S], packed splits without their child
    sums : i64[S, C]
    is_wide : bool[S], the slots that a split was sought for
    wide : i64[W], their numbers; two slots of the next level, 2 i and 2 i + 1, belong to
        the i-th of them
    n_deep : int, deep slots
    """

    kind: Array
    tree: Array
    word: Array
    sums: Array
    is_wide: Array
    wide: Array
    n_deep: int


@dataclass(frozen=True, eq=False)
class WaveTrees:
    """Finished trees of a wave: host arrays.

    nodes : u64[M]; leaves point into leaf_sums
    tree_sizes : i64[T]
    leaf_sums : i64[V, C], the canonical table, see `leaf_table`
    """

    nodes: np.ndarray
    tree_sizes: np.ndarray
    leaf_sums: np.ndarray


def exclusive(xp: Any, mask: Array) -> Array:
    """How many places before each are true, i64[S]."""
    count = xp.astype(mask, xp.int64)
    return xp.cumulative_sum(count) - count


def pairs(xp: Any, a: Array, b: Array) -> Array:
    """a[0], b[0], a[1], b[1], ...: [2 n, ...] from [n, ...]."""
    return xp.reshape(xp.stack([a, b], axis=1), (2 * a.shape[0], *a.shape[1:]))


def spread(xp: Any, mask: Array, values: Array) -> Array:
    """Values [n] at the n true places of `mask` bool[S], zero elsewhere: [S]."""
    if values.shape[0] == 0:
        return xp.zeros(mask.shape, dtype=values.dtype, device=mask.device)
    found = xp.take(values, xp.where(mask, exclusive(xp, mask), 0))
    return xp.where(mask, found, xp.zeros_like(found))


def subtree_sizes(levels: list[Level], blocks: Array, xp: Any) -> list[Array]:
    """Nodes at and below each slot of each level, i64[S]; blocks i64[D]: of the deep ones."""
    sizes: list[Array] = []
    last = blocks.shape[0]
    for level in reversed(levels):
        first = last - level.n_deep
        deep = level.kind == DEEP
        size = xp.where(deep, spread(xp, deep, blocks[first:last]), 1)
        size = xp.where(level.kind == NONE, xp.zeros_like(size), size)
        if sizes:
            below = sizes[-1][0::2] + sizes[-1][1::2]  # nothing below a refused split
            size = size + spread(xp, level.is_wide, below)
        sizes.append(size)
        last = first
    return sizes[::-1]


def node_places(levels: list[Level], sizes: list[Array], xp: Any) -> list[tuple[Array, Array]]:
    """Where each slot's node lies in its tree and where its descendants begin, i64[S]."""
    place = xp.zeros_like(sizes[0])
    below = place + 1
    places = [(place, below)]
    for level, children in zip(levels, sizes[1:], strict=False):
        first = xp.take(below, level.wide)
        place = pairs(xp, first, first + 1)
        below = pairs(xp, first + 2, first + 1 + children[0::2])
        places.append((place, below))
    return places


def assemble(
    levels: list[Level], trees: Subtrees, coding: TargetCoding, backend: Backend
) -> WaveTrees:
    """Trees of a wave from its levels, of which the first holds the roots, one a tree."""
    xp = backend.xp
    blocks = trees.offsets[1:] - trees.offsets[:-1]
    sizes = subtree_sizes(levels, blocks, xp)
    place, below = (
        xp.concat(list(part)) for part in zip(*node_places(levels, sizes, xp), strict=True)
    )
    kind, tree, word = (
        xp.concat([getattr(v, n) for v in levels]) for n in ("kind", "tree", "word")
    )
    begin = xp.take(xp.cumulative_sum(sizes[0]) - sizes[0], xp.astype(tree, xp.int64))
    # 1. the nodes of the levels, a piece each
    leaf, deep, single = kind == LEAF, kind == DEEP, (kind == LEAF) | (kind == WIDE)
    number = xp.astype(exclusive(xp, leaf), xp.uint64)
    split = word + (xp.astype(below, xp.uint64) << CHILD_SHIFT)
    words, at = xp.where(leaf, number + LEAF_WORD, split)[single], (begin + place)[single]
    leaf_sums = xp.concat([level.sums for level in levels])[leaf]
    # 2. the subtrees, two pieces each: the root lies beside its sibling
    below = below[deep]
    nodes = xp.concat([words, moved(trees, below - 1, leaf_sums.shape[0], xp)])
    first = xp.concat([at, pairs(xp, (begin + place)[deep], begin[deep] + below)])
    length = xp.concat([xp.ones_like(at), pairs(xp, xp.ones_like(blocks), blocks - 1)])
    # 3. all in one order; the trees leave the device here
    nodes = in_order(nodes, first, length, backend)
    nodes, table = leaf_table(xp, nodes, xp.concat([leaf_sums, trees.leaf_sums]), coding)
    return WaveTrees(*(backend.asnumpy(a) for a in (nodes, sizes[0], table)))


def moved(trees: Subtrees, shift: Array, first_leaf: int, xp: Any) -> Array:
    """Nodes of blocks u64[...] with children `shift` i64[D] places on and leaves renumbered."""
    leaf = xp.astype(trees.leaf_offsets[:-1] + first_leaf, xp.uint64)
    blocks = trees.offsets[1:] - trees.offsets[:-1]
    child = xp.repeat(xp.astype(shift, xp.uint64) << CHILD_SHIFT, blocks)
    return trees.nodes + xp.where(is_leaf(trees.nodes), xp.repeat(leaf, blocks), child)


def in_order(nodes: Array, begin: Array, length: Array, backend: Backend) -> Array:
    """Pieces of `nodes`, given one after another by their lengths, sorted by `begin`."""
    xp = backend.xp
    order = xp.argsort(begin, stable=True)
    source = xp.take(xp.cumulative_sum(length) - length, order)
    length = xp.take(length, order)
    shift = xp.repeat(source - (xp.cumulative_sum(length) - length), length)
    return xp.take(nodes, shift + xp.arange(nodes.shape[0], dtype=xp.int64, device=backend.device))


def leaf_table(xp: Any, nodes: Array, sums: Array, coding: TargetCoding) -> tuple[Array, Array]:
    """Nodes u64[M] and leaf sums i64[V, C] with the leaves in their canonical order.

    Of classes every distinct row is kept once (pure leaves of small weight are most of
    a forest), ordered by a hash; moments hardly repeat, and are kept in node order.
    """
    leaf = is_leaf(nodes)
    number = xp.astype(xp.where(leaf, nodes & LEAF_MASK, 0), xp.int64)
    if coding.is_classes:
        sums, inverse = distinct_rows(xp, sums)
        number = xp.take(inverse, number)
    else:
        sums, number = xp.take(sums, number[leaf], axis=0), exclusive(xp, leaf)
    return xp.where(leaf, xp.astype(number, xp.uint64) + LEAF_WORD, nodes), sums


def distinct_rows(xp: Any, sums: Array) -> tuple[Array, Array]:
    """Distinct rows i64[V, C] in a canonical order, and each row's number among them."""
    zero, key = np.zeros(1, np.uint64), xp.astype(xp.zeros_like(sums[:, 0]), xp.uint64)
    for c in range(sums.shape[1]):
        key = key + xp.astype(sums[:, c], xp.uint64) * (int(hash_at(zero, c)[0]) | 1)
    found = xp.unique_all(key)
    table, inverse = xp.take(sums, found.indices, axis=0), found.inverse_indices
    same = found.counts[:1] > 0
    for c in range(sums.shape[1]):
        same = same & xp.all(xp.take(table[:, c], inverse) == sums[:, c])
    return (table, inverse) if bool(xp.all(same)) else _distinct_sorted(xp, sums)


def _distinct_sorted(xp: Any, sums: Array) -> tuple[Array, Array]:
    """The same by sorting, for the case that two rows have one key."""
    order = xp.argsort(sums[:, -1], stable=True)
    for c in range(sums.shape[1] - 2, -1, -1):
        order = xp.take(order, xp.argsort(xp.take(sums[:, c], order), stable=True))
    rows = xp.take(sums, order, axis=0)
    one = xp.ones(1, dtype=xp.bool, device=sums.device)
    first = xp.concat([one, xp.any(rows[1:, :] != rows[:-1, :], axis=1)])
    number = xp.cumulative_sum(xp.astype(first, xp.int64)) - 1
    return rows[first], xp.take(number, xp.argsort(order))


def merge_waves(
    waves: list[WaveTrees], coding: TargetCoding
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes u64[M], tree offsets i64[T + 1] and leaf sums i64[V, C] of all waves' trees."""
    if len(waves) == 1:
        wave = waves[0]
        offsets = np.concatenate([[0], np.cumsum(wave.tree_sizes)]).astype(OFFSET)
        return wave.nodes, offsets, wave.leaf_sums
    first = np.cumsum([0] + [len(w.leaf_sums) for w in waves[:-1]])
    nodes = np.concatenate(
        [w.nodes + is_leaf(w.nodes) * np.uint64(f) for w, f in zip(waves, first, strict=True)]
    )
    sizes = np.concatenate([[0], *(w.tree_sizes for w in waves)])
    sums = np.concatenate([w.leaf_sums for w in waves])
    if coding.is_classes:
        nodes, sums = leaf_table(host, nodes, sums, coding)
    return nodes, np.cumsum(sizes).astype(OFFSET), sums
