"""SHAP values of trees by quadrature (Wettenstein, Mitchell and Yu 2026, arXiv 2605.04497).

The game is that of path-dependent TreeSHAP (Lundberg et al. 2020): at a split by a feature that is
not known, a row goes both ways, with the shares of the node's cover. On the path to a leaf, let
each feature j have the share r_j of the cover that the path's splits by j left over, and let o_j be
1 if the row goes the path's way at all of them, else 0. If each feature is known with the
probability x, the leaf counts with

    value * prod_j (r_j (1 - x) + o_j x)
    = value * cover / root cover * prod_j q_j, where q_j = (1 - x) + o_j x / r_j

The SHAP value of feature i is the integral over x from 0 to 1 of this product without the factor
of i, times o_i - r_i. It is a polynomial in x, which Gauss-Legendre quadrature integrates exactly
with half as many points as the path has features.

Going down, `products` gathers the factors at all points; going up, `sums` gathers the leaves. All
leaves below an edge share what a feature's factor was at that edge, so the edge adds

    weight * ((o_e / r_e - 1) / q_e - (o_a / r_a - 1) / q_a) * sums below the edge

to its feature, where a is the state of the feature above the edge. An interaction of two features
is the same integral without the factors of both, times (o_i - r_i) (o_j - r_j): each edge adds to
its feature and any other one of the path the above, times (o_j / r_j - 1) / q_j.

Rows go through a tree together, in blocks, and depth first. So what an edge does at each point is
computed once for a block, for the three states that a row can have. The points are innermost: they
fill vectors.
"""

from typing import NamedTuple

import numpy as np

from gpuforest.compiler.decorators import device, kernel
from gpuforest.compiler.intrinsics import LANES, four_of, load, store, total
from gpuforest.compiler.types import I64, Codes2, F64s, F64s2, F64s3, I64s, I64s2, U8s
from gpuforest.engine.nodes import (
    BIN_MASK,
    CHILD_MASK,
    CHILD_SHIFT,
    FEATURE_SHIFT,
    LEAF_MASK,
    LEAF_WORD,
    MISSING_SHIFT,
)
from gpuforest.engine.records import Trees
from gpuforest.kernels.shared.numba import U, has_code
from gpuforest.kernels.shared.records import Points

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
    path, values, edges = levels * ROWS * Q, n_features * ROWS * Q, 6 * levels * Q
    return Work(
        np.empty(path), np.empty(path), np.empty(values), np.empty(edges), np.empty(edges),
        np.empty(Q), np.empty(Q), np.empty(Q), np.ones(n_features), np.empty(levels),
        np.empty(2 * levels), np.empty(levels, np.int64), np.empty(levels, np.uint8),
        np.empty(levels * ROWS, np.uint8), np.ones(n_features * ROWS, np.uint8),
    )  # fmt: skip


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


class Pairs(NamedTuple):
    """Scratch of a thread for pairs of features.

    known : f64[F * ROWS * Q], what each feature of the path multiplies the sums below by
    features, n_features : i64[F] and i64[1], the features of the path, and how many these are
    change : f64[Q]
    """

    known: F64s
    features: I64s
    n_features: I64s
    change: F64s


def new_pairs(n_features: int, count: int) -> Pairs:
    """Scratch for so many points."""
    Q, features = padded(count), np.empty(n_features, np.int64)
    return Pairs(np.empty(n_features * ROWS * Q), features, np.zeros(1, np.int64), np.empty(Q))


@device
def meet(pairs, f, before):
    """Add the feature of a node to those of the path, if it is not among them."""
    if before == 1.0:
        pairs.features[pairs.n_features[0]] = f
        pairs.n_features[0] += 1


@device
def leave(pairs, before):
    """Drop the feature of a node again."""
    if before == 1.0:
        pairs.n_features[0] -= 1


@device
def know(pairs, f, share, n, Q, work):
    """Note how much is known of a feature on the path, for all rows."""
    one = four_of(1.0)
    for i in range(n):
        o = U((f * ROWS + i) * Q)
        for j in range(0, Q, LANES):
            t = load(work.at, U(j))
            u = one - t
            if work.along[f * ROWS + i]:
                store(pairs.known, o + U(j), four_of(share - 1.0) / (u + t * four_of(share)))
            else:
                store(pairs.known, o + U(j), four_of(-1.0) / u)


@device
def add_pairs(pairs, source, level, h, n, f, at, c, first, Q, work, out):
    """Add what an edge below level h changes of the feature f together with each other feature of
    the path: source[level] times the gain, times what is known of the other."""
    F = len(work.share)
    for i in range(n):
        s = work.state[U(h * ROWS + i)]
        if s == APART:
            continue
        g, a = U(at) + U(s) * U(Q), U((level * ROWS + i) * Q)
        for j in range(0, Q, LANES):
            k = U(j)
            store(pairs.change, k, load(source, a + k) * load(work.gain, g + k))
        for m in range(pairs.n_features[0]):
            other = pairs.features[m]
            if other == f:
                continue
            o = U((other * ROWS + i) * Q)
            added = load(pairs.change, U(0)) * load(pairs.known, o)
            for j in range(LANES, Q, LANES):
                added = added + load(pairs.change, U(j)) * load(pairs.known, o + U(j))
            out[first + i, f * F + other, c] += total(added)


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
def enter(trees, t, v, h, cover, values, c, codes, first, n, Q, work, pairs):
    """Prepare a node at level h: the states of the rows, and what both edges do. Returns how many
    of its children are leaves."""
    nodes, root = trees.nodes, trees.offsets[t]
    word = nodes[v]
    f, child = np.int64(word >> FEATURE), root + np.int64((word >> CHILD) & CHILD_BITS)
    above = work.share[f]
    work.node[h], work.side[h], work.before[h] = v, 0, above
    find_states(trees, v, codes, first, n, work, h)
    if pairs is not None:
        meet(pairs, f, above)
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
def close(f, h, n, Q, work, pairs):
    """Forget the edges below the node at level h, which splits by feature f."""
    work.share[f] = work.before[h]
    for i in range(n):
        work.along[f * ROWS + i] = work.state[h * ROWS + i] != APART
    if pairs is not None:
        leave(pairs, work.before[h])
        know(pairs, f, work.share[f], n, Q, work)


@device
def rise(nodes, h, s, n, c, first, Q, work, pairs, out):
    """Go up the edge to child s of the node at level h."""
    f, at = np.int64(nodes[work.node[h]] >> FEATURE), (6 * h + 3 * s) * Q
    go_up(h, n, f, at, Q, s == 0, work)
    if pairs is not None:
        add_pairs(pairs, work.sums, h + 1, h, n, f, at, c, first, Q, work, out)


@device
def walk(trees, t, cover, values, c, codes, first, n, Q, work, pairs, out):
    """Add a tree's values of output c for the rows first .. first + n - 1 to work.found, and those
    of pairs of features, if `pairs` is not None."""
    nodes, root, h = trees.nodes, trees.offsets[t], 0
    if nodes[root] >= LEAF:
        return
    for i in range(n * Q):
        work.products[i] = 1.0
    if enter(trees, t, root, 0, cover, values, c, codes, first, n, Q, work, pairs) == 2:
        add_root(n, np.int64(nodes[root] >> FEATURE), Q, work)
        if pairs is not None:
            leave(pairs, 1.0)
        return
    while True:
        v = work.node[h]
        word = nodes[v]
        f, s = np.int64(word >> FEATURE), np.int64(work.side[h])
        if s == 2:
            close(f, h, n, Q, work, pairs)
            if h == 0:
                return
            h -= 1
            rise(nodes, h, np.int64(work.side[h]), n, c, first, Q, work, pairs, out)
            work.side[h] += 1
            continue
        child = root + np.int64((word >> CHILD) & CHILD_BITS) + s
        at, end = (6 * h + 3 * s) * Q, nodes[child]
        work.side[h] += 1
        if end >= LEAF:
            if pairs is None:
                add_leaf(h, n, f, at, Q, s == 0, work)
            else:
                take_leaf(h, n, at, Q, work)
                rise(nodes, h, s, n, c, first, Q, work, pairs, out)
            continue
        work.share[f] = work.below[2 * h + s]
        for i in range(n):
            work.along[f * ROWS + i] = work.state[h * ROWS + i] == 1 + s
        if pairs is not None:
            know(pairs, f, work.share[f], n, Q, work)
        leaves = enter(trees, t, child, h + 1, cover, values, c, codes, first, n, Q, work, pairs)
        if leaves == 2:
            below_f = np.int64(end >> FEATURE)
            if pairs is None:
                add_pair(h, n, f, at, below_f, 6 * (h + 1) * Q, Q, s == 0, work)
            else:
                go_down(h, n, at, Q, work)
                below = 6 * (h + 1) * Q
                take_leaves(h + 1, n, below_f, below, Q, work)
                add_pairs(
                    pairs, work.products, h + 1, h + 1, n, below_f, below, c, first, Q, work, out
                )
                leave(pairs, work.before[h + 1])
                rise(nodes, h, s, n, c, first, Q, work, pairs, out)
            continue
        work.side[h] -= 1
        go_down(h, n, at, Q, work)
        h += 1


@device
def one_tree(trees, t, cover, values, c, codes, first, n, work, Q, pairs, out):
    """Add a tree's values of output c for the rows first .. first + n - 1 to `out`."""
    F, size = len(work.share), ROWS * Q
    for f in range(F):
        for i in range(n * Q):
            work.found[f * size + i] = 0.0
    walk(trees, t, cover, values, c, codes, first, n, Q, work, pairs, out)
    for f in range(F):
        for i in range(n):
            own = work.found[f * size + i * Q]
            for k in range(1, Q):
                own += work.found[f * size + i * Q + k]
            out[first + i, f if pairs is None else f * F + f, c] += own


@device
def all_trees(
    trees, cover, values, columns, points, codes, out, begin, end, work, pairs
):  # fmt: skip
    """Add the values of the rows begin .. end - 1, or those of pairs of features, to `out`."""
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
                one_tree(trees, t, cover, values, c, codes, first, n, work, Q, pairs, out)


@kernel(code="uint16")
def shap_values(
    trees: Trees, cover: F64s, values: F64s2, columns: I64s2, points: Points, codes: Codes2,
    out: F64s3, begin: I64, end: I64, work: Work,
):  # fmt: skip
    """Add the values of the rows begin .. end - 1 to `out` f64[N, F, K].

    codes : u16[F, N], so that there is one kernel to compile
    """
    all_trees(trees, cover, values, columns, points, codes, out, begin, end, work, None)


@kernel(code="uint16")
def shap_interactions(
    trees: Trees, cover: F64s, values: F64s2, columns: I64s2, points: Points, codes: Codes2,
    out: F64s3, begin: I64, end: I64, work: Work, pairs: Pairs,
):  # fmt: skip
    """As shap_values, for pairs of features: `out` f64[N, F * F, K]."""
    all_trees(trees, cover, values, columns, points, codes, out, begin, end, work, pairs)
