"""The gain of each split, computed from the sums of the leaves alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuforest.engine.criteria import Criterion
from gpuforest.engine.forest import Forest
from gpuforest.engine.nodes import is_leaf, unpack
from gpuforest.engine.slots import exclusive, pairs

Array = Any


def gains_by_levels(
    nodes: Array, roots: Array, leaf_sums: Array, criterion: Criterion, xp: Any
) -> tuple[Array, Array]:
    """Splits i64[...] as indices into `nodes`, and the score that each gained f64[...].

    A split of no gain may come out below zero by rounding: it gained zero.

    nodes : u64[m], of some trees
    roots : i64[t], where each of them begins
    leaf_sums : i64[V, C]
    """
    # 1. down: the nodes of each level, and which are split
    at, base = roots, roots
    levels = []
    while at.shape[0]:
        feature, _, _, child = unpack(xp, xp.take(nodes, at))
        split = xp.nonzero(feature >= 0)[0]
        levels.append((feature, child, split, xp.take(at, split)))
        left, base = xp.take(base + child, split), xp.take(base, split)
        at, base = pairs(xp, left, left + 1), pairs(xp, base, base)
    # 2. up: channel sums of every node, and the two sides of every split less the node
    splits, gains = [], []
    sums = xp.zeros_like(leaf_sums[:0, :])
    score = criterion.side_score(xp, sums)
    for feature, child, split, positions in reversed(levels):
        is_split, below = feature >= 0, sums[0::2, :] + sums[1::2, :]
        sides = score[0::2] + score[1::2]
        sums = xp.take(leaf_sums, xp.where(is_split, 0, child), axis=0)
        if split.shape[0]:
            rank = xp.where(is_split, exclusive(xp, is_split), 0)
            sums = xp.where(is_split[:, None], xp.take(below, rank, axis=0), sums)
        score = criterion.side_score(xp, sums)
        splits.append(positions)
        gains.append(sides - xp.take(score, split))
    gain = xp.concat(gains)
    return xp.concat(splits), xp.where(gain > 0, gain, xp.zeros_like(gain))


def gains_by_errors(forest: Forest, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """The splits of the trees first .. last - 1 of a forest that knows its nodes' errors: indices
    i64[...] into their nodes, and the decrease of the error by each split, f64[...]."""
    assert forest.node_errors is not None
    begin, end = forest.tree_offsets[first], forest.tree_offsets[last]
    nodes, errors = forest.nodes[begin:end], forest.node_errors[begin:end]
    split = np.flatnonzero(~is_leaf(nodes))
    size = np.diff(forest.tree_offsets[first : last + 1])
    root = np.repeat(forest.tree_offsets[first:last] - begin, size)[split]
    left = root + unpack(np, nodes[split])[3]
    return split, np.maximum(errors[split] - errors[left] - errors[left + 1], 0.0)
