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

import numpy as np

from gpuforest.compiler.decorators import device, kernel
from gpuforest.compiler.intrinsics import LANES
from gpuforest.compiler.types import I64, Codes2, F64s, F64s2, F64s3, I64s, I64s2
from gpuforest.engine.records import Trees
from gpuforest.kernels.shap.edges import (
    APART,
    CHILD,
    CHILD_BITS,
    FEATURE,
    LEAF,
    LEAF_BITS,
    ROWS,
    Work,
    add_leaf,
    add_pair,
    add_root,
    find_states,
    go_down,
    go_up,
    join_leaves,
    take_leaf,
    take_leaves,
    weigh,
)
from gpuforest.kernels.shap.pairs import Pairs, add_pairs, know, leave, meet
from gpuforest.kernels.shared.records import Points


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
def add_leaves(h, n, f, c, first, Q, work, pairs, out):
    """Add both leaves of the node at level h, for pairs of features."""
    at = 6 * h * Q
    take_leaves(h, n, f, at, Q, work)
    add_pairs(pairs, work.products, h, h, n, f, at, c, first, Q, work, out)
    leave(pairs, work.before[h])


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
                add_leaves(h + 1, n, below_f, c, first, Q, work, pairs, out)
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
