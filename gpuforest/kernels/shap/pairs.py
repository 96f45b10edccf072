"""What edges add to pairs of features, compiled; numba.py has the formulas."""

from typing import NamedTuple

import numpy as np

from gpuforest.compiler.decorators import device
from gpuforest.compiler.intrinsics import LANES, four_of, load, store, total
from gpuforest.compiler.types import F64s, I64s
from gpuforest.kernels.shap.edges import APART, ROWS, padded
from gpuforest.kernels.shared.numba import U


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
    Q = padded(count)
    return Pairs(
        np.empty(n_features * ROWS * Q),
        np.empty(n_features, np.int64),
        np.zeros(1, np.int64),
        np.empty(Q),
    )


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
