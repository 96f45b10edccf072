"""Impurity importances: how much each feature's splits gained (Breiman 2001)."""

from __future__ import annotations

from itertools import pairwise

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.criteria import Criterion, side_score
from gpuforest.forest import Forest
from gpuforest.nodes import unpack

GROUP_VALUES = 2**22  # channel sums looked at at once: some 32 MiB, and as much again


def impurity_importances(forest: Forest, criterion: Criterion) -> np.ndarray:
    """Importances f64[F] that add up to one; all zero where nothing was gained.

    Each tree's importances are normalised, averaged over the trees that have a split,
    and normalised again, as scikit-learn does.
    """
    F = forest.edges.n_features
    total = np.zeros(F)
    for first, last in _groups(forest, F):
        gains = tree_gains(forest, criterion, first, last)
        each = gains.sum(axis=1, keepdims=True)
        total += (gains / np.where(each > 0, each, 1.0)).sum(axis=0)
    return np.divide(total, total.sum() or 1.0, out=total)


def tree_gains(forest: Forest, criterion: Criterion, first: int, last: int) -> np.ndarray:
    """Score gained by each feature's splits in the trees first .. last - 1, f64[t, F]."""
    F = forest.edges.n_features
    begin, end = forest.tree_offsets[first], forest.tree_offsets[last]
    feature, _, _, child = unpack(xp, forest.nodes[begin:end])
    sizes = np.diff(forest.tree_offsets[first : last + 1])
    tree = np.repeat(np.arange(last - first), sizes)
    score = side_score(xp, forest.node_sums(first, last), criterion.id)
    # 1. the two sides of every split, less the node
    split = np.flatnonzero(feature >= 0)
    left = (forest.tree_offsets[first:last] - begin)[tree[split]] + child[split]
    gain = score[left] + score[left + 1] - score[split]
    # 2. a split of no gain may come out below zero by rounding
    place = tree[split] * F + feature[split]
    sums = np.bincount(place, np.maximum(gain, 0.0), minlength=(last - first) * F)
    return sums.reshape(last - first, F)


def _groups(forest: Forest, F: int) -> list[tuple[int, int]]:
    """Cut the trees so that a group's sums and gains stay small."""
    cost = np.diff(forest.tree_offsets) * forest.leaf_sums.shape[1] + F
    group = np.cumsum(cost) // GROUP_VALUES
    cuts = np.flatnonzero(np.diff(group)) + 1
    bounds = [0, *cuts.tolist(), forest.n_trees]
    return list(pairwise(bounds))
