"""A tree of a boosted model as arrays: what its nodes hold, gain and add."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuforest.boosting.model import node_gains
from gpuforest.forest import Forest
from gpuforest.nodes import is_leaf, leaf_rows


@dataclass(frozen=True, eq=False)
class BoostedView:
    """What the nodes of a tree of a boosted model hold, as arrays by their numbers.

    round : int, the round that grew it; the first one is 1
    output : int, which raw prediction it adds to: of several classes the number of the class
    n_samples : i64[m], rows
    gradients, hessians : f64[m], their sums over the rows
    gain : f64[m], what the split gains, the difference of G^2 / (H + l2); 0 at leaves
    value : f64[m], what a leaf adds to the raw prediction, with the learning rate; above it the
        mean of the leaves below, weighted by hessians: of a Newton step without l2 and bounds, what
        the node would add if it were a leaf
    """

    round: int
    output: int
    n_samples: np.ndarray
    gradients: np.ndarray
    hessians: np.ndarray
    gain: np.ndarray
    value: np.ndarray

    @classmethod
    def of(cls, forest: Forest, tree: int) -> BoostedView:
        """The tree of this number."""
        coding: Any = forest.coding
        assert forest.leaf_values is not None
        sums, (g, h) = forest.node_sums(tree, tree + 1), coding.units[tree]
        number, output = divmod(tree, coding.n_values)
        hessians = sums[:, 2] * h
        return cls(
            round=number + 1,
            output=output,
            n_samples=sums[:, 0],
            gradients=sums[:, 1] * g,
            hessians=hessians,
            gain=node_gains(forest, tree, tree + 1),
            value=_values(forest, tree, forest.leaf_values[:, output], hessians),
        )


def _values(forest: Forest, tree: int, added: np.ndarray, hessians: np.ndarray) -> np.ndarray:
    """The values f64[m] of nodes, from what the rows of the leaf table add f64[V]."""
    begin, end = forest.tree_offsets[tree], forest.tree_offsets[tree + 1]
    leaf = is_leaf(forest.nodes[begin:end])
    value = np.zeros(end - begin)
    value[leaf] = added[leaf_rows(forest.nodes[begin:end][leaf])] + 0.0  # no -0
    levels = forest.levels(tree, tree + 1)
    for parents, children in zip(levels[-2::-1], levels[:0:-1], strict=True):
        split, below = parents[~leaf[parents - begin]] - begin, children - begin
        weighted = (value[below] * hessians[below]).reshape(-1, 2).sum(axis=1)
        value[split] = weighted / hessians[split]
    return value
