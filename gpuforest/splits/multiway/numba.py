"""Grow trees with multiway splits: a categorical feature has a branch for each category.

    rows of a node, sorted by category        a a a b c c
    its chain of splits                       {a}? -- yes: rows 0 to 2; no: {b}? -- yes: ...
    branches: category, end, is heaviest      (a, 3, 1)  (b, 4, 0)  (c, 6, 1)

A chain is made at once. Its links wait on the stack of open nodes for their positions in the tree,
which come after all nodes below the categories before them.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from gpuforest.common.dtypes import CATEGORICAL
from gpuforest.compiler.decorators import device, kernel, rare
from gpuforest.compiler.types import F64, I64, U64, I64s, Type, dtype_of, new_arrays
from gpuforest.core.frontier import Data, Frontier
from gpuforest.core.nodes import SET_BIN
from gpuforest.core.rules import Rules
from gpuforest.kernels.best_split.cuts import feature_of, limits_of, weight_of
from gpuforest.kernels.grow_subtrees.cuts import (
    POSITION,
    SIXTEEN,
    best_cut,
    bins_or_keys,
    compact_set,
    fills,
    left_totals,
    no_cut,
    random_cut,
    sort_by_code,
    take_codes,
)
from gpuforest.kernels.grow_subtrees.rows import (
    allow,
    forget,
    is_pure,
    load_rows,
    node_totals,
    put_leaf,
    put_split,
    split_rows,
)
from gpuforest.kernels.grow_subtrees.scratch import Grown, Scratch
from gpuforest.kernels.sets.numba import Sets
from gpuforest.kernels.shared.numba import (
    U,
    domain,
    has_labels,
    hash_at,
    node_score,
    order_of,
    permute,
    xlogx,
)
from gpuforest.kernels.shared.records import NO_BIN, NO_SPLIT, Slot, Split

Array = Any

ROUNDING = 1e-9  # relative; a gain that is below the mean by less equals it


class OpenLink(NamedTuple):
    """A node on the stack, or a link of a chain."""

    low: I64  # its rows in the order are low .. high - 1
    high: I64
    depth: I64
    number: I64  # in the block's nodes
    n_trail: I64  # the length of the trail of features that are constant above it
    first: I64  # a link's first branch; -1 for a node
    feature: I64  # and the feature of its chain
    top: I64  # where the branches of the chains above it end
    key: U64  # random key
    least: F64  # bounds of the means of both sides of a split
    greatest: F64


class Chains(NamedTuple):
    """The scratch of multiway splits besides `Scratch`."""

    stack: Annotated[Array, Type(OpenLink, 1)]
    # the branches of the chains above a node
    code: Annotated[Array, "i64[E]"]  # a branch's category
    end: Annotated[Array, "i64[E]"]  # where its rows end in the order
    # whether no later branch is heavier; a branch's weight until that is decided
    heaviest: Annotated[Array, "i64[E]"]
    # the split of each feature that was tried in a node
    score: Annotated[Array, "f64[F]"]
    spread: Annotated[Array, "f64[F]"]  # its information
    feature: Annotated[Array, "i64[F]"]
    bin: Annotated[Array, "i64[F]"]
    missing_left: Annotated[Array, "bool[F]"]


def new_chains(most: int, n_features: int) -> Chains:
    """Scratch for nodes of at most `most` rows."""
    arrays = new_arrays(Chains, np.empty, E=most + n_features + 2, F=n_features)
    return Chains(np.empty(most + 2, dtype_of(OpenLink)), **arrays)


@device
def start_branch(chains, end, code):
    """Write a branch without rows, and return where the branches end."""
    chains.code[end], chains.heaviest[end] = code, 0
    return end + 1


@device
def sort_few(slot, scratch, chains, top):
    """sort_rows, by sorting the codes in `scratch.code`; sorted rows go into the spare order."""
    order, spare, keys, end = scratch.order, scratch.spare, scratch.keys, top
    stats, width, weight = order.stats, order.stats.shape[1], weight_column(order.stats)
    sort_by_code(slot.n_rows, scratch)
    for i in range(slot.n_rows):
        at = slot.begin + np.int64(keys[U(i)] & POSITION)
        b = np.int64(keys[U(i)] >> SIXTEEN)
        if end == top or chains.code[end - 1] != b:
            end = start_branch(chains, end, b)
        chains.end[end - 1] = slot.begin + i + 1
        chains.heaviest[end - 1] += stats[U(at), weight]
        spare.positions[U(i)] = order.positions[U(at)]
        for c in range(width):
            spare.stats[U(i), U(c)] = stats[U(at), U(c)]
    return end


@device
def sort_many(column, feature, slot, scratch, counts, chains, top):
    """As sort_few, by counting the codes; `counts` i64[B] is scratch."""
    (positions, stats), spare, low, end = scratch.order, scratch.spare, slot.begin, top
    high, width = low + slot.n_rows, stats.shape[1]
    for b in range(feature.missing + 1):
        counts[b] = 0
    for i in range(low, high):
        counts[np.int64(column[U(positions[U(i)])])] += 1
    first = 0
    for i in range(feature.bins + 1):
        b = i if i < feature.bins else feature.missing
        if counts[b] > 0:
            end = start_branch(chains, end, b)
            first, counts[b] = first + counts[b], first
            chains.end[end - 1] = low + first
    for i in range(low, high):
        b = np.int64(column[U(positions[U(i)])])
        at = counts[b]
        counts[b] += 1
        spare.positions[U(at)] = positions[U(i)]
        for c in range(width):
            spare.stats[U(at), U(c)] = stats[U(i), U(c)]
    at = 0
    for j in range(top, end):
        for i in range(at, chains.end[j] - low):
            chains.heaviest[j] += spare.stats[U(i), weight_column(stats)]
        at = chains.end[j] - low
    return end


@device
def weight_column(stats):
    """The column of `stats` that holds weights."""
    return 1 if has_labels(stats) else 0


@device
def sort_rows(column, feature, slot, scratch, counts, chains, top):
    """Sort a node's rows by category, missing last, and write branches from `top` on; their end."""
    order, spare = scratch.order, scratch.spare
    if fills(slot, feature):
        end = sort_many(column, feature, slot, scratch, counts, chains, top)
    else:
        take_codes(column, slot, order, scratch.code)
        end = sort_few(slot, scratch, chains, top)
    for i in range(slot.n_rows):
        order.positions[U(slot.begin + i)] = spare.positions[U(i)]
        for c in range(order.stats.shape[1]):
            order.stats[U(slot.begin + i), U(c)] = spare.stats[U(i), U(c)]
    heaviest = np.int64(-1)  # of the branches that follow
    for j in range(end - 1, top - 1, -1):
        weight = chains.heaviest[j]
        chains.heaviest[j] = weight >= heaviest
        heaviest = max(heaviest, weight)
    return end


@device
def link_set(chains, first, high, bins, missing, words):
    """Write a link's set: its category and, if its branch is the heaviest left, all absent ones.
    Returns whether missing values go left."""
    for w in range((bins + 63) >> 6):
        words[w] = U(0)
    b = chains.code[first]
    if not chains.heaviest[first]:
        words[b >> 6] |= U(1) << U(b & 63)
        return False
    for c in range(bins):
        words[c >> 6] |= U(1) << U(c & 63)
    j, missing_left = first, True
    while chains.end[j] < high:
        j += 1
        c = chains.code[j]
        if c == missing:
            missing_left = False
        else:
            words[c >> 6] ^= U(1) << U(c & 63)
    return missing_left


@device
def push(stack, n_stack, node):
    """Put a node or a link on the stack, and return the size of the stack."""
    to = stack[n_stack]
    to.low, to.high, to.depth, to.number = node.low, node.high, node.depth, node.number
    to.n_trail, to.first, to.feature, to.top = node.n_trail, node.first, node.feature, node.top
    to.key, to.least, to.greatest = node.key, node.least, node.greatest
    return n_stack + 1


@device
def pop(stack, at):
    """The node or link at this position of the stack."""
    n = stack[at]
    return OpenLink(
        n.low, n.high, n.depth, n.number, n.n_trail, n.first, n.feature, n.top, n.key, n.least,
        n.greatest,
    )  # fmt: skip


@device
def all_branches(m, feature, rules, categories):
    """Score of a split into all m categories, -inf if one is too small; the split information."""
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
def most_worthy(m, score, spread, whole, gain_ratio):
    """The chosen one of m splits by scores and informations, or -1; whole : the node's score"""
    best, at = -np.inf, -1
    total, count = 0.0, 0.0
    if gain_ratio:
        for j in range(m):
            if score[j] - whole > -np.inf:
                total += score[j] - whole
                count += 1.0
    mean = total / count if count > 0.0 else total
    least = mean - ROUNDING * abs(mean)
    for j in range(m):
        value = score[j]
        if gain_ratio:
            gain = value - whole
            is_worthy = gain > -np.inf and gain >= least and spread[j] > 0.0
            value = gain / spread[j] if is_worthy else -np.inf
        if value > best:
            best, at = value, j
    return at


@device
def numeric_cut(feature, column, slot, rules, scratch, in_bins):
    """As best_cut or random_cut, and the cut's split information if the rules need it."""
    left, spread = scratch.left_sums, 0.0
    limits, criterion = limits_of(rules, slot, feature.number), rules.criterion.number
    if rules.random:
        varies, split = random_cut(column, feature, slot, criterion, limits, scratch)
    else:
        hist = scratch.hists[0]
        varies, split = best_cut(feature, slot, criterion, limits, scratch, hist, in_bins)
    if rules.criterion.by_ratio and split.score > -np.inf:
        left_totals(column, scratch.order, slot, split, feature.missing, None, left)
        spread = cut_spread(weight_of(left, feature.is_classes), slot.weight)
    return varies, split, spread


@device
def branches_of(feature, slot, rules, scratch, in_bins, categories):
    """As numeric_cut, for the split into all categories of a feature."""
    score, spread = -np.inf, 0.0
    m = compact_set(feature, slot, scratch, scratch.hists[0], in_bins, categories)
    if m > 1:
        score, spread = all_branches(m, feature, rules, categories)
    return m > 1, Split(score, feature.number, np.int64(SET_BIN), False, NO_BIN), spread


@device
def best_feature(data, slot, rules, scratch, chains, n_trail, sets):
    """The best split by the first k features that vary, and the trail's length."""
    constant, k, F = scratch.constant, rules.n_tried, len(scratch.constant)
    (mask, shift), C = domain(F), len(slot.sums)
    draw, position, m = order_of(slot.key), 0, 0
    while m < k and position < F:
        f = position if k >= F else permute(draw, position, F, mask, shift)
        position += 1
        if constant[f]:
            continue
        feature, column = feature_of(f, data, rules, C), data.codes[f]
        is_set, in_bins, varies = sets.kinds[f] == CATEGORICAL, False, True
        split, spread = no_cut(feature), 0.0
        if is_set or not rules.random:
            in_bins, varies = bins_or_keys(column, feature, slot, scratch, scratch.hists[0], False)
        if varies and is_set:
            varies, split, spread = branches_of(feature, slot, rules, scratch, in_bins, sets.work)
        elif varies:
            varies, split, spread = numeric_cut(feature, column, slot, rules, scratch, in_bins)
        if not varies:
            constant[f], scratch.trail[n_trail] = True, f
            n_trail += 1
            continue
        chains.score[m], chains.spread[m], chains.feature[m] = split.score, spread, f
        chains.bin[m], chains.missing_left[m] = split.bin, split.missing_left
        m += 1
    whole = node_score(rules.criterion.number, slot.sums, slot.weight, C)
    best = most_worthy(m, chains.score, chains.spread, whole, rules.criterion.by_ratio)
    if best < 0 or chains.score[best] - whole < rules.min_gain:
        return NO_SPLIT, n_trail
    split = Split(
        chains.score[best], chains.feature[best], chains.bin[best], chains.missing_left[best],
        NO_BIN,
    )  # fmt: skip
    return split, n_trail


@device
def push_sides(stack, n_stack, node, depth, middle, n_nodes, n_trail, first, feature, top):
    """Push both sides of a split, the left one on top; the right one may be a chain's next link."""
    none = np.int64(-1)
    right = OpenLink(
        middle, node.high, depth, n_nodes - 1, n_trail, first, feature, top,
        hash_at(node.key, 1), node.least, node.greatest,
    )  # fmt: skip
    n_stack = push(stack, n_stack, right)
    left = OpenLink(
        node.low, middle, depth, n_nodes - 2, n_trail, none, none, top, hash_at(node.key, 0),
        node.least, node.greatest,
    )  # fmt: skip
    return push(stack, n_stack, left)


@device
def bound_sides(stack, n_stack, sign, slot, stats, middle, left):
    """Bound values of the last two nodes by the middle of their means, for a feature of this sign.
    The right side's rows begin at `middle`; left i64[2] is scratch."""
    if sign != 0:
        node_totals(stats, slot.begin, middle, left)
        weight = weight_of(left, has_labels(stats))
        mean = np.float64(left[1]) / np.float64(weight)
        other = np.float64(slot.sums[1] - left[1]) / np.float64(slot.weight - weight)
        lower, upper = (n_stack - 1, n_stack - 2) if sign > 0 else (n_stack - 2, n_stack - 1)
        stack[lower].greatest = stack[upper].least = (mean + other) * 0.5


@device
def slot_of(node, stats, sums):
    """The record of a node that the split search takes; its channel sums are put into `sums`."""
    node_totals(stats, node.low, node.high, sums)
    weight, n_rows = weight_of(sums, has_labels(stats)), node.high - node.low
    return Slot(node.number, node.low, n_rows, weight, node.key, sums, node.least, node.greatest)


@device
def grow_block(data, root, rules, scratch, chains, sets, grown):
    """As grow_block of kernels/grow_subtrees/numba.py."""
    stack, order, missing = chains.stack, scratch.order, np.int64(data.n_codes - 1)
    n_trail, n_stack, none = 0, 1, np.int64(-1)
    push(stack, 0, root)
    grown = Grown(grown.n_nodes + 1, grown.n_leaves, grown.n_words)
    while n_stack > 0:
        # 1. the next node or link, and what is still known to be constant above it
        n_stack -= 1
        node = pop(stack, n_stack)
        n_trail = forget(scratch, n_trail, node.n_trail)
        first, f, top, depth = node.first, node.feature, node.top, node.depth
        if first < 0:
            # 2. a node: its best split
            split, slot = NO_SPLIT, slot_of(node, order.stats, scratch.sums)
            may_split = slot.n_rows >= rules.fewest_rows and node.depth < rules.max_depth
            if may_split and not is_pure(order.stats, slot):
                split, n_trail = best_feature(data, slot, rules, scratch, chains, n_trail, sets)
            # 3. a leaf
            if split.feature < 0:
                grown = put_leaf(scratch, node.number, scratch.sums, grown)
                continue
            column, f, depth = data.codes[split.feature], split.feature, depth + 1
            # 4. a cut of numbers
            if split.bin != SET_BIN:
                grown = put_split(scratch, data, node.number, root.number, split, None, grown)
                middle = node.low + split_rows(
                    column, order, scratch.spare, slot, split, missing, None
                )
                n_stack = push_sides(
                    stack, n_stack, node, depth, middle, grown.n_nodes, n_trail, none, none, top
                )
                if len(rules.signs):
                    bound_sides(
                        stack, n_stack, rules.signs[f], slot, order.stats, middle, scratch.left_sums
                    )
                continue
            # 5. or the rows of all branches
            first, feature = top, feature_of(f, data, rules, data.n_channels)
            top = sort_rows(column, feature, slot, scratch, sets.work.ordered, chains, first)
        # 6. a link: its first category goes left, and the next link or the last category right
        bins = np.int64(data.n_bins[f])
        missing_left = link_set(chains, first, node.high, bins, missing, sets.best)
        split = Split(0.0, f, np.int64(SET_BIN), missing_left, NO_BIN)
        grown = put_split(scratch, data, node.number, root.number, split, sets, grown)
        follows = first + 1 if chains.end[first + 1] < node.high else none
        n_stack = push_sides(
            stack, n_stack, node, depth, chains.end[first], grown.n_nodes, n_trail, follows, f, top
        )
    forget(scratch, n_trail, 0)
    return grown


@kernel(plain={})
def grow_multiway(
    data: Data, slots: Frontier, rules: Rules, scratch: Scratch, offsets: I64s, written: I64s,
    sets: Sets, chains: Chains,
):  # fmt: skip
    """As `grow_subtrees` of kernels/grow_subtrees/numba.py, from the slots of roots."""
    scratch.pure[:] = -1
    zero: Any = np.int64(0)
    none: Any = np.int64(-1)
    grown = Grown(zero, zero, zero)
    for d in range(len(slots.begin)):
        n, depth = load_rows(data, slots, d, scratch.order), zero + slots.depth[d]
        root = OpenLink(
            zero, n, depth, grown.n_nodes, zero, none, none, zero, slots.key[d], -np.inf, np.inf
        )
        allow(scratch, slots, d)
        grown = grow_block(data, root, rules, scratch, chains, sets, grown)
        offsets[d + 1] = grown.n_nodes
    scratch.refused[:] = scratch.constant[:] = False
    written[0], written[1] = grown.n_leaves, grown.n_words
