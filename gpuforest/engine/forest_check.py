"""The check of a forest that comes from outside: could it have been grown?

A model file and a pickle are checked by the same `check_forest`, so that no kernel, which checks
nothing, ever walks a damaged tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.common.dtypes import CATEGORICAL, MAX_BINS, MAX_FEATURES, MAX_TOTAL_WEIGHT, NUMERIC
from gpuforest.common.errors import ModelFormatError, damaged, need
from gpuforest.engine.binning import CATEGORY_TYPES, BinEdges
from gpuforest.engine.nodes import (
    CHILD_MASK,
    CHILD_SHIFT,
    FEATURE_SHIFT,
    LEAF_WORD,
    MOST_COMBINED,
    MOST_WEIGHT,
    OBLIQUE_BIN,
    SET_BIN,
    is_leaf,
)
from gpuforest.engine.target import SUM_BITS, TargetCoding

if TYPE_CHECKING:
    from gpuforest.engine.forest import Forest

COMBINE = ("mean", "votes", "sum", "median")  # see `Forest`
BLOCK_NODES = 2**15  # nodes checked at once, which stay in a cache: twice as fast as 10 million


def check_forest(forest: Forest) -> None:
    """Raise ModelFormatError unless the forest is one that could have been grown.

    After this, walking any codes down any tree ends at a row of the leaf table.
    """
    try:
        need(type(forest.seed) is int and 0 <= forest.seed < 2**64, "a seed that is none")
        _check_edges(forest.edges)
        _check_coding(forest.coding)
        if forest.baseline is not None:
            coding: Any = forest.coding
            coding.check(forest.n_trees)
        _check_leaves(forest.leaf_sums, forest.coding)
        _check_leaf_impurity(forest)
        _check_leaf_values(forest)
        _check_medians(forest)
        _check_trees(forest)
        _check_tree_weights(forest)
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
    need(bool((offsets[1:] >= offsets[:-1]).all()), f"{name} that do not ascend")


def _check_edges(edges: BinEdges) -> None:
    values, offsets, kinds = edges.values, edges.offsets, edges.kinds
    need_list(values, np.float64, "edges")
    check_offsets(offsets, len(values), "edge_offsets")
    need(edges.n_features <= MAX_FEATURES, "too many features")
    need_list(kinds, np.uint8, "kinds of features", edges.n_features)
    need(bool(np.isin(kinds, (NUMERIC, CATEGORICAL)).all()), "an unknown kind of feature")
    sizes = np.diff(offsets) + (kinds == CATEGORICAL)
    need(int(sizes.max()) < MAX_BINS, "a feature with too many bins")
    need(bool(np.isfinite(values).all()), "an edge that is no finite number")
    inner = np.ones(len(values) + 1, bool)
    inner[offsets] = False  # where one feature's edges end and the next one's begin
    need(bool((values[1:] > values[:-1])[inner[1:-1]].all()), "edges that do not ascend")
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
        need(bool(np.isfinite(numbers).all()), "a category that is no finite number")


def _check_coding(coding: TargetCoding) -> None:
    classes, centre, scale = coding.classes, coding.centre, coding.scale
    need_list(centre, np.float64, "centres")
    need(bool(np.isfinite(centre).all()), "a centre that is no finite number")
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
        need(bool(np.isfinite(classes).all()), "a class that is no finite number")
    if classes.dtype == bool:
        need(bool((classes.view(np.uint8) <= 1).all()), "a class that is neither true nor false")
    need(bool(np.all(classes[1:] > classes[:-1])), "classes that do not ascend")


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
    need(weight.min() > 0 and weight.max() <= MAX_TOTAL_WEIGHT, "a leaf without a sound weight")


def _check_leaf_impurity(forest: Forest) -> None:
    if (impurity := forest.leaf_impurity) is None:
        return
    need(not forest.coding.is_classes, "an impurity of leaves in a forest of classes")
    need_list(impurity, np.float64, "impurities of leaves", len(forest.leaf_sums))
    need(bool((impurity >= 0).all()), "an impurity of leaves out of range")


def _check_leaf_values(forest: Forest) -> None:
    coding, values = forest.coding, forest.leaf_values
    need(type(forest.combine) is str and forest.combine in COMBINE, "trees that do not combine")
    is_classes = coding.is_classes or len(coding.several) > 0
    need(is_classes or forest.combine != "votes", "votes for numbers")
    boosted = forest.baseline is not None
    need(boosted == (forest.combine == "sum"), "a sum of trees that are not boosted, or none")
    need(values is not None or not boosted, "boosted trees without values of their leaves")
    if values is not None:
        need_list(values, np.float64, "values of leaves", len(forest.leaf_sums), coding.n_values)
        need(bool(np.isfinite(values).all()), "a value of a leaf that is no finite number")
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
    need(bool(np.isfinite(values).all()), "a median of a node that is no finite number")
    need(bool((errors >= 0).all() and np.isfinite(errors).all()), "an error of a node out of range")


def _check_tree_weights(forest: Forest) -> None:
    """Boosted trees have weights, and none shares a leaf with another tree: their votes differ."""
    weights, coding = forest.tree_weights, forest.coding
    need((weights is not None) or forest.combine != "median", "a median without weights of trees")
    if weights is None:
        return
    need(forest.combine in ("votes", "median"), "weights of trees that count alike")
    need_list(weights, np.float64, "weights of trees", forest.n_trees)
    in_range = np.isfinite(weights).all() and (weights >= 0).all()
    need(bool(in_range), "a weight of a tree out of range")
    need(bool(np.isfinite(weights.sum())), "weights of trees that add up to infinity")
    if forest.combine == "median":
        need(coding.n_values == 1, "a median of several numbers")
        return
    need(bool(weights.any()), "trees of no weight")
    leaf = is_leaf(forest.nodes)
    row = (forest.nodes[leaf] - np.uint64(LEAF_WORD)).astype(np.int64)
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_offsets))[leaf]
    owner = np.zeros(len(forest.leaf_sums), np.int64)
    owner[row] = tree
    need(np.array_equal(owner[row], tree), "a leaf of two trees")


def _check_trees(forest: Forest) -> None:
    """Leaves are rows of the leaf table, splits are on bins, and each tree hangs together.

    Siblings are neighbours, so the nodes below the root are pairs, at 1 and 2, 3 and 4, ...
    Every split points at a pair of its own tree, behind itself; there are as many splits as
    pairs; and every pair is met: so each is met once.
    """
    nodes, offsets, n_bins = forest.nodes, forest.tree_offsets, forest.edges.n_bins
    need_list(nodes, np.uint64, "nodes")
    check_offsets(offsets, len(nodes), "tree_offsets")
    need(
        bool((np.diff(offsets) % 2 == 1).all()), "a tree that is empty, or whose root has a sibling"
    )
    need(int(nodes.max()) - LEAF_WORD < len(forest.leaf_sums), "a leaf outside the leaf table")
    met = np.zeros((len(nodes) - forest.n_trees) // 2, bool)
    n_splits, n_words, combines = 0, 0, False
    for begin in range(0, len(nodes), BLOCK_NODES):
        block = nodes[begin : begin + BLOCK_NODES]
        at = np.flatnonzero(~is_leaf(block))
        word, tree = block[at], _tree_of(offsets, begin, begin + len(block))[at]
        n_splits += len(at)
        # 1. a split is on a bin of a feature
        feature = (word >> np.uint64(FEATURE_SHIFT)).astype(np.int64)
        need(bool((feature < len(n_bins)).all()), "a split on no feature")
        bin, is_set = word.astype(np.uint16), forest.edges.kinds[feature] == CATEGORICAL
        n = forest.n_summed(word)
        need(bool(((n == 0) | ((n > 1) & (n <= MOST_COMBINED))).all()), "a sum of no features")
        need(bool(((bin == SET_BIN) == is_set).all()), "a set of numbers, or a cut of categories")
        need(bool(((bin < n_bins[feature]) | is_set | (n > 0)).all()), "a split on no bin")
        n_words, combines = n_words + int(forest.n_words(word).sum()), combines or bool(n.any())
        # 2. its children are a pair that lies behind it in its tree
        child = ((word >> np.uint64(CHILD_SHIFT)) & np.uint64(CHILD_MASK)).astype(np.int64)
        left = offsets[tree] + child
        need(bool((child % 2 == 1).all()), "children that are no siblings")
        need(bool((left > at + begin).all()), "a child before its parent")
        need(bool((left < offsets[tree + 1]).all()), "a child outside its tree")
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
    need(int(numeric.max(initial=0)) <= OBLIQUE_BIN, "too many bins for combinations")
    splits = np.flatnonzero(forest.n_summed(forest.nodes) > 0)
    at, feature, weight = forest.terms(splits)
    need(bool((feature < edges.n_features).all()), "a combination of no feature")
    need(bool((edges.kinds[feature] != CATEGORICAL).all()), "a combination of categories")
    need(bool(((weight > 0) & (weight <= MOST_WEIGHT)).all()), "a weight out of range")
    need(len(np.unique(at * edges.n_features + feature)) == len(at), "a feature added twice")
    first = (forest.nodes[splits] >> np.uint64(FEATURE_SHIFT)).astype(np.int64)
    of_first = np.full(len(splits), -1)
    of_first[at[::-1]] = feature[::-1]
    need(np.array_equal(of_first, first), "a combination whose first feature is another")


def _tree_of(offsets: np.ndarray, begin: int, end: int) -> np.ndarray:
    """The tree i64[end - begin] of each of these nodes."""
    first, last = np.searchsorted(offsets, [begin, end - 1], "right") - 1
    counts = np.diff(np.clip(offsets[first : last + 2], begin, end))
    return np.repeat(np.arange(first, last + 1), counts)
