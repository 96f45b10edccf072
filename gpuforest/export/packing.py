"""Nodes and leaf tables in few bytes, for model files."""

from __future__ import annotations

import numpy as np

from gpuforest.common.errors import need
from gpuforest.forest import Forest
from gpuforest.nodes import LEAF_MASK, LEAF_WORD, is_leaf


def _smallest(sums: np.ndarray) -> np.ndarray:
    """The same integers in as few bytes each as hold them all."""
    low, high = int(sums.min()), int(sums.max())
    dtype = np.result_type(np.min_scalar_type(low), np.min_scalar_type(high))
    return sums.astype(dtype if dtype.kind in "iu" else np.int64)


def packed(forest: Forest) -> dict[str, np.ndarray]:
    """Nodes and leaf table in few bytes; `unpacked` takes them back."""
    leaf, sums = is_leaf(forest.nodes), forest.leaf_sums
    arrays = {"is_leaf": np.packbits(leaf), "splits": forest.nodes[~leaf]}
    rows = forest.nodes[leaf] & np.uint64(LEAF_MASK)
    if not np.array_equal(rows, np.arange(len(sums))):
        arrays["leaves"] = _smallest(rows)
    if forest.coding.is_classes:
        return {**arrays, "leaf_sums": _smallest(sums)}
    weights, moments = _smallest(sums[:, 0]), _smallest(sums[:, 1:])
    return {**arrays, "leaf_weights": weights, "leaf_sums": moments}


def unpacked(arrays: dict[str, np.ndarray], n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes u64[M] and leaf sums i64[V, C]; that they make trees is not checked yet."""
    bits, splits, sums = (arrays[name] for name in ("is_leaf", "splits", "leaf_sums"))
    n_leaves = n_nodes - len(splits)
    # counted as they lie: unpacked, a bit takes eight bytes
    need(n_leaves > 0 and len(bits) == -(-n_nodes // 8), "bits that do not fit")
    need(int(np.bitwise_count(bits).sum()) == n_leaves, "splits that do not fit")
    need(sums.size > 0 and n_leaves == len(arrays.get("leaves", sums)), "leaves that do not fit")
    need(not is_leaf(splits).any(), "a split that is a leaf")
    rows = arrays["leaves"] if "leaves" in arrays else np.arange(n_leaves)
    need(bool(((rows >= 0) & (rows < len(sums))).all()), "a leaf outside the leaf table")
    leaf = np.unpackbits(bits, count=n_nodes).astype(bool)
    nodes = np.empty(n_nodes, np.uint64)
    nodes[~leaf], nodes[leaf] = splits, rows.astype(np.uint64) + np.uint64(LEAF_WORD)
    if "leaf_weights" in arrays:
        weights = arrays["leaf_weights"]
        need(weights.shape == sums.shape[:1], "leaf weights that do not fit")
        return nodes, np.column_stack([_as_int64(weights), _as_int64(sums)])
    return nodes, _as_int64(sums)


def _as_int64(sums: np.ndarray) -> np.ndarray:
    need(sums.dtype != np.uint64 or int(sums.max()) < 2**63, "a sum out of range")
    return sums.astype(np.int64)
