"""Forests joined: the trees of two forests on the bins of both."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpuforest.common.dtypes import CATEGORICAL, MAX_BINS
from gpuforest.core.bins import BinEdges
from gpuforest.core.forest import Forest, joined
from gpuforest.core.nodes import BIN_MASK, FEATURE_SHIFT, is_leaf


def joined_anew(a: Forest, b: Forest, differences: list[str]) -> Forest:
    """The trees of both, first those of a; a ValueError if the forests differ in something."""
    edges: BinEdges | None = a.edges
    if not differences and not _same_bins(a.edges, b.edges):
        differences = ["bins of combined features"] * (a.oblique or b.oblique)
        edges = None if differences else union(a.edges, b.edges)
    if edges is None or differences:
        raise ValueError(
            f"forests of different {', '.join(differences)} have no common trees: add forests "
            "that were fitted with the same parameters to the same kind of rows"
        )
    return joined([on_edges(a, edges), on_edges(b, edges)])


def _same_bins(a: BinEdges, b: BinEdges) -> bool:
    return np.array_equal(a.offsets, b.offsets) and np.array_equal(a.values, b.values)


def union(a: BinEdges, b: BinEdges) -> BinEdges:
    """Edges of both, of the same features and categories."""
    columns = [np.union1d(_edges_of(a, f), _edges_of(b, f)) for f in range(a.n_features)]
    most = max(map(len, columns))
    if most > MAX_BINS - 2:
        raise ValueError(
            f"a feature would have {most + 1} bins, and at most {MAX_BINS - 1} are supported: fit "
            "with fewer max_bins"
        )
    return replace(BinEdges.of(columns, a.categories), statistics=a.statistics)


def _edges_of(edges: BinEdges, f: int) -> np.ndarray:
    return edges.values[edges.offsets[f] : edges.offsets[f + 1]]


def on_edges(forest: Forest, edges: BinEdges) -> Forest:
    """The forest on edges that hold its own: thresholds stay."""
    if _same_bins(forest.edges, edges):
        return replace(forest, edges=edges)
    nodes = forest.nodes.copy()
    feature = (nodes >> np.uint64(FEATURE_SHIFT)).astype(np.int64)
    for f in np.flatnonzero(edges.kinds != CATEGORICAL).tolist():
        old, new = _edges_of(forest.edges, f), _edges_of(edges, f)
        at = np.flatnonzero((feature == f) & ~is_leaf(nodes))
        number = np.append(np.searchsorted(new, old), len(new)).astype(np.uint64)
        bin = nodes[at] & np.uint64(BIN_MASK)
        nodes[at] += number[bin.astype(np.int64)] - bin
    return replace(forest, nodes=nodes, edges=edges)
