"""A step down trees whose nodes may split by sums of features: in NumPy, and compiled."""

from __future__ import annotations

from typing import Any

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.common.dtypes import Array
from gpuforest.compiler.decorators import device
from gpuforest.core import nodes
from gpuforest.core.frontier import Trees
from gpuforest.core.nodes import unpack as unpack_nodes
from gpuforest.core.terms import WEIGHT_BITS, WEIGHT_ZERO, unpack
from gpuforest.kernels.shared.numba import LOW_32, U32


def sums_go_left(trees: Trees, node: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Whether rows of codes [n, F] go left at the nodes i64[n], which split by combinations. A row
    goes left if the sum of weight times coordinate is at most the threshold, or, if one of the
    values is missing, by missing_left."""
    words, n_terms = trees.nodes[node], nodes.combined(trees.nodes[node])
    coordinates: Array = trees.coordinates
    width = np.arange(1 + nodes.MOST_COMBINED // 2)
    at = np.minimum(trees.set_at[node][:, None] + width, len(trees.sets) - 1)
    features, weights, threshold = unpack(xp, trees.sets[at], n_terms, nodes.MOST_COMBINED)
    sums, is_missing = np.zeros(len(node), np.int64), np.zeros(len(node), bool)
    for i in range(nodes.MOST_COMBINED):
        f, is_term = np.maximum(features[:, i], 0), features[:, i] >= 0
        code = codes[np.arange(len(node)), f]
        sums += np.where(is_term, weights[:, i] * coordinates[f, code], 0)
        is_missing |= is_term & (code == trees.missing)
    missing_left = unpack_nodes(xp, words)[2]
    left: np.ndarray = np.where(is_missing, missing_left, sums <= threshold)
    return left


@device
def is_sum(bin: Any) -> Any:
    """Whether a split of this bin adds up features, in a forest that may have sums."""
    return nodes.OBLIQUE_BIN < bin < nodes.SET_BIN


@device
def sum_goes_left(trees: Any, at: Any, split: Any, codes: Any, r: Any) -> Any:
    """As sums_go_left, for row r of codes [N, F] at the node number `at` of the forest."""
    first, total = trees.set_at[at], np.int64(0)
    for i in range(split.bin - nodes.OBLIQUE_BIN):
        word = trees.sets[first + (i + 1) // 2]
        term = np.int64(word & LOW_32 if i % 2 else word >> U32)
        f = term >> WEIGHT_BITS
        code = np.int64(codes[r, f])
        if code == trees.missing:
            return split.missing_left
        weight = term % (1 << WEIGHT_BITS) - WEIGHT_ZERO
        total += weight * np.int64(trees.coordinates[f, code])
    threshold = np.int64(trees.sets[first] & LOW_32)  # of 32 bits with a sign
    return total <= (threshold - 2**32 if threshold >= 2**31 else threshold)
