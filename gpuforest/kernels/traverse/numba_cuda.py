"""Traverse in Numba CUDA. The specification is numpy.py beside this file."""

from typing import Any

import numpy as np
from numba import cuda

from gpuforest.kernels.compile import device
from gpuforest.kernels.traverse.numba import FEATURE, LEAF, LEAF_BITS, step


@device
def walk(nodes, root, codes, r, missing, set_at, sets):
    """The leaf of row r in the tree at `root`, numbered in the tree."""
    at, word = np.int64(0), nodes[root]
    while word < LEAF:
        code = np.int64(codes[r, np.int64(word >> FEATURE)])
        at = step(word, code, missing, root + at, set_at, sets)
        word = nodes[root + at]
    return at


@cuda.jit
def walk_rows(nodes, offsets, codes, missing, set_at, sets, out):
    """A thread a row and tree; without sets, `set_at` and `sets` are empty."""
    N, T = out.shape
    for at in range(cuda.grid(1), np.int64(N) * T, cuda.gridsize(1)):
        r, t = at // T, at % T
        out[r, t] = walk(nodes, offsets[t], codes, r, missing, set_at, sets)


@cuda.jit
def add_leaves(nodes, offsets, values, codes, missing, set_at, sets, skip, total):
    """A thread a row, which adds up in the order of the trees; `skip` may be empty."""
    for r in range(cuda.grid(1), len(codes), cuda.gridsize(1)):
        for t in range(len(offsets) - 1):
            if len(skip) and skip[t, r]:
                continue
            at = offsets[t] + walk(nodes, offsets[t], codes, r, missing, set_at, sets)
            leaf = np.int64(nodes[at] & LEAF_BITS)
            for v in range(values.shape[1]):
                total[r, v] += values[leaf, v]


def apply(trees, codes, backend) -> Any:
    out = backend.xp.empty((len(codes), len(trees.offsets) - 1), dtype=np.int64)
    backend.launch(
        walk_rows, out.size, trees.nodes, trees.offsets, codes, trees.missing, trees.set_at,
        trees.sets, out,
    )  # fmt: skip
    return out


def accumulate(trees, values, codes, skip, total, backend) -> Any:
    """Changes `total` in place."""
    left_out = backend.xp.zeros((0, 0), dtype=np.bool_) if skip is None else skip
    backend.launch(
        add_leaves, len(codes), trees.nodes, trees.offsets, values, codes, trees.missing,
        trees.set_at, trees.sets, left_out, total,
    )  # fmt: skip
    return total
