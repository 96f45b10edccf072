"""Traverse, compiled. The specification is numpy.py beside this file."""

import numpy as np

from gpuforest.kernels.compile import device, kernel
from gpuforest.kernels.hashing.numba import U
from gpuforest.nodes import (
    BIN_MASK,
    CHILD_MASK,
    CHILD_SHIFT,
    FEATURE_SHIFT,
    LEAF_MASK,
    LEAF_WORD,
    MISSING_SHIFT,
)

LEAF, LEAF_BITS, ONE = U(LEAF_WORD), U(LEAF_MASK), U(1)
BIN_BITS, CHILD_BITS = U(BIN_MASK), U(CHILD_MASK)
CHILD, MISSING, FEATURE = U(CHILD_SHIFT), U(MISSING_SHIFT), U(FEATURE_SHIFT)
LANES = 8  # rows that walk a tree together, so that their cache misses overlap


@device
def step(word, code, missing):
    """The child that a row with this code in the word's feature goes to."""
    if code == missing:
        right = U(1) - ((word >> MISSING) & ONE)
    else:
        right = U(code > np.int64(word & BIN_BITS))
    return np.int64(((word >> CHILD) & CHILD_BITS) + right)


@device
def walk(nodes, root, codes, first, last, missing, at):
    """Leaves of the rows first .. last - 1 in one tree, to `at` i64[last - first]."""
    for r in range(first, last):
        at[r - first] = 0
    moving = True
    while moving:
        moving = False
        for r in range(first, last):
            word = nodes[root + at[r - first]]
            if word < LEAF:
                code = np.int64(codes[r, np.int64(word >> FEATURE)])
                at[r - first] = step(word, code, missing)
                moving = True


@kernel
def apply(nodes, offsets, codes, missing, out):
    at = np.empty(LANES, np.int64)
    for t in range(len(offsets) - 1):
        for first in range(0, len(codes), LANES):
            last = min(first + LANES, len(codes))
            walk(nodes, offsets[t], codes, first, last, missing, at)
            for r in range(first, last):
                out[r, t] = at[r - first]


@kernel
def accumulate(nodes, offsets, values, codes, missing, skip, total):
    """`skip` bool[T, N] may be empty; the sums are added to `total` f64[N, n_values]."""
    at = np.empty(LANES, np.int64)
    for t in range(len(offsets) - 1):
        for first in range(0, len(codes), LANES):
            last = min(first + LANES, len(codes))
            walk(nodes, offsets[t], codes, first, last, missing, at)
            for r in range(first, last):
                if len(skip) and skip[t, r]:
                    continue
                leaf = np.int64(nodes[offsets[t] + at[r - first]] & LEAF_BITS)
                for v in range(values.shape[1]):
                    total[r, v] += values[leaf, v]
