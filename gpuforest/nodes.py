"""The packed node: eight bytes, so that one cache line holds eight and a step reads one.

     63     47   46            45    16   15   0
    | feature | missing_left | child   | bin    |     a split
    | 1 ... 1 |             leaf                |     a leaf

A row goes left where its code <= bin, a missing one where missing_left. Of a categorical
feature the bin is SET_BIN, and codes go left that are in the node's set, which is kept beside
the nodes: u64 words, bit c for code c, one node's after another's in their order. `child` is the
left child's number in its tree; the right child is the next one. `leaf` is a row of the
forest's leaf table. A tree lies in the order

    root | pair of children | all below the left child | all below the right child

so that a subtree's descendants are contiguous wherever it was grown.
"""

from __future__ import annotations

from typing import Any

Array = Any

CHILD_SHIFT, MISSING_SHIFT, FEATURE_SHIFT = 16, 46, 47
BIN_MASK, CHILD_MASK, LEAF_MASK = 2**16 - 1, 2**30 - 1, 2**47 - 1
LEAF = 2**17 - 1  # in the place of a leaf's feature
LEAF_WORD = LEAF << FEATURE_SHIFT
SET_BIN = BIN_MASK  # in the place of a bin: no feature has so many


def pack_splits(xp: Any, feature: Array, bin: Array, missing_left: Array) -> Array:
    """Split nodes u64[...] with child 0: add `child << CHILD_SHIFT` when it is known."""
    word = xp.astype(feature, xp.uint64) << FEATURE_SHIFT
    word = word | (xp.astype(missing_left, xp.uint64) << MISSING_SHIFT)
    return word | xp.astype(bin, xp.uint64)


def is_leaf(nodes: Array) -> Array:
    """bool[...]"""
    return nodes >= LEAF_WORD


def leaf_rows(leaves: Array) -> Array:
    """The row i64[...] of the leaf table that each of these nodes, all leaves, points at."""
    return (leaves & LEAF_MASK).astype("int64")


def has_set(nodes: Array) -> Array:
    """bool[...], whether nodes are splits by a set of categories."""
    return ((nodes & BIN_MASK) == SET_BIN) & ~is_leaf(nodes)


def set_starts(xp: Any, nodes: Array, set_words: Array) -> Array:
    """Where the set of each node begins, the sets before it one after another: i64[M].

    set_words : i64[F], words that a set of each feature takes
    """
    own = has_set(nodes)
    feature = xp.astype(nodes >> FEATURE_SHIFT, xp.int64)
    words = xp.where(own, xp.take(set_words, xp.where(own, feature, 0)), 0)
    return xp.cumulative_sum(words) - words


def unpack(xp: Any, nodes: Array) -> tuple[Array, Array, Array, Array]:
    """feature i64 (-1: leaf), bin i64, missing_left bool, child i64 (a leaf's row) [...]"""
    leaf = is_leaf(nodes)
    feature = xp.where(leaf, -1, xp.astype(nodes >> FEATURE_SHIFT, xp.int64))
    bin = xp.where(leaf, 0, xp.astype(nodes & BIN_MASK, xp.int64))
    missing_left = ~leaf & (((nodes >> MISSING_SHIFT) & 1) == 1)
    child = xp.where(leaf, nodes & LEAF_MASK, (nodes >> CHILD_SHIFT) & CHILD_MASK)
    return feature, bin, missing_left, xp.astype(child, xp.int64)
