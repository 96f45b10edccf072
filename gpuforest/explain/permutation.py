"""Out-of-bag permutation importances (Breiman 2001, section 10)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import array_api_compat.numpy as host
import numpy as np

from gpuforest.common import hashing
from gpuforest.common.progress import report
from gpuforest.engine.binning import BinnedMatrix
from gpuforest.engine.forest import Forest
from gpuforest.engine.nodes import is_leaf, unpack
from gpuforest.engine.sampling import Sampling, draw_bags
from gpuforest.splits.oblique.terms import all_terms

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend

Array = Any
Score = Callable[[np.ndarray, np.ndarray], float]  # of rows i64[n], predictions f64[n, n_values]


def permutation_decreases(
    forest: Forest,
    matrix: BinnedMatrix,
    sampling: Sampling,
    score: Score,
    backend: Backend,
    groups: list[list[int]] | None = None,
) -> np.ndarray:
    """How much the score of each tree falls when a feature is permuted, f64[F, T]; or when the
    features of a group are, all by the same order, f64[groups, T].

    Each tree is scored on the rows of some weight that are out of its bag, and among these a
    feature's codes are permuted; a random order, which the hash gives, serves all features of the
    tree. Zero for features that a tree does not split on; NaN for trees whose bag has all rows.
    """
    T = forest.n_trees
    groups = [[f] for f in range(matrix.n_features)] if groups is None else groups
    found = np.zeros((len(groups), T))
    for t in range(T):
        out = draw_bags(sampling, forest.seed, t, t + 1, backend)[0, :] == 0
        rows = np.flatnonzero(backend.asnumpy(out))
        if sampling.weights is not None:
            rows = rows[sampling.weights[rows] > 0]
        if len(rows):
            used = set(split_features(forest, t))
            some = {g: own for g, group in enumerate(groups) if (own := sorted(used & {*group}))}
            decreases = _of_tree(forest, t, matrix, rows, list(some.values()), score, backend)
            found[list(some), t] = decreases
        else:
            found[:, t] = np.nan
        report(t + 1, T)
    return found


def _of_tree(
    forest: Forest,
    tree: int,
    matrix: BinnedMatrix,
    rows: np.ndarray,
    groups: list[list[int]],
    score: Score,
    backend: Backend,
) -> list[float]:
    """The decrease of each of these groups of features."""
    xp, n, K = backend.xp, len(rows), forest.coding.n_values
    codes = xp.take(matrix.codes, backend.asarray(rows), axis=0)
    order = backend.asarray(random_order(forest.seed, tree, n))

    def score_now() -> float:
        zeros = xp.zeros((n, K), dtype=xp.float64)
        values = backend.accumulate(forest, codes, range(tree, tree + 1), None, zeros)
        return score(rows, backend.asnumpy(values))

    before, found = score_now(), []
    for group in groups:
        columns = [xp.asarray(codes[:, feature], copy=True) for feature in group]
        for feature, column in zip(group, columns, strict=True):
            codes[:, feature] = xp.take(column, order)
        found.append(before - score_now())
        for feature, column in zip(group, columns, strict=True):
            codes[:, feature] = column
    return found


def split_features(forest: Forest, tree: int) -> list[int]:
    """The features that a tree splits on, ascending."""
    nodes = forest.nodes[forest.tree_offsets[tree] : forest.tree_offsets[tree + 1]]
    if forest.oblique:
        split = forest.tree_offsets[tree] + np.flatnonzero(~is_leaf(nodes))
        return sorted(set(all_terms(forest, split)[1].tolist()))
    found: list[int] = np.unique(unpack(host, nodes[~is_leaf(nodes)])[0]).tolist()
    return found


def random_order(seed: int, tree: int, n: int) -> np.ndarray:
    """A random order i64[n] of range(n), of a tree's rows out of bag."""
    key = hashing.hash_at(hashing.tree_keys(np, seed, tree, tree + 1), hashing.OUT_OF_BAG)
    positions = np.arange(n, dtype=np.uint64)[None]
    return np.asarray(hashing.permute(np, key[:, None], positions, n)[0], np.int64)
