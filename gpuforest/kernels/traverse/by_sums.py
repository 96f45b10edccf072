"""Walks down any forest, oblique ones too, in NumPy; numpy.py beside this file calls them."""

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.engine.nodes import LEAF_MASK, MOST_COMBINED, combined, unpack
from gpuforest.engine.records import Trees
from gpuforest.kernels.shared.goes_left.numpy import goes_left
from gpuforest.kernels.shared.records import Split
from gpuforest.splits.oblique.terms import unpack as unpack_terms


def apply_sums(trees: Trees, codes: np.ndarray, coordinates: np.ndarray | None) -> np.ndarray:
    """As `apply`; with coordinates i32[F, B] nodes may split by combinations of features."""
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
            if coordinates is not None:
                by_sum = combined(trees.nodes[node[moves]]) > 0
                some = node[moves][by_sum]
                left[by_sum] = sums_go_left(trees, some, codes[row[by_sum]], coordinates)
            at[row] = child[moves] + ~left
    return out


def sums_go_left(
    trees: Trees, node: np.ndarray, codes: np.ndarray, coordinates: np.ndarray
) -> np.ndarray:
    """Whether rows of codes [n, F] go left at the nodes i64[n], which split by combinations.

    A row goes left if the sum of weight times coordinate is at most the threshold, or, if one of
    the values is missing, by missing_left.
    """
    words, n_terms = trees.nodes[node], combined(trees.nodes[node])
    width = np.arange(1 + MOST_COMBINED // 2)
    at = np.minimum(trees.set_at[node][:, None] + width, len(trees.sets) - 1)
    features, weights, threshold = unpack_terms(xp, trees.sets[at], n_terms, MOST_COMBINED)
    sums, is_missing = np.zeros(len(node), np.int64), np.zeros(len(node), bool)
    for i in range(MOST_COMBINED):
        f, own = np.maximum(features[:, i], 0), features[:, i] >= 0
        code = codes[np.arange(len(node)), f]
        sums += np.where(own, weights[:, i] * coordinates[f, code], 0)
        is_missing |= own & (code == trees.missing)
    missing_left = unpack(xp, words)[2]
    left: np.ndarray = np.where(is_missing, missing_left, sums <= threshold)
    return left


def add_leaves(
    trees: Trees,
    values: np.ndarray,
    leaves: np.ndarray,
    skip: np.ndarray | None,
    total: np.ndarray,
) -> np.ndarray:
    """As `accumulate`, from the leaves i64[N, T] that rows reach."""
    for t in range(len(trees.offsets) - 1):
        at = trees.nodes[trees.offsets[t] + leaves[:, t]] & LEAF_MASK
        value = values[at.astype(np.int64)]
        total = total + (value if skip is None else np.where(skip[t][:, None], 0.0, value))
    return total
