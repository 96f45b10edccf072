"""Traverse: walk rows down trees of packed nodes (see nodes.py for the packing)."""

import numpy as np

from gpuforest.engine.records import Trees
from gpuforest.kernels.traverse.by_sums import add_leaves, apply_sums


def apply(trees: Trees, codes: np.ndarray) -> np.ndarray:
    """The number, within its tree, of the leaf that each row of codes u8 or u16 [N, F] reaches,
    i64[N, T]."""
    return apply_sums(trees, codes, None)


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
    return add_leaves(trees, values, apply(trees, codes), skip, total)
