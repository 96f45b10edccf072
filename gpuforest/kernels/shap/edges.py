"""What an edge of a tree does to the rows of a block, compiled; numba.py has the formulas."""

from typing import NamedTuple

import numpy as np

from gpuforest.compiler.decorators import device
from gpuforest.compiler.intrinsics import LANES, four_of, load, store
from gpuforest.compiler.types import F64s, I64s, U8s
from gpuforest.engine.nodes import (
    BIN_MASK,
    CHILD_MASK,
    CHILD_SHIFT,
    FEATURE_SHIFT,
    LEAF_MASK,
    LEAF_WORD,
    MISSING_SHIFT,
)
from gpuforest.kernels.shared.numba import U, has_code

U8 = np.uint8
LEAF, LEAF_BITS, ONE = U(LEAF_WORD), U(LEAF_MASK), U(1)
BIN_BITS, CHILD_BITS = U(BIN_MASK), U(CHILD_MASK)
CHILD, MISSING, FEATURE = U(CHILD_SHIFT), U(MISSING_SHIFT), U(FEATURE_SHIFT)
ROWS = 64  # rows of a block
APART, LEFT, RIGHT = 0, 1, 2  # states: the row left the path by this feature above; goes left


class Work(NamedTuple):
    """Scratch of a thread. A level is a node of the path from the root.

    products : f64[levels * ROWS * Q], the product of the path's factors for each row and point
    sums : f64[levels * ROWS * Q], the sums over the leaves below
    found : f64[F * ROWS * Q], the SHAP values at each point
    product, gain : f64[levels * 6 Q], for both edges below each level's node, and for each state,
        what the products and the sums are multiplied by
    at, weight, lost : f64[Q], the points, their weights, and these times -1 / (1 - point)
    share : f64[F], one over the share of the cover that the path's splits by a feature left over
    before, below : f64[levels] and f64[2 levels], what `share` is above and below each level
    node : i64[levels]
    side : u8[levels], how many children of the node are done
    state : u8[levels * ROWS]
    along : u8[F * ROWS], whether a row goes the path's way at all splits by a feature
    """

    products: F64s
    sums: F64s
    found: F64s
    product: F64s
    gain: F64s
    at: F64s
    weight: F64s
    lost: F64s
    share: F64s
    before: F64s
    below: F64s
    node: I64s
    side: U8s
    state: U8s
    along: U8s


def new_work(n_features: int, depth: int, count: int) -> Work:
    """Scratch for trees of this depth, and so many points."""
    Q, levels = padded(count), depth + 1
    return Work(
        np.empty(levels * ROWS * Q),
        np.empty(levels * ROWS * Q),
        np.empty(n_features * ROWS * Q),
        np.empty(levels * 6 * Q),
        np.empty(levels * 6 * Q),
        np.empty(Q),
        np.empty(Q),
        np.empty(Q),
        np.ones(n_features),
        np.empty(levels),
        np.empty(2 * levels),
        np.empty(levels, np.int64),
        np.empty(levels, np.uint8),
        np.empty(levels * ROWS, np.uint8),
        np.ones(n_features * ROWS, np.uint8),
    )


def padded(count: int) -> int:
    """The number of points with those of weight zero that fill vectors."""
    return -(-count // LANES) * LANES


@device
def find_states(trees, node, codes, first, n, work, h):
    """Write the states of the rows first .. first + n - 1 at a node to level h of work.state."""
    word, missing, state = trees.nodes[node], trees.missing, work.state
    f = np.int64(word >> FEATURE)
    kind = codes.dtype.type
    empty, holes_left = kind(missing), U8((word >> MISSING) & ONE)
    row, begin = f * ROWS, h * ROWS
    if word & BIN_BITS == BIN_BITS:
        for i in range(n):
            code = np.int64(codes[f, first + i])
            left = (
                U8(has_code(trees.sets, trees.set_at[node], code))
                if code != missing
                else holes_left
            )
            state[U(begin + i)] = (U8(2) - left) * work.along[U(row + i)]
        return
    bin = kind(word & BIN_BITS)
    for i in range(n):  # in bytes, which fill vectors
        code = codes[f, first + i]
        left = U8(code <= bin) | (U8(code == empty) & holes_left)
        state[U(begin + i)] = (U8(2) - left) * work.along[U(row + i)]


@device
def weigh(above, left, right, left_times, right_times, at, Q, work):
    """Write what both edges below a node do in each state, at each point, to `product` and `gain`
    of the scratch, at `at`.

    above, left, right : one over the feature's share of the cover, above and below the node
    left_times, right_times : what the products below are multiplied by
    """
    product, gain, at, size = work.product, work.gain, U(at), U(Q)
    one = four_of(1.0)
    of_left, of_right = four_of(left_times), four_of(right_times)
    for j in range(0, Q, LANES):
        k = at + U(j)
        t, weight = load(work.at, U(j)), load(work.weight, U(j))
        u = one - t
        old = one / (u + t * four_of(above))
        apart, known = u * old, four_of(above - 1.0) * old
        new_left, new_right = u + t * four_of(left), u + t * four_of(right)
        gain_left = (four_of(left - 1.0) / new_left - known) * weight
        gain_right = (four_of(right - 1.0) / new_right - known) * weight
        gain_apart = load(work.lost, U(j)) - known * weight
        store(product, k, of_left)
        store(product, k + size, new_left * old * of_left)
        store(product, k + U(2) * size, apart * of_left)
        store(product, k + U(3) * size, of_right)
        store(product, k + U(4) * size, apart * of_right)
        store(product, k + U(5) * size, new_right * old * of_right)
        store(gain, k, four_of(0.0))
        store(gain, k + size, gain_left)
        store(gain, k + U(2) * size, gain_apart)
        store(gain, k + U(3) * size, four_of(0.0))
        store(gain, k + U(4) * size, gain_apart)
        store(gain, k + U(5) * size, gain_right)


@device
def join_leaves(at, Q, work):
    """Make of the edges to both leaves of a node, at `at`, one: the product is that of the sums of
    both, the gain is what the products are multiplied by for the feature's values."""
    product, gain, at = work.product, work.gain, U(at)
    for j in range(0, 3 * Q, LANES):
        left, right = at + U(j), at + U(3 * Q) + U(j)
        a, b = load(product, left), load(product, right)
        store(product, left, a + b)
        store(gain, left, a * load(gain, left) + b * load(gain, right))


@device
def go_down(h, n, at, Q, work):
    """Multiply the products of n rows at level h into those below an edge."""
    d = work.products
    for i in range(n):
        s = U(at) + U(work.state[U(h * ROWS + i)]) * U(Q)
        a = U((h * ROWS + i) * Q)
        for j in range(0, Q, LANES):
            k = U(j)
            below = load(d, a + k) * load(work.product, s + k)
            store(d, a + U(ROWS * Q) + k, below)


@device
def add_leaf(h, n, f, at, Q, is_first, work):
    """Add a leaf below level h to the sums there, and to the values of the node's feature."""
    sums, found = work.sums, work.found
    for i in range(n):
        s = U(at) + U(work.state[U(h * ROWS + i)]) * U(Q)
        a, o = U((h * ROWS + i) * Q), U((f * ROWS + i) * Q)
        for j in range(0, Q, LANES):
            k = U(j)
            own = load(work.products, a + k) * load(work.product, s + k)
            store(found, o + k, load(found, o + k) + own * load(work.gain, s + k))
            store(sums, a + k, own if is_first else load(sums, a + k) + own)


@device
def go_up(h, n, f, at, Q, is_first, work):
    """Add the sums below an edge to those of level h, and to the values of the node's feature."""
    sums, found = work.sums, work.found
    for i in range(n):
        s = U(at) + U(work.state[U(h * ROWS + i)]) * U(Q)
        a, o = U((h * ROWS + i) * Q), U((f * ROWS + i) * Q)
        for j in range(0, Q, LANES):
            k = U(j)
            own = load(sums, a + U(ROWS * Q) + k)
            store(found, o + k, load(found, o + k) + own * load(work.gain, s + k))
            store(sums, a + k, own if is_first else load(sums, a + k) + own)


@device
def add_pair(h, n, f, at, below_f, below_at, Q, is_first, work):
    """Add a node with two leaves below level h: all of go_down, its leaves, and go_up."""
    sums, found = work.sums, work.found
    for i in range(n):
        s = U(at) + U(work.state[U(h * ROWS + i)]) * U(Q)
        b = U(below_at) + U(work.state[U((h + 1) * ROWS + i)]) * U(Q)
        a, o, p = U((h * ROWS + i) * Q), U((f * ROWS + i) * Q), U((below_f * ROWS + i) * Q)
        for j in range(0, Q, LANES):
            k = U(j)
            below = load(work.products, a + k) * load(work.product, s + k)
            store(found, p + k, load(found, p + k) + below * load(work.gain, b + k))
            own = below * load(work.product, b + k)
            store(found, o + k, load(found, o + k) + own * load(work.gain, s + k))
            store(sums, a + k, own if is_first else load(sums, a + k) + own)


@device
def add_root(n, f, Q, work):
    """Add a tree of one split."""
    for i in range(n):
        s, o = U(work.state[U(i)]) * U(Q), U((f * ROWS + i) * Q)
        for j in range(0, Q, LANES):
            k = U(j)
            store(work.found, o + k, load(work.found, o + k) + load(work.gain, s + k))


@device
def take_leaf(h, n, at, Q, work):
    """Write the sums over one leaf below level h, as those of the level below."""
    for i in range(n):
        s = U(at) + U(work.state[U(h * ROWS + i)]) * U(Q)
        a = U((h * ROWS + i) * Q)
        for j in range(0, Q, LANES):
            k = U(j)
            own = load(work.products, a + k) * load(work.product, s + k)
            store(work.sums, a + U(ROWS * Q) + k, own)


@device
def take_leaves(h, n, f, at, Q, work):
    """Write the sums over both leaves of the node at level h, and add to its feature's values."""
    for i in range(n):
        s = U(at) + U(work.state[U(h * ROWS + i)]) * U(Q)
        a, o = U((h * ROWS + i) * Q), U((f * ROWS + i) * Q)
        for j in range(0, Q, LANES):
            k = U(j)
            products = load(work.products, a + k)
            change = products * load(work.gain, s + k)
            store(work.found, o + k, load(work.found, o + k) + change)
            store(work.sums, a + k, products * load(work.product, s + k))
