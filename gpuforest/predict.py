"""Predict: rows walk down the trees, block by block, and their leaves' values add up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.binning import encode_blocks
from gpuforest.dtypes import VALUE
from gpuforest.progress import report

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend
    from gpuforest.forest import Forest

Array = Any


def predict(forest: Forest, X: Array, backend: Backend) -> np.ndarray:
    """Mean over the trees of their predictions, f64[N, n_values], on the host.

    Parameters
    ----------
    X : real array [N, F] of any layout; a block of rows at a time is copied
    """
    out = np.empty((X.shape[0], forest.coding.n_values), VALUE)
    for begin, end, codes in encode_blocks(X, forest.edges, backend):
        zeros = backend.xp.zeros(
            (end - begin, out.shape[1]), dtype=backend.xp.float64, device=backend.device
        )
        total = backend.accumulate(forest, codes, 0, forest.n_trees, None, zeros)
        np.divide(backend.asnumpy(total), forest.n_trees, out=out[begin:end])
        report(end, len(out))
    return out


def apply(forest: Forest, X: Array, backend: Backend) -> np.ndarray:
    """The leaf that each row reaches in each tree, numbered in the tree: i64[N, T]."""
    out = np.empty((X.shape[0], forest.n_trees), np.int64)
    for begin, end, codes in encode_blocks(X, forest.edges, backend):
        out[begin:end] = backend.asnumpy(backend.apply(forest, codes))
        report(end, len(out))
    return out
