"""Monotonic predictions: what leaves may predict, from the constrained splits above them.

A split of a constrained feature leaves to each side what lies on its side of the middle of
the two means. Growing refuses splits of constrained features that would leave these bounds;
others may leave them, and their leaves then predict the nearest bound.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.engine.criteria import Criterion
from gpuforest.engine.forest import Forest, tree_groups
from gpuforest.engine.nodes import LEAF_MASK, LEAF_WORD, is_leaf, unpack


def clip_leaves(forest: Forest, signs: np.ndarray, criterion: Criterion) -> Forest:
    """The forest with `leaf_values`, if some leaf's own mean is out of its bounds.

    Parameters
    ----------
    signs : i8[F], see `records.Rules`
    """
    if forest.node_values is not None:
        values = np.concatenate(
            [bounded_means(forest, signs, criterion, *group)[1] for group in tree_groups(forest)]
        )
        return replace(forest, node_values=values[:, None])
    groups = [bounded_means(forest, signs, criterion, *group) for group in tree_groups(forest)]
    nodes, leaf = forest.nodes.copy(), is_leaf(forest.nodes)
    own, means = (np.concatenate(part)[leaf] for part in zip(*groups, strict=True))
    if np.array_equal(own, means):
        return forest
    rows = (nodes[leaf] & np.uint64(LEAF_MASK)).astype(np.int64)
    nodes[leaf] = np.arange(len(rows), dtype=np.uint64) + np.uint64(LEAF_WORD)
    sums = forest.leaf_sums[rows]
    values = forest.coding.with_means(sums, means)
    return replace(forest, nodes=nodes, leaf_sums=sums, leaf_values=values)


def bounded_means(
    forest: Forest, signs: np.ndarray, criterion: Criterion, first: int, last: int
) -> tuple[np.ndarray, np.ndarray]:
    """The mean of the second channel, or the median, of each node of the trees first .. last - 1,
    and the nearest number within the node's bounds, which its ancestors set: f64[m]."""
    begin, end = forest.tree_offsets[first], forest.tree_offsets[last]
    feature = unpack(xp, forest.nodes[begin:end])[0]
    if forest.node_values is not None:
        mean = forest.node_values[begin:end, 0]
    else:
        mean = criterion.side_value(xp, forest.node_sums(first, last))
    low, high = np.full(end - begin, -np.inf), np.full(end - begin, np.inf)
    levels = forest.levels(first, last)
    for parents, children in pairwise(levels):
        above = parents[feature[parents - begin] >= 0] - begin
        left, right = children[0::2] - begin, children[1::2] - begin
        middle, sign = (mean[left] + mean[right]) * 0.5, signs[feature[above]]
        for side, way in ((left, 1), (right, -1)):
            low[side] = np.where(sign == -way, middle, low[above])
            high[side] = np.where(sign == way, middle, high[above])
    return mean, np.clip(mean, low, high)
