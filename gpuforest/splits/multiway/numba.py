"""Grow trees with multiway splits: a categorical feature has a branch for each category.

    rows of a node, sorted by category        a a a b c c
    its chain of splits                       {a}? -- yes: rows 0 to 2; no: {b}? -- yes: ...
    branches[i]: category, end, is_heaviest   (a, 3, 1)  (b, 4, 0)  (c, 6, 1)

A chain is made at once. Its links wait on the stack of open nodes for their positions in the tree,
which come after all nodes below the categories before them.
"""

from typing import Any, NamedTuple

import numpy as np

from gpuforest.common.dtypes import CATEGORICAL
from gpuforest.compiler.decorators import device, kernel, rare
from gpuforest.compiler.types import Bool, Bools, F64s, F64s2, I64s, I64s2, U64s
from gpuforest.engine.nodes import SET_BIN
from gpuforest.engine.records import Data, Frontier, Rules
from gpuforest.kernels.best_split.limits import feature_of, limits_of, weight_of
from gpuforest.kernels.grow_subtrees.cuts import (
    best_cut,
    compact_set,
    left_totals,
    random_cut,
)
from gpuforest.kernels.grow_subtrees.rows import (
    allow,
    forget,
    is_pure,
    load_rows,
    node_totals,
    split_rows,
)
from gpuforest.kernels.grow_subtrees.scratch import Grown, Scratch, Sets
from gpuforest.kernels.grow_subtrees.writing import put_leaf, put_split
from gpuforest.kernels.histogram.numba import has_labels
from gpuforest.kernels.shared.hashing.numba import domain, hash_at, order_of, permute
from gpuforest.kernels.shared.records import NO_BIN, NO_SPLIT, Slot, Split
from gpuforest.kernels.shared.scoring.numba import node_score, xlogx
from gpuforest.splits.multiway.branches import Branches, link_set, sort_rows

ROUNDING = 1e-9  # relative; a gain that is below the mean by less equals it


class Tried(NamedTuple):
    """The split of each feature that was tried in a node, and its values.

    score, spread : f64[F], the split's score and its information
    feature, bin : i64[F]
    missing_left : bool[F]
    """

    score: F64s
    spread: F64s
    feature: I64s
    bin: I64s
    missing_left: Bools


class OpenLinks(NamedTuple):
    """A stack of nodes and links: numbers i64[..., 8], keys u64[...] and the bounds of values
    f64[..., 2], see `push`."""

    numbers: I64s2
    keys: U64s
    bounds: F64s2


class MultiwayScratch(NamedTuple):
    """The scratch of multiway splits besides `Scratch`."""

    branches: Branches
    stack: OpenLinks
    tried: Tried


class Open(NamedTuple):
    """A node on the stack, or a link of a chain.

    low, high : int, the range of its rows in the order
    depth, number : int, the number in the block's nodes
    n_trail : int, the length of the trail of features that are constant above it
    first, feature : int, a link's first branch and the feature of its chain; a node's are -1
    top : int, where the branches of the chains above it end
    key : u64, random key
    least, greatest : float, bounds of the means of both sides of a split
    """

    low: Any
    high: Any
    depth: Any
    number: Any
    n_trail: Any
    first: Any
    feature: Any
    top: Any
    key: Any
    least: Any
    greatest: Any


def multiway_scratch(most: int, n_features: int) -> MultiwayScratch:
    """Scratch for nodes of at most `most` rows."""
    branches = (np.empty(most + n_features + 2, np.int64) for _ in range(3))
    stack = OpenLinks(
        np.empty((most + 2, 8), np.int64), np.empty(most + 2, np.uint64), np.empty((most + 2, 2))
    )
    tried = Tried(
        np.empty(n_features),
        np.empty(n_features),
        np.empty(n_features, np.int64),
        np.empty(n_features, np.int64),
        np.empty(n_features, np.bool_),
    )
    return MultiwayScratch(Branches(*branches), stack, tried)


@device
def push(stack, n_stack, node):
    """Put a node or a link on the stack, and return the size of the stack."""
    n = stack.numbers[n_stack]
    n[0], n[1], n[2], n[3] = node.low, node.high, node.depth, node.number
    n[4], n[5], n[6], n[7] = node.n_trail, node.first, node.feature, node.top
    stack.keys[n_stack] = node.key
    stack.bounds[n_stack, 0], stack.bounds[n_stack, 1] = node.least, node.greatest
    return n_stack + 1


@device
def pop(stack, at):
    """The node or link at this position of the stack."""
    n, bounds = stack.numbers[at], stack.bounds[at]
    return Open(
        n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], stack.keys[at], bounds[0], bounds[1]
    )


@device
def all_branches(m, feature, rules, categories):
    """The score of a split into all m categories in `categories`, -inf if one is too small, and
    the split information."""
    C, width, some = feature.n_channels, feature.width, categories.some
    score, parts, total = 0.0, np.int64(0), np.int64(0)
    for i in range(m):
        at = i * width
        n = weight_of(some[at : at + C], feature.is_classes)
        if n < rules.min_weight_leaf or (
            rules.min_rows_leaf > 1 and some[at + C] < rules.min_rows_leaf
        ):
            return -np.inf, 0.0
        score += node_score(rules.criterion.number, some[at : at + C], n, C)
        parts += xlogx(n)
        total += n
    return score, np.float64(xlogx(total) - parts)


@device
def cut_spread(n_left, n):
    """The split information of a cut into n_left and n - n_left rows."""
    return np.float64(xlogx(n) - (xlogx(n_left) + xlogx(n - n_left)))


@rare
def most_worthy(m, tried, whole, gain_ratio):
    """The number of the chosen one of the first m splits, or -1."""
    best, at = -np.inf, -1
    total, count = 0.0, 0.0
    if gain_ratio:
        for j in range(m):
            if tried.score[j] - whole > -np.inf:
                total += tried.score[j] - whole
                count += 1.0
    mean = total / count if count > 0.0 else total
    least = mean - ROUNDING * abs(mean)
    for j in range(m):
        value = tried.score[j]
        if gain_ratio:
            gain = value - whole
            is_worthy = gain > -np.inf and gain >= least and tried.spread[j] > 0.0
            value = gain / tried.spread[j] if is_worthy else -np.inf
        if value > best:
            best, at = value, j
    return at


@device
def numeric_cut(feature, column, slot, rules, scratch, random):
    """As best_cut or random_cut, and the cut's split information if the rules need it."""
    order, work, left, spread = scratch.order, scratch.work, scratch.left_sums, 0.0
    limits, criterion = limits_of(rules, slot, feature.number), rules.criterion.number
    if random is None:
        varies, split = best_cut(
            column, feature, slot, order, criterion, limits, work, work.hists[0], False
        )
    else:
        varies, split = random_cut(column, feature, slot, order, criterion, limits, work)
    if rules.criterion.by_ratio and split.score > -np.inf:
        left_totals(column, order, slot, split, feature.missing, None, left)
        spread = cut_spread(weight_of(left, feature.is_classes), slot.weight)
    return varies, split, spread


@device
def branches_of(feature, column, slot, rules, scratch, categories):
    """As numeric_cut, for the split into all categories of a feature."""
    work, score, spread = scratch.work, -np.inf, 0.0
    m = compact_set(
        column, feature, slot, scratch.order, work, work.hists[0], False, categories
    )  # fmt: skip
    if m > 1:
        score, spread = all_branches(m, feature, rules, categories)
    return m > 1, Split(score, feature.number, np.int64(SET_BIN), False, NO_BIN), spread


@device
def best_feature(data, slot, rules, scratch, tried, n_trail, random, sets):
    """The best split by the first k features that vary, and the trail's length."""
    (constant, trail), k, F = scratch.known, rules.n_tried, len(scratch.known.constant)
    (mask, shift), C = domain(F), len(slot.sums)
    draw, position, m = order_of(slot.key), 0, 0
    while m < k and position < F:
        f = position if k >= F else permute(draw, position, F, mask, shift)
        position += 1
        if constant[f]:
            continue
        feature, column = feature_of(f, data, rules, C), data.codes[f]
        if sets.kinds[f] == CATEGORICAL:
            varies, split, spread = branches_of(feature, column, slot, rules, scratch, sets.work)
        else:
            varies, split, spread = numeric_cut(feature, column, slot, rules, scratch, random)
        if not varies:
            constant[f], trail[n_trail] = True, f
            n_trail += 1
            continue
        tried.score[m], tried.spread[m], tried.feature[m] = split.score, spread, f
        tried.bin[m], tried.missing_left[m] = split.bin, split.missing_left
        m += 1
    whole = node_score(rules.criterion.number, slot.sums, slot.weight, C)
    best, split = most_worthy(m, tried, whole, rules.criterion.by_ratio), NO_SPLIT
    if best >= 0 and tried.score[best] - whole >= rules.min_gain:
        split = Split(
            tried.score[best], tried.feature[best], tried.bin[best], tried.missing_left[best],
            NO_BIN,
        )  # fmt: skip
    return split, n_trail


@device
def push_sides(stack, n_stack, node, middle, n_nodes, n_trail, first, feature, top):
    """Put both sides of a split, the last two nodes, on the stack: the left one, with all nodes
    below it, is taken before the right one.

    first, feature : those of the right side, if it is the next link of a chain
    """
    none = np.int64(-1)
    right = Open(
        middle, node.high, node.depth, n_nodes - 1, n_trail, first, feature, top,
        hash_at(node.key, 1), node.least, node.greatest,
    )  # fmt: skip
    n_stack = push(stack, n_stack, right)
    left = Open(
        node.low, middle, node.depth, n_nodes - 2, n_trail, none, none, top, hash_at(node.key, 0),
        node.least, node.greatest,
    )  # fmt: skip
    return push(stack, n_stack, left)


@device
def bound_sides(stack, n_stack, sign, slot, own, middle, left):
    """Bound the values of the two nodes that were pushed last by the middle of their means, where
    predictions must rise or fall with the feature that splits them: its sign is 1 or -1.

    middle : where the right side's rows begin; left : i64[2], scratch for the left side's sums
    """
    if sign != 0:
        node_totals(own, slot.begin, middle, left)
        weight = weight_of(left, has_labels(own))
        mean = np.float64(left[1]) / np.float64(weight)
        other = np.float64(slot.sums[1] - left[1]) / np.float64(slot.weight - weight)
        value = (mean + other) * 0.5
        stack.bounds[n_stack - 1, 1 if sign > 0 else 0] = value
        stack.bounds[n_stack - 2, 0 if sign > 0 else 1] = value


@device
def put_link(data, scratch, branches, link, root, sets, grown):
    """Write a link of a chain, by which its first category goes left; returns the new counts."""
    bins, missing = np.int64(data.n_bins[link.feature]), np.int64(data.n_codes - 1)
    side = link_set(branches, link.first, link.high, bins, missing, sets.best)
    split = Split(0.0, link.feature, np.int64(SET_BIN), side, NO_BIN)
    return put_split(scratch, data, link.number, root, split, sets, grown)


@device
def slot_of(node, own, sums):
    """The record of a node that the split search takes; its channel sums are put into `sums`."""
    node_totals(own, node.low, node.high, sums)
    weight, n_rows = weight_of(sums, has_labels(own)), node.high - node.low
    return Slot(node.number, node.low, n_rows, weight, node.key, sums, node.least, node.greatest)


@device
def below(node, first, feature, top):
    """The record for the nodes below a split node, or for the first link of its chain."""
    return Open(
        node.low, node.high, node.depth + 1, node.number, node.n_trail, first, feature, top,
        node.key, node.least, node.greatest,
    )  # fmt: skip


@device
def grow_block(data, root, rules, scratch, chains, random, sets, grown):
    """As grow_block in numba.py."""
    branches, stack, order = chains.branches, chains.stack, scratch.order
    missing, n_trail, n_stack, none = data.n_codes - 1, 0, 1, np.int64(-1)
    push(stack, 0, root)
    grown = Grown(grown.n_nodes + 1, grown.n_leaves, grown.n_words)
    while n_stack > 0:
        # 1. the next node or link, and what is still known to be constant above it
        n_stack -= 1
        node = pop(stack, n_stack)
        n_trail = forget(scratch.known, n_trail, node.n_trail)
        if node.first < 0:
            # 2. a node: its best split
            split, slot = NO_SPLIT, slot_of(node, order.own, scratch.sums)
            may_split = slot.n_rows >= rules.fewest_rows and node.depth < rules.max_depth
            if may_split and not is_pure(order.own, slot):
                split, n_trail = best_feature(
                    data, slot, rules, scratch, chains.tried, n_trail, random, sets
                )
            # 3. a leaf
            if split.feature < 0:
                grown = put_leaf(scratch, node.number, scratch.sums, grown)
                continue
            column, f = data.codes[split.feature], split.feature
            # 4. a cut of numbers
            if split.bin != SET_BIN:
                grown = put_split(scratch, data, node.number, root.number, split, None, grown)
                node = below(node, none, none, node.top)
                middle = node.low + split_rows(
                    column, order, scratch.spare, slot, split, missing, None
                )
                n_stack = push_sides(
                    stack, n_stack, node, middle, grown.n_nodes, n_trail, none, none, node.top
                )
                if len(rules.signs):
                    bound_sides(
                        stack, n_stack, rules.signs[f], slot, order.own, middle, scratch.left_sums
                    )
                continue
            # 5. or the rows of all branches
            first, feature = node.top, feature_of(f, data, rules, data.n_channels)
            top = sort_rows(column, feature, slot, scratch, sets.work.ordered, branches, first)
            node = below(node, first, f, top)
        # 6. a link: its first category, and the next link or the last category
        grown = put_link(data, scratch, branches, node, root.number, sets, grown)
        follows = node.first + 1 if branches.end[node.first + 1] < node.high else none
        n_stack = push_sides(
            stack, n_stack, node, branches.end[node.first], grown.n_nodes, n_trail, follows,
            node.feature, node.top,
        )  # fmt: skip
    forget(scratch.known, n_trail, 0)
    return grown


@kernel
def grow_multiway(
    data: Data, slots: Frontier, rules: Rules, scratch: Scratch, offsets: I64s, written: I64s,
    random: Bool | None, sets: Sets, chains: MultiwayScratch,
):  # fmt: skip
    """As grow_subtrees in numba.py, from the slots of roots.

    chains : see `multiway_scratch`
    """
    scratch.pure[:] = -1
    zero, none = np.int64(0), np.int64(-1)
    grown = Grown(zero, zero, zero)
    for d in range(len(slots.begin)):
        n, depth = load_rows(data, slots, d, scratch.order), np.int64(slots.depth[d])
        least, greatest = -np.inf, np.inf
        root = Open(
            zero, n, depth, grown.n_nodes, zero, none, none, zero, slots.key[d], least, greatest
        )
        allow(scratch.known, slots, d)
        grown = grow_block(data, root, rules, scratch, chains, random, sets, grown)
        offsets[d + 1] = grown.n_nodes
    scratch.known.constant[:] = False
    written[0], written[1] = grown.n_leaves, grown.n_words
