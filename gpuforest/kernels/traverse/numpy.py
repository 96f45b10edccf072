"""Traverse: walk rows down trees of packed nodes (see nodes.py for the packing)."""

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.kernels.shared.goes_left.numpy import goes_left
from gpuforest.kernels.shared.records import Split, Trees
from gpuforest.nodes import LEAF_MASK, unpack


def apply(trees: Trees, codes: np.ndarray) -> np.ndarray:
    """The number, within its tree, of the leaf that each row of codes u8 or u16 [N, F] reaches,
    i64[N, T]."""
    N, T = len(codes), len(trees.offsets) - 1
    out = np.zeros((N, T), np.int64)
    for t in range(T):
        at, row = out[:, t], np.arange(N)
        while len(row):
            # 1. drop the rows that have arrived
            node = trees.offsets[t] + at[row]
            feature, bin, missing_left, child = unpack(xp, trees.nodes[node])
            moves = feature >= 0
            row = row[moves]
            # 2. one step down: children are adjacent
            code = codes[row, feature[moves]]
            split = Split(None, None, bin[moves], missing_left[moves], None)
            first = trees.set_at[node[moves]] if len(trees.sets) else node[moves]
            left = goes_left(xp, code, split, trees.missing, trees.sets, first)
            at[row] = child[moves] + ~left
    return out


def accumulate(
    trees: Trees,
    values: np.ndarray,
    codes: np.ndarray,
    skip: np.ndarray | None,
    total: np.ndarray,
) -> np.ndarray:
    """Add the leaves' values, tree after tree in their order, to `total` f64[N, n_values].

    Parameters
    ----------
    values : f64[V, n_values]
    codes : u8 or u16 [N, F]
    skip : bool[T, N] or None, the pairs of tree and row to leave out
    """
    for t in range(len(trees.offsets) - 1):
        leaf = apply(trees._replace(offsets=trees.offsets[t : t + 2]), codes)[:, 0]
        value = values[(trees.nodes[trees.offsets[t] + leaf] & LEAF_MASK).astype(np.int64)]
        total = total + (value if skip is None else np.where(skip[t][:, None], 0.0, value))
    return total
