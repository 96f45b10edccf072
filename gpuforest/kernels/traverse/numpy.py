"""Traverse: walk rows down trees of packed nodes (see nodes.py for the packing)."""

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.kernels.best_split.categories import has_code
from gpuforest.nodes import LEAF_MASK, SET_BIN, unpack


def apply(
    nodes: np.ndarray,
    offsets: np.ndarray,
    codes: np.ndarray,
    missing: int,
    set_at: np.ndarray,
    sets: np.ndarray,
) -> np.ndarray:
    """The leaf that each row reaches in each tree, numbered within the tree: i64[N, T].

    Parameters
    ----------
    nodes : u64[M]
    offsets : i64[T + 1], tree t is nodes[offsets[t]:offsets[t + 1]], its root first
    codes : u8 or u16 [N, F]
    missing : int, the code of a missing value
    set_at : i64[M], where the set of each node whose bin is SET_BIN begins in `sets`
    sets : u64[...], bit c of a set is there where code c goes left
    """
    N, T = len(codes), len(offsets) - 1
    out = np.zeros((N, T), np.int64)
    for t in range(T):
        at, row = out[:, t], np.arange(N)
        while len(row):
            # 1. drop the rows that have arrived
            node = offsets[t] + at[row]
            feature, bin, missing_left, child = unpack(xp, nodes[node])
            moves = feature >= 0
            row = row[moves]
            # 2. one step down: children are adjacent
            code = codes[row, feature[moves]]
            left = code <= bin[moves]
            own = (bin[moves] == SET_BIN) & (code != missing)
            left[own] = has_code(xp, sets, set_at[node[moves][own]], code[own].astype(np.int64))
            left = np.where(code == missing, missing_left[moves], left)
            at[row] = child[moves] + ~left
    return out


def accumulate(
    nodes: np.ndarray,
    offsets: np.ndarray,
    values: np.ndarray,
    codes: np.ndarray,
    missing: int,
    set_at: np.ndarray,
    sets: np.ndarray,
    skip: np.ndarray | None,
    total: np.ndarray,
) -> np.ndarray:
    """The leaves' values of the trees, in their order, added to `total` f64[N, n_values].

    Parameters
    ----------
    values : f64[V, n_values]
    skip : bool[T, N] or None, the pairs of tree and row to leave out

    The other parameters are those of `apply`.
    """
    for t in range(len(offsets) - 1):
        leaf = apply(nodes, offsets[t : t + 2], codes, missing, set_at, sets)[:, 0]
        value = values[(nodes[offsets[t] + leaf] & LEAF_MASK).astype(np.int64)]
        total = total + (value if skip is None else np.where(skip[t][:, None], 0.0, value))
    return total
