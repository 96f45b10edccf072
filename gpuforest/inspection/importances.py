"""Impurity importances: how much each feature's splits gained (Breiman 2001)."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.assembly import exclusive, pairs
from gpuforest.criteria import Criterion, side_score
from gpuforest.forest import Forest
from gpuforest.nodes import unpack

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend

Array = Any

GROUP_VALUES = 2**22  # channel sums looked at at once: some 32 MiB, and as much again


def impurity_importances(forest: Forest, criterion: Criterion, backend: Backend) -> np.ndarray:
    """Importances f64[F] that add up to one; all zero where nothing was gained.

    Each tree's importances are normalised, averaged over the trees that have a split,
    and normalised again, as scikit-learn does.
    """
    F = forest.edges.n_features
    total = np.zeros(F)
    leaf_sums = backend.asarray(forest.leaf_sums)
    for first, last in _groups(forest, F):
        gains = tree_gains(forest, leaf_sums, criterion, first, last, backend)
        each = gains.sum(axis=1, keepdims=True)
        total += (gains / np.maximum(each, 1)).sum(axis=0)
    return np.divide(total, total.sum() or 1.0, out=total)


def tree_gains(
    forest: Forest,
    leaf_sums: Array,
    criterion: Criterion,
    first: int,
    last: int,
    backend: Backend,
) -> np.ndarray:
    """Score gained by each feature's splits in the trees first .. last - 1, i64[t, F].

    As whole numbers of some power of two, so that they add up the same in any order.
    """
    xp, F = backend.xp, forest.edges.n_features
    offsets = forest.tree_offsets[first : last + 1] - forest.tree_offsets[first]
    nodes = forest.nodes[forest.tree_offsets[first] : forest.tree_offsets[last]]
    keys, gains = _split_gains(
        backend.asarray(nodes), backend.asarray(offsets[:-1]), leaf_sums, criterion, F, xp
    )
    if not keys.shape[0]:
        return np.zeros((last - first, F), np.int64)
    # a split of no gain may come out below zero by rounding
    gains = xp.where(gains > 0, gains, xp.zeros_like(gains))
    largest = float(backend.asnumpy(xp.max(gains)))
    bits = 62 - int(np.diff(offsets).max()).bit_length() - math.frexp(largest)[1]
    whole = xp.astype(xp.floor(gains * math.ldexp(1.0, min(bits, 1000)) + 0.5), xp.int64)
    order = xp.argsort(keys, stable=True)
    upto = xp.cumulative_sum(xp.take(whole, order), include_initial=True)
    places = xp.arange((last - first) * F + 1, dtype=xp.int64, device=backend.device)
    upto = xp.take(upto, xp.searchsorted(xp.take(keys, order), places))
    return backend.asnumpy(upto[1:] - upto[:-1]).reshape(last - first, F)


def _split_gains(
    nodes: Array, roots: Array, leaf_sums: Array, criterion: Criterion, F: int, xp: Any
) -> tuple[Array, Array]:
    """Of every split tree * F + feature i64[...] and the score it gained f64[...]."""
    # 1. down: the nodes of each level, and which are split
    at, base = roots, roots
    tree = xp.cumulative_sum(xp.ones_like(roots)) - 1
    levels = []
    while at.shape[0]:
        feature, _, _, child = unpack(xp, xp.take(nodes, at))
        split = xp.nonzero(feature >= 0)[0]
        levels.append((feature, child, split, xp.take(tree * F + feature, split)))
        left, base = xp.take(base + child, split), xp.take(base, split)
        tree = xp.take(tree, split)
        at, base, tree = pairs(xp, left, left + 1), pairs(xp, base, base), pairs(xp, tree, tree)
    # 2. up: channel sums of every node, and the two sides of every split less the node
    keys, gains = [], []
    sums = xp.zeros_like(leaf_sums[:0, :])
    score = side_score(xp, sums, criterion.id)
    for feature, child, split, key in reversed(levels):
        is_split, below = feature >= 0, sums[0::2, :] + sums[1::2, :]
        sides = score[0::2] + score[1::2]
        sums = xp.take(leaf_sums, xp.where(is_split, 0, child), axis=0)
        if split.shape[0]:
            rank = xp.where(is_split, exclusive(xp, is_split), 0)
            sums = xp.where(is_split[:, None], xp.take(below, rank, axis=0), sums)
        score = side_score(xp, sums, criterion.id)
        keys.append(key)
        gains.append(sides - xp.take(score, split))
    return xp.concat(keys), xp.concat(gains)


def _groups(forest: Forest, F: int) -> list[tuple[int, int]]:
    """Cut the trees so that a group's sums and gains stay small."""
    cost = np.diff(forest.tree_offsets) * forest.leaf_sums.shape[1] + F
    group = np.cumsum(cost) // GROUP_VALUES
    cuts = np.flatnonzero(np.diff(group)) + 1
    bounds = [0, *cuts.tolist(), forest.n_trees]
    return list(pairwise(bounds))
