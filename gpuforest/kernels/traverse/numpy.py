"""Traverse: walk rows down trees of packed nodes (see nodes.py for the packing)."""

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.core.frontier import Trees
from gpuforest.core.nodes import LEAF_MASK, combined, unpack
from gpuforest.kernels.shared.numpy import goes_left
from gpuforest.kernels.shared.records import Split
from gpuforest.kernels.traverse.sums import sums_go_left


def apply(trees: Trees, codes: np.ndarray) -> np.ndarray:
    """The leaf, numbered in its tree, that each row of codes [N, F] gets to: i64[N, T]."""
    N, T = len(codes), len(trees.offsets) - 1
    out = np.zeros((N, T), np.int64)
    for t in range(T):
        at, row = out[:, t], np.arange(N)
        while len(row):
            # 1. drop the rows that have arrived
            node = trees.offsets[t] + at[row]
            feature, bin, missing_left, child = unpack(xp, trees.nodes[node])
            moves = feature >= 0
            row, node = row[moves], node[moves]
            # 2. one step down: children are adjacent
            code = codes[row, feature[moves]]
            split = Split(None, None, bin[moves], missing_left[moves], None)
            first = trees.set_at[node] if len(trees.sets) else node
            left = goes_left(xp, code, split, trees.missing, trees.sets, first)
            if trees.coordinates is not None:
                by_sum = combined(trees.nodes[node]) > 0
                left[by_sum] = sums_go_left(trees, node[by_sum], codes[row[by_sum]])
            at[row] = child[moves] + ~left
    return out


def accumulate(
    trees: Trees, values: np.ndarray, codes: np.ndarray, skip: np.ndarray | None, total: np.ndarray
) -> np.ndarray:
    """Add leaf values f64[V, n_values], in the order of trees, to `total` f64[N, n_values].

    skip : bool[T, N], pairs to leave out, or None"""
    leaves = apply(trees, codes)
    for t in range(len(trees.offsets) - 1):
        at = trees.nodes[trees.offsets[t] + leaves[:, t]] & LEAF_MASK
        value = values[at.astype(np.int64)]
        total = total + (value if skip is None else np.where(skip[t][:, None], 0.0, value))
    return total
