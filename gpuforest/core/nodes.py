"""The packed node of eight bytes. A step down a tree reads one node; a cache line holds eight.

     63     47   46            45    16   15   0
    | feature | missing_left | child   | bin    |     a split
    | 1 ... 1 |             leaf                |     a leaf

A row goes left if its code <= bin, or, if its value is missing, by missing_left. A split by a
categorical feature has the bin SET_BIN: the codes in the node's set go left. The sets lie in an
array of their own, in the order of the nodes: u64 words, bit c for code c. In an oblique forest
the bin OBLIQUE_BIN + n marks a split by a combination of n features, whose words lie there too (see
core/terms.py). `child` is the number of the left child in its tree; the right child is
the next node. `leaf` is a row of the forest's leaf table. The nodes of a tree have the order

    root | pair of children | all below the left child | all below the right child

so that the descendants of any node are contiguous.
"""

from __future__ import annotations

from typing import Any

Array = Any

CHILD_SHIFT, MISSING_SHIFT, FEATURE_SHIFT = 16, 46, 47
BIN_MASK, CHILD_MASK, LEAF_MASK = 2**16 - 1, 2**30 - 1, 2**47 - 1
LEAF = 2**17 - 1  # the feature bits of a leaf
LEAF_WORD = LEAF << FEATURE_SHIFT
SET_BIN = BIN_MASK  # the bin bits of a split by a set: no bin of a feature has this number
MOST_COMBINED = 8  # features of a combination
MOST_WEIGHT = 5  # of a feature in a combination, with either sign
OBLIQUE_BIN = SET_BIN - 2 * MOST_COMBINED + 1  # and the number of features: features of an
# oblique forest have fewer bins


def pack_splits(xp: Any, feature: Array, bin: Array, missing_left: Array) -> Array:
    """Split nodes u64[...] with child 0; add `child << CHILD_SHIFT` once it is known."""
    word = xp.astype(feature, xp.uint64) << FEATURE_SHIFT
    word = word | (xp.astype(missing_left, xp.uint64) << MISSING_SHIFT)
    return word | xp.astype(bin, xp.uint64)


def is_leaf(nodes: Array) -> Array:
    """Whether nodes u64[...] are leaves, bool[...]."""
    return nodes >= LEAF_WORD


def leaf_rows(leaves: Array) -> Array:
    """The row of the leaf table that each leaf u64[...] has, i64[...]."""
    return (leaves & LEAF_MASK).astype("int64")


def has_set(nodes: Array) -> Array:
    """Whether nodes u64[...] are splits by a set of categories, bool[...]."""
    return ((nodes & BIN_MASK) == SET_BIN) & ~is_leaf(nodes)


def combined(nodes: Array) -> Array:
    """Number of features in combinations at nodes u64[...], i64[...]; 0: a leaf or other split."""
    bin = (nodes & BIN_MASK).astype("int64")
    by_sum = (bin > OBLIQUE_BIN) & (bin < SET_BIN) & ~is_leaf(nodes)
    return (bin - OBLIQUE_BIN) * by_sum


def words_of(xp: Any, nodes: Array, set_words: Array, oblique: bool) -> Array:
    """Words of each node's set (set_words i64[F]) or combination (if `oblique`), i64[M]."""
    by_set = has_set(nodes)
    feature = xp.astype(nodes >> FEATURE_SHIFT, xp.int64)
    words = xp.where(by_set, xp.take(set_words, xp.where(by_set, feature, 0)), 0)
    if oblique:
        n = combined(nodes)
        words = xp.where(n > 0, 1 + n // 2, words)
    return words


def unpack(xp: Any, nodes: Array) -> tuple[Array, Array, Array, Array]:
    """feature i64 (-1: leaf), bin i64, missing_left bool, child i64 (a leaf's row), each [...]."""
    leaf = is_leaf(nodes)
    feature = xp.where(leaf, -1, xp.astype(nodes >> FEATURE_SHIFT, xp.int64))
    bin = xp.where(leaf, 0, xp.astype(nodes & BIN_MASK, xp.int64))
    missing_left = ~leaf & (((nodes >> MISSING_SHIFT) & 1) == 1)
    child = xp.where(leaf, nodes & LEAF_MASK, (nodes >> CHILD_SHIFT) & CHILD_MASK)
    return feature, bin, missing_left, xp.astype(child, xp.int64)
