"""Traverse in Numba CUDA. The specification is numpy.py beside this file."""

from typing import Any

import numpy as np

from gpuforest.compiler.decorators import device
from gpuforest.engine.nodes import OBLIQUE_BIN, SET_BIN
from gpuforest.kernels.shared.numba import LOW_32, U32, goes_left
from gpuforest.kernels.shared.numba_cuda import cuda
from gpuforest.kernels.shared.records import NO_BIN, Split
from gpuforest.kernels.traverse.numba import (
    BIN_BITS,
    CHILD,
    CHILD_BITS,
    FEATURE,
    LEAF,
    LEAF_BITS,
    MISSING,
    ONE,
)
from gpuforest.splits.oblique.terms import WEIGHT_BITS, WEIGHT_ZERO


@device
def split_of(word):
    """The split of a packed node that is not a leaf."""
    bin, missing_left = np.int64(word & BIN_BITS), (word >> MISSING) & ONE == ONE
    return Split(0.0, np.int64(word >> FEATURE), bin, missing_left, NO_BIN)


@device
def sum_goes_left(trees, coordinates, first, split, codes, r):
    """Whether row r goes left at a split by a combination, whose words begin at `first`."""
    total = np.int64(0)
    for i in range(split.bin - OBLIQUE_BIN):
        word = trees.sets[first + (i + 1) // 2]
        term = np.int64(word & LOW_32 if i % 2 else word >> U32)
        f = term >> WEIGHT_BITS
        code = np.int64(codes[r, f])
        if code == trees.missing:
            return split.missing_left
        total += (term % (1 << WEIGHT_BITS) - WEIGHT_ZERO) * np.int64(coordinates[f, code])
    threshold = np.int64(trees.sets[first] & LOW_32)  # of 32 bits with a sign
    return total <= (threshold - 2**32 if threshold >= 2**31 else threshold)


@device
def walk(trees, coordinates, root, codes, r):
    """The leaf of row r in the tree at `root`, numbered in the tree.

    trees : Trees; in those without sets, `set_at` and `sets` are empty
    coordinates : i32[F, B], empty where no nodes split by combinations
    """
    at, word = np.int64(0), trees.nodes[root]
    while word < LEAF:
        split = split_of(word)
        first = np.int64(trees.set_at[root + at]) if split.bin == SET_BIN else np.int64(0)
        code = np.int64(codes[r, split.feature])
        is_left = goes_left(code, split, trees.missing, trees.sets, first)
        if len(coordinates) and OBLIQUE_BIN < split.bin < SET_BIN:
            first = trees.set_at[root + at]
            is_left = sum_goes_left(trees, coordinates, first, split, codes, r)
        at = np.int64((word >> CHILD) & CHILD_BITS) + (not is_left)  # children are adjacent
        word = trees.nodes[root + at]
    return at


@cuda.jit
def walk_rows(trees, coordinates, codes, out):
    """Write the leaves to out i64[N, T]; each thread takes one row in one tree."""
    N, T = out.shape
    for at in range(cuda.grid(1), np.int64(N) * T, cuda.gridsize(1)):
        r, t = at // T, at % T
        out[r, t] = walk(trees, coordinates, trees.offsets[t], codes, r)


@cuda.jit
def add_leaves(trees, coordinates, values, codes, skip, total):
    """Add the leaves' values to `total`; each thread takes one row, and adds in the order of the
    trees. `skip` may be empty."""
    offsets = trees.offsets
    for r in range(cuda.grid(1), len(codes), cuda.gridsize(1)):
        for t in range(len(offsets) - 1):
            if len(skip) and skip[t, r]:
                continue
            at = offsets[t] + walk(trees, coordinates, offsets[t], codes, r)
            leaf = np.int64(trees.nodes[at] & LEAF_BITS)
            for v in range(values.shape[1]):
                total[r, v] += values[leaf, v]


def apply(trees, codes, coordinates, backend) -> Any:
    """`coordinates` i32[F, B] is empty where no nodes split by combinations."""
    out = backend.xp.empty((len(codes), len(trees.offsets) - 1), dtype=np.int64)
    backend.launch(walk_rows, out.size, trees, coordinates, codes, out)
    return out


def accumulate(trees, values, codes, skip, total, coordinates, backend) -> Any:
    """Changes `total` in place."""
    left_out = backend.xp.zeros((0, 0), dtype=np.bool_) if skip is None else skip
    backend.launch(
        add_leaves, len(codes), trees, coordinates, values, codes, left_out, total
    )  # fmt: skip
    return total
