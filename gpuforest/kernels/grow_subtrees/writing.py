"""The nodes, leaves and sets of a subtree, written as they are found; see nodes.py."""

import numpy as np

from gpuforest.compiler.decorators import device
from gpuforest.engine.nodes import CHILD_SHIFT, FEATURE_SHIFT, LEAF_WORD, MISSING_SHIFT, SET_BIN
from gpuforest.kernels.grow_subtrees.cuts import left_totals
from gpuforest.kernels.grow_subtrees.rows import set_pair
from gpuforest.kernels.grow_subtrees.scratch import PURE_WEIGHTS, Grown
from gpuforest.kernels.histogram.numba import has_labels
from gpuforest.kernels.shared.hashing.numba import U

LEAF = U(LEAF_WORD)
CHILD, MISSING, FEATURE = U(CHILD_SHIFT), U(MISSING_SHIFT), U(FEATURE_SHIFT)


@device
def put_leaf(scratch, number, sums, grown):
    """Write a leaf, and return how much is then written.

    Pure leaves of equal class and weight share a row of the leaf table, even across blocks. Most
    leaves are pure and of small weight.
    """
    C, n_leaves, pure = len(sums), grown.n_leaves, scratch.pure
    if has_labels(scratch.order.own):
        n_weight, top = np.int64(0), 0
        for c in range(C):
            n_weight += sums[c]
        for c in range(C):
            top = c if sums[c] == n_weight else top
        if sums[top] == n_weight and n_weight < PURE_WEIGHTS:
            leaf = pure[top, n_weight]
            if leaf >= 0:
                scratch.nodes[number] = LEAF | U(leaf)
                return grown
            pure[top, n_weight] = n_leaves
    for c in range(C):
        scratch.leaf_sums[n_leaves, c] = sums[c]
    scratch.nodes[number] = LEAF | U(n_leaves)
    return Grown(grown.n_nodes, n_leaves + 1, grown.n_words)


@device
def put_set(sets, number, bins, n_words):
    """Write the set of a node's split by a feature of so many bins, and return how many words are
    then in use."""
    size = (np.int64(bins) + 63) >> 6
    sets.at[number] = n_words
    for w in range(size):
        sets.words[n_words + w] = sets.best[w]
    return n_words + size


@device
def put_split(scratch, data, number, first, split, sets, grown):
    """Write a split, and return how much is then written. Its children are the next two nodes.

    first : the number of the block's first node, from which children are counted
    """
    word = (U(split.feature) << FEATURE) | (U(split.missing_left) << MISSING) | U(split.bin)
    scratch.nodes[number] = word | (U(grown.n_nodes - first) << CHILD)
    n_words = grown.n_words
    if sets is not None and split.bin == SET_BIN:
        n_words = put_set(sets, number, data.n_bins[split.feature], n_words)
    return Grown(grown.n_nodes + 2, grown.n_leaves, n_words)


@device
def put_leaves(scratch, column, slot, split, missing, words, grown):
    """Write the last two nodes as leaves, without moving rows, and return how much is written."""
    sums, left = scratch.sums, scratch.left_sums
    if len(sums) == 2:
        set_pair(scratch.order.own, left, split.left.weight, split.left.second)
    else:
        left_totals(column, scratch.order, slot, split, missing, words, left)
    for c in range(len(sums)):
        sums[c] -= left[c]
    for child, child_sums in ((grown.n_nodes - 2, left), (grown.n_nodes - 1, sums)):
        grown = put_leaf(scratch, child, child_sums, grown)
    return grown


@device
def words_of(sets):
    """The set of the best split, if there are sets."""
    if sets is None:
        return None
    return sets.best
