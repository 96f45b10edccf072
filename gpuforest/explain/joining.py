"""Forests of the trees of other forests: of two on the bins of both, or of some trees of one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpuforest.common.dtypes import CATEGORICAL, MAX_BINS
from gpuforest.core.bins import BinEdges
from gpuforest.core.forest import Forest, joined
from gpuforest.core.nodes import BIN_MASK, FEATURE_SHIFT, is_leaf
from gpuforest.explain.node_values import own_rows
from gpuforest.explain.paths import one_tree
from gpuforest.growing.assemble import in_order


def union(a: BinEdges, b: BinEdges) -> BinEdges:
    """Edges of both, of the same features and categories."""
    columns = [np.union1d(_edges_of(a, f), _edges_of(b, f)) for f in range(a.n_features)]
    if (most := max(map(len, columns))) > MAX_BINS - 2:
        raise ValueError(
            f"a feature would have {most + 1} bins, and at most {MAX_BINS - 1} are supported: fit "
            "with fewer max_bins"
        )
    return replace(BinEdges.of(columns, a.categories), statistics=a.statistics)


def _edges_of(edges: BinEdges, f: int) -> np.ndarray:
    return edges.values[edges.offsets[f] : edges.offsets[f + 1]]


def on_edges(forest: Forest, edges: BinEdges) -> Forest:
    """The forest on edges that hold its own: thresholds stay."""
    nodes = forest.nodes.copy()
    split = np.flatnonzero(~is_leaf(nodes))
    feature = (nodes[split] >> np.uint64(FEATURE_SHIFT)).astype(np.int64)
    numeric = edges.kinds[feature] != CATEGORICAL
    split, feature = split[numeric], feature[numeric]
    moves = []  # of each feature's bins; the last one has no edge
    for f in range(edges.n_features):
        old, new = _edges_of(forest.edges, f), _edges_of(edges, f)
        moves.append(np.append(np.searchsorted(new, old), len(new)) - np.arange(len(old) + 1))
    first = forest.edges.offsets[feature] + feature
    bin = (nodes[split] & np.uint64(BIN_MASK)).astype(np.int64)
    nodes[split] += np.concatenate(moves)[first + bin].astype(np.uint64)
    return replace(forest, nodes=nodes, edges=edges)


def picked(forest: Forest, trees: np.ndarray) -> Forest:
    """Some trees, of numbers i64[n], as a forest."""
    some = joined([own_rows(one_tree(forest, t)) for t in trees.tolist()])
    if some.leaf_values is not None or some.shrinkage:
        return some
    nodes, sums = in_order(some.nodes, [some.leaf_sums], some.coding)
    return replace(some, nodes=nodes, leaf_sums=sums)
