"""The rows of a subtree in its blocks, and the features that are constant above a node."""

from typing import Any, NamedTuple

import numpy as np

from gpuforest.compiler.decorators import device
from gpuforest.kernels.histogram.numba import has_labels
from gpuforest.kernels.shared.goes_left.numba import goes_left
from gpuforest.kernels.shared.hashing.numba import U

FEWEST_COPIED = 64  # the fewest rows of a node that are copied to another block


class Blocks(NamedTuple):
    """The codes of three blocks, each [F, n], and the row of the order up to which each is in use,
    i64[3]."""

    codes: Any
    used: Any


@device
def load_rows(data, slots, d, order):
    """Copy a slot's rows, and what each adds to a sum, to the order, and return their number."""
    y, own, begin = data.y, order.own, slots.begin[d]
    n = slots.end[d] - begin
    for i in range(n):
        r, w = slots.rows[begin + i], slots.weights[begin + i]
        order.positions[i] = r
        if has_labels(y):
            own[i, 0], own[i, 1] = y[r, 0], w
        else:
            own[i, 0] = w
            for o in range(y.shape[1]):
                own[i, 1 + o] = y[r, o] * w
    return n


@device
def copy_block(block, positions, slot, constant, small):
    """Copy a node's codes from one block to another, without constant features."""
    low = slot.begin
    for f in range(len(constant)):
        if not constant[f]:
            for i in range(slot.n_rows):
                small[U(f), U(i)] = block[U(f), U(positions[U(low + i)])]
    for i in range(slot.n_rows):
        positions[U(low + i)] = i


@device
def block_of(blocks, slot, scratch):
    """The number of the block with a node's rows; they are copied first if that pays."""
    low, n = slot.begin, slot.n_rows
    level = 2 if low < blocks.used[2] else 1 if low < blocks.used[1] else 0
    for smaller in range(2, level, -1):
        if FEWEST_COPIED <= n <= blocks.codes[smaller].shape[1]:
            copy_block(
                blocks.codes[level], scratch.order.positions, slot, scratch.known.constant,
                blocks.codes[smaller],
            )  # fmt: skip
            blocks.used[smaller], level = low + n, smaller
            break
    return level


@device
def node_totals(own, low, high, sums):
    """Fill the channel sums of a node."""
    for c in range(len(sums)):
        sums[c] = 0
    for i in range(low, high):
        if has_labels(own):
            sums[U(own[U(i), 0])] += np.int64(own[U(i), 1])
        else:
            for c in range(len(sums)):
                sums[U(c)] += own[U(i), U(c)]


@device
def set_pair(own, sums, weight, second):
    """Two channel sums from weight and second channel."""
    sums[0], sums[1] = weight - second if has_labels(own) else weight, second


@device
def is_pure(own, slot):
    """Whether all targets of a node are equal."""
    low, sums = slot.begin, slot.sums
    if has_labels(own):
        return sums[own[low, 0]] == slot.weight
    for c in range(1, len(sums)):
        y = own[low, c] // own[low, 0]  # moments are multiples of the weights
        for i in range(low, low + slot.n_rows):
            if own[U(i), U(c)] != y * own[U(i), 0]:
                return False
    return True


@device
def split_rows(column, order, spare, slot, split, missing, words):
    """Move a node's left rows before its right rows, both in their order, and return how many go
    left.

    To avoid branches, every row is written to both sides, but only its own side moves on.
    """
    positions, own, spare_own = order.positions, order.own, spare.own
    left, right, width = slot.begin, 0, own.shape[1]
    for i in range(slot.begin, slot.begin + slot.n_rows):
        position = positions[U(i)]
        is_left = goes_left(np.int64(column[U(position)]), split, missing, words, 0)
        spare.positions[U(right)] = position
        positions[U(left)] = position
        if width == 2:
            a, b = own[U(i), 0], own[U(i), 1]
            spare_own[U(right), 0], spare_own[U(right), 1] = a, b
            own[U(left), 0], own[U(left), 1] = a, b
        else:
            for c in range(width):
                a = own[U(i), U(c)]
                spare_own[U(right), U(c)] = a
                own[U(left), U(c)] = a
        left += is_left
        right += not is_left
    for i in range(right):
        positions[U(left + i)] = spare.positions[U(i)]
        for c in range(width):
            own[U(left + i), U(c)] = spare_own[U(i), U(c)]
    return left - slot.begin


@device
def allow(known, slots, d):
    """Mark the features that a slot's tree did not draw as constant."""
    for f in range(slots.allowed.shape[1]):
        known.constant[f] = not slots.allowed[slots.tree[d], f]


@device
def forget(known, n_trail, n_above):
    """Forget the trail's entries from `n_above` on, and return its new length."""
    while n_trail > n_above:
        n_trail -= 1
        known.constant[known.trail[n_trail]] = False
    return n_trail
