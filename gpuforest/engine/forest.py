"""The grown forest: the nodes of all trees, in plain host arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.common.errors import need
from gpuforest.engine import binning, forest_check, records, target
from gpuforest.engine.nodes import combined, has_set, is_leaf, leaf_rows, unpack, words_of
from gpuforest.splits.oblique.terms import all_terms, walking_records

GROUP_VALUES = 2**22  # channel sums in memory at once: some 32 MiB, and as much for gains


@dataclass(frozen=True, eq=False)
class Forest:
    """A grown forest, in plain host arrays."""

    nodes: np.ndarray  # u64[M], packed nodes of all trees, see nodes.py
    tree_offsets: np.ndarray  # i64[T + 1], tree t is nodes[tree_offsets[t]:tree_offsets[t + 1]]
    leaf_sums: np.ndarray  # i64[V, C], channel sums of leaves, shared where equal
    edges: binning.BinEdges
    coding: target.TargetCoding  # how channel sums become predictions
    seed: int  # that it was grown from
    leaf_impurity: np.ndarray | None = None  # f64[V], of the leaves of a single regression tree
    # f64[V, n_values], the predictions of leaves, if these are not the proportions or means of
    # their channel sums (for example, within monotonic bounds)
    leaf_values: np.ndarray | None = None
    # f64[M, K], for trees grown by absolute error: the medians of each node's rows, which leaves
    # predict; and f64[M], the sum of w |q - median| over each node's rows and all outputs, where q
    # are moments (times `TargetCoding.error_factors`)
    node_values: np.ndarray | None = None
    node_errors: np.ndarray | None = None
    # u64[...], the categories that go left at splits by a set, and the words of combinations
    sets: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint64))
    multiway: bool = False  # splits by a set are links of chains, see splits/multiway
    oblique: bool = False  # splits may be by combinations of features, see splits/oblique
    # the trees' "mean" or "sum", the mean of their "votes" (a tree votes for the class of the
    # highest proportion), or the "median" of their numbers
    combine: str = "mean"
    # f64[T], of boosted trees: how much each counts in a mean of votes or in a median. No two of
    # these trees share a row of the leaf table
    tree_weights: np.ndarray | None = None

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: what is derived from them is not pickled."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Check the state as a model file is checked."""
        need(state.keys() == {f.name for f in fields(self)}, "a forest of another gpuforest")
        self.__dict__.update(state)
        forest_check.check_forest(self)

    @property
    def n_trees(self) -> int:
        return len(self.tree_offsets) - 1

    def walked(self, trees: range | None = None) -> records.Trees:
        """What kernels walk down: some trees, of consecutive numbers; None: all."""
        offsets = self.tree_offsets
        if trees is not None:
            offsets = offsets[trees.start : trees.stop + 1]
        missing, coordinates = self.edges.missing_code, self.coordinates
        return records.Trees(self.nodes, offsets, missing, self.set_at, self.sets, coordinates)

    @property
    def n_nodes(self) -> int:
        return len(self.nodes)

    @property
    def baseline(self) -> np.ndarray | None:
        """What predictions are before the first tree, f64[n_values]; None: zero."""
        return getattr(self.coding, "baseline", None)

    @cached_property
    def set_at(self) -> np.ndarray:
        """The word of `sets` where each node's set begins, i64[M]; i64[0] if no node has a set.
        The sets are in the order of the nodes."""
        if not len(self.sets):
            return np.zeros(0, np.int64)
        words = self.n_words(self.nodes)
        return np.asarray(np.cumsum(words) - words)

    def n_words(self, nodes: np.ndarray) -> np.ndarray:
        """The words of `sets` that nodes u64[...] of this forest take, i64[...]."""
        return np.asarray(words_of(xp, nodes, self.edges.set_words, self.oblique))

    @property
    def coordinates(self) -> np.ndarray | None:
        """The coordinates i32[F, B] that splits by several features add up; None if all splits are
        by one feature."""
        return self.edges.coordinates if self.oblique else None

    def terms(self, splits: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The features of splits i64[n], one after another: the position in `splits` i64[...], the
        feature i64[...] and its weight without a sign i64[...], 1 of a feature alone."""
        return all_terms(self, splits)

    def n_summed(self, nodes: np.ndarray) -> np.ndarray:
        """The number of features that nodes u64[...] add up, i64[...]; 0 where it is one, or a
        leaf."""
        return combined(nodes) if self.oblique else np.zeros(len(nodes), np.int64)

    @cached_property
    def walking(self) -> tuple[np.ndarray, np.ndarray]:
        """For walks down an oblique forest: see `walking_records`."""
        at = self.nodes, self.tree_offsets, self.set_at, self.sets
        return walking_records(*at, self.edges.coordinates)

    @cached_property
    def values(self) -> np.ndarray:
        """What each row of the leaf table adds to a prediction, f64[V, n_values]: votes, each times
        the weight of the leaf's tree, or other values as they are."""
        values, leaf = self.leaf_values, is_leaf(self.nodes)
        if values is None:
            values = self.coding.values(self.leaf_sums)
            if self.node_values is not None:
                values[leaf_rows(self.nodes[leaf])] = self.node_values[leaf]
        values = self.counted(values)
        if self.tree_weights is None or self.combine != "votes":
            return values
        weight_of_node = np.repeat(self.tree_weights, np.diff(self.tree_offsets))
        weights = np.zeros(len(values))
        weights[leaf_rows(self.nodes[leaf])] = weight_of_node[leaf]
        return values * weights[:, None]

    def counted(self, values: np.ndarray) -> np.ndarray:
        """What nodes with the values f64[V, n_values] add to the forest's prediction."""
        return self.coding.votes(values) if self.combine == "votes" else values

    def combined(self, sums: Any, n_trees: int | None = None) -> Any:
        """The predictions of the first trees, or of all, from the sums over them; both
        f64[N, n_values]. A median is none of a sum: see `predict`."""
        if self.combine == "sum":
            return sums
        if self.tree_weights is not None:
            return sums / math.fsum(self.tree_weights[:n_trees])
        return sums / (self.n_trees if n_trees is None else n_trees)

    @property
    def whole_weights(self) -> np.ndarray:
        """The trees' weights as integers i64[T] of a total below 2**61, for a median."""
        assert self.tree_weights is not None
        exponent = math.frexp(math.fsum(self.tree_weights))[1]
        whole: np.ndarray = np.rint(np.ldexp(self.tree_weights, 60 - exponent)).astype(np.int64)
        return whole

    @property
    def unweighted(self) -> Forest:
        """The same trees as they grew: none counts more than another, and none votes."""
        if self.tree_weights is None:
            return self
        return replace(self, combine="mean", tree_weights=None)

    @cached_property
    def sparse_values(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The values that are not zero, for classes: where those of each leaf begin i64[V + 1],
        their columns i32[n] and the values f64[n]."""
        nonzero = self.values != 0
        counts = np.count_nonzero(nonzero, axis=1)
        return (
            np.concatenate([[0], np.cumsum(counts)]),
            np.nonzero(nonzero)[1].astype(np.int32),
            self.values[nonzero],
        )

    def levels(self, first: int = 0, last: int | None = None) -> list[np.ndarray]:
        """Nodes of the trees first .. last - 1 by depth, as indices into `nodes`."""
        at = self.tree_offsets[first : self.n_trees if last is None else last]
        base, levels = at, []
        while len(at):
            levels.append(at)
            word = self.nodes[at]
            split = ~is_leaf(word)
            left = base[split] + unpack(xp, word[split])[3]
            at = np.stack([left, left + 1], axis=1).reshape(-1)
            base = np.repeat(base[split], 2)
        return levels

    @property
    def depth(self) -> int:
        """Levels below the roots; all links of a chain count as one level."""
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
        return self.added_up(sums, first, last)

    def added_up(self, sums: np.ndarray, first: int, last: int) -> np.ndarray:
        """Sums i64[m, ...] of the leaves of the trees first .. last - 1, with those of every split,
        which are written into the same array."""
        begin, levels = self.tree_offsets[first], self.levels(first, last)
        leaf = is_leaf(self.nodes[begin : self.tree_offsets[last]])
        for parents, children in zip(levels[-2::-1], levels[:0:-1], strict=True):
            split = parents[~leaf[parents - begin]] - begin
            children = children - begin
            sums[split] = sums[children[0::2]] + sums[children[1::2]]
        return sums


def joined(trees: list[Forest]) -> Forest:
    """The trees of several forests, which have the same edges and coding, as one forest. Each
    forest keeps its own rows of the leaf table, equal or not."""
    rows = np.cumsum([0] + [len(tree.leaf_sums) for tree in trees]).astype(np.uint64)
    nodes = [
        tree.nodes + np.where(is_leaf(tree.nodes), first, np.uint64(0))
        for tree, first in zip(trees, rows[:-1], strict=True)
    ]
    sizes = np.concatenate([np.diff(tree.tree_offsets) for tree in trees])
    values = [tree.leaf_values for tree in trees]
    if any(own is not None for own in values):  # of a tree without, those that its sums give
        values = [
            tree.coding.values(tree.leaf_sums) if own is None else own
            for tree, own in zip(trees, values, strict=True)
        ]
    return replace(
        trees[0],
        nodes=np.concatenate(nodes),
        tree_offsets=np.concatenate([[0], np.cumsum(sizes)]),
        leaf_sums=np.concatenate([tree.leaf_sums for tree in trees]),
        leaf_values=_all(values),
        node_values=_all([tree.node_values for tree in trees]),
        node_errors=_all([tree.node_errors for tree in trees]),
        sets=np.concatenate([tree.sets for tree in trees]),
        multiway=any(tree.multiway for tree in trees),
        oblique=any(tree.oblique for tree in trees),
    )


def _all(parts: list[np.ndarray | None]) -> np.ndarray | None:
    """The arrays one after another; None if there are none."""
    present = [part for part in parts if part is not None]
    return np.concatenate(present) if present else None


def tree_groups(forest: Forest) -> list[tuple[int, int]]:
    """Ranges (first, last) of trees first .. last - 1 whose channel sums fit GROUP_VALUES."""
    n_values = forest.leaf_sums.shape[1]
    cost = np.diff(forest.tree_offsets) * n_values + forest.edges.n_features
    group = np.cumsum(cost) // GROUP_VALUES
    cuts = np.flatnonzero(np.diff(group)) + 1
    return list(pairwise([0, *cuts.tolist(), forest.n_trees]))
