"""The grown forest: the nodes of all trees, in plain host arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.common.dtypes import CATEGORICAL, MAX_BINS, MAX_FEATURES, MAX_TOTAL_WEIGHT, NUMERIC
from gpuforest.common.errors import ModelFormatError, damaged, need
from gpuforest.core import nodes as packed
from gpuforest.core import terms
from gpuforest.core.bins import CATEGORY_TYPES, BinEdges
from gpuforest.core.frontier import Trees
from gpuforest.core.target import SUM_BITS, EffectCoding, TargetCoding

GROUP_VALUES = 2**22  # channel sums in memory at once: some 32 MiB, and as much for gains


@dataclass(frozen=True, eq=False)
class Forest:
    """A grown forest, in plain host arrays."""

    nodes: np.ndarray  # u64[M], packed nodes of all trees, see nodes.py
    tree_offsets: np.ndarray  # i64[T + 1], tree t is nodes[tree_offsets[t]:tree_offsets[t + 1]]
    leaf_sums: np.ndarray  # i64[V, C], channel sums of leaves, shared where equal
    edges: BinEdges
    coding: TargetCoding  # how channel sums become predictions
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
    # lambda of hierarchical shrinkage, times the mean weight of a draw, see `shrunk`; 0: there is
    # no shrinkage. Else each leaf has its own row of the leaf table, and `leaf_values` are shrunk
    shrinkage: float = 0.0

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: what is derived from them is not pickled."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Check the state as a model file is checked."""
        need(state.keys() == {f.name for f in fields(self)}, "a forest of another gpuforest")
        self.__dict__.update(state)
        check_forest(self)

    @property
    def n_trees(self) -> int:
        return len(self.tree_offsets) - 1

    def walked(self, trees: range | None = None) -> Trees:
        """What kernels walk down: some trees, of consecutive numbers; None: all."""
        offsets = self.tree_offsets
        if trees is not None:
            offsets = offsets[trees.start : trees.stop + 1]
        missing, coordinates = self.edges.missing_code, self.coordinates
        return Trees(self.nodes, offsets, missing, self.set_at, self.sets, coordinates)

    @property
    def n_nodes(self) -> int:
        return len(self.nodes)

    @property
    def baseline(self) -> np.ndarray | None:
        """What predictions are before the first tree, f64[n_values]; None: zero."""
        return getattr(self.coding, "baseline", None)

    @cached_property
    def set_at(self) -> np.ndarray:
        """First word in `sets` of each node's set, i64[M], ascending; i64[0] without sets."""
        if not len(self.sets):
            return np.zeros(0, np.int64)
        words = self.n_words(self.nodes)
        return np.asarray(np.cumsum(words) - words)

    def n_words(self, nodes: np.ndarray) -> np.ndarray:
        """The words of `sets` that nodes u64[...] of this forest take, i64[...]."""
        return np.asarray(packed.words_of(xp, nodes, self.edges.set_words, self.oblique))

    @property
    def coordinates(self) -> np.ndarray | None:
        """Coordinates i32[F, B] that splits add up; None if each split has one feature."""
        return self.edges.coordinates if self.oblique else None

    def terms(self, splits: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Features of splits i64[n]: index in `splits`, feature, unsigned weight, i64[...]."""
        n = packed.combined(self.nodes[splits]) * self.oblique
        alone = np.flatnonzero(n == 0)
        feature = (self.nodes[splits[alone]] >> packed.FEATURE_SHIFT).astype(np.int64)
        several = np.flatnonzero(n > 0)
        if not len(several):
            return alone, feature, np.ones_like(feature)
        at = self.set_at[splits[several], None] + np.arange(terms.words_for(packed.MOST_COMBINED))
        words = self.sets[np.minimum(at, len(self.sets) - 1)]
        features, weights, _ = terms.unpack(xp, words, n[several], packed.MOST_COMBINED)
        row, column = np.nonzero(features >= 0)
        return (
            np.concatenate([alone, several[row]]),
            np.concatenate([feature, features[row, column].astype(np.int64)]),
            np.concatenate([np.ones_like(feature), np.abs(weights[row, column]).astype(np.int64)]),
        )

    def n_summed(self, nodes: np.ndarray) -> np.ndarray:
        """Number of features that nodes u64[...] add up, i64[...]; 0: one feature, or a leaf."""
        return packed.combined(nodes) if self.oblique else np.zeros(len(nodes), np.int64)

    @cached_property
    def walking(self) -> tuple[np.ndarray, np.ndarray]:
        """For walks down an oblique forest: see `walking_records`."""
        at = self.nodes, self.tree_offsets, self.set_at, self.sets
        return terms.walking_records(*at, self.edges.coordinates)

    @cached_property
    def values(self) -> np.ndarray:
        """Values f64[V, n_values] that leaves add to predictions; votes have the tree's weight."""
        values, leaf = self.leaf_values, packed.is_leaf(self.nodes)
        if values is None and self.shrinkage:
            values = self._shrunk_leaves(leaf)
        elif values is None:
            values = self.coding.values(self.leaf_sums)
            if self.node_values is not None:
                values[packed.leaf_rows(self.nodes[leaf])] = self.node_values[leaf]
        values = self.counted(values)
        if self.tree_weights is None or self.combine != "votes":
            return values
        weight_of_node = np.repeat(self.tree_weights, np.diff(self.tree_offsets))
        weights = np.zeros(len(values))
        weights[packed.leaf_rows(self.nodes[leaf])] = weight_of_node[leaf]
        return values * weights[:, None]

    def _shrunk_leaves(self, leaf: np.ndarray) -> np.ndarray:
        """Shrunk values f64[V, n_values]; zeros in rows of leaves of other trees."""
        values = np.zeros((len(self.leaf_sums), self.coding.n_values))
        for first, last in tree_groups(self):
            inside = slice(*self.tree_offsets[[first, last]])
            rows = packed.leaf_rows(self.nodes[inside][leaf[inside]])
            values[rows] = self.node_means(first, last)[leaf[inside]]
        return values

    def node_means(self, first: int, last: int, by: np.ndarray | None = None) -> np.ndarray:
        """Proportions of classes, means or medians f64[m, n_values] of every node of the trees
        first .. last - 1, shrunk if the forest is; f64[m, L, n_values] shrunk `by` f64[L]."""
        sums = self.node_sums(first, last)
        if self.node_values is None:
            means = self.coding.values(sums)
        else:
            means = self.node_values[slice(*self.tree_offsets[[first, last]])].copy()
        if by is None and not self.shrinkage:
            return means
        shrunk = self.shrunk(means, first, last, sums, by)
        return np.maximum(shrunk, 0.0, out=shrunk) if self.coding.labels else shrunk  # no -1e-17

    def shrunk(
        self, means: np.ndarray, first: int, last: int, sums: np.ndarray | None = None,
        by: np.ndarray | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Values f64[m, n] of nodes, from what the rows of each node say, f64[m, n], by
        hierarchical shrinkage: the value of a child differs from its parent's by what the two say
        differently, divided by 1 + lambda / N, where N is the weight of the parent's rows (Agarwal,
        Tan, Ronen, Singh and Yu, "Hierarchical shrinkage", ICML 2022). `means` are changed where
        nodes are links of chains, which have the branches of one node.

        sums : of `node_sums`
        by : f64[L], in place of `shrinkage`; then f64[m, L, n]"""
        sums = self.node_sums(first, last) if sums is None else sums
        weight = sums.sum(axis=1) if self.coding.is_classes else sums[:, 0]
        amounts = np.array([self.shrinkage]) if by is None else by
        divisor = (1.0 + amounts / weight[:, None])[:, :, None]
        values = np.repeat(means[:, None], len(amounts), axis=1)
        nodes = self.nodes[slice(*self.tree_offsets[[first, last]])]
        for split, left in reversed(list(self.upward(first, last))):
            above, factor = values[split], divisor[split]
            for child in (left, left + 1):
                values[child] = above + (means[child] - means[split])[:, None] / factor
            if self.multiway:
                link = self._goes_on(nodes, split, left)
                for array in (values, means, divisor):
                    array[left[link] + 1] = array[split[link]]
        return values[:, 0] if by is None else values

    @staticmethod
    def _goes_on(nodes: np.ndarray, split: np.ndarray, left: np.ndarray) -> np.ndarray:
        """Whether the right children of splits are links of their chains, bool[n]."""
        feature = packed.unpack(xp, nodes)[0]
        return np.asarray(packed.has_set(nodes[split]) & (feature[left + 1] == feature[split]))

    def counted(self, values: np.ndarray) -> np.ndarray:
        """What nodes with the values f64[V, n_values] add to the forest's prediction."""
        return self.coding.votes(values) if self.combine == "votes" else values

    def combined(self, sums: Any, n_trees: int | None = None) -> Any:
        """Predictions f64[N, n_values] of the first trees, or all, from sums over them.
        `predict` computes medians."""
        if self.combine == "sum":
            return sums
        if self.tree_weights is not None:
            return sums / math.fsum(self.tree_weights[:n_trees])
        return self.coding.at_priors(sums / (self.n_trees if n_trees is None else n_trees))

    @property
    def whole_weights(self) -> np.ndarray:
        """The trees' weights as integers i64[T] of a total below 2**61, for a median."""
        assert self.tree_weights is not None
        exponent = math.frexp(math.fsum(self.tree_weights))[1]
        whole: np.ndarray = np.rint(np.ldexp(self.tree_weights, 60 - exponent)).astype(np.int64)
        return whole

    @property
    def unweighted(self) -> Forest:
        """The same trees as they grew, before priors: none counts more than another, and none
        votes."""
        if self.coding.priors is not None:
            return replace(self, coding=replace(self.coding, priors=None))
        if self.tree_weights is None:
            return self
        return replace(self, combine="mean", tree_weights=None)

    @cached_property
    def sparse_values(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Nonzero values of classes: first of each leaf i64[V + 1], column i32[n], value f64[n]."""
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
            split = ~packed.is_leaf(word)
            left = base[split] + packed.unpack(xp, word[split])[3]
            at = np.stack([left, left + 1], axis=1).reshape(-1)
            base = np.repeat(base[split], 2)
        return levels

    def upward(
        self, first: int = 0, last: int | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Splits and left children of each level, from the lowest one up, i64[n] each, numbered
        from the first root."""
        begin, levels = self.tree_offsets[first], self.levels(first, last)
        for parents, children in zip(levels[-2::-1], levels[:0:-1], strict=True):
            yield parents[~packed.is_leaf(self.nodes[parents])] - begin, children[0::2] - begin

    @property
    def depth(self) -> int:
        """Levels below the roots; all links of a chain count as one level."""
        if not self.multiway:
            return len(self.levels()) - 1
        depth = np.zeros(self.n_nodes, np.int64)
        for above, left in reversed(list(self.upward())):
            goes_on = self._goes_on(self.nodes, above, left)
            depth[left], depth[left + 1] = depth[above] + 1, depth[above] + ~goes_on
        return int(depth.max())

    def node_sums(self, first: int, last: int) -> np.ndarray:
        """Channel sums i64[m, C] of every node of the trees first .. last - 1."""
        begin, end = self.tree_offsets[first], self.tree_offsets[last]
        _, _, _, child = packed.unpack(xp, self.nodes[begin:end])
        leaf = packed.is_leaf(self.nodes[begin:end])
        sums = np.zeros((end - begin, self.leaf_sums.shape[1]), np.int64)
        sums[leaf] = self.leaf_sums[child[leaf]]
        return self.added_up(sums, first, last)

    def added_up(self, sums: np.ndarray, first: int, last: int) -> np.ndarray:
        """`sums` i64[m, ...], which has sums of leaves of the trees first .. last - 1, with the sum
        of every split written into it."""
        for split, left in self.upward(first, last):
            sums[split] = sums[left] + sums[left + 1]
        return sums


def joined(trees: list[Forest]) -> Forest:
    """Trees of several forests with equal edges and coding as one; leaf tables are concatenated."""
    rows = np.cumsum([0] + [len(tree.leaf_sums) for tree in trees]).astype(np.uint64)
    nodes = [
        tree.nodes + np.where(packed.is_leaf(tree.nodes), first, np.uint64(0))
        for tree, first in zip(trees, rows[:-1], strict=True)
    ]
    names = "leaf_sums", "leaf_values", "node_values", "node_errors", "sets"
    parts: dict[str, Any] = {name: [getattr(tree, name) for tree in trees] for name in names}
    if any(values is not None for values in parts["leaf_values"]):
        # a tree without them predicts by its sums
        parts["leaf_values"] = [
            tree.coding.values(tree.leaf_sums) if tree.leaf_values is None else tree.leaf_values
            for tree in trees
        ]
    parts = {name: None if p[0] is None else np.concatenate(p) for name, p in parts.items()}
    sizes = np.concatenate([np.diff(tree.tree_offsets) for tree in trees])
    return replace(
        trees[0],
        nodes=np.concatenate(nodes),
        tree_offsets=np.concatenate([[0], np.cumsum(sizes)]),
        multiway=any(tree.multiway for tree in trees),
        oblique=any(tree.oblique for tree in trees),
        **parts,
    )


def tree_groups(forest: Forest, times: int = 1) -> list[tuple[int, int]]:
    """Ranges (first, last) of trees first .. last - 1 whose channel sums fit GROUP_VALUES; `times`:
    as many values at once as there are sums, each."""
    n_values = forest.leaf_sums.shape[1] * times
    cost = np.diff(forest.tree_offsets) * n_values + forest.edges.n_features
    group = np.cumsum(cost) // GROUP_VALUES
    cuts = np.flatnonzero(np.diff(group)) + 1
    return list(pairwise([0, *cuts.tolist(), forest.n_trees]))


COMBINE = ("mean", "votes", "sum", "median")  # see `Forest`
BLOCK_NODES = 2**15  # nodes checked at once, which stay in a cache: twice as fast as 10 million


def check_forest(forest: Forest) -> None:
    """Raise ModelFormatError unless every walk of any codes ends at a row of the leaf table."""
    try:
        need(type(forest.seed) is int and 0 <= forest.seed < 2**64, "a seed that is none")
        _check_edges(forest.edges)
        _check_coding(forest.coding)
        if forest.baseline is not None:
            coding: Any = forest.coding
            coding.check(forest.n_trees)
        _check_leaves(forest.leaf_sums, forest.coding)
        for check in (_check_leaf_values, _check_medians, _check_trees, _check_tree_weights):
            check(forest)
        _check_shrinkage(forest)
    except ModelFormatError:
        raise
    except Exception as error:  # whatever damage does to code that trusts its data
        raise damaged(f"{error!r:.200}") from error


def need_list(values: np.ndarray, dtype: type, what: str, *shape: int) -> None:
    """Raise ModelFormatError unless an array has the dtype and the shape, or is a list."""
    need(values.dtype == dtype, f"{what} of another type")
    need(values.shape == shape if shape else values.ndim == 1, f"{what} that do not fit")


def check_offsets(offsets: np.ndarray, n: int, name: str) -> None:
    """Check that offsets i64[>= 2] ascend from 0 to n."""
    need_list(offsets, np.int64, name)
    need(len(offsets) > 1, f"no {name}")
    need(int(offsets[0]) == 0 and int(offsets[-1]) == n, f"{name} that do not fit")
    need((offsets[1:] >= offsets[:-1]).all(), f"{name} that do not ascend")


def _check_edges(edges: BinEdges) -> None:
    values, offsets, kinds = edges.values, edges.offsets, edges.kinds
    need_list(values, np.float64, "edges")
    check_offsets(offsets, len(values), "edge_offsets")
    need(edges.n_features <= MAX_FEATURES, "too many features")
    need_list(kinds, np.uint8, "kinds of features", edges.n_features)
    need(np.isin(kinds, (NUMERIC, CATEGORICAL)).all(), "an unknown kind of feature")
    sizes = np.diff(offsets) + (kinds == CATEGORICAL)
    need(int(sizes.max()) < MAX_BINS, "a feature with too many bins")
    need(np.isfinite(values).all(), "an edge that is no finite number")
    inner = np.ones(len(values) + 1, bool)
    inner[offsets] = False  # where one feature's edges end and the next one's begin
    need((values[1:] > values[:-1])[inner[1:-1]].all(), "edges that do not ascend")
    _check_categories(edges)


def _check_categories(edges: BinEdges) -> None:
    """The categorical features have categories, whose codes are their edges."""
    categories, features = edges.categories, np.flatnonzero(edges.kinds == CATEGORICAL)
    need(type(categories) is dict, "categories that are none")
    need({*categories} == {*features.tolist()}, "categories amiss")
    for feature, names in categories.items():
        need(type(names) is tuple, "categories that are no tuple")
        codes = edges.values[edges.offsets[feature] : edges.offsets[feature + 1]]
        need(np.array_equal(codes, np.arange(len(names))), "categories that do not fit their edges")
    for feature, statistic in edges.statistics.items():
        need(0 <= feature < edges.n_features, "statistics of no feature")
        need(edges.kinds[feature] == NUMERIC, "statistics of a feature of sets")
        need(len(statistic.values) == len(statistic.categories) + 1, "statistics that do not fit")
        need({*map(type, statistic.values)} == {float}, "statistics that are no numbers")
        need(all(abs(v) < 2.0**127 for v in statistic.values), "a statistic beyond float32")
    for names in (*categories.values(), *(s.categories for s in edges.statistics.values())):
        need(all(type(name) in CATEGORY_TYPES for name in names), "a category of another type")
        need(len({isinstance(name, str) for name in names}) < 2, "categories of two types")
        need(len({*names}) == len(names), "a category that comes twice")
        numbers = [name for name in names if type(name) is float]
        need(np.isfinite(numbers).all(), "a category that is no finite number")


def _check_coding(coding: TargetCoding) -> None:
    classes, centre, scale = coding.classes, coding.centre, coding.scale
    need_list(centre, np.float64, "centres")
    need(np.isfinite(centre).all(), "a centre that is no finite number")
    need(isinstance(scale, float) and 0 < scale < np.inf, "a scale that is no positive number")
    for labels in coding.several:
        _check_labels(labels)
    if coding.several:
        need(classes is None and scale == 1.0 and not centre.any(), "outputs of two kinds")
        need(sum(map(len, coding.several)) == len(centre), "outputs that do not fit")
    if classes is not None:
        need(len(centre) == 1, "classes with several centres")
        _check_labels(classes)


def _check_labels(classes: np.ndarray) -> None:
    need(classes.ndim == 1 and len(classes) > 0, "classes are no list")
    if classes.dtype.kind == "f":
        need(np.isfinite(classes).all(), "a class that is no finite number")
    if classes.dtype == bool:
        need((classes.view(np.uint8) <= 1).all(), "a class that is neither true nor false")
    need(np.all(classes[1:] > classes[:-1]), "classes that do not ascend")


def _check_leaves(sums: np.ndarray, coding: TargetCoding) -> None:
    need(sums.dtype == np.int64 and sums.ndim == 2 and len(sums) > 0, "no leaf table")
    need(coding.n_channels == sums.shape[1] > 0, "a leaf table of the wrong width")
    low, high = int(sums.min()), int(sums.max())
    if coding.is_classes:
        need(low >= 0, "a negative number of rows")
        need(high <= MAX_TOTAL_WEIGHT, "a leaf that is too heavy")  # so the next sum cannot wrap
        weight = np.einsum("vc->v", sums)  # several times as fast as sum() for few channels
    else:
        need(low > -(2**SUM_BITS) and high < 2**SUM_BITS, "a target sum out of range")
        weight = sums[:, 0]
    least = 0 if isinstance(coding, EffectCoding) else 1  # no row may fill an honest leaf
    is_sound = weight.min() >= least and weight.max() <= MAX_TOTAL_WEIGHT
    need(is_sound, "a leaf without a sound weight")


def _check_leaf_values(forest: Forest) -> None:
    coding, values, impurity = forest.coding, forest.leaf_values, forest.leaf_impurity
    if impurity is not None:
        need(not coding.is_classes, "an impurity of leaves in a forest of classes")
        need_list(impurity, np.float64, "impurities of leaves", len(forest.leaf_sums))
        need((impurity >= 0).all(), "an impurity of leaves out of range")
    need(type(forest.combine) is str and forest.combine in COMBINE, "trees that do not combine")
    is_classes = coding.is_classes or len(coding.several) > 0
    need(is_classes or forest.combine != "votes", "votes for numbers")
    boosted = forest.baseline is not None
    need(boosted == (forest.combine == "sum"), "a sum of trees that are not boosted, or none")
    need(values is not None or not boosted, "boosted trees without values of their leaves")
    if values is not None:
        need_list(values, np.float64, "values of leaves", len(forest.leaf_sums), coding.n_values)
        need(np.isfinite(values).all(), "a value of a leaf that is no finite number")
        single = boosted and coding.classes is not None and len(coding.classes) == 1
        need(not single or values.max() <= 0, "a single class, but trees that predict another")


def _check_medians(forest: Forest) -> None:
    values, errors, coding = forest.node_values, forest.node_errors, forest.coding
    need((values is None) == (errors is None), "medians of nodes without their errors")
    if values is None or errors is None:
        return
    need(not coding.is_classes and not coding.several, "medians of nodes in a forest of classes")
    need_list(values, np.float64, "medians of nodes", forest.n_nodes, coding.n_outputs)
    need_list(errors, np.float64, "errors of nodes", forest.n_nodes)
    need(np.isfinite(values).all(), "a median of a node that is no finite number")
    need((errors >= 0).all() and np.isfinite(errors).all(), "an error of a node out of range")


def _check_tree_weights(forest: Forest) -> None:
    """Boosted trees have weights, and none shares a leaf with another tree: their votes differ."""
    weights, coding = forest.tree_weights, forest.coding
    need((weights is not None) or forest.combine != "median", "a median without weights of trees")
    if weights is None:
        return
    need(forest.combine in ("votes", "median"), "weights of trees that count alike")
    need_list(weights, np.float64, "weights of trees", forest.n_trees)
    in_range = np.isfinite(weights).all() and (weights >= 0).all()
    need(in_range, "a weight of a tree out of range")
    need(np.isfinite(weights.sum()), "weights of trees that add up to infinity")
    if forest.combine == "median":
        need(coding.n_values == 1, "a median of several numbers")
        return
    need(weights.any(), "trees of no weight")
    leaf = packed.is_leaf(forest.nodes)
    row = (forest.nodes[leaf] - np.uint64(packed.LEAF_WORD)).astype(np.int64)
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_offsets))[leaf]
    owner = np.zeros(len(forest.leaf_sums), np.int64)
    owner[row] = tree
    need(np.array_equal(owner[row], tree), "a leaf of two trees")


def _check_shrinkage(forest: Forest) -> None:
    need(type(forest.shrinkage) is float, "a shrinkage that is no number")
    need(0 <= forest.shrinkage < math.inf, "a shrinkage out of range")
    if forest.shrinkage:
        averages = forest.combine in ("mean", "votes") and forest.tree_weights is None
        need(averages, "shrinkage of trees that count by weights")
        rows = packed.leaf_rows(forest.nodes[packed.is_leaf(forest.nodes)])
        need(np.bincount(rows).max() == 1, "shrunk leaves that share a row")


def _check_trees(forest: Forest) -> None:
    """Check that leaves are rows of the leaf table, splits are on bins, and each tree is connected.
    Siblings are neighbours: pairs at 1 and 2, 3 and 4, ... Every split points at a later pair of
    its tree; splits and pairs are equally many, and each pair is met: so each is met once."""
    nodes, offsets, n_bins = forest.nodes, forest.tree_offsets, forest.edges.n_bins
    need_list(nodes, np.uint64, "nodes")
    check_offsets(offsets, len(nodes), "tree_offsets")
    need((np.diff(offsets) % 2 == 1).all(), "a tree that is empty, or whose root has a sibling")
    last = int(nodes.max()) - packed.LEAF_WORD
    need(last < len(forest.leaf_sums), "a leaf outside the leaf table")
    met = np.zeros((len(nodes) - forest.n_trees) // 2, bool)
    n_splits, n_words, combines = 0, 0, False
    for begin in range(0, len(nodes), BLOCK_NODES):
        block = nodes[begin : begin + BLOCK_NODES]
        at = np.flatnonzero(~packed.is_leaf(block))
        word, tree = block[at], _tree_of(offsets, begin, begin + len(block))[at]
        n_splits += len(at)
        # 1. a split is on a bin of a feature
        feature = (word >> packed.FEATURE_SHIFT).astype(np.int64)
        need((feature < len(n_bins)).all(), "a split on no feature")
        bin, is_set = word.astype(np.uint16), forest.edges.kinds[feature] == CATEGORICAL
        n = forest.n_summed(word)
        need(((n == 0) | ((n > 1) & (n <= packed.MOST_COMBINED))).all(), "a sum of no features")
        need(((bin == packed.SET_BIN) == is_set).all(), "a set of numbers, or a cut of categories")
        need(((bin < n_bins[feature]) | is_set | (n > 0)).all(), "a split on no bin")
        n_words, combines = n_words + int(forest.n_words(word).sum()), combines or bool(n.any())
        # 2. its children are a pair that lies behind it in its tree
        child = ((word >> packed.CHILD_SHIFT) & packed.CHILD_MASK).astype(np.int64)
        left = offsets[tree] + child
        need((child % 2 == 1).all(), "children that are no siblings")
        need((left > at + begin).all(), "a child before its parent")
        need((left < offsets[tree + 1]).all(), "a child outside its tree")
        # 3. the trees before have one node each in no pair, and this one its root
        met[(left - tree) >> 1] = True
    need(n_splits == len(met) and bool(met.all()), "a node without its one parent")
    need_list(forest.sets, np.uint64, "sets", n_words)
    if combines:
        _check_combinations(forest)


def _check_combinations(forest: Forest) -> None:
    """Combinations add numeric features, each once, with weights as they are drawn."""
    edges = forest.edges
    numeric = edges.n_bins[edges.kinds != CATEGORICAL]
    need(int(numeric.max(initial=0)) <= packed.OBLIQUE_BIN, "too many bins for combinations")
    splits = np.flatnonzero(forest.n_summed(forest.nodes) > 0)
    at, feature, weight = forest.terms(splits)
    need((feature < edges.n_features).all(), "a combination of no feature")
    need((edges.kinds[feature] != CATEGORICAL).all(), "a combination of categories")
    need(((weight > 0) & (weight <= packed.MOST_WEIGHT)).all(), "a weight out of range")
    need(len(np.unique(at * edges.n_features + feature)) == len(at), "a feature added twice")
    first = (forest.nodes[splits] >> packed.FEATURE_SHIFT).astype(np.int64)
    of_first = np.full(len(splits), -1)
    of_first[at[::-1]] = feature[::-1]
    need(np.array_equal(of_first, first), "a combination whose first feature is another")


def _tree_of(offsets: np.ndarray, begin: int, end: int) -> np.ndarray:
    """The tree i64[end - begin] of each of these nodes."""
    first, last = np.searchsorted(offsets, [begin, end - 1], "right") - 1
    counts = np.diff(np.clip(offsets[first : last + 2], begin, end))
    return np.repeat(np.arange(first, last + 1), counts)
