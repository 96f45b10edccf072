"""Assembly: the levels of a wave become trees in the order of nodes.py.

Where a node lies follows from the sizes of subtrees: sizes add up from the deepest level
to the roots, places are handed down from the roots. Subtrees grown whole are contiguous
in that order and are moved as blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.dtypes import OFFSET
from gpuforest.frontier import Subtrees
from gpuforest.hashing import hash_at
from gpuforest.nodes import CHILD_SHIFT, LEAF_MASK, LEAF_WORD, is_leaf

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend
    from gpuforest.target import TargetCoding

Array = Any


@dataclass(frozen=True, eq=False)
class Level:
    """What became of the S slots of one depth, on the backend's device.

    tree : i32[S]
    is_split, is_deep : bool[S]; neither: a leaf. Children of the i-th split are the
        slots 2 i and 2 i + 1 of the next level.
    word : u64[S], packed splits without their child
    leaf_sums : i64[leaves, C]
    subtrees : the deep slots' subtrees, in the order of the slots
    """

    tree: Array
    is_split: Array
    is_deep: Array
    word: Array
    leaf_sums: Array
    subtrees: Subtrees


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


def subtree_sizes(levels: list[Level], xp: Any) -> list[Array]:
    """Nodes at and below each slot of each level, i64[S]."""
    sizes: list[Array] = []
    for level in reversed(levels):
        blocks = level.subtrees.offsets[1:] - level.subtrees.offsets[:-1]
        size = xp.where(level.is_deep, spread(xp, level.is_deep, blocks), 1)
        if sizes:
            below = sizes[-1][0::2] + sizes[-1][1::2]
            size = size + spread(xp, level.is_split, below)
        sizes.append(size)
    return sizes[::-1]


def node_places(levels: list[Level], sizes: list[Array], xp: Any) -> list[tuple[Array, Array]]:
    """Where each slot's node lies in its tree and where its descendants begin, i64[S]."""
    place = xp.zeros_like(sizes[0])
    below = place + 1
    places = [(place, below)]
    for level, children in zip(levels, sizes[1:], strict=False):
        first = below[level.is_split]
        place = pairs(xp, first, first + 1)
        below = pairs(xp, first + 2, first + 1 + children[0::2])
        places.append((place, below))
    return places


def assemble(levels: list[Level], coding: TargetCoding, backend: Backend) -> WaveTrees:
    """Trees of a wave from its levels; the first holds the roots, one a tree."""
    xp = backend.xp
    sizes = subtree_sizes(levels, xp)
    tree_begin = xp.cumulative_sum(sizes[0]) - sizes[0]
    # pieces of the result: their nodes, where they begin, how long they are
    nodes, begin, length, leaf_sums = [], [], [], []
    n_leaves = 0
    for level, (place, below) in zip(levels, node_places(levels, sizes, xp), strict=True):
        tree = xp.take(tree_begin, xp.astype(level.tree, xp.int64))
        # 1. the wide slots, a piece each
        leaf, wide = ~level.is_split & ~level.is_deep, ~level.is_deep
        number = xp.astype(exclusive(xp, leaf) + n_leaves, xp.uint64)
        split = level.word + (xp.astype(below, xp.uint64) << CHILD_SHIFT)
        nodes.append(xp.where(leaf, number + LEAF_WORD, split)[wide])
        begin.append((tree + place)[wide])
        length.append(xp.ones_like(begin[-1]))
        leaf_sums.append(level.leaf_sums)
        n_leaves += level.leaf_sums.shape[0]
        # 2. the subtrees, two pieces each: the root lies beside its sibling
        trees, deep = level.subtrees, level.is_deep
        nodes.append(moved(trees, below[deep] - 1, n_leaves, xp))
        begin.append(pairs(xp, (tree + place)[deep], (tree + below)[deep]))
        blocks = trees.offsets[1:] - trees.offsets[:-1]
        length.append(pairs(xp, xp.ones_like(blocks), blocks - 1))
        leaf_sums.append(trees.leaf_sums)
        n_leaves += trees.leaf_sums.shape[0]
    words = in_order(xp.concat(nodes), xp.concat(begin), xp.concat(length), backend)
    # the trees leave the device here
    sums = backend.asnumpy(xp.concat(leaf_sums))
    words, table = leaf_table(backend.asnumpy(words), sums, coding)
    return WaveTrees(words, backend.asnumpy(sizes[0]), table)


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


def leaf_table(
    nodes: np.ndarray, sums: np.ndarray, coding: TargetCoding
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes u64[M] and leaf sums i64[V, C] with the leaves in their canonical order.

    Of classes every distinct row is kept once (pure leaves of small weight are most of
    a forest), ordered by a hash; moments hardly repeat, and are kept in node order.
    """
    leaf = is_leaf(nodes)
    number = (nodes[leaf] & LEAF_MASK).astype(np.int64)
    if coding.is_classes:
        sums, inverse = distinct_rows(sums)
        number = inverse[number]
    else:
        sums, number = sums[number], np.arange(len(number))
    nodes[leaf] = number.astype(np.uint64) + np.uint64(LEAF_WORD)
    return nodes, sums


def distinct_rows(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows i64[V, C] in a canonical order, and each row's number among them."""
    factors = hash_at(np.zeros(1, np.uint64), np.arange(sums.shape[1], dtype=np.uint64)) | 1
    key = np.zeros(len(sums), np.uint64)
    for c, factor in enumerate(factors):
        key += sums[:, c].astype(np.uint64) * factor
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    table = sums[first]
    if not all(np.array_equal(table[inverse, c], sums[:, c]) for c in range(sums.shape[1])):
        table, inverse = np.unique(sums, axis=0, return_inverse=True)  # two rows, one key
    return table, inverse


def merge_waves(
    waves: list[WaveTrees], coding: TargetCoding
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes u64[M], tree offsets i64[T + 1] and leaf sums i64[V, C] of all waves' trees."""
    first = np.cumsum([0] + [len(w.leaf_sums) for w in waves[:-1]])
    nodes = np.concatenate(
        [w.nodes + is_leaf(w.nodes) * np.uint64(f) for w, f in zip(waves, first, strict=True)]
    )
    sizes = np.concatenate([[0], *(w.tree_sizes for w in waves)])
    sums = np.concatenate([w.leaf_sums for w in waves])
    if coding.is_classes and len(waves) > 1:
        nodes, sums = leaf_table(nodes, sums, coding)
    return nodes, np.cumsum(sizes).astype(OFFSET), sums
