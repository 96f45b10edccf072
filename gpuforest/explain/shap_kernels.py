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

from typing import Annotated, NamedTuple

import numpy as np

from gpuforest.compiler.decorators import device, kernel
from gpuforest.compiler.intrinsics import LANES, four_of, load, store, total
from gpuforest.compiler.types import I64, Codes2, F64s, F64s2, F64s3, I64s, I64s2, new_arrays
from gpuforest.core.frontier import Trees
from gpuforest.kernels.shared.numba import U, has_code
from gpuforest.kernels.traverse import numba as bits

U8 = np.uint8
ROWS = 64  # rows of a block
APART, LEFT, RIGHT = 0, 1, 2  # states: the row left the path by this feature above; goes left


class Work(NamedTuple):
    """Scratch of a thread, for blocks of ROWS rows. Level: a node of the path from the root;
    position: a row and a point of a level; value: a row and a point of a feature."""

    products: Annotated[np.ndarray, "f64[positions]"]  # of the path's factors
    sums: Annotated[np.ndarray, "f64[positions]"]  # over the leaves below
    found: Annotated[np.ndarray, "f64[values]"]  # the SHAP values at each point
    # for both edges below each level's node, for each state and point: what the products and the
    # sums are multiplied by
    product: Annotated[np.ndarray, "f64[edges]"]
    gain: Annotated[np.ndarray, "f64[edges]"]
    at: Annotated[np.ndarray, "f64[points]"]  # where the points are
    weight: Annotated[np.ndarray, "f64[points]"]
    lost: Annotated[np.ndarray, "f64[points]"]  # the weight times -1 / (1 - point)
    # one over the share of the cover that the path's splits by a feature left over; what it is
    # above each level's node, and below that on both sides
    share: Annotated[np.ndarray, "f64[features]"]
    before: Annotated[np.ndarray, "f64[levels]"]
    below: Annotated[np.ndarray, "f64[sides]"]
    node: Annotated[np.ndarray, "i64[levels]"]
    side: Annotated[np.ndarray, "u8[levels]"]  # how many children of the node are done
    state: Annotated[np.ndarray, "u8[level_rows]"]
    along: Annotated[np.ndarray, "u8[feature_rows]"]  # goes the path's way at all splits by it?
    # for pairs of features: what each feature of the path multiplies the sums below by; the
    # features of the path, and how many these are; what an edge adds at each point
    known: Annotated[np.ndarray, "f64[pairs]"]
    features: Annotated[np.ndarray, "i64[features]"]
    n_features: Annotated[np.ndarray, "i64[one]"]
    change: Annotated[np.ndarray, "f64[points]"]


def new_work(n_features: int, depth: int, points: int, with_pairs: bool) -> Work:
    """Scratch for trees up to this depth and this number of points."""
    levels, values = depth + 1, n_features * ROWS * points
    arrays = new_arrays(
        Work, np.empty, positions=levels * ROWS * points, values=values, edges=6 * levels * points,
        points=points, features=n_features, levels=levels, sides=2 * levels,
        level_rows=levels * ROWS, feature_rows=n_features * ROWS, pairs=values * with_pairs, one=1,
    )  # fmt: skip
    work = Work(**arrays)
    work.share[:], work.along[:], work.n_features[:] = 1.0, 1, 0
    return work


@device
def find_states(trees, node, codes, first, n, work, h):
    """Write the states of the rows first .. first + n - 1 at a node to level h of work.state."""
    word, missing, state = trees.nodes[node], trees.missing, work.state
    f = np.int64(word >> bits.FEATURE)
    kind = codes.dtype.type
    empty, holes_left = kind(missing), U8((word >> bits.MISSING) & bits.ONE)
    row, begin = f * ROWS, h * ROWS
    if word & bits.BIN_BITS == bits.BIN_BITS:
        for i in range(n):
            code = np.int64(codes[f, first + i])
            left = (
                U8(has_code(trees.sets, trees.set_at[node], code))
                if code != missing
                else holes_left
            )
            state[U(begin + i)] = (U8(2) - left) * work.along[U(row + i)]
        return
    bin = kind(word & bits.BIN_BITS)
    for i in range(n):  # in bytes, which fill vectors
        code = codes[f, first + i]
        left = U8(code <= bin) | (U8(code == empty) & holes_left)
        state[U(begin + i)] = (U8(2) - left) * work.along[U(row + i)]


@device
def weigh(above, left, right, left_times, right_times, at, Q, work):
    """Write what both edges below a node do in each state, at each point, to `product` and `gain`
    of the scratch, at `at`. One over the feature's share of the cover is `above` the node, and
    `left` and `right` below it; products there are multiplied by left_times and right_times."""
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
    """Make one edge of the edges to both leaves of a node, at `at`: products add up, and gains
    weighted by products."""
    product, gain, at = work.product, work.gain, U(at)
    for j in range(0, 3 * Q, LANES):
        left, right = at + U(j), at + U(3 * Q) + U(j)
        a, b = load(product, left), load(product, right)
        store(product, left, a + b)
        store(gain, left, a * load(gain, left) + b * load(gain, right))


@device
def go_down(h, n, at, Q, work, below):
    """Multiply products of n rows at level h into work.products below an edge; leaf: work.sums."""
    for i in range(n):
        s = U(at) + U(work.state[U(h * ROWS + i)]) * U(Q)
        a = U((h * ROWS + i) * Q)
        for j in range(0, Q, LANES):
            k = U(j)
            product = load(work.products, a + k) * load(work.product, s + k)
            store(below, a + U(ROWS * Q) + k, product)


@device
def go_up(h, n, f, at, Q, is_first, is_leaf, work):
    """Add a leaf, or the sums below an edge, to the sums of level h and the feature's values."""
    sums, found = work.sums, work.found
    for i in range(n):
        s = U(at) + U(work.state[U(h * ROWS + i)]) * U(Q)
        a, o = U((h * ROWS + i) * Q), U((f * ROWS + i) * Q)
        for j in range(0, Q, LANES):
            k = U(j)
            if is_leaf:
                below = load(work.products, a + k) * load(work.product, s + k)
            else:
                below = load(sums, a + U(ROWS * Q) + k)
            store(found, o + k, load(found, o + k) + below * load(work.gain, s + k))
            store(sums, a + k, below if is_first else load(sums, a + k) + below)


@device
def add_leaves(h, n, f, at, below_f, below_at, Q, is_first, work):
    """Add a node with two leaves below level h: all of go_down, its leaves, and go_up."""
    sums, found, with_pairs = work.sums, work.found, len(work.known) > 0
    for i in range(n):
        s = U(at) + U(work.state[U(h * ROWS + i)]) * U(Q)
        b = U(below_at) + U(work.state[U((h + 1) * ROWS + i)]) * U(Q)
        a, o, p = U((h * ROWS + i) * Q), U((f * ROWS + i) * Q), U((below_f * ROWS + i) * Q)
        for j in range(0, Q, LANES):
            k = U(j)
            below = load(work.products, a + k) * load(work.product, s + k)
            store(found, p + k, load(found, p + k) + below * load(work.gain, b + k))
            leaves = below * load(work.product, b + k)
            store(found, o + k, load(found, o + k) + leaves * load(work.gain, s + k))
            store(sums, a + k, leaves if is_first else load(sums, a + k) + leaves)
            if with_pairs:
                store(work.products, a + U(ROWS * Q) + k, below)
                store(sums, a + U(ROWS * Q) + k, leaves)


@device
def know(f, share, n, Q, work):
    """Note how much is known of a feature on the path, for all rows."""
    one = four_of(1.0)
    for i in range(n):
        o = U((f * ROWS + i) * Q)
        for j in range(0, Q, LANES):
            t = load(work.at, U(j))
            u = one - t
            if work.along[f * ROWS + i]:
                store(work.known, o + U(j), four_of(share - 1.0) / (u + t * four_of(share)))
            else:
                store(work.known, o + U(j), four_of(-1.0) / u)


@device
def add_pairs(source, level, h, n, f, at, c, first, Q, work, out):
    """Add the effect of an edge on f with each other feature of the path to `out`: source[level]
    times the gain, times work.known of the other."""
    F = len(work.share)
    for i in range(n):
        s = work.state[U(h * ROWS + i)]
        if s == APART:
            continue
        g, a = U(at) + U(s) * U(Q), U((level * ROWS + i) * Q)
        for j in range(0, Q, LANES):
            k = U(j)
            store(work.change, k, load(source, a + k) * load(work.gain, g + k))
        for m in range(work.n_features[0]):
            other = work.features[m]
            if other == f:
                continue
            o = U((other * ROWS + i) * Q)
            added = load(work.change, U(0)) * load(work.known, o)
            for j in range(LANES, Q, LANES):
                added = added + load(work.change, U(j)) * load(work.known, o + U(j))
            out[first + i, f * F + other, c] += total(added)


@kernel
def covers(trees: Trees, leaf_cover: F64s, cover: F64s, shape: I64s2, parent: I64s, seen: I64s):
    """Write covers of nodes f64[M], and most features of a path and depth of trees i64[T, 2]. The
    zeros in `seen` i64[F] count the path's splits by each feature; `parent` i64[M] is scratch."""
    nodes = trees.nodes
    for t in range(len(trees.offsets) - 1):
        root, end = trees.offsets[t], trees.offsets[t + 1]
        # 1. covers, from the last node up: children follow their parents
        for i in range(end - 1, root - 1, -1):
            word = nodes[i]
            if word >= bits.LEAF:
                cover[i] = leaf_cover[np.int64(word & bits.LEAF_BITS)]
            else:
                child = root + np.int64((word >> bits.CHILD) & bits.CHILD_BITS)
                cover[i] = cover[child] + cover[child + 1]
                parent[child] = parent[child + 1] = i
        # 2. the features of paths, depth first
        at, features, depth, most, deepest = root, 0, 0, 0, 0
        while True:
            while nodes[at] < bits.LEAF:
                f = np.int64(nodes[at] >> bits.FEATURE)
                features += seen[f] == 0
                seen[f] += 1
                depth += 1
                at = root + np.int64((nodes[at] >> bits.CHILD) & bits.CHILD_BITS)
            most, deepest = max(most, features), max(deepest, depth)
            # pairs of children follow the root, so that right ones have even numbers
            while at != root and (at - root) % 2 == 0:
                at = parent[at]
                f = np.int64(nodes[at] >> bits.FEATURE)
                seen[f] -= 1
                features -= seen[f] == 0
                depth -= 1
            if at == root:
                break
            at += 1
        shape[t, 0], shape[t, 1] = most, deepest


@device
def leaf_part(trees, root, v, cover, values, c):
    """What a leaf multiplies products by: its value, and its share of the cover; 1 of a split."""
    word = trees.nodes[v]
    if word < bits.LEAF:
        return 1.0
    return values[np.int64(word & bits.LEAF_BITS), c] * (cover[v] / cover[root])


@device
def enter(trees, t, v, h, cover, values, c, codes, first, n, Q, work):
    """Prepare a node at level h: states of rows, effects of edges; True: two leaves end it."""
    nodes, root = trees.nodes, trees.offsets[t]
    word = nodes[v]
    f = np.int64(word >> bits.FEATURE)
    child = root + np.int64((word >> bits.CHILD) & bits.CHILD_BITS)
    above = work.share[f]
    work.node[h], work.side[h], work.before[h] = v, 0, above
    find_states(trees, v, codes, first, n, work, h)
    if above == 1.0:  # a feature that is new on the path
        work.features[work.n_features[0]] = f
        work.n_features[0] += 1
    left_times = leaf_part(trees, root, child, cover, values, c)
    right_times = leaf_part(trees, root, child + 1, cover, values, c)
    whole = cover[v]
    left, right = above * (whole / cover[child]), above * (whole / cover[child + 1])
    work.below[2 * h], work.below[2 * h + 1] = left, right
    weigh(above, left, right, left_times, right_times, 6 * Q * h, Q, work)
    joins = h > 0 and nodes[child] >= bits.LEAF and nodes[child + 1] >= bits.LEAF
    if joins:  # no edge leads to the root
        join_leaves(6 * Q * h, Q, work)
    return joins


@device
def close(f, h, n, Q, work):
    """Forget the edges below the node at level h, which splits by feature f."""
    work.share[f] = work.before[h]
    for i in range(n):
        work.along[f * ROWS + i] = work.state[h * ROWS + i] != APART
    work.n_features[0] -= work.before[h] == 1.0  # where f was new on the path
    if len(work.known):
        know(f, work.share[f], n, Q, work)


@device
def rise(nodes, h, s, n, c, first, Q, work, out):
    """Go up the edge to child s of the node at level h."""
    f, at = np.int64(nodes[work.node[h]] >> bits.FEATURE), (6 * h + 3 * s) * Q
    go_up(h, n, f, at, Q, s == 0, False, work)
    if len(work.known):
        add_pairs(work.sums, h + 1, h, n, f, at, c, first, Q, work, out)


@device
def walk(trees, t, cover, values, c, codes, first, n, Q, work, out):
    """Add a tree's values of output c for rows first .. first + n - 1 to work.found. Values of
    pairs of features go to `out`, if work.known has elements."""
    nodes, root, h = trees.nodes, trees.offsets[t], 0
    if nodes[root] >= bits.LEAF:
        return
    for i in range(n * Q):
        work.products[i] = 1.0
    enter(trees, t, root, 0, cover, values, c, codes, first, n, Q, work)
    while True:
        v = work.node[h]
        word = nodes[v]
        f, s = np.int64(word >> bits.FEATURE), np.int64(work.side[h])
        if s == 2:
            close(f, h, n, Q, work)
            if h == 0:
                return
            h -= 1
            rise(nodes, h, np.int64(work.side[h]), n, c, first, Q, work, out)
            work.side[h] += 1
            continue
        child = root + np.int64((word >> bits.CHILD) & bits.CHILD_BITS) + s
        at, end = (6 * h + 3 * s) * Q, nodes[child]
        if end >= bits.LEAF:
            work.side[h] += 1
            if not len(work.known):
                go_up(h, n, f, at, Q, s == 0, True, work)
            else:
                go_down(h, n, at, Q, work, work.sums)
                rise(nodes, h, s, n, c, first, Q, work, out)
            continue
        work.share[f] = work.below[2 * h + s]
        for i in range(n):
            work.along[f * ROWS + i] = work.state[h * ROWS + i] == 1 + s
        if len(work.known):
            know(f, work.share[f], n, Q, work)
        if not enter(trees, t, child, h + 1, cover, values, c, codes, first, n, Q, work):
            go_down(h, n, at, Q, work, work.products)
            h += 1
            continue
        work.side[h] += 1
        below_f, below = np.int64(end >> bits.FEATURE), 6 * (h + 1) * Q
        add_leaves(h, n, f, at, below_f, below, Q, s == 0, work)
        if len(work.known):
            add_pairs(work.products, h + 1, h + 1, n, below_f, below, c, first, Q, work, out)
        work.n_features[0] -= work.before[h + 1] == 1.0
        if len(work.known):
            add_pairs(work.sums, h + 1, h, n, f, at, c, first, Q, work, out)


@device
def one_tree(trees, t, cover, values, c, codes, first, n, Q, work, out):
    """Add a tree's values of output c for the rows first .. first + n - 1 to `out`."""
    F, size = len(work.share), ROWS * Q
    for f in range(F):
        for i in range(n * Q):
            work.found[f * size + i] = 0.0
    walk(trees, t, cover, values, c, codes, first, n, Q, work, out)
    for f in range(F):
        for i in range(n):
            value = work.found[f * size + i * Q]
            for k in range(1, Q):
                value += work.found[f * size + i * Q + k]
            out[first + i, f * F + f if len(work.known) else f, c] += value


@kernel(code="uint16")
def shap_values(
    trees: Trees, cover: F64s, values: F64s2, columns: I64s2, n_points: I64s, points: F64s3,
    codes: Codes2, out: F64s3, begin: I64, end: I64, work: Work,
):  # fmt: skip
    """Add values of the rows begin .. end - 1 to `out` f64[N, F, K], or with work.known of pairs of
    features to `out` f64[N, F * F, K]. Codes are u16[F, N]: there is one kernel to compile."""
    for t in range(len(trees.offsets) - 1):
        Q = n_points[t]
        for k in range(Q):
            work.at[k], work.weight[k] = points[t, 0, k], points[t, 1, k]
            work.lost[k] = -1.0 / (1.0 - work.at[k]) * work.weight[k]
        for first in range(begin, end, ROWS):
            n = min(ROWS, end - first)
            for c in range(columns[t, 0], columns[t, 1]):
                one_tree(trees, t, cover, values, c, codes, first, n, Q, work, out)
