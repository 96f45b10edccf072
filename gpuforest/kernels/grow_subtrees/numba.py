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
from gpuforest.kernels.grow_subtrees.cuts import (
    clear,
    cut_or_set,
    fill_batch,
    most_sorted,
    random_cut,
)
from gpuforest.kernels.grow_subtrees.rows import (
    allow,
    block_of,
    forget,
    is_pure,
    load_rows,
    node_totals,
    put_leaf,
    put_leaves,
    put_split,
    set_pair,
    split_rows,
    words_of,
)
from gpuforest.kernels.grow_subtrees.scratch import Grown, OpenNode, Scratch
from gpuforest.kernels.sets.numba import Sets
from gpuforest.kernels.shared.numba import (
    domain,
    has_labels,
    hash_at,
    highest_score,
    node_score,
    order_of,
    perfect_score,
    permute,
)
from gpuforest.kernels.shared.records import NO_SPLIT, Slot


@device
def push(stack, n_stack, node):
    """Put a node on the stack, and return the size of the stack."""
    to = stack[n_stack]
    to.low, to.high, to.depth, to.number = node.low, node.high, node.depth, node.number
    to.n_trail, to.weight, to.second, to.key = node.n_trail, node.weight, node.second, node.key
    return n_stack + 1


@device
def pop(stack, at):
    """The node at this position of the stack."""
    n = stack[at]
    return OpenNode(n.low, n.high, n.depth, n.number, n.n_trail, n.weight, n.second, n.key)


@device
def next_features(batch, wanted, draw, position, k, order_domain, constant):
    """Put `wanted` drawn features that may vary into `batch`; their number, the next position."""
    F, (mask, shift), m = len(constant), order_domain, 0
    while m < wanted and position < F:
        f = position if k >= F else permute(draw, position, F, mask, shift)
        position += 1
        if not constant[f]:
            batch[m] = f
            m += 1
    return m, position


@device
def push_children(stack, n_stack, node, n_left, left, n_nodes, n_trail):
    """Push both sides of a split, the last two nodes; the left one, of n_left rows, is on top."""
    middle, depth = node.low + n_left, node.depth + 1
    right = OpenNode(
        middle, node.high, depth, n_nodes - 1, n_trail, node.weight - left.weight,
        node.second - left.second, hash_at(node.key, 1),
    )  # fmt: skip
    n_stack = push(stack, n_stack, right)
    first = OpenNode(
        node.low, middle, depth, n_nodes - 2, n_trail, left.weight, left.second,
        hash_at(node.key, 0),
    )  # fmt: skip
    return push(stack, n_stack, first)


@device
def slot_of(node, stats, sums):
    """The record of a node that the split search takes; its channel sums are put into `sums`."""
    weight = node.weight
    if len(sums) == 2:
        set_pair(stats, sums, weight, node.second)
    else:
        node_totals(stats, node.low, node.high, sums)
        weight = weight_of(sums, has_labels(stats))
    n_rows = node.high - node.low
    return Slot(node.number, node.low, n_rows, weight, node.key, sums, -np.inf, np.inf)


@device
def is_leaf(split, slot, rules):
    """Whether a node is a leaf: it has no split, or none that gains enough."""
    if split.feature < 0:
        return True
    whole = node_score(rules.criterion.number, slot.sums, slot.weight, len(slot.sums))
    return split.score - whole < rules.min_gain


@device
def enough_of(slot, rules, scratch, perfect):
    """A score that no split of a node can exceed, which ends its search; `perfect` is one."""
    if len(slot.sums) != 2 or rules.random:
        return perfect
    criterion, stats = rules.criterion.number, scratch.order.stats
    return highest_score(criterion, stats, slot, rules.n_tried, scratch.scan)


@device
def search(data, table, slot, rules, scratch, perfect, order_domain, n_trail, sets, kind_scratch):
    """A node's best split by the first k features that vary, the trail's length, and zeros.

    table : codes of the block with its rows. A score that no split can exceed ends the search."""
    k, best = rules.n_tried, NO_SPLIT
    hists, batch, constant = scratch.hists, scratch.batch, scratch.constant
    C, width = len(slot.sums), np.int64(len(slot.sums) + rules.count_rows)
    in_batches = slot.n_rows > most_sorted(data.n_codes - 1, width)
    if sets is not None:  # without sets, cuts are not random here
        in_batches = in_batches and not rules.random
    draw, tried, position, at, m = order_of(slot.key), 0, 0, 0, 0
    enough = enough_of(slot, rules, scratch, perfect)
    while tried < k and (best.score < enough or best.score == -np.inf):
        if at == m:
            wanted = min(k - tried, len(hists)) if in_batches else 1
            m, position = next_features(batch, wanted, draw, position, k, order_domain, constant)
            if m == 0:
                break
            at = 0
            if in_batches:
                for j in range(m):
                    clear(hists[j], feature_of(batch[j], data, rules, C))
                fill_batch(scratch, m, table, slot, C, width)
        f, is_set = np.int64(batch[at]), False
        if sets is not None:
            is_set = sets.kinds[f] == CATEGORICAL
        varies, split = cut_or_set(
            table[f], feature_of(f, data, rules, C), slot, rules, scratch, hists[at], in_batches,
            best.score, sets, is_set,
        )  # fmt: skip
        at += 1
        tried += varies
        if not varies:
            constant[f], scratch.trail[n_trail] = True, f
            n_trail += 1
        elif split.score > best.score:
            best = split
    return best, n_trail, 0, 0


@device
def search_random(
    data, table, slot, rules, scratch, perfect, order_domain, n_trail, sets, kind_scratch
):
    """As `search`, by random cuts of numeric features."""
    k, best, constant, C = rules.n_tried, NO_SPLIT, scratch.constant, len(slot.sums)
    draw, tried, position, batch = order_of(slot.key), 0, 0, scratch.batch
    criterion, limits = rules.criterion.number, by_rows(rules)
    while tried < k and (best.score < perfect or best.score == -np.inf):
        m, position = next_features(batch, 1, draw, position, k, order_domain, constant)
        if m == 0:
            break
        f = np.int64(batch[0])
        feature = feature_of(f, data, rules, C)
        varies, split = random_cut(table[f], feature, slot, criterion, limits, scratch)
        tried += varies
        if not varies:
            constant[f], scratch.trail[n_trail] = True, f
            n_trail += 1
        elif split.score > best.score:
            best = split
    return best, n_trail, 0, 0


@device
def write_split(
    scratch, data, table, number, first, split, n_summed, column, sets, kind_scratch, grown
):
    """Write a split; returns its column of codes, its missing code, and the numbers written."""
    grown = put_split(scratch, data, number, first, split, sets, grown)
    return table[split.feature], np.int64(data.n_codes - 1), grown


@device
def grow_block(data, blocks, root, rules, scratch, sets, search, write_split, kind_scratch, grown):
    """Grow the subtree of the ordered rows from the OpenNode `root`, whose number is the first
    node's; returns the numbers written. `search` and `write_split` are the kind's and take
    `kind_scratch`, `write_split` also two numbers that `search` found."""
    order, sums = scratch.order, scratch.sums
    criterion, stack, words = rules.criterion.number, scratch.open_nodes, words_of(sets)
    order_domain, n_trail, n_stack = domain(len(scratch.constant)), 0, 1
    push(stack, 0, root)
    grown = Grown(grown.n_nodes + 1, grown.n_leaves, grown.n_words)
    while n_stack > 0:
        # 1. the next node, and what is still known to be constant above it
        n_stack -= 1
        node = pop(stack, n_stack)
        n_trail = forget(scratch, n_trail, node.n_trail)
        slot = slot_of(node, order.stats, sums)
        # 2. its best split, of the first k features that vary
        split, level, perfect, n_summed, column = NO_SPLIT, 0, perfect_score(criterion, slot), 0, 0
        may_split = slot.n_rows >= rules.fewest_rows and node.depth < rules.max_depth
        if may_split and not is_pure(order.stats, slot):
            level = block_of(blocks, slot, scratch)
            split, n_trail, n_summed, column = search(
                data, blocks[level], slot, rules, scratch, perfect, order_domain, n_trail,
                sets, kind_scratch,
            )  # fmt: skip
        # 3. a leaf
        if is_leaf(split, slot, rules):
            grown = put_leaf(scratch, node.number, sums, grown)
            continue
        codes, last, grown = write_split(
            scratch, data, blocks[level], node.number, root.number, split, n_summed, column,
            sets, kind_scratch, grown,
        )  # fmt: skip
        # 4. or a split, into two leaves
        if split.score >= perfect or node.depth + 1 >= rules.max_depth:
            grown = put_leaves(scratch, codes, slot, split, last, words, grown)
            continue
        # 5. or into two nodes
        n_left = split_rows(codes, order, scratch.spare, slot, split, last, words)
        n_stack = push_children(
            stack, n_stack, node, n_left, split.left, grown.n_nodes, n_trail
        )  # fmt: skip
    forget(scratch, n_trail, 0)
    return grown


@device
def root_of(data, slots, d, order, sums, number):
    """The root of a slot's subtree; the slot's rows are copied to the order."""
    n = load_rows(data, slots, d, order)
    node_totals(order.stats, 0, n, sums)
    weight = weight_of(sums, has_labels(order.stats))
    zero = np.int64(0)
    return OpenNode(
        zero, n, np.int64(slots.depth[d]), number, zero, weight, sums[len(sums) - 1], slots.key[d]
    )


@device
def grow_slots(
    data, slots, rules, scratch, offsets, written, sets, search, write_split, kind_scratch
):
    """The loop of `grow_subtrees`; see `grow_block`."""
    scratch.pure[:] = -1
    zero, used = np.int64(0), scratch.used
    blocks, grown = (data.codes, scratch.some, scratch.few), Grown(zero, zero, zero)
    for d in range(len(slots.begin)):
        root = root_of(data, slots, d, scratch.order, scratch.sums, grown.n_nodes)
        allow(scratch, slots, d)
        used[0], used[1], used[2] = root.high, 0, 0
        grown = grow_block(
            data, blocks, root, rules, scratch, sets, search, write_split, kind_scratch, grown
        )
        offsets[d + 1] = grown.n_nodes
    scratch.refused[:] = scratch.constant[:] = False
    written[0], written[1] = grown.n_leaves, grown.n_words


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
    grow_slots(data, slots, rules, scratch, offsets, written, sets, search, write_split, None)


@kernel(checked={"target": "int32"}, sets=False)
def grow_random(
    data: Data, slots: Frontier, rules: Rules, scratch: Scratch, offsets: I64s, written: I64s,
    sets: Sets | None,
):  # fmt: skip
    """As grow_subtrees, by random cuts of numeric features. By grow_subtrees with sets, regression
    took 1.08 to 1.29 times as long (classes: as long), and a first fit compiled for 17 s, not 5."""
    grow_slots(
        data, slots, rules, scratch, offsets, written, sets, search_random, write_split, None
    )
