"""Interventional SHAP values, with a background data set (Lundberg et al. 2020).

A feature that is not known has the value of a row z of the background, and results are sums over
all z. So for a row x with the features S known, the tree predicts what it does for the mixed row
that has x's values of S, and z's of the others.

At the splits on the path to a leaf, let A be the features where x goes the path's way and z does
not, and B those where z does and x does not. If a feature leads both off the path, no mixed row
reaches the leaf. Otherwise a mixed row reaches it if it has all of A from x and all of B from z.
With a features in A and b in B, the SHAP values of the leaf for this z are

    value * (a - 1)! b! / (a + b)!      for each feature of A
    -value * a! (b - 1)! / (a + b)!     for each feature of B
    0                                   for all others

Each bit of a word stands for a row of the background, so that one row x goes down a tree together
with 64 of these. Which of them go left at a node is found when the first x comes there.
"""

from typing import Annotated, NamedTuple

import numpy as np

from gpuforest.compiler.decorators import device, kernel
from gpuforest.compiler.types import I64, Codes2, F64s2, F64s3, I64s2, new_arrays
from gpuforest.core.frontier import Trees
from gpuforest.kernels.shared.numba import U, has_code
from gpuforest.kernels.traverse import numba as bits

BLOCK = 64  # rows of the background
NONE, ONE, ALL = U(0), U(1), U(2**64 - 1)
EXPONENT, BIAS = 52, 1023  # of a float64


class Work(NamedTuple):
    """Scratch of a thread. A level is a node of the path from the root."""

    left: Annotated[np.ndarray, "u64[nodes]"]  # which rows of the block go left there
    is_known: Annotated[np.ndarray, "u8[nodes]"]  # whether `left` has it
    in_a: Annotated[np.ndarray, "u64[features]"]  # with which rows a feature is in A
    in_b: Annotated[np.ndarray, "u64[features]"]  # and in B
    a: Annotated[np.ndarray, "i64[block]"]  # how many features are in A
    b: Annotated[np.ndarray, "i64[block]"]
    sums_a: Annotated[np.ndarray, "f64[sums]"]  # over the leaves below each level, for each row
    sums_b: Annotated[np.ndarray, "f64[sums]"]
    node: Annotated[np.ndarray, "i64[levels]"]
    side: Annotated[np.ndarray, "u8[levels]"]  # how many children of the node are done
    x_left: Annotated[np.ndarray, "u8[levels]"]  # whether x goes left
    alive: Annotated[np.ndarray, "u64[levels]"]  # with which rows mixed rows reach the node
    below: Annotated[np.ndarray, "u64[levels]"]  # and the child
    old_a: Annotated[np.ndarray, "u64[levels]"]  # in_a of the node's feature on the path above
    old_b: Annotated[np.ndarray, "u64[levels]"]


def new_work(n_features: int, depth: int, n_nodes: int) -> Work:
    """Scratch for trees up to this depth and this number of nodes."""
    sizes = {"nodes": n_nodes, "features": n_features, "levels": depth + 1}
    sums = (depth + 1) * BLOCK
    return Work(**new_arrays(Work, np.zeros, block=BLOCK, sums=sums, **sizes))


@device
def lowest(word):
    """The number of the lowest bit that is set, i64; of a word that is not 0."""
    return (np.float64(word & (~word + ONE)).view(np.int64) >> EXPONENT) - BIAS


@device
def sent_left(trees, v, code):
    """Whether a code goes left at a node, 1 or 0."""
    word = trees.nodes[v]
    if code == trees.missing:
        return (word >> bits.MISSING) & ONE
    if word & bits.BIN_BITS == bits.BIN_BITS:
        return U(has_code(trees.sets, trees.set_at[v], np.int64(code)))
    return U(U(code) <= word & bits.BIN_BITS)


@device
def enter(trees, v, i, h, alive, codes, background, first, n, work):
    """Prepare the node v at level h, which x, row i, reaches with some of the n rows of a block."""
    f, at = np.int64(trees.nodes[v] >> bits.FEATURE), v - work.node[0]
    if work.is_known[at] == 0:
        left = NONE
        for z in range(n):
            left |= sent_left(trees, v, background[f, first + z]) << U(z)
        work.left[at], work.is_known[at] = left, 1
    work.node[h], work.side[h], work.alive[h] = v, 0, alive
    work.x_left[h] = sent_left(trees, v, codes[f, i])
    work.old_a[h], work.old_b[h] = work.in_a[f], work.in_b[f]
    while alive != NONE:
        z = lowest(alive)
        work.sums_a[h * BLOCK + z] = work.sums_b[h * BLOCK + z] = 0.0
        alive &= alive - ONE


@device
def count_rows(counts, rows, step):
    """Add `step` to the counts of some rows of a block."""
    while rows != NONE:
        counts[lowest(rows)] += step
        rows &= rows - ONE


@device
def sum_over(sums, level, rows):
    """The sum over some rows of a block of the sums of a level."""
    total = 0.0
    while rows != NONE:
        total += sums[level * BLOCK + lowest(rows)]
        rows &= rows - ONE
    return total


@device
def go_down(f, h, s, work):
    """Take the edge to child s of the node at level h. Returns with which rows mixed rows do."""
    z_goes = work.left[work.node[h] - work.node[0]]
    if s == 1:
        z_goes = ~z_goes
    x_goes = ALL if (work.x_left[h] == 1) == (s == 0) else NONE
    a, b = work.old_a[h], work.old_b[h]
    is_new = ~(a | b)
    alive = work.alive[h] & ((a & x_goes) | (b & z_goes) | (is_new & (x_goes | z_goes)))
    new_a, new_b = alive & is_new & x_goes & ~z_goes, alive & is_new & z_goes & ~x_goes
    work.below[h], work.in_a[f], work.in_b[f] = alive, a | new_a, b | new_b
    count_rows(work.a, new_a, 1)
    count_rows(work.b, new_b, 1)
    return alive


@device
def take_leaf(value, weights, h, alive, work):
    """Write the sums of a leaf as those of level h."""
    while alive != NONE:
        z = lowest(alive)
        a, b = work.a[z], work.b[z]
        work.sums_a[h * BLOCK + z] = weights[a, b] * value
        work.sums_b[h * BLOCK + z] = weights[b, a] * value
        alive &= alive - ONE


@device
def go_up(f, h, i, c, out, work):
    """Add what is below the edge from level h."""
    at, below = h * BLOCK, (h + 1) * BLOCK
    alive = work.below[h]
    new_a, new_b = work.in_a[f] ^ work.old_a[h], work.in_b[f] ^ work.old_b[h]  # by this edge
    while alive != NONE:
        z = lowest(alive)
        work.sums_a[at + z] += work.sums_a[below + z]
        work.sums_b[at + z] += work.sums_b[below + z]
        alive &= alive - ONE
    out[i, f, c] += sum_over(work.sums_a, h + 1, new_a)
    out[i, f, c] -= sum_over(work.sums_b, h + 1, new_b)
    count_rows(work.a, new_a, -1)
    count_rows(work.b, new_b, -1)
    work.in_a[f], work.in_b[f] = work.old_a[h], work.old_b[h]


@device
def walk(trees, t, values, c, weights, codes, background, first, n, i, out, work):
    """Add what a tree and the n rows of a block give row i, for output c."""
    nodes, root = trees.nodes, trees.offsets[t]
    if nodes[root] >= bits.LEAF:
        return
    h, work.node[0] = 0, root
    enter(trees, root, i, 0, ALL >> U(BLOCK - n), codes, background, first, n, work)
    while True:
        word, s = nodes[work.node[h]], np.int64(work.side[h])
        if s == 2:
            if h == 0:
                return
            h -= 1
            go_up(np.int64(nodes[work.node[h]] >> bits.FEATURE), h, i, c, out, work)
            continue
        f = np.int64(word >> bits.FEATURE)
        child = root + np.int64((word >> bits.CHILD) & bits.CHILD_BITS) + s
        work.side[h] += 1
        alive, end = go_down(f, h, s, work), nodes[child]
        if alive != NONE and end < bits.LEAF:
            h += 1
            enter(trees, child, i, h, alive, codes, background, first, n, work)
            continue
        if alive != NONE:
            take_leaf(values[np.int64(end & bits.LEAF_BITS), c], weights, h + 1, alive, work)
        go_up(f, h, i, c, out, work)


@kernel(code="uint16")
def background_values(
    trees: Trees, values: F64s2, columns: I64s2, weights: F64s2, codes: Codes2, background: Codes2,
    out: F64s3, begin: I64, end: I64, work: Work,
):  # fmt: skip
    """Add the values of the rows begin .. end - 1 of u16[F, N], with a background u16[F, Z], to
    `out` f64[N, F, K]."""
    Z = background.shape[1]
    for t in range(len(trees.offsets) - 1):
        for first in range(0, Z, BLOCK):
            for v in range(trees.offsets[t + 1] - trees.offsets[t]):
                work.is_known[v] = 0
            n = min(BLOCK, Z - first)
            for i in range(begin, end):
                for c in range(columns[t, 0], columns[t, 1]):
                    walk(trees, t, values, c, weights, codes, background, first, n, i, out, work)
