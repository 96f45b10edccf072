"""SHAP values beside a background: interventional TreeSHAP (Lundberg et al. 2020).

A feature that is not known has the value of a row z of the background, and results are sums over
all z. So for a row x with the features S known, the tree predicts what it does for the mixed row
that has x's values of S, and z's of the others.

On the path to a leaf, let A be the features by whose splits x goes the path's way, but not z; let
B be those by which z does, but not x. If any other feature leads both away, no mixed row reaches
the leaf. Otherwise those do that have all of A from x and all of B from z. With a features in A and
b in B, the SHAP values of the leaf for this z are

    value * (a - 1)! b! / (a + b)!      for each feature of A
    -value * a! (b - 1)! / (a + b)!     for each feature of B
    0                                   for all others
"""

from typing import Any

import numpy as np

from gpuforest.frontier import Trees
from gpuforest.kernels.shap.numpy import LEFT, child_of, states, sum_up
from gpuforest.nodes import is_leaf, leaf_rows

BLOCK = 64  # rows of the background whose sums are added up before those of the next


def background_values(
    trees: Trees,
    values: np.ndarray,
    columns: np.ndarray,
    weights: np.ndarray,
    codes: np.ndarray,
    background: np.ndarray,
) -> np.ndarray:
    """The sums over the trees and the rows of the background of SHAP values, f64[N, F, K].

    Rows are independent. A row's sums are those of trees in their order, each for blocks of the
    background in their order, each edge after edge; an edge adds up the rows of the block.

    Parameters
    ----------
    values : f64[V, K], what each row of the leaf table adds to each output
    columns : i64[T, 2], tree t adds to the outputs columns[t, 0] .. columns[t, 1] - 1
    weights : f64[D, D], (a - 1)! b! / (a + b)! for a and b; a path has less than D features
    codes : u8 or u16 [N, F]
    background : as codes, [Z, F]

    Example
    -------
    A tree splits by feature 0; its right child splits by feature 1. The leaves' values are 0, 6 and
    9. The row goes right, and right again, so it is predicted 9. One row of the background goes
    right and left, and is predicted 6. With it only feature 1 is in A on the path to 9, and in B on
    the path to 6: feature 1 gets 9 - 6 = 3. The other row of the background goes left by both
    features, and is predicted 0. On the path to the leaf of 0, feature 0 is in B and gets -0. On
    that to 6, feature 0 is in A and feature 1 in B: they get 6 / 2 and -6 / 2. On that to 9 both
    are in A, and each gets 9 / 2. So the sums are 3 + 9/2 = 15/2 for feature 0, and
    3 - 3 + 9/2 = 9/2 for feature 1. Their halves and the mean prediction of the background, 3, add
    up to 9.
    """
    out = np.zeros((*codes.shape, values.shape[1]))
    for t in range(len(trees.offsets) - 1):
        for first in range(0, len(background), BLOCK):
            block = background[first : first + BLOCK]
            for c in range(columns[t, 0], columns[t, 1]):
                walk(trees, t, values[:, c], weights, codes, block, out[..., c])
    return out


class Node:
    """A node of the path that is being walked.

    alive : bool[N, Z], whether mixed rows of x and z reach it
    before : bool[2, N, Z], whether its feature is in A, and in B, on the path above
    added : bool[2, N, Z], whether it is so from the edge to the child on, and was not before
    sums : f64[2, N, Z], over the leaves below: their values times the weights of A, and of B
    """

    def __init__(self, at: int, feature: int, alive: Any, before: Any, left: Any) -> None:
        self.at, self.feature, self.alive, self.before = at, feature, alive, before
        self.left, self.side = left, 0
        self.added: Any = None
        self.sums = np.zeros(before.shape)


def walk(
    trees: Trees,
    t: int,
    value: np.ndarray,
    weights: np.ndarray,
    codes: np.ndarray,
    background: np.ndarray,
    out: np.ndarray,
) -> None:
    """Walk a tree depth first, and add to `out` f64[N, F] what each edge adds.

    value : f64[V]
    """
    root, (N, F), Z = trees.offsets[t], codes.shape, len(background)
    only = np.zeros((F, 2, N, Z), bool)  # whether a feature is in A, and in B
    counts = np.zeros((2, N, Z), np.int64)
    path: list[Node] = []

    def enter(i: int, alive: np.ndarray) -> None:
        """Go down to a split."""
        f, x = states(trees, i, codes)
        _, z = states(trees, i, background)
        left = np.broadcast_arrays((x == LEFT)[:, None], (z == LEFT)[None, :])
        path.append(Node(i, f, alive, only[f].copy(), np.stack(left)))

    def go_down(node: Node) -> np.ndarray:
        """Whether mixed rows take the edge to the next child, and what it makes of the feature."""
        goes = node.left == (node.side == 0)
        is_new = ~node.before.any(axis=0)
        alive: np.ndarray = node.alive & (
            (node.before & goes).any(axis=0) | (is_new & goes.any(axis=0))
        )
        node.added = (alive & is_new) & goes & ~goes[::-1]
        only[node.feature] = node.before | node.added
        counts[:] += node.added
        node.side += 1
        return alive

    def go_up(node: Node, sums: np.ndarray) -> None:
        """Add what is below the edge."""
        own_a, own_b = sum_up(np.where(node.added, sums, 0.0))
        out[:, node.feature] += own_a
        out[:, node.feature] -= own_b
        only[node.feature] = node.before
        counts[:] -= node.added
        node.sums = node.sums + sums

    if not is_leaf(trees.nodes[root]):
        enter(root, np.ones((N, Z), bool))
    while path:
        node = path[-1]
        if node.side == 2:
            path.pop()
            if path:
                go_up(path[-1], node.sums)
            continue
        child = child_of(trees, root, node.at, node.side)
        alive = go_down(node)
        if is_leaf(trees.nodes[child]):
            a, b = counts
            found = np.stack([weights[a, b], weights[b, a]]) * value[leaf_rows(trees.nodes[child])]
            go_up(node, np.where(alive, found, 0.0))
        else:
            enter(child, alive)
