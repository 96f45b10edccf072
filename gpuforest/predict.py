"""Predict: rows walk down the trees, block by block, and the values of their leaves are added up.

The results are where X is: on the host, or on the backend's device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.binning import encode_blocks, on_host
from gpuforest.common.dtypes import VALUE
from gpuforest.common.progress import report

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend
    from gpuforest.forest import Forest

Array = Any


def predict(forest: Forest, X: Array, backend: Backend) -> Array:
    """The forest's predictions, f64[N, n_values].

    Parameters
    ----------
    X : real array [N, F] of any layout; a block of rows at a time is copied
    """
    xp, T, K = backend.xp, forest.n_trees, forest.coding.n_values

    def combined(codes: Array) -> Array:
        zeros = xp.zeros((codes.shape[0], K), dtype=xp.float64, device=backend.device)
        return forest.combined(backend.accumulate(forest, codes, range(T), None, zeros))

    return _by_blocks(forest, X, backend, K, VALUE, combined)


def predict_classes(forest: Forest, X: Array, backend: Backend) -> Array:
    """The class of the highest mean for each row, [N]; of equal means, the first.

    Labels that a device cannot hold, such as strings, are returned on the host.
    """
    means, classes = predict(forest, X, backend), forest.coding.classes
    if classes is None:
        return _several_labels(forest, means, backend)
    if isinstance(means, np.ndarray):
        return classes[np.argmax(means, axis=1)]
    best = backend.xp.argmax(means, axis=1)
    if classes.dtype.kind not in "biuf" or classes.dtype.itemsize > 8:
        return classes[backend.asnumpy(best)]
    labels = backend.asarray(classes.astype(classes.dtype.newbyteorder("=")))
    return backend.xp.take(labels, best, axis=0)


def _several_labels(forest: Forest, means: Array, backend: Backend) -> np.ndarray:
    """Labels [N, n_outputs] of several class outputs, on the host."""
    coding = forest.coding
    means = means if isinstance(means, np.ndarray) else backend.asnumpy(means)
    labels = [
        c[part.argmax(axis=1)] for c, part in zip(coding.several, coding.split(means), strict=True)
    ]
    kinds = {"O" if c.dtype.kind in "UO" else c.dtype.kind for c in coding.several}
    return np.stack([c.astype(object) for c in labels] if len(kinds) > 1 else labels, axis=1)


def apply(forest: Forest, X: Array, backend: Backend) -> Array:
    """The number, within its tree, of the leaf that each row reaches in each tree: i64[N, T]."""

    def leaves(codes: Array) -> Array:
        return backend.apply(forest, codes)

    return _by_blocks(forest, X, backend, forest.n_trees, np.int64, leaves)


def _by_blocks(
    forest: Forest,
    X: Array,
    backend: Backend,
    width: int,
    dtype: type,
    values: Callable[[Array], Array],
) -> Array:
    """values(codes of a block of rows) of every block, [N, width]."""
    here = on_host(X)
    out = (np if here else backend.xp).empty((X.shape[0], width), dtype=dtype)
    for begin, end, codes in encode_blocks(X, forest.edges, backend):
        found = values(codes)
        out[begin:end, ...] = backend.asnumpy(found) if here else found
        report(end, X.shape[0])
    return out
