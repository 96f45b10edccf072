"""Traverse: walk rows down trees of packed nodes (see nodes.py for the packing)."""

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.common.dtypes import Array
from gpuforest.core import terms
from gpuforest.core.frontier import Trees
from gpuforest.core.nodes import LEAF_MASK, MOST_COMBINED, combined, unpack
from gpuforest.kernels.shared.numpy import goes_left
from gpuforest.kernels.shared.records import Split


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


def sums_go_left(trees: Trees, node: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Whether rows of codes [n, F] go left at the nodes i64[n], which split by combinations. A row
    goes left if the sum of weight times coordinate is at most the threshold, or, if one of the
    values is missing, by missing_left."""
    words, n_terms = trees.nodes[node], combined(trees.nodes[node])
    coordinates: Array = trees.coordinates
    width = np.arange(1 + MOST_COMBINED // 2)
    at = np.minimum(trees.set_at[node][:, None] + width, len(trees.sets) - 1)
    features, weights, threshold = terms.unpack(xp, trees.sets[at], n_terms, MOST_COMBINED)
    sums, is_missing = np.zeros(len(node), np.int64), np.zeros(len(node), bool)
    for i in range(MOST_COMBINED):
        f, is_term = np.maximum(features[:, i], 0), features[:, i] >= 0
        code = codes[np.arange(len(node)), f]
        sums += np.where(is_term, weights[:, i] * coordinates[f, code], 0)
        is_missing |= is_term & (code == trees.missing)
    missing_left = unpack(xp, words)[2]
    left: np.ndarray = np.where(is_missing, missing_left, sums <= threshold)
    return left
