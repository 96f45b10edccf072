"""Grow subtrees: a slot's rows are copied once into a compact block, and its whole
subtree is grown there, depth first.

    block     codes of the slot's rows, one column after another: a column of 4,096 rows
              stays in the first-level cache while a node looks at it
    order     place in the block, target and weight of each row; a node is a range of
              it, and a split moves the left side's rows before the right side's
    constant  features that vary no more on the path from the root: never looked at
              again; the trail says what to forget when the path turns back

A node of n rows costs O(n): few rows are sorted by their code, many fill a histogram.
The specification is the loop of grow.py: the trees are the same.
"""

import numpy as np

from gpuforest.kernels.best_split.numba import best_pair, compact_pairs, new_scratch, scan
from gpuforest.kernels.compile import device, kernel, maker
from gpuforest.kernels.grow_subtrees.sorting import (
    RANK_ROWS,
    compact_sorted,
    scan_sorted,
    sort_by_code,
)
from gpuforest.kernels.hashing.numba import U, domain, hash_at, order_of, permute
from gpuforest.kernels.histogram.numba import has_labels
from gpuforest.kernels.scoring.numba import node_score
from gpuforest.nodes import CHILD_SHIFT, FEATURE_SHIFT, LEAF_WORD, MISSING_SHIFT

LEAF = U(LEAF_WORD)
CHILD, MISSING, FEATURE = U(CHILD_SHIFT), U(MISSING_SHIFT), U(FEATURE_SHIFT)
# A histogram is for nodes of more rows than a quarter of its cells, and than 24: against
# a sixteenth, two classes took 0.70 to 1.01 of the time and six 0.62 to 0.93 (three runs)
HIST_ROWS, HIST_SHARE = 24, 4
COLUMN_GAP = 72  # bytes or more, so that columns do not begin 4,096 bytes apart


@device
def load_block(codes, y, rows, weights, begin, end, block, order):
    """Copy a slot's rows: codes to `block` [F, n], the rest to `order`."""
    at, target, weight = order
    for i in range(end - begin):
        r = rows[begin + i]
        at[i], weight[i] = i, weights[begin + i]
        for o in range(y.shape[1]):
            target[i, o] = y[r, o]
        for f in range(codes.shape[1]):
            block[U(f), U(i)] = codes[U(r), U(f)]


@device
def node_totals(order, low, high, sums):
    """Fill the channel sums of a node; its weight, and whether its targets are equal."""
    _, target, weight = order
    for c in range(len(sums)):
        sums[c] = 0
    pure, n = True, np.int64(0)
    for i in range(low, high):
        w = np.int64(weight[U(i)])
        n += w
        if has_labels(target):
            sums[U(target[U(i), 0])] += w
        else:
            sums[0] += w
            for o in range(target.shape[1]):
                sums[1 + o] += w * target[U(i), o]
        for o in range(target.shape[1]):
            pure &= target[U(i), o] == target[U(low), o]
    return n, pure


@device
def fill(hist, code, order, low, n, C, count_rows):
    """The histogram i64[B * channels] of one feature in one node."""
    _, target, weight = order
    channels = np.int64(C + count_rows)
    for b in range(len(hist)):
        hist[U(b)] = 0
    for i in range(n):
        b = np.int64(code[U(i)]) * channels
        w = np.int64(weight[U(low + i)])
        if has_labels(target):
            hist[U(b + target[U(low + i), 0])] += w
        else:
            hist[U(b)] += w
            for o in range(target.shape[1]):
                hist[U(b + 1 + o)] += w * target[U(low + i), o]
        if count_rows:
            hist[U(b + C)] += 1


@device
def best_cut(block, f, order, low, n, sums, n_weight, n_bins, rules, B, work):
    """One feature in one node: (varies, score, cut, missing_left)."""
    at, target, weight = order
    criterion, _, _, _, min_rows, _ = rules
    code, keys, spare_keys, counts, hist, hist_rows, scratch = work
    first, varies = block[f, at[low]], False
    for i in range(n):
        c = block[U(f), U(at[U(low + i)])]
        code[U(i)] = c
        varies |= c != first
    if not varies:
        return False, -np.inf, np.int64(0), False
    C, missing, count_rows = len(sums), B - 1, min_rows > 1
    left, upto, scores = scratch
    if n > hist_rows:
        fill(hist, code, order, low, n, C, count_rows)
    else:
        sort_by_code(code, n, keys, spare_keys, counts)
    if C == 2:
        if n > hist_rows:
            m = compact_pairs(hist, B, has_labels(target), C + count_rows, upto)
        else:
            m = compact_sorted(keys, n, target, weight, low, upto)
        score, cut, side = best_pair(upto, m, missing, n_bins[f], criterion, min_rows, scores)
    elif n > hist_rows:
        _, score, cut, side = scan(
            hist, B, C, sums, n_weight, n, n_bins[f], criterion, min_rows, count_rows, left
        )
    else:
        score, cut, side = scan_sorted(
            keys, n, target, weight, low, missing, sums, n_weight, n_bins[f], criterion, min_rows,
            left,
        )  # fmt: skip
    return True, score, cut, side


@device
def split_rows(block, f, order, spare, low, high, cut, missing_left, missing):
    """Move a node's left rows before its right rows, both in their order; how many go left.

    Every row is written to both places, and the one that counts moves on: no branch.
    """
    at, target, weight = order
    spare_at, spare_target, spare_weight = spare
    left, right = low, 0
    for i in range(low, high):
        place, w = at[U(i)], weight[U(i)]
        c = np.int64(block[U(f), U(place)])
        goes_left = missing_left if c == missing else c <= cut
        spare_at[U(right)], spare_weight[U(right)] = place, w
        at[U(left)], weight[U(left)] = place, w
        for o in range(target.shape[1]):
            t = target[U(i), o]
            spare_target[U(right), o] = t
            target[U(left), o] = t
        left += goes_left
        right += not goes_left
    for i in range(right):
        at[U(left + i)], weight[U(left + i)] = spare_at[U(i)], spare_weight[U(i)]
        for o in range(target.shape[1]):
            target[U(left + i), o] = spare_target[U(i), o]
    return left - low


@device
def push(stack, stack_keys, n_stack, low, high, depth, number, n_trail, key):
    stack[n_stack, 0], stack[n_stack, 1], stack[n_stack, 2] = low, high, depth
    stack[n_stack, 3], stack[n_stack, 4], stack_keys[n_stack] = number, n_trail, key
    return n_stack + 1


@device
def grow_block(
    block, n_rows, root_key, depth, order, spare, n_bins, rules, B, work, open_nodes, known, sums,
    nodes, leaf_sums, n_nodes, n_leaves,
):  # fmt: skip
    """Grow the subtree of one block; its nodes and leaves are written from n_nodes, n_leaves.

    open_nodes : a stack of low, high, depth, number and length of the trail; and of keys
    known : which features are constant on the path, and the trail of them
    """
    criterion, k, max_depth, fewest, _, min_gain = rules
    (stack, stack_keys), (constant, trail) = open_nodes, known
    F, C = len(constant), len(sums)
    (mask, shift), base, first_leaf = domain(F), n_nodes, n_leaves
    n_stack, n_trail = push(stack, stack_keys, 0, 0, n_rows, depth, n_nodes, 0, root_key), 0
    n_nodes += 1
    while n_stack > 0:
        # 1. the next node, and what is still known to be constant above it
        n_stack -= 1
        low, high, depth = stack[n_stack, 0], stack[n_stack, 1], stack[n_stack, 2]
        number, n_above, key = stack[n_stack, 3], stack[n_stack, 4], stack_keys[n_stack]
        while n_trail > n_above:
            n_trail -= 1
            constant[trail[n_trail]] = False
        n = high - low
        n_weight, pure = node_totals(order, low, high, sums)
        # 2. its best split, of the first k features that vary
        best, best_f, cut, missing_left = -np.inf, np.int64(-1), np.int64(0), False
        if not (pure or n < fewest or depth >= max_depth):
            draw, tried, position = order_of(key), 0, 0
            while tried < k and position < F:
                f = position if k >= F else permute(draw, position, F, mask, shift)
                position += 1
                if constant[f]:
                    continue
                varies, score, at, side = best_cut(
                    block, f, order, low, n, sums, n_weight, n_bins, rules, B, work
                )
                tried += varies
                if not varies:
                    constant[f], trail[n_trail] = True, f
                    n_trail += 1
                elif score > best:
                    best, best_f, cut, missing_left = score, f, at, side
        # 3. a leaf
        if best_f < 0 or best - node_score(criterion, sums, n_weight, C) < min_gain:
            for c in range(C):
                leaf_sums[n_leaves, c] = sums[c]
            nodes[number] = LEAF | U(n_leaves - first_leaf)
            n_leaves += 1
            continue
        # 4. or a split; the left child is taken next, and all below it before the right
        middle = low + split_rows(block, best_f, order, spare, low, high, cut, missing_left, B - 1)
        word = (U(best_f) << FEATURE) | (U(missing_left) << MISSING) | U(cut)
        nodes[number] = word | (U(n_nodes - base) << CHILD)
        n_stack = push(
            stack, stack_keys, n_stack, middle, high, depth + 1, n_nodes + 1, n_trail,
            hash_at(key, 1),
        )  # fmt: skip
        n_stack = push(
            stack, stack_keys, n_stack, low, middle, depth + 1, n_nodes, n_trail, hash_at(key, 0)
        )
        n_nodes += 2
    while n_trail > 0:
        n_trail -= 1
        constant[trail[n_trail]] = False
    return n_nodes, n_leaves


@maker
def new_order(most, y):
    return (
        np.empty(most, np.uint16),
        np.empty((most, y.shape[1]), y.dtype),
        np.empty(most, np.int32),
    )


@maker
def new_work(most, codes, B, C, count_rows):
    """Scratch of `best_cut`."""
    width = B * (C + count_rows)
    hist_rows = max(width // HIST_SHARE, HIST_ROWS)
    size = most + RANK_ROWS
    return (
        np.empty(most, codes.dtype),
        np.empty(size, np.uint32),
        np.empty(size, np.uint32),
        np.empty(256, np.int64),
        np.zeros(width if hist_rows < most else 0, np.int64),
        hist_rows,
        new_scratch(max(min(most, hist_rows), B), C),
    )


@kernel
def grow_subtrees(
    codes, y, rows, weights, begin, end, keys, depth, n_bins, rules, B, C,
    nodes, offsets, leaf_sums, leaf_offsets,
):  # fmt: skip
    """Subtrees of slots of at most 65,535 rows, written to the last four arguments.

    rules : criterion, k, max_depth, fewest rows to split, min_rows of a side, min_gain
    nodes, leaf_sums : of twice as many places, and as many, as the slots hold rows
    offsets, leaf_offsets : i64[D + 1], zeros
    """
    D, F = len(begin), codes.shape[1]
    most = 0
    for d in range(D):
        most = max(most, end[d] - begin[d])
    # columns 4,096 bytes apart would all want the same few lines of the cache: that cost
    # half of all time in blocks of 4,096 rows
    block = np.empty((F, most + COLUMN_GAP), codes.dtype)
    order, spare = new_order(most, y), new_order(most, y)
    work, sums = new_work(most, codes, B, C, rules[4] > 1), np.zeros(C, np.int64)
    open_nodes = np.empty((most + 1, 5), np.int64), np.empty(most + 1, np.uint64)
    known = np.zeros(F, np.bool_), np.empty(F, np.int32)
    for d in range(D):
        load_block(codes, y, rows, weights, begin[d], end[d], block, order)
        offsets[d + 1], leaf_offsets[d + 1] = grow_block(
            block, end[d] - begin[d], keys[d], depth[d], order, spare, n_bins, rules, B, work,
            open_nodes, known, sums, nodes, leaf_sums, offsets[d], leaf_offsets[d],
        )  # fmt: skip
