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
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.frontier import Trees
from gpuforest.kernels.shared.goes_left.numpy import goes_left
from gpuforest.kernels.shared.records import Points, Split
from gpuforest.nodes import is_leaf, leaf_rows, unpack

APART, LEFT, RIGHT = 0, 1, 2  # of a row at a node: it has left the path by this feature above


class Edges(NamedTuple):
    """What both edges below a node multiply the products by, and the sums, f64[2, 3, P], for each
    state of a row; and one over the feature's share of the cover below each, [left, right]."""

    product: np.ndarray
    gain: np.ndarray
    below: tuple[float, float]


def covers(trees: Trees, leaf_cover: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cover of each node, f64[M], and of each tree the most features on a path, and its depth:
    i64[T, 2].

    leaf_cover : f64[V], of each row of the leaf table: the weight of the training rows there
    """
    cover = np.zeros(len(trees.nodes))
    shape = np.zeros((len(trees.offsets) - 1, 2), np.int64)
    feature, _, _, child = unpack(xp, trees.nodes)
    for t, (root, end) in enumerate(zip(trees.offsets[:-1], trees.offsets[1:], strict=True)):
        # 1. covers, from the last node up: children follow their parents
        for i in range(end - 1, root - 1, -1):
            first = root + child[i]
            is_split = feature[i] >= 0
            cover[i] = cover[first] + cover[first + 1] if is_split else leaf_cover[child[i]]
        # 2. the features of paths, from the root down
        paths: dict[int, tuple[frozenset[int], int]] = {int(root): (frozenset(), 0)}
        for i in range(root, end):
            known, depth = paths.pop(i)
            shape[t] = np.maximum(shape[t], [len(known), depth])
            if feature[i] >= 0:
                first = int(root + child[i])
                paths[first] = paths[first + 1] = (known | {int(feature[i])}, depth + 1)
    return cover, shape


def shap_values(
    trees: Trees,
    cover: np.ndarray,
    values: np.ndarray,
    columns: np.ndarray,
    points: Points,
    codes: np.ndarray,
) -> np.ndarray:
    """The sums over the trees of their SHAP values, f64[N, F, K].

    Rows are independent. A row's sums are those of trees in their order, each at its points, which
    are added up in their order.

    Parameters
    ----------
    cover : f64[M], see `covers`
    values : f64[V, K], what each row of the leaf table adds to each output
    columns : i64[T, 2], tree t adds to the outputs columns[t, 0] .. columns[t, 1] - 1
    points : at least half as many for each tree as a path of it has features
    codes : u8 or u16 [N, F]

    Example
    -------
    A tree splits by feature 0, with covers 1 and 3 of 4; its right child splits by feature 1, with
    covers 2 and 1. The leaves' values are 0, 6 and 9. The row goes right, and right again, so it is
    predicted 9. Its prediction without any feature known is (1 * 0 + 2 * 6 + 1 * 9) / 4 = 21/4;
    with feature 0 known (2 * 6 + 9) / 3 = 7, with feature 1 known 1/4 * 0 + 3/4 * 9 = 27/4. So the
    SHAP value of feature 0 is the mean of 7 - 21/4 and 9 - 27/4, 2, that of feature 1 the mean of
    27/4 - 21/4 and 9 - 7, 7/4.

    By quadrature one point, 1/2, of weight 1 is enough. The edge to the right child has r = 3/4 and
    q = 1/2 + 1/2 * 4/3 = 7/6, that to the last leaf r = 1/3 and q = 1/2 + 3/2 = 2, that to the leaf
    beside it o = 0 and q = 1/2, that to the first leaf o = 0 and q = 1/2. So the leaves' sums are
    0, 6 * 2/4 * 7/6 * 1/2 = 7/4 and 9 * 1/4 * 7/6 * 2 = 21/4. Feature 0 gets
    (4/3 - 1) / (7/6) * (7/4 + 21/4) = 2, feature 1 gets (0 - 1) / (1/2) * 7/4 + (3 - 1) / 2 * 21/4
    = 7/4.
    """
    out = np.zeros((*codes.shape, values.shape[1]))
    for t in range(len(trees.offsets) - 1):
        own = slice(points.first[t], points.first[t] + points.count[t])
        for c in range(columns[t, 0], columns[t, 1]):
            found = np.zeros((codes.shape[1], len(codes), points.count[t]))

            def add(f: int, change: np.ndarray, *_: Any, found: np.ndarray = found) -> None:
                found[f] += change

            walk(trees, t, cover, values[:, c], points.at[own], points.weight[own], codes, add)
            out[..., c] += sum_up(found).T
    return out


def shap_interactions(
    trees: Trees,
    cover: np.ndarray,
    values: np.ndarray,
    columns: np.ndarray,
    points: Points,
    codes: np.ndarray,
) -> np.ndarray:
    """The sums over the trees of what pairs of features add, f64[N, F * F, K], with the parameters
    of `shap_values`.

    The items f * F + f are the SHAP values; the items f * F + g and g * F + f add up to twice the
    interaction of f and g, as shap defines it. A tree adds to an item edge after edge.

    Example
    -------
    In the example of `shap_values`, only the edges by feature 1 have another feature on their path.
    They add to the item 1 * 2 + 0 the 7/4 of feature 1 times (4/3 - 1) / (7/6), 1/2. The
    interaction is half of it, 1/4. By definition it is half of 9 - 7 - 27/4 + 21/4, the same.
    """
    N, F = codes.shape
    out = np.zeros((N, F * F, values.shape[1]))
    for t in range(len(trees.offsets) - 1):
        own = slice(points.first[t], points.first[t] + points.count[t])
        at = points.at[own]
        for c in range(columns[t, 0], columns[t, 1]):
            found = np.zeros((F, N, len(at)))

            def add(
                f: int,
                change: np.ndarray,
                share: np.ndarray,
                along: np.ndarray,
                at: np.ndarray = at,
                found: np.ndarray = found,
                c: int = c,
            ) -> None:
                found[f] += change
                for g in np.flatnonzero(share != 1.0):
                    if g != f:
                        known = (share[g] - 1.0) / ((1.0 - at) + at * share[g])
                        known = np.where(along[g][:, None], known, -1.0 / (1.0 - at))
                        out[:, f * F + g, c] += sum_of_four(change * known)

            walk(trees, t, cover, values[:, c], at, points.weight[own], codes, add)
            out[:, :: F + 1, c] += sum_up(found).T
    return out


def sum_up(found: np.ndarray) -> np.ndarray:
    """The sums f64[...] over points f64[..., P], point after point."""
    total: np.ndarray = found[..., 0]
    for k in range(1, found.shape[-1]):
        total = total + found[..., k]
    return total


def sum_of_four(found: np.ndarray) -> np.ndarray:
    """The sums f64[N] over points f64[N, P], as vectors of four numbers add them up."""
    P = found.shape[1]
    fours = np.zeros((len(found), 4, -(-P // 4)))
    for k in range(P):
        fours[:, k % 4, k // 4] = found[:, k]
    a, b, c, d = np.moveaxis(sum_up(fours), 1, 0)
    total: np.ndarray = (a + b) + (c + d)
    return total


class Node:
    """A node of the path that is being walked.

    state : u8[N], see APART
    before : float, one over its feature's share of the cover above the node
    products, sums : f64[N, P]
    """

    def __init__(self, at: int, feature: int, state: np.ndarray, before: float) -> None:
        self.at, self.feature, self.state, self.before = at, feature, state, before
        self.side = 0
        self.edges: Any = None
        self.products: Any = None
        self.sums: Any = None


def walk(
    trees: Trees,
    t: int,
    cover: np.ndarray,
    value: np.ndarray,
    at: np.ndarray,
    weight: np.ndarray,
    codes: np.ndarray,
    add: Callable[..., None],
) -> None:
    """Walk a tree depth first, and call add(feature, change f64[N, P], share, along) for each edge,
    or for both edges of a node with two leaves.

    `change` is what SHAP values change by at each point, times its weight. share f64[F]: one over
    each feature's share of the cover on the path; along bool[F, N]: whether rows go the path's way
    by each feature.

    value : f64[V]; at, weight : f64[P]
    """
    root, (N, F) = trees.offsets[t], codes.shape
    share, along = np.ones(F), np.ones((F, N), bool)
    path: list[Node] = []

    def add_edge(node: Node, side: int, sums: np.ndarray) -> None:
        add(node.feature, sums * node.edges.gain[side][node.state], share, along)
        node.sums = sums if side == 0 else node.sums + sums

    def enter(i: int, products: np.ndarray) -> None:
        """Go down to a split."""
        f, state = states(trees, i, codes)
        node = Node(i, f, state * along[f], share[f])
        children = [child_of(trees, root, i, side) for side in (0, 1)]
        times = [
            value[leaf_rows(trees.nodes[j])] * (cover[j] / cover[root])
            if is_leaf(trees.nodes[j]) else 1.0
            for j in children
        ]  # fmt: skip
        node.edges = weigh(node.before, cover[i], cover[children], times, at, weight)
        node.products = products
        path.append(node)

    if not is_leaf(trees.nodes[root]):
        enter(root, np.ones((N, len(at))))
    while path:
        node = path[-1]
        f, s, edges = node.feature, node.side, node.edges
        children = [child_of(trees, root, node.at, side) for side in (0, 1)]
        if s == 0 and is_leaf(trees.nodes[children]).all():
            # 1. two leaves are one, whose factor is the sum of theirs
            node.side = 2
            node.sums = node.products * edges.product.sum(axis=0)[node.state]
            gain = edges.product * edges.gain
            add(f, node.products * (gain[0] + gain[1])[node.state], share, along)
        elif s < 2:
            # 2. one child after the other
            node.side += 1
            products = node.products * edges.product[s][node.state]
            if is_leaf(trees.nodes[children[s]]):
                add_edge(node, s, products)
            else:
                share[f], along[f] = edges.below[s], node.state == 1 + s
                enter(children[s], products)
        else:
            # 3. up again
            share[f], along[f] = node.before, node.state != APART
            path.pop()
            if path:
                add_edge(path[-1], path[-1].side - 1, node.sums)


def child_of(trees: Trees, root: int, i: int, side: int) -> int:
    child: int = root + unpack(xp, trees.nodes[i : i + 1])[3][0] + side
    return child


def states(trees: Trees, i: int, codes: np.ndarray) -> tuple[int, np.ndarray]:
    """The feature of a split, and to which side each row goes there, LEFT or RIGHT: u8[N]."""
    feature, bin, missing_left, _ = unpack(xp, trees.nodes[i : i + 1])
    split = Split(None, None, bin, missing_left, None)
    first = trees.set_at[i : i + 1] if len(trees.sets) else np.zeros(1, np.int64)
    code = codes[:, feature[0]]
    left = goes_left(xp, code, split, trees.missing, trees.sets, first)
    return int(feature[0]), np.where(left, LEFT, RIGHT).astype(np.uint8)


def weigh(
    before: float,
    cover: float,
    covers_below: np.ndarray,
    times: list[float],
    at: np.ndarray,
    weight: np.ndarray,
) -> Edges:
    """What the edges below a node do.

    before : one over the feature's share of the cover above the node
    cover, covers_below : of the node, and f64[2] of its children
    times : what the products are multiplied by, too
    """
    u, known_all = 1.0 - at, np.zeros_like(at)
    old = 1.0 / (u + at * before)
    apart, known = u * old, (before - 1.0) * old
    gain_apart = -1.0 / u * weight - known * weight
    below = [before * (cover / own) for own in covers_below]
    product, gain = np.empty((2, 3, len(at))), np.empty((2, 3, len(at)))
    for side, (own, factor) in enumerate(zip(below, times, strict=True)):
        new = u + at * own
        gain[side, 1 + side] = ((own - 1.0) / new - known) * weight
        gain[side, 2 - side], gain[side, APART] = gain_apart, known_all
        product[side, 1 + side] = new * old * factor
        product[side, 2 - side], product[side, APART] = apart * factor, factor
    return Edges(product, gain, (below[0], below[1]))
