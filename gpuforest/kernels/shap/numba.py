"""SHAP values, compiled. The specification is numpy.py beside this file.

Rows go through a tree together, in blocks, and depth first. So what an edge does at each point is
computed once for a block, for the three states that a row can have. The points are innermost: they
fill vectors, whose length the compiler knows for up to 16 points.
"""

from typing import NamedTuple

import numpy as np

from gpuforest.kernels.decorators import device, kernel
from gpuforest.kernels.lanes import LANES, four_of, load, store
from gpuforest.kernels.shared.goes_left.numba import has_code
from gpuforest.kernels.shared.hashing.numba import U
from gpuforest.kernels.shared.records import Points, Trees
from gpuforest.kernels.types import Bool, Codes2, F64s, F64s2, F64s3, I64, I64s, I64s2, U8s
from gpuforest.nodes import (
    BIN_MASK,
    CHILD_MASK,
    CHILD_SHIFT,
    FEATURE_SHIFT,
    LEAF_MASK,
    LEAF_WORD,
    MISSING_SHIFT,
)

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
        *(np.empty(levels * ROWS * Q) for _ in range(2)),
        np.empty(n_features * ROWS * Q),
        *(np.empty(levels * 6 * Q) for _ in range(2)),
        *(np.empty(Q) for _ in range(3)),
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


@kernel
def covers(trees: Trees, leaf_cover: F64s, cover: F64s, shape: I64s2, parent: I64s, seen: I64s):
    """Write the cover of each node to `cover` f64[M], and of each tree the most features of a path
    and its depth to `shape` i64[T, 2].

    parent : i64[M], scratch
    seen : i64[F], zeros: how many splits of the path are by each feature
    """
    nodes = trees.nodes
    for t in range(len(trees.offsets) - 1):
        root, end = trees.offsets[t], trees.offsets[t + 1]
        # 1. covers, from the last node up: children follow their parents
        for i in range(end - 1, root - 1, -1):
            word = nodes[i]
            if word >= LEAF:
                cover[i] = leaf_cover[np.int64(word & LEAF_BITS)]
            else:
                child = root + np.int64((word >> CHILD) & CHILD_BITS)
                cover[i] = cover[child] + cover[child + 1]
                parent[child] = parent[child + 1] = i
        # 2. the features of paths, depth first
        at, features, depth, most, deepest = root, 0, 0, 0, 0
        down = True
        while True:
            word = nodes[at]
            if down and word < LEAF:
                f = np.int64(word >> FEATURE)
                features += seen[f] == 0
                seen[f] += 1
                depth += 1
                at = root + np.int64((word >> CHILD) & CHILD_BITS)
                continue
            most, deepest = max(most, features), max(deepest, depth)
            if at == root:
                break
            above = parent[at]
            first = root + np.int64((nodes[above] >> CHILD) & CHILD_BITS)
            if at == first:
                at, down = at + 1, True
                continue
            f = np.int64(nodes[above] >> FEATURE)
            seen[f] -= 1
            features -= seen[f] == 0
            depth -= 1
            at, down = above, False
        shape[t, 0], shape[t, 1] = most, deepest


@device
def find_states(trees, sets, node, codes, first, n, work, h):
    """Write the states of the rows first .. first + n - 1 at a node to level h of work.state."""
    word, missing, state = trees.nodes[node], trees.missing, work.state
    f = np.int64(word >> FEATURE)
    kind = codes.dtype.type
    empty, holes_left = kind(missing), U8((word >> MISSING) & ONE)
    row, begin = f * ROWS, h * ROWS
    if sets is not None and word & BIN_BITS == BIN_BITS:
        for i in range(n):
            code = np.int64(codes[f, first + i])
            left = U8(has_code(sets, trees.set_at[node], code)) if code != missing else holes_left
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
def enter(trees, sets, t, v, h, cover, values, c, codes, first, n, Q, work):
    """Prepare a node at level h: the states of the rows, and what both edges do. Returns how many
    of its children are leaves."""
    nodes, root = trees.nodes, trees.offsets[t]
    word = nodes[v]
    f, child = np.int64(word >> FEATURE), root + np.int64((word >> CHILD) & CHILD_BITS)
    above = work.share[f]
    work.node[h], work.side[h], work.before[h] = v, 0, above
    find_states(trees, sets, v, codes, first, n, work, h)
    left_times = right_times = 1.0
    leaves = 0
    if nodes[child] >= LEAF:
        own = cover[child] / cover[root]
        left_times = values[np.int64(nodes[child] & LEAF_BITS), c] * own
        leaves += 1
    if nodes[child + 1] >= LEAF:
        own = cover[child + 1] / cover[root]
        right_times = values[np.int64(nodes[child + 1] & LEAF_BITS), c] * own
        leaves += 1
    whole = cover[v]
    left, right = above * (whole / cover[child]), above * (whole / cover[child + 1])
    work.below[2 * h], work.below[2 * h + 1] = left, right
    weigh(above, left, right, left_times, right_times, 6 * Q * h, Q, work)
    if leaves == 2:
        join_leaves(6 * Q * h, Q, work)
    return leaves


@device
def walk(trees, sets, t, cover, values, c, codes, first, n, Q, work):
    """Add a tree's values of output c for the rows first .. first + n - 1 to work.found."""
    nodes, root, h = trees.nodes, trees.offsets[t], 0
    if nodes[root] >= LEAF:
        return
    for i in range(n * Q):
        work.products[i] = 1.0
    if enter(trees, sets, t, root, 0, cover, values, c, codes, first, n, Q, work) == 2:
        add_root(n, np.int64(nodes[root] >> FEATURE), Q, work)
        return
    while True:
        v = work.node[h]
        word = nodes[v]
        f, s = np.int64(word >> FEATURE), np.int64(work.side[h])
        if s == 2:
            work.share[f] = work.before[h]
            for i in range(n):
                work.along[f * ROWS + i] = work.state[h * ROWS + i] != APART
            if h == 0:
                return
            h -= 1
            f, s = np.int64(nodes[work.node[h]] >> FEATURE), np.int64(work.side[h])
            go_up(h, n, f, (6 * h + 3 * s) * Q, Q, s == 0, work)
            work.side[h] += 1
            continue
        child = root + np.int64((word >> CHILD) & CHILD_BITS) + s
        at, end = (6 * h + 3 * s) * Q, nodes[child]
        work.side[h] += 1
        if end >= LEAF:
            add_leaf(h, n, f, at, Q, s == 0, work)
            continue
        work.share[f] = work.below[2 * h + s]
        for i in range(n):
            work.along[f * ROWS + i] = work.state[h * ROWS + i] == 1 + s
        leaves = enter(trees, sets, t, child, h + 1, cover, values, c, codes, first, n, Q, work)
        if leaves == 2:
            below_f = np.int64(end >> FEATURE)
            add_pair(h, n, f, at, below_f, 6 * (h + 1) * Q, Q, s == 0, work)
            continue
        work.side[h] -= 1
        go_down(h, n, at, Q, work)
        h += 1


@device
def one_tree(trees, sets, t, cover, values, c, codes, first, n, work, Q, out):
    F, size = out.shape[1], ROWS * Q
    for i in range(F * size):
        work.found[i] = 0.0
    walk(trees, sets, t, cover, values, c, codes, first, n, Q, work)
    for f in range(F):
        for i in range(n):
            total = work.found[f * size + i * Q]
            for k in range(1, Q):
                total += work.found[f * size + i * Q + k]
            out[first + i, f, c] += total


@kernel
def shap_values(
    trees: Trees, cover: F64s, values: F64s2, columns: I64s2, points: Points, codes: Codes2,
    out: F64s3, begin: I64, end: I64, work: Work, sets: Bool | None,
):  # fmt: skip
    """Add the values of the rows begin .. end - 1 to `out` f64[N, F, K].

    codes : [F, N]
    sets : None if no node has a set
    """
    own = None if sets is None else trees.sets
    for t in range(len(trees.offsets) - 1):
        Q, first_point = -(-points.count[t] // LANES) * LANES, points.first[t]
        for k in range(Q):
            real = k < points.count[t]
            work.at[k] = points.at[first_point + k] if real else 0.5
            work.weight[k] = points.weight[first_point + k] if real else 0.0
            work.lost[k] = -1.0 / (1.0 - work.at[k]) * work.weight[k]
        for first in range(begin, end, ROWS):
            n = min(ROWS, end - first)
            for c in range(columns[t, 0], columns[t, 1]):
                if Q == 4:
                    one_tree(trees, own, t, cover, values, c, codes, first, n, work, 4, out)
                elif Q == 8:
                    one_tree(trees, own, t, cover, values, c, codes, first, n, work, 8, out)
                elif Q == 12:
                    one_tree(trees, own, t, cover, values, c, codes, first, n, work, 12, out)
                else:
                    one_tree(trees, own, t, cover, values, c, codes, first, n, work, Q, out)
