"""Predict: rows walk down the trees, block by block, and the values of their leaves are added up.

The results are where X is: on the host, or on the backend's device.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gpuforest.backends.base import Array, Backend
from gpuforest.backends.rows import on_host
from gpuforest.common import dtypes, progress
from gpuforest.core import nodes
from gpuforest.core.forest import Forest
from gpuforest.growing.edges import encode_blocks

MEDIANS_AT_ONCE = 2**20  # predictions of single trees in memory at once: some 50 MB


def flat(values: Array) -> Array:
    """Values [N, K, ...] of K outputs or causes; of a single one [N, ...]."""
    return values[:, 0] if values.shape[1] == 1 else values


def predict(forest: Forest, X: Array, backend: Backend) -> Array:
    """The forest's predictions f64[N, n_values] of a real array X [N, F] of any layout."""
    xp, T, K = backend.xp, forest.n_trees, forest.values.shape[1]
    is_on_host = on_host(X)
    out = (np if is_on_host else xp).empty((X.shape[0], K), dtype=dtypes.VALUE)
    for begin, end, codes in encode_blocks(X, forest.edges, backend):
        if forest.combine == "median":
            values = medians(forest, codes, backend)
        else:
            total = xp.zeros((codes.shape[0], K), dtype=xp.float64)
            if forest.baseline is not None:
                total = total + backend.asarray(forest.baseline)
            values = forest.combined(backend.accumulate(forest, codes, range(T), None, total))
        out[begin:end, ...] = backend.asnumpy(values) if is_on_host else values
        progress.report(end, X.shape[0])
    return out


def staged(forest: Forest, codes: Array, backend: Backend) -> Iterator[Array]:
    """Predictions f64[N, n_values] of the first tree, the first two, ... for codes [N, F]."""
    xp, N = backend.xp, codes.shape[0]
    if forest.combine == "median":
        values = _by_trees(forest, codes, backend)
        for n in range(1, forest.n_trees + 1):
            yield _medians(values[:, :n], backend.asarray(forest.whole_weights[:n]), xp)
        return
    total = xp.zeros((N, forest.coding.n_values), dtype=xp.float64)
    for t in range(forest.n_trees):
        total = backend.accumulate(forest, codes, range(t, t + 1), None, total)
        yield forest.combined(total, t + 1) + 0.0  # a copy, because `total` is added to


def medians(forest: Forest, codes: Array, backend: Backend) -> Array:
    """The weighted medians of the trees' predictions, f64[N, 1], as of `staged`."""
    weights, step = backend.asarray(forest.whole_weights), max(1, MEDIANS_AT_ONCE // forest.n_trees)
    parts = [
        _medians(_by_trees(forest, codes[i : i + step, ...], backend), weights, backend.xp)
        for i in range(0, codes.shape[0], step)
    ]
    return backend.xp.concat(parts)


def _by_trees(forest: Forest, codes: Array, backend: Backend) -> Array:
    """What each tree predicts for each row, f64[N, T]; forests of one number a row."""
    xp, T = backend.xp, forest.n_trees
    values = np.zeros(forest.n_nodes)
    leaf = nodes.is_leaf(forest.nodes)
    values[leaf] = forest.values[nodes.leaf_rows(forest.nodes[leaf]), 0]
    node = backend.apply(forest, codes) + backend.asarray(forest.tree_offsets[:-1])
    return xp.reshape(xp.take(backend.asarray(values), xp.reshape(node, (-1,))), (-1, T))


def _medians(values: Array, weights: Array, xp: Any) -> Array:
    """Weighted median of each row of values f64[N, T], weights i64[T]: f64[N, 1]. The least value
    at which half of all weight is reached."""
    N, T = values.shape
    order = xp.argsort(values, axis=1, stable=True)
    sorted_weights = xp.reshape(xp.take(weights, xp.reshape(order, (-1,))), (N, T))
    enough = 2 * xp.cumulative_sum(sorted_weights, axis=1) >= xp.sum(weights)
    first = xp.arange(N, dtype=xp.int64, device=values.device) * T
    chosen = xp.take(
        xp.reshape(order, (-1,)), first + xp.argmax(xp.astype(enough, xp.int8), axis=1)
    )
    return xp.take(xp.reshape(values, (-1,)), first + chosen)[:, None]


def predict_classes(forest: Forest, X: Array, backend: Backend) -> Array:
    """The class of the highest mean of each row [N], first of equals; strings on the host."""
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
    parts = zip(coding.several, coding.split(backend.asnumpy(means)), strict=True)
    labels = [classes[part.argmax(axis=1)] for classes, part in parts]
    kinds = {"O" if c.dtype.kind in "UO" else c.dtype.kind for c in coding.several}
    return np.stack([c.astype(object) for c in labels] if len(kinds) > 1 else labels, axis=1)


def apply(forest: Forest, X: Array, backend: Backend) -> Array:
    """The number, within its tree, of the leaf that each row reaches in each tree: i64[N, T]."""
    shape, is_on_host = (X.shape[0], forest.n_trees), on_host(X)
    out = (np if is_on_host else backend.xp).empty(shape, dtype=np.int64)
    for begin, end, codes in encode_blocks(X, forest.edges, backend):
        leaves = backend.apply(forest, codes)
        out[begin:end, ...] = backend.asnumpy(leaves) if is_on_host else leaves
        progress.report(end, X.shape[0])
    return out
