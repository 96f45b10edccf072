"""Grow subtrees: one thread grows a slot's whole subtree, depth first.

    blocks     three blocks of codes [F, n]: the matrix with all rows, a copy for nodes of middle
               size, and a copy for small nodes that stays in a core's cache. Copies pay because
               reading codes is slow if few rows of a node lie in a cache line
    positions  where each row is in its block; a node is a range of positions, and a split
               moves the left side's rows before the right side's
    stats      for each position, what its row adds to a sum: class and weight, or moments
    constant   features that do not vary on the path from the root, which are not tried again;
               the trail lists them, so that they can be forgotten on the way back

A node of n rows costs O(n), see cuts.py. The trees are the same as those of the loop in grow.py.
"""

import numpy as np

from gpuforest.common.dtypes import CATEGORICAL
from gpuforest.compiler.decorators import device, kernel
from gpuforest.compiler.types import I64s
from gpuforest.core.frontier import Data, Frontier
from gpuforest.core.rules import Rules
from gpuforest.kernels.best_split.cuts import by_rows, feature_of, weight_of
from gpuforest.kernels.grow_subtrees import cuts, rows
from gpuforest.kernels.grow_subtrees.scratch import Grown, Growth, OpenNode, Scratch, Ways
from gpuforest.kernels.sets.numba import Sets
from gpuforest.kernels.shared import numba as shared
from gpuforest.kernels.shared.records import NO_SPLIT, Slot


@device
def push(stack, n_stack, node):
    to = stack[n_stack]
    to.low, to.high, to.depth, to.number = node.low, node.high, node.depth, node.number
    to.n_trail, to.weight, to.second, to.key = node.n_trail, node.weight, node.second, node.key
    return n_stack + 1


@device
def pop(stack, at):
    n = stack[at]
    return OpenNode(n.low, n.high, n.depth, n.number, n.n_trail, n.weight, n.second, n.key)


@device
def next_features(growth, wanted, draw, position):
    """Put `wanted` drawn features that may vary into `batch`; their number, the next position."""
    batch, constant, k = growth.scratch.batch, growth.scratch.constant, growth.rules.n_tried
    F, (mask, shift), m = len(constant), growth.order_domain, 0
    while m < wanted and position < F:
        f = position if k >= F else shared.permute(draw, position, F, mask, shift)
        position += 1
        if not constant[f]:
            batch[m] = f
            m += 1
    return m, position


@device
def push_children(growth, n_stack, node, n_left, left, n_trail, grown):
    """Push both sides of a split, the last two nodes; the left one, of n_left rows, is on top."""
    middle, depth, n_nodes = node.low + n_left, node.depth + 1, grown.n_nodes
    stack = growth.scratch.open_nodes
    right = OpenNode(
        middle, node.high, depth, n_nodes - 1, n_trail, node.weight - left.weight,
        node.second - left.second, shared.hash_at(node.key, 1),
    )  # fmt: skip
    n_stack = push(stack, n_stack, right)
    first = OpenNode(
        node.low, middle, depth, n_nodes - 2, n_trail, left.weight, left.second,
        shared.hash_at(node.key, 0),
    )  # fmt: skip
    return push(stack, n_stack, first)


@device
def slot_of(node, stats, sums):
    """The record of a node that the split search takes; its channel sums are put into `sums`."""
    weight = node.weight
    if len(sums) == 2:
        rows.set_pair(stats, sums, weight, node.second)
    else:
        rows.node_totals(stats, node.low, node.high, sums)
        weight = weight_of(sums, shared.has_labels(stats))
    n_rows = node.high - node.low
    return Slot(node.number, node.low, n_rows, weight, node.key, sums, -np.inf, np.inf)


@device
def is_leaf(split, slot, rules):
    """Whether a node is a leaf: it has no split, or none that gains enough."""
    if split.feature < 0:
        return True
    whole = shared.node_score(rules.criterion.number, slot.sums, slot.weight, len(slot.sums))
    return split.score - whole < rules.min_gain


@device
def enough_of(slot, rules, scratch):
    """A score that no split of a node can exceed, which ends its search."""
    criterion, stats = rules.criterion.number, scratch.order.stats
    if len(slot.sums) != 2 or rules.random:
        return shared.perfect_score(criterion, slot)
    return shared.highest_score(criterion, stats, slot, rules.n_tried, scratch.scan)


@device
def search(growth, table, slot, n_trail, sets):
    """A node's best split by the first k features that vary, and the trail's length.

    table : codes of the block with its rows. A score that no split can exceed ends the search."""
    data, rules, scratch, C = growth.data, growth.rules, growth.scratch, len(slot.sums)
    hists, batch, constant = scratch.hists, scratch.batch, scratch.constant
    k, best, count_rows = rules.n_tried, NO_SPLIT, rules.count_rows
    if sets is None:  # where all rows weigh one, weights are numbers of rows
        count_rows = count_rows and slot.weight != slot.n_rows
    width = np.int64(C + count_rows)
    in_batches = slot.n_rows > cuts.most_sorted(data.n_codes - 1, width)
    if sets is not None:  # without sets, cuts are not random here
        in_batches = in_batches and not rules.random
    draw, tried, position, at, m = shared.order_of(slot.key), 0, 0, 0, 0
    enough = enough_of(slot, rules, scratch)
    while tried < k and (best.score < enough or best.score == -np.inf):
        if at == m:
            wanted = min(k - tried, len(hists)) if in_batches else 1
            m, position = next_features(growth, wanted, draw, position)
            if m == 0:
                break
            at = 0
            if in_batches:
                for j in range(m):
                    cuts.clear(hists[j], feature_of(batch[j], data, count_rows, C))
                cuts.fill_batch(scratch, m, table, slot, C, width)
        f, is_set = np.int64(batch[at]), False
        if sets is not None:
            is_set = sets.kinds[f] == CATEGORICAL
        varies, split = cuts.cut_or_set(
            table[f], feature_of(f, data, count_rows, C), slot, rules, scratch, hists[at],
            in_batches, best.score, sets, is_set,
        )  # fmt: skip
        at += 1
        tried += varies
        if not varies:
            constant[f], scratch.trail[n_trail] = True, f
            n_trail += 1
        elif split.score > best.score:
            best = split
    return best, n_trail


@device
def search_random(growth, table, slot, n_trail, sets):
    """As `search`, by random cuts of numeric features."""
    rules, scratch, best = growth.rules, growth.scratch, NO_SPLIT
    draw, tried, position = shared.order_of(slot.key), 0, 0
    criterion, limits = rules.criterion.number, by_rows(rules, rules.count_rows)
    perfect = shared.perfect_score(criterion, slot)
    while tried < rules.n_tried and (best.score < perfect or best.score == -np.inf):
        m, position = next_features(growth, 1, draw, position)
        if m == 0:
            break
        f = np.int64(scratch.batch[0])
        feature = feature_of(f, growth.data, rules.count_rows, len(slot.sums))
        varies, split = cuts.random_cut(table[f], feature, slot, criterion, limits, scratch)
        tried += varies
        if not varies:
            scratch.constant[f], scratch.trail[n_trail] = True, f
            n_trail += 1
        elif split.score > best.score:
            best = split
    return best, n_trail


@device
def write_split(growth, table, node, slot, split, n_stack, n_trail, sets, grown):
    """Write a node's split and make its children; returns as `divide`."""
    data, first = growth.data, growth.first
    grown = rows.put_split(growth.scratch, data, node.number, first, split, sets, grown)
    column, missing = table[split.feature], np.int64(data.n_codes - 1)
    return divide(growth, column, missing, node, slot, split, n_stack, n_trail, sets, grown)


@device
def divide(growth, column, missing, node, slot, split, n_stack, n_trail, sets, grown):
    """Make the last two nodes, a split's sides, leaves or open; the stack's size, and `grown`.

    column : codes of the split's feature, `missing` of missing values"""
    scratch, words = growth.scratch, rows.words_of(sets)
    perfect = shared.perfect_score(growth.rules.criterion.number, slot)
    if split.score >= perfect or node.depth + 1 >= growth.rules.max_depth:
        return n_stack, rows.put_leaves(scratch, column, slot, split, missing, words, grown)
    n_left = rows.split_rows(column, scratch.order, scratch.spare, slot, split, missing, words)
    return push_children(growth, n_stack, node, n_left, split.left, n_trail, grown), grown


@device
def no_link(growth, node, n_stack, n_trail, sets, grown):
    """Whether a node already had its split, which is written: only links of chains of splits do."""
    return False, n_stack, grown


@device
def grow_block(growth, blocks, root, sets, ways, grown):
    """Grow the subtree of the ordered rows from the OpenNode `root`; returns the numbers written.

    ways : functions of the kind of split, see `Ways`"""
    rules, scratch, order = growth.rules, growth.scratch, growth.scratch.order
    sums, stack, n_trail, n_stack = scratch.sums, scratch.open_nodes, 0, 1
    push(stack, 0, root)
    grown = Grown(grown.n_nodes + 1, grown.n_leaves, grown.n_words)
    while n_stack > 0:
        # 1. the next node, and what is still known to be constant above it
        n_stack -= 1
        node = pop(stack, n_stack)
        n_trail = rows.forget(scratch, n_trail, node.n_trail)
        was_link, n_stack, grown = ways.resume(growth, node, n_stack, n_trail, sets, grown)
        if was_link:
            continue
        # 2. its best split, of the first k features that vary
        slot, split, level = slot_of(node, order.stats, sums), NO_SPLIT, 0
        may_split = slot.n_rows >= rules.fewest_rows and node.depth < rules.max_depth
        if may_split and not rows.is_pure(order.stats, slot):
            level = rows.block_of(blocks, slot, scratch)
            split, n_trail = ways.search(growth, blocks[level], slot, n_trail, sets)
        # 3. a leaf
        if is_leaf(split, slot, rules):
            grown = rows.put_leaf(scratch, node.number, sums, grown)
            continue
        # 4. or a split, into two leaves or two nodes
        n_stack, grown = ways.write(
            growth, blocks[level], node, slot, split, n_stack, n_trail, sets, grown
        )
    rows.forget(scratch, n_trail, 0)
    return grown


@device
def grow_slots(data, slots, rules, scratch, offsets, written, sets, ways, of_kind):
    """The loop of `grow_subtrees`; see `grow_block`."""
    scratch.pure[:] = -1
    zero, order, sums, used = np.int64(0), scratch.order, scratch.sums, scratch.used
    blocks, grown = (data.codes, scratch.some, scratch.few), Grown(zero, zero, zero)
    order_domain = shared.domain(len(scratch.constant))
    for d in range(len(slots.begin)):
        n = ways.load(data, slots, d, order, of_kind)
        rows.node_totals(order.stats, 0, n, sums)
        weight, second = weight_of(sums, shared.has_labels(order.stats)), sums[len(sums) - 1]
        depth, first = np.int64(slots.depth[d]), grown.n_nodes
        root = OpenNode(zero, n, depth, first, zero, weight, second, slots.key[d])
        rows.allow(scratch, slots, d)
        used[0], used[1], used[2] = n, 0, 0
        growth = Growth(data, rules, scratch, order_domain, first, of_kind)
        grown = grow_block(growth, blocks, root, sets, ways, grown)
        offsets[d + 1] = grown.n_nodes
    scratch.refused[:] = scratch.constant[:] = False
    written[0], written[1] = grown.n_leaves, grown.n_words


CUTS = Ways(rows.load_rows, search, write_split, no_link)
RANDOM = Ways(rows.load_rows, search_random, write_split, no_link)


# code for classes that does not check took up to 7 % longer (100 classes)
@kernel(checked={"target": "int32"}, plain={"sets": True})
def grow_subtrees(
    data: Data, slots: Frontier, rules: Rules, scratch: Scratch, offsets: I64s, written: I64s,
    sets: Sets | None,
):  # fmt: skip
    """Write the subtrees of slots of fewer than 2**31 rows to `nodes` and `leaf_sums` of the
    scratch. First nodes go to offsets i64[D + 1], numbers of rows of the leaf table and of words of
    sets to written i64[2]. Sets and random cuts are compiled if `sets` is not None; see
    `grow_random`."""
    grow_slots(data, slots, rules, scratch, offsets, written, sets, CUTS, None)


@kernel(checked={"target": "int32"}, sets=False)
def grow_random(
    data: Data, slots: Frontier, rules: Rules, scratch: Scratch, offsets: I64s, written: I64s,
    sets: Sets | None,
):  # fmt: skip
    """As grow_subtrees, by random cuts of numeric features. By grow_subtrees with sets, regression
    took 1.08 to 1.29 times as long (classes: as long), and a first fit compiled for 17 s, not 5."""
    grow_slots(data, slots, rules, scratch, offsets, written, sets, RANDOM, None)
