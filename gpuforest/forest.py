"""The predicting type: all nodes of all trees, plain host arrays."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import pairwise
from typing import Any

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.binning import BinEdges
from gpuforest.common.errors import need
from gpuforest.forest_check import check_forest
from gpuforest.nodes import has_set, is_leaf, leaf_rows, set_starts, unpack
from gpuforest.target import TargetCoding

GROUP_VALUES = 2**22  # channel sums looked at at once: some 32 MiB, and as much again


@dataclass(frozen=True, eq=False)
class Forest:
    """A grown forest.

    nodes : u64[M], packed nodes of all trees, see nodes.py
    tree_offsets : i64[T + 1], tree t is nodes[tree_offsets[t]:tree_offsets[t + 1]]
    leaf_sums : i64[V, C], channel sums of leaves, shared where equal
    edges : where the features' bins end
    coding : how channel sums turn into predictions
    seed : what it was grown from
    leaf_impurity : f64[V] or None, of a single regression tree how its leaves' rows spread
    leaf_values : f64[V, n_values] or None, what leaves predict where that is not the proportions
        or means of their channel sums, as within monotonic bounds
    node_values : f64[M, K] or None, of trees grown by absolute error the median of each node's
        rows, which leaves predict
    node_errors : f64[M] or None, with them: the sum of w |q - median| of each node's rows
        and of all outputs, where q are moments (times `TargetCoding.error_factors`)
    sets : u64[...], the categories that go left at splits by a set, see nodes.py
    multiway : whether such splits are links of chains, see multiway.py
    combine : what the forest predicts of its trees' values: their "mean"; the mean of their
        "votes", one for the class of the highest proportion; or their "sum"
    """

    nodes: np.ndarray
    tree_offsets: np.ndarray
    leaf_sums: np.ndarray
    edges: BinEdges
    coding: TargetCoding
    seed: int
    leaf_impurity: np.ndarray | None = None
    leaf_values: np.ndarray | None = None
    node_values: np.ndarray | None = None
    node_errors: np.ndarray | None = None
    sets: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint64))
    multiway: bool = False
    combine: str = "mean"

    def __getstate__(self) -> dict[str, Any]:
        """What is derived need not travel."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A pickle is believed no more than a model file."""
        need(state.keys() == {f.name for f in fields(self)}, "a forest of another gpuforest")
        self.__dict__.update(state)
        check_forest(self)

    @property
    def n_trees(self) -> int:
        return len(self.tree_offsets) - 1

    @property
    def n_nodes(self) -> int:
        return len(self.nodes)

    @cached_property
    def set_at(self) -> np.ndarray:
        """Where each node's set begins in `sets`, if it has one: i64[M], or i64[0] where none has.
        They follow one another in the order of the nodes."""
        if not len(self.sets):
            return np.zeros(0, np.int64)
        found: np.ndarray = set_starts(xp, self.nodes, self.edges.set_words)
        return found

    @cached_property
    def values(self) -> np.ndarray:
        """Predictions of the leaf table's rows, f64[V, n_values], which trees add up."""
        if self.leaf_values is not None:
            return self.counted(self.leaf_values)
        found = self.coding.values(self.leaf_sums)
        if self.node_values is not None:
            leaf = is_leaf(self.nodes)
            found[leaf_rows(self.nodes[leaf])] = self.node_values[leaf]
        return self.counted(found)

    def counted(self, values: np.ndarray) -> np.ndarray:
        """What a tree adds to the forest's prediction for values f64[V, n_values] of its nodes."""
        return self.coding.votes(values) if self.combine == "votes" else values

    def combined(self, sums: Any) -> Any:
        """The forest's predictions from the sums of all its trees', f64[N, n_values]."""
        return sums if self.combine == "sum" else sums / self.n_trees

    @cached_property
    def sparse_values(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of classes, the values that are not zero: where each leaf's begin i64[V + 1], the
        column i32 and the value f64 of each."""
        some = self.values != 0
        counts = np.count_nonzero(some, axis=1)
        return (
            np.concatenate([[0], np.cumsum(counts)]),
            np.nonzero(some)[1].astype(np.int32),
            self.values[some],
        )

    def levels(self, first: int = 0, last: int | None = None) -> list[np.ndarray]:
        """Nodes of the trees first .. last - 1 by depth, as indices into `nodes`."""
        at = self.tree_offsets[first : self.n_trees if last is None else last]
        base, found = at, []
        while len(at):
            found.append(at)
            word = self.nodes[at]
            split = ~is_leaf(word)
            left = base[split] + unpack(xp, word[split])[3]
            at = np.stack([left, left + 1], axis=1).reshape(-1)
            base = np.repeat(base[split], 2)
        return found

    @property
    def depth(self) -> int:
        """Levels below the roots; the links of a chain are one."""
        if not self.multiway:
            return len(self.levels()) - 1
        feature = unpack(xp, self.nodes)[0]
        depth, levels = np.zeros(self.n_nodes, np.int64), self.levels()
        for parents, children in pairwise(levels):
            above = parents[feature[parents] >= 0]
            left, right = children[0::2], children[1::2]
            goes_on = has_set(self.nodes[above]) & (feature[right] == feature[above])
            depth[left], depth[right] = depth[above] + 1, depth[above] + ~goes_on
        return int(depth.max())

    def node_sums(self, first: int, last: int) -> np.ndarray:
        """Channel sums i64[m, C] of every node of the trees first .. last - 1."""
        begin, end = self.tree_offsets[first], self.tree_offsets[last]
        _, _, _, child = unpack(xp, self.nodes[begin:end])
        leaf = is_leaf(self.nodes[begin:end])
        sums = np.zeros((end - begin, self.leaf_sums.shape[1]), np.int64)
        sums[leaf] = self.leaf_sums[child[leaf]]
        levels = self.levels(first, last)
        for parents, children in zip(levels[-2::-1], levels[:0:-1], strict=True):
            split = parents[~leaf[parents - begin]] - begin
            children = children - begin
            sums[split] = sums[children[0::2]] + sums[children[1::2]]
        return sums


def tree_groups(forest: Forest) -> list[tuple[int, int]]:
    """Cut the trees into runs first .. last - 1 whose sums and gains stay small."""
    n_values = forest.leaf_sums.shape[1]
    cost = np.diff(forest.tree_offsets) * n_values + forest.edges.n_features
    group = np.cumsum(cost) // GROUP_VALUES
    cuts = np.flatnonzero(np.diff(group)) + 1
    return list(pairwise([0, *cuts.tolist(), forest.n_trees]))
