"""A subtree's rows in blocks, constant features above a node, its nodes, leaves and sets."""

import numpy as np

from gpuforest.compiler.decorators import device
from gpuforest.core.nodes import LEAF_WORD, SET_BIN
from gpuforest.kernels.grow_subtrees.cuts import add_all, left_totals
from gpuforest.kernels.grow_subtrees.scratch import PURE_WEIGHTS, Grown
from gpuforest.kernels.shared.numba import U, goes_left, has_labels, split_word

FEWEST_COPIED = 64  # the fewest rows of a node that are copied to another block
LEAF = U(LEAF_WORD)


@device
def load_rows(data, slots, d, order, of_kind):
    """Copy a slot's rows, and what each adds to a sum, to the order, and return their number."""
    y, stats, begin = data.y, order.stats, slots.begin[d]
    n = slots.end[d] - begin
    for i in range(n):
        r, w = slots.rows[begin + i], slots.weights[begin + i]
        order.positions[i] = r
        if has_labels(y):
            stats[i, 0], stats[i, 1] = y[r, 0], w
        else:
            stats[i, 0] = w
            for o in range(y.shape[1]):
                stats[i, 1 + o] = y[r, o] * w
    return n


@device
def block_of(blocks, slot, scratch):
    """The block of a node's rows, copied without constant features if that pays.

    blocks : codes [F, n] of all three"""
    low, n, used, positions = slot.begin, slot.n_rows, scratch.used, scratch.order.positions
    level = 2 if low < used[2] else 1 if low < used[1] else 0
    for smaller in range(2, level, -1):
        if FEWEST_COPIED <= n <= blocks[smaller].shape[1]:
            block, small = blocks[level], blocks[smaller]
            for f in range(len(scratch.constant)):
                if not scratch.constant[f]:
                    for i in range(n):
                        small[U(f), U(i)] = block[U(f), U(positions[U(low + i)])]
            for i in range(n):
                positions[U(low + i)] = i
            used[smaller], level = low + n, smaller
            break
    return level


@device
def node_totals(stats, low, high, sums):
    C = len(sums)
    for c in range(C):
        sums[c] = 0
    for i in range(low, high):
        add_all(sums, 0, stats, i, C, C)


@device
def set_pair(stats, sums, weight, second):
    """Two channel sums from weight and second channel."""
    sums[0], sums[1] = weight - second if has_labels(stats) else weight, second


@device
def is_pure(stats, slot):
    """Whether all targets of a node are equal."""
    low, sums = slot.begin, slot.sums
    if has_labels(stats):
        return sums[stats[low, 0]] == slot.weight
    for c in range(1, len(sums)):
        y = stats[low, c] // stats[low, 0]  # moments are multiples of the weights
        for i in range(low, low + slot.n_rows):
            if stats[U(i), U(c)] != y * stats[U(i), 0]:
                return False
    return True


@device
def split_rows(column, order, spare, slot, split, missing, words):
    """Move a node's left rows before its right rows, in order; returns how many go left. To avoid
    branches, each row is written to both sides, and its side moves on."""
    positions, stats, spare_stats = order.positions, order.stats, spare.stats
    left, right, width = slot.begin, 0, stats.shape[1]
    for i in range(slot.begin, slot.begin + slot.n_rows):
        position = positions[U(i)]
        is_left = goes_left(np.int64(column[U(position)]), split, missing, words, 0)
        spare.positions[U(right)] = position
        positions[U(left)] = position
        if width == 2:
            a, b = stats[U(i), 0], stats[U(i), 1]
            spare_stats[U(right), 0], spare_stats[U(right), 1] = a, b
            stats[U(left), 0], stats[U(left), 1] = a, b
        else:
            for c in range(width):
                a = stats[U(i), U(c)]
                spare_stats[U(right), U(c)] = a
                stats[U(left), U(c)] = a
        left += is_left
        right += not is_left
    for i in range(right):
        positions[U(left + i)] = spare.positions[U(i)]
        for c in range(width):
            stats[U(left + i), U(c)] = spare_stats[U(i), U(c)]
    return left - slot.begin


@device
def allow(scratch, slots, d):
    """Mark the features that a slot's tree did not draw; they count as constant."""
    for f in range(slots.allowed.shape[1]):
        scratch.refused[f] = scratch.constant[f] = not slots.allowed[slots.tree[d], f]


@device
def forget(scratch, n_trail, n_above):
    """Forget the trail's entries from `n_above` on, and return its new length."""
    while n_trail > n_above:
        n_trail -= 1
        scratch.constant[scratch.trail[n_trail]] = False
    return n_trail


@device
def put_leaf(scratch, number, sums, grown):
    """Write a leaf; returns the numbers written. Pure leaves of equal class and weight share
    a row of the leaf table, even across blocks."""
    C, n_leaves, pure = len(sums), grown.n_leaves, scratch.pure
    if has_labels(scratch.order.stats):
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
def put_split(scratch, data, number, first, split, sets, grown):
    """Write a split whose children are the next two nodes of the block; the numbers written."""
    child, n_words = grown.n_nodes - first, grown.n_words
    scratch.nodes[number] = split_word(split.feature, split.bin, split.missing_left, child)
    if sets is not None and split.bin == SET_BIN:
        sets.at[number] = n_words
        for w in range((np.int64(data.n_bins[split.feature]) + 63) >> 6):
            sets.words[n_words] = sets.best[w]
            n_words += 1
    return Grown(grown.n_nodes + 2, grown.n_leaves, n_words)


@device
def put_leaves(scratch, column, slot, split, missing, words, grown):
    """Write the last two nodes as leaves, without moving rows, and return how much is written."""
    sums, left = scratch.sums, scratch.left_sums
    if len(sums) == 2:
        set_pair(scratch.order.stats, left, split.left.weight, split.left.second)
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
