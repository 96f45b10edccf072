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
from gpuforest.compiler.types import F64, I64, I64s, Type, new_arrays
from gpuforest.core.frontier import Data, Frontier
from gpuforest.core.nodes import SET_BIN
from gpuforest.core.rules import Rules
from gpuforest.kernels.best_split.cuts import feature_of, limits_of, weight_of
from gpuforest.kernels.grow_subtrees import cuts, rows
from gpuforest.kernels.grow_subtrees import numba as subtrees
from gpuforest.kernels.grow_subtrees.scratch import Scratch, Ways
from gpuforest.kernels.sets.numba import Sets, write_set
from gpuforest.kernels.shared.numba import U, has_labels, node_score, order_of, xlogx
from gpuforest.kernels.shared.records import NO_BIN, NO_SPLIT, Bin, Slot, Split

Array = Any

ROUNDING = 1e-9  # relative; a gain that is below the mean by less equals it


class Tried(NamedTuple):
    """The split of a feature that was tried in a node."""

    score: F64
    spread: F64  # its information
    feature: I64
    bin: I64
    missing_left: I64
    weight: I64  # of the left side, as `Split.left`
    second: I64


class Chains(NamedTuple):
    """The scratch of multiway splits besides `Scratch`."""

    # of nodes: the feature of the chain that the node is a link of, or -1; bounds of the means of
    # both sides of a split
    link: Annotated[Array, "i64[M]"]
    low: Annotated[Array, "f64[M]"]
    high: Annotated[Array, "f64[M]"]
    # of the branch whose rows begin here in the order: its category, where its rows end, and
    # whether no later branch is heavier
    code: Annotated[Array, "i64[R]"]
    end: Annotated[Array, "i64[R]"]
    heaviest: Annotated[Array, "bool[R]"]
    tried: Annotated[Array, Type(Tried, 1, ("F",))]


def new_chains(n_rows: int, n_nodes: int, n_features: int) -> Chains:
    """Scratch for slots of at most n_rows rows."""
    return Chains(**new_arrays(Chains, np.empty, R=n_rows, M=n_nodes, F=n_features))


@device
def sort_rows(column, feature, slot, scratch, work, chains):
    """Sort a node's rows by category, missing last, and write its branches."""
    (positions, stats), spare, low = scratch.order, scratch.spare, slot.begin
    high, width, counts, begins = low + slot.n_rows, stats.shape[1], work.ordered, work.codes
    for b in range(feature.missing + 1):
        counts[U(b)] = 0
    for i in range(low, high):
        counts[U(column[U(positions[U(i)])])] += 1
    m, end = 0, low
    for i in range(feature.bins + 1):
        b = i if i < feature.bins else feature.missing
        if counts[b] > 0:
            begins[m], chains.code[end] = end, b
            end, counts[b], m = end + counts[b], end - low, m + 1
            chains.end[begins[m - 1]] = end
    for i in range(low, high):
        b = U(column[U(positions[U(i)])])
        at = U(counts[b])
        counts[b] += 1
        spare.positions[at] = positions[U(i)]
        for c in range(width):
            spare.stats[at, U(c)] = stats[U(i), U(c)]
    for i in range(slot.n_rows):
        positions[U(low + i)] = spare.positions[U(i)]
        for c in range(width):
            stats[U(low + i), U(c)] = spare.stats[U(i), U(c)]
    heaviest = np.int64(-1)  # weight of the branches that follow
    for j in range(m - 1, -1, -1):
        weight = np.int64(0)
        for i in range(begins[j], chains.end[begins[j]]):
            weight += stats[U(i), 1 if has_labels(stats) else 0]
        chains.heaviest[begins[j]] = weight >= heaviest
        heaviest = max(heaviest, weight)


@device
def resume(growth, node, n_stack, n_trail, sets, grown):
    """If a node is a link of a chain, write its split: its first category goes left, and the next
    link, or the last category, right. Absent categories go with the heaviest branch."""
    chains, scratch, data = growth.of_kind, growth.scratch, growth.data
    f, begin = chains.link[node.number], node.low
    if f < 0:
        return False, n_stack, grown
    heavier, middle, m = chains.heaviest[begin], chains.end[begin], 0
    at, left, stats = begin, scratch.left_sums, scratch.order.stats
    while at < (node.high if heavier else middle):
        sets.work.codes[m] = chains.code[at]
        at, m = chains.end[at], m + 1
    bins, missing = np.int64(data.n_bins[f]), np.int64(data.n_codes - 1)
    side = write_set(m, np.int64(0), heavier, bins, missing, sets.work.codes, sets.best)
    split = Split(0.0, f, np.int64(SET_BIN), side, NO_BIN)
    grown = rows.put_split(scratch, data, node.number, growth.first, split, sets, grown)
    rows.node_totals(stats, begin, middle, left)
    sums = Bin(weight_of(left, has_labels(stats)), left[len(left) - 1], np.int64(0))
    n_stack = subtrees.push_children(growth, n_stack, node, middle - begin, sums, n_trail, grown)
    inherit(chains, node.number, grown.n_nodes)
    if chains.end[middle] < node.high:
        chains.link[grown.n_nodes - 1] = f
        scratch.open_nodes[n_stack - 2].depth = node.depth  # all links have the depth of the first
    return True, n_stack, grown


@device
def inherit(chains, number, n_nodes):
    """The last two nodes have their parent's bounds."""
    for child in (n_nodes - 2, n_nodes - 1):
        chains.low[child], chains.high[child] = chains.low[number], chains.high[number]
        chains.link[child] = -1


@device
def write(growth, table, node, slot, split, n_stack, n_trail, sets, grown):
    """As `write_split` of kernels/grow_subtrees/numba.py; a node that begins a chain is its first
    link, and goes back to the stack."""
    data, rules, scratch, chains = growth.data, growth.rules, growth.scratch, growth.of_kind
    f, number, n_nodes, stack = split.feature, node.number, grown.n_nodes, scratch.open_nodes
    if split.bin == SET_BIN:
        feature = feature_of(f, data, rules.count_rows, len(slot.sums))
        sort_rows(table[f], feature, slot, scratch, sets.work, chains)
        chains.link[number] = f
        n_stack = subtrees.push(stack, n_stack, node)
        stack[n_stack - 1].n_trail = n_trail
        return n_stack, grown
    inherit(chains, number, n_nodes + 2)
    if len(rules.signs) > 0 and rules.signs[f] != 0:
        mean = np.float64(split.left.second) / np.float64(split.left.weight)
        other = np.float64(node.second - split.left.second)
        other /= np.float64(node.weight - split.left.weight)
        right = n_nodes + 1 if rules.signs[f] > 0 else n_nodes  # the side of larger means
        chains.low[right] = chains.high[2 * n_nodes + 1 - right] = (mean + other) * 0.5
    return subtrees.write_split(growth, table, node, slot, split, n_stack, n_trail, sets, grown)


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


@rare
def most_worthy(m, tried, whole, gain_ratio):
    """The chosen one of m tried splits, or -1; whole : the node's score"""
    best, at = -np.inf, -1
    total, count = 0.0, 0.0
    if gain_ratio:
        for j in range(m):
            if tried[j].score - whole > -np.inf:
                total += tried[j].score - whole
                count += 1.0
    mean = total / count if count > 0.0 else total
    least = mean - ROUNDING * abs(mean)
    for j in range(m):
        value = tried[j].score
        if gain_ratio:
            gain = value - whole
            is_worthy = gain > -np.inf and gain >= least and tried[j].spread > 0.0
            value = gain / tried[j].spread if is_worthy else -np.inf
        if value > best:
            best, at = value, j
    return at


@device
def numeric_cut(feature, column, slot, rules, scratch, in_bins):
    """As best_cut or random_cut, and the cut's split information if the rules need it."""
    left, spread = scratch.left_sums, 0.0
    limits, criterion = limits_of(rules, slot, feature.number), rules.criterion.number
    if rules.random:
        varies, split = cuts.random_cut(column, feature, slot, criterion, limits, scratch)
    else:
        hist = scratch.hists[0]
        varies, split = cuts.best_cut(feature, slot, criterion, limits, scratch, hist, in_bins)
    if rules.criterion.by_ratio and split.score > -np.inf:
        cuts.left_totals(column, scratch.order, slot, split, feature.missing, None, left)
        n, n_left = slot.weight, weight_of(left, feature.is_classes)
        spread = np.float64(xlogx(n) - (xlogx(n_left) + xlogx(n - n_left)))
    return varies, split, spread


@device
def search(growth, table, slot, n_trail, sets):
    """As `search` of kernels/grow_subtrees/numba.py; gain ratios need the gains of all features."""
    data, rules, scratch, chains = growth.data, growth.rules, growth.scratch, growth.of_kind
    low, high, C = chains.low[slot.number], chains.high[slot.number], len(slot.sums)
    number, begin, n_rows = slot.number, slot.begin, slot.n_rows
    slot = Slot(number, begin, n_rows, slot.weight, slot.key, slot.sums, low, high)
    draw, position, m, tried, hist = order_of(slot.key), 0, 0, chains.tried, scratch.hists[0]
    while m < rules.n_tried:
        n, position = subtrees.next_features(growth, 1, draw, position)
        if n == 0:
            break
        f = np.int64(scratch.batch[0])
        feature, column = feature_of(f, data, rules.count_rows, C), table[f]
        is_set, in_bins, varies = sets.kinds[f] == CATEGORICAL, False, True
        split, spread = cuts.no_cut(feature), 0.0
        if is_set or not rules.random:
            in_bins, varies = cuts.bins_or_keys(column, feature, slot, scratch, hist, False)
        if varies and is_set:
            n = cuts.compact_set(feature, slot, scratch, hist, in_bins, sets.work)
            score, varies = -np.inf, n > 1
            if varies:
                score, spread = all_branches(n, feature, rules, sets.work)
            split = Split(score, f, np.int64(SET_BIN), False, NO_BIN)
        elif varies:
            varies, split, spread = numeric_cut(feature, column, slot, rules, scratch, in_bins)
        if not varies:
            scratch.constant[f], scratch.trail[n_trail] = True, f
            n_trail += 1
            continue
        to, left = tried[m], split.left
        to.score, to.spread, to.feature, to.bin = split.score, spread, f, split.bin
        to.missing_left, to.weight, to.second = split.missing_left, left.weight, left.second
        m += 1
    whole = node_score(rules.criterion.number, slot.sums, slot.weight, C)
    at = most_worthy(m, tried, whole, rules.criterion.by_ratio)
    if at < 0:
        return NO_SPLIT, n_trail
    best = tried[at]
    left = Bin(best.weight, best.second, np.int64(0))
    return Split(best.score, best.feature, best.bin, best.missing_left != 0, left), n_trail


WAYS = Ways(rows.load_rows, search, write, resume)


@kernel(plain={})
def grow_multiway(
    data: Data, slots: Frontier, rules: Rules, scratch: Scratch, offsets: I64s, written: I64s,
    sets: Sets, chains: Chains,
):  # fmt: skip
    """As `grow_subtrees` of kernels/grow_subtrees/numba.py, from the slots of roots."""
    chains.link[:], chains.low[:], chains.high[:] = -1, -np.inf, np.inf
    subtrees.grow_slots(data, slots, rules, scratch, offsets, written, sets, WAYS, chains)
