"""Grow subtrees: a slot's whole subtree is grown by one thread, depth first.

    blocks    codes, one column after another. First are all rows' of the matrix; middling
              nodes copy theirs into a second block, and small ones into one that stays in
              a core's cache: the fewer rows of a node lie in a cache line, the dearer is a
              look at them
    places    where each row lies in the block; a node is a range of them, and a split
              moves the left side's rows before the right side's
    rows      beside the places, what a row adds to a sum: class and weight, or moments
    constant  features that vary no more on the path from the root: never looked at
              again; the trail says what to forget when the path turns back

A node of n rows costs O(n), see cuts.py. The specification is the loop of grow.py: the
trees are the same.
"""

import numpy as np

from gpuforest.criteria import ENTROPY, GINI, MISCLASSIFICATION, SQUARED_ERROR
from gpuforest.dtypes import CATEGORICAL
from gpuforest.kernels.best_split.scan import NO_SUMS, SECOND, WEIGHT, score_pairs
from gpuforest.kernels.best_split.sets import write_set
from gpuforest.kernels.compile import device, kernel
from gpuforest.kernels.grow_subtrees.cuts import (
    best_cut,
    fill_batch,
    goes_left,
    left_totals,
    most_sorted,
    put_set,
    random_cut,
    set_of_rows,
)
from gpuforest.kernels.grow_subtrees.scratch import PURE_WEIGHTS
from gpuforest.kernels.hashing.numba import U, domain, hash_at, order_of, permute
from gpuforest.kernels.histogram.numba import has_labels
from gpuforest.kernels.scoring.numba import node_score
from gpuforest.nodes import CHILD_SHIFT, FEATURE_SHIFT, LEAF_WORD, MISSING_SHIFT, SET_BIN

LEAF = U(LEAF_WORD)
CHILD, MISSING, FEATURE = U(CHILD_SHIFT), U(MISSING_SHIFT), U(FEATURE_SHIFT)
FEWEST_COPIED = 64  # rows of a node that is worth another block
WAYS_PER_FEATURE = 4  # to part a node's rows, looked at beforehand; see highest_score
EXACT_SQUARES = 2**26  # weights whose squares a float64 holds


@device
def load_rows(y, rows, weights, begin, end, places, own):
    """A slot's rows, and what each adds to a sum."""
    for i in range(end - begin):
        r, w = rows[begin + i], weights[begin + i]
        places[i] = r
        if has_labels(y):
            own[i, 0], own[i, 1] = y[r, 0], w
        else:
            own[i, 0] = w
            for o in range(y.shape[1]):
                own[i, 1 + o] = y[r, o] * w


@device
def copy_block(block, places, low, n, constant, small):
    """Copy a node's rows from one block into another; constant features stay behind."""
    for f in range(len(constant)):
        if not constant[f]:
            for i in range(n):
                small[U(f), U(i)] = block[U(f), U(places[U(low + i)])]
    for i in range(n):
        places[U(low + i)] = i


@device
def node_totals(own, low, high, sums):
    """Fill the channel sums of a node."""
    for c in range(len(sums)):
        sums[c] = 0
    for i in range(low, high):
        if has_labels(own):
            sums[U(own[U(i), 0])] += np.int64(own[U(i), 1])
        else:
            for c in range(len(sums)):
                sums[U(c)] += own[U(i), U(c)]


@device
def weight_of(own, sums):
    """Of a node with these channel sums."""
    n = np.int64(sums[0])
    for c in range(1, len(sums) if has_labels(own) else 1):
        n += sums[c]
    return n


@device
def is_pure(own, low, high, sums, n_weight):
    """Whether all targets of a node are equal."""
    if has_labels(own):
        return sums[own[low, 0]] == n_weight
    for c in range(1, len(sums)):
        y = own[low, c] // own[low, 0]  # moments are multiples of the weights
        for i in range(low, high):
            if own[U(i), U(c)] != y * own[U(i), 0]:
                return False
    return True


@device
def split_rows(table, f, order, spare, low, high, cut, missing_left, missing, words):
    """Move a node's left rows before its right rows, both in their order; how many go left.

    Every row is written to both places, and the one that counts moves on: no branch.
    """
    (places, own), (spare_places, spare_own) = order, spare
    left, right, width = low, 0, own.shape[1]
    for i in range(low, high):
        place = places[U(i)]
        c = np.int64(table[U(f), U(place)])
        is_left = goes_left(c, cut, missing_left, missing, words)
        spare_places[U(right)] = place
        places[U(left)] = place
        if width == 2:
            a, b = own[U(i), 0], own[U(i), 1]
            spare_own[U(right), 0], spare_own[U(right), 1] = a, b
            own[U(left), 0], own[U(left), 1] = a, b
        else:
            for c in range(width):
                a = own[U(i), U(c)]
                spare_own[U(right), U(c)] = a
                own[U(left), U(c)] = a
        left += is_left
        right += not is_left
    for i in range(right):
        places[U(left + i)] = spare_places[U(i)]
        for c in range(width):
            own[U(left + i), U(c)] = spare_own[U(i), U(c)]
    return left - low


@device
def perfect_score(criterion, n_weight):
    """The score that no split of a node can exceed, also as rounded; inf: not known."""
    if criterion == ENTROPY:
        return 0.0
    if criterion == MISCLASSIFICATION or (criterion == GINI and n_weight < EXACT_SQUARES):
        return np.float64(n_weight)
    return np.inf


@device
def highest_score(own, low, n, n_weight, total, k, scratch):
    """The highest score of all 2**(n - 1) - 1 ways to part a node's few rows in two, which
    none of its cuts can exceed. inf: not known, as of rows too many for so few features."""
    _, upto, scores = scratch
    if k == 1 or n > 12 or 1 << (n - 1) > min(WAYS_PER_FEATURE * k, len(scores) - 1):
        return np.inf
    upto[WEIGHT, 0], upto[SECOND, 0], m = 0, 0, 1
    for i in range(low + 1, low + n):  # the first row stays on the other side
        for j in range(m):
            upto[WEIGHT, U(m + j)] = upto[WEIGHT, U(j)] + own[U(i), 0]
            upto[SECOND, U(m + j)] = upto[SECOND, U(j)] + own[U(i), 1]
        m *= 2
    score_pairs(SQUARED_ERROR, upto, n_weight, total, np.int64(0), np.int64(0), m, scores)
    best = -np.inf
    for i in range(1, m):
        best = max(best, scores[U(i)])
    return best


@device
def next_features(batch, wanted, draw, position, k, order_domain, constant):
    """Put so many of the drawn features that may vary into `batch`; how many there were, and
    the place behind."""
    F, (mask, shift), m = len(constant), order_domain, 0
    while m < wanted and position < F:
        f = position if k >= F else permute(draw, position, F, mask, shift)
        position += 1
        if not constant[f]:
            batch[m] = f
            m += 1
    return m, position


@device
def push(open_nodes, n_stack, low, high, depth, number, n_trail, totals, key):
    stack, keys = open_nodes
    stack[n_stack, 0], stack[n_stack, 1], stack[n_stack, 2] = low, high, depth
    stack[n_stack, 3], stack[n_stack, 4] = number, n_trail
    stack[n_stack, 5], stack[n_stack, 6] = totals
    keys[n_stack] = key
    return n_stack + 1


@device
def put_leaf(nodes, leaf_sums, number, n_leaves, sums, own, pure):
    """Write a leaf; how many rows of the leaf table are then in use.

    pure : the rows for pure leaves by class and weight, which share one, also those of several
        blocks. Most leaves are pure and of a small weight
    """
    C = len(sums)
    if has_labels(own):
        n_weight, top = np.int64(0), 0
        for c in range(C):
            n_weight += sums[c]
        for c in range(C):
            top = c if sums[c] == n_weight else top
        if sums[top] == n_weight and n_weight < PURE_WEIGHTS:
            leaf = pure[top, n_weight]
            if leaf >= 0:
                nodes[number] = LEAF | U(leaf)
                return n_leaves
            pure[top, n_weight] = n_leaves
    for c in range(C):
        leaf_sums[n_leaves, c] = sums[c]
    nodes[number] = LEAF | U(n_leaves)
    return n_leaves + 1


@device
def set_pair(own, sums, totals):
    """Two channel sums from weight and second channel."""
    sums[0], sums[1] = totals[0] - totals[1] if has_labels(own) else totals[0], totals[1]


@device
def grow_block(
    blocks, upto, n_rows, root_key, depth, order, spare, n_bins, rules, B, work, open_nodes,
    known, all_sums, pure, nodes, leaf_sums, n_nodes, n_leaves, random, kinds, sets, words,
    set_at, set_words, n_words,
):  # fmt: skip
    """Grow the subtree of one block; its nodes and leaves are written from n_nodes, n_leaves.

    blocks, upto : three blocks, and up to which row of the order each is in use, i64[3]
    order .. leaf_sums : see scratch.py
    kinds .. set_words : see grow_subtrees; `n_words` of the sets are in use
    """
    criterion, k, max_depth, fewest, _, min_gain = rules
    (stack, stack_keys), (constant, trail), (places, own) = open_nodes, known, order
    sums, left_sums = all_sums
    F, C, missing = len(constant), len(sums), B - 1
    order_domain, channels = domain(F), np.int64(C + (rules[4] > 1))
    hists, batch = work[4], work[5]
    base, n_trail = n_nodes, 0
    node_totals(own, 0, n_rows, sums)
    totals = (weight_of(own, sums), sums[C - 1])
    n_stack = push(open_nodes, 0, 0, n_rows, depth, n_nodes, 0, totals, root_key)
    n_nodes += 1
    upto[0], upto[1], upto[2] = n_rows, 0, 0
    while n_stack > 0:
        # 1. the next node, and what is still known to be constant above it
        n_stack -= 1
        low, high, depth = stack[n_stack, 0], stack[n_stack, 1], stack[n_stack, 2]
        number, n_above, key = stack[n_stack, 3], stack[n_stack, 4], stack_keys[n_stack]
        while n_trail > n_above:
            n_trail -= 1
            constant[trail[n_trail]] = False
        n, n_weight = high - low, stack[n_stack, 5]
        if C == 2:
            set_pair(own, sums, (n_weight, stack[n_stack, 6]))
        else:
            node_totals(own, low, high, sums)
            n_weight = weight_of(own, sums)
        # 2. its best split, of the first k features that vary
        best, best_f, cut, missing_left, totals = -np.inf, np.int64(-1), np.int64(0), False, NO_SUMS
        # a score that high is not exceeded: the first feature that has it wins. Sides of a
        # perfect one are leaves
        perfect = -np.inf if n == 2 else perfect_score(criterion, n_weight)
        enough = perfect
        if criterion == SQUARED_ERROR and C == 2 and n > 2 and random is None:
            enough = highest_score(own, low, n, n_weight, sums[1], k, work[6])
        level = 2 if low < upto[2] else 1 if low < upto[1] else 0
        if n >= fewest and depth < max_depth and not is_pure(own, low, high, sums, n_weight):
            in_batches = n > most_sorted(B - 1, channels) and random is None
            for smaller in range(2, level, -1):
                if FEWEST_COPIED <= n <= blocks[smaller].shape[1]:
                    copy_block(blocks[level], places, low, n, constant, blocks[smaller])
                    upto[smaller], level = high, smaller
                    break
            table, draw, tried, position, at, m = blocks[level], order_of(key), 0, 0, 0, 0
            while tried < k and (best < enough or best == -np.inf):
                if at == m:
                    wanted = min(k - tried, len(hists)) if in_batches else 1
                    m, position = next_features(
                        batch, wanted, draw, position, k, order_domain, constant
                    )
                    if m == 0:
                        break
                    at = 0
                    if in_batches:
                        fill_batch(
                            hists, batch, m, table, places, own, low, n, n_bins, B, C, channels
                        )
                f = np.int64(batch[at])
                if kinds is not None and kinds[f] == CATEGORICAL:
                    m_sets, score, place, heavier, left = set_of_rows(
                        table, f, places, own, low, n, sums, n_weight, n_bins, rules, B, work,
                        hists[at], in_batches, random is not None, key, sets,
                    )  # fmt: skip
                    varies, code, side = m_sets > 1, np.int64(SET_BIN), False
                    if score > best:
                        bins = np.int64(n_bins[f])
                        side = write_set(m_sets, place, heavier, bins, B - 1, sets, words)
                elif random is None:
                    varies, score, code, side, left = best_cut(
                        table, f, places, own, low, n, sums, n_weight, n_bins, rules, B, work,
                        hists[at], in_batches,
                    )  # fmt: skip
                else:
                    varies, score, code, side, left = random_cut(
                        table, f, places, own, low, n, sums, n_weight, n_bins, rules, B, work, key
                    )
                at += 1
                tried += varies
                if not varies:
                    constant[f], trail[n_trail] = True, f
                    n_trail += 1
                elif score > best:
                    best, best_f, cut, missing_left, totals = score, f, code, side, left
        # 3. a leaf
        if best_f < 0 or best - node_score(criterion, sums, n_weight, C) < min_gain:
            n_leaves = put_leaf(nodes, leaf_sums, number, n_leaves, sums, own, pure)
            continue
        if kinds is not None and cut == SET_BIN:
            set_at[number] = n_words
            n_words = put_set(set_words, n_words, words, n_bins[best_f])
        word = (U(best_f) << FEATURE) | (U(missing_left) << MISSING) | U(cut)
        nodes[number] = word | (U(n_nodes - base) << CHILD)
        n_nodes += 2
        table = blocks[level]
        # 4. or a split, into two leaves: no row need move
        if best >= perfect or depth + 1 >= max_depth:
            if C == 2:
                set_pair(own, left_sums, totals)
            else:
                left_totals(
                    table[best_f], places, own, low, high, cut, missing_left, missing, words,
                    left_sums,
                )  # fmt: skip
            for c in range(C):
                sums[c] -= left_sums[c]
            for child, child_sums in ((n_nodes - 2, left_sums), (n_nodes - 1, sums)):
                n_leaves = put_leaf(nodes, leaf_sums, child, n_leaves, child_sums, own, pure)
            continue
        # 5. or into nodes; the left one is taken next, and all below it before the right
        middle = low + split_rows(
            table, best_f, order, spare, low, high, cut, missing_left, missing, words
        )
        rest = (n_weight - totals[0], stack[n_stack, 6] - totals[1])
        n_stack = push(
            open_nodes, n_stack, middle, high, depth + 1, n_nodes - 1, n_trail, rest,
            hash_at(key, 1),
        )  # fmt: skip
        n_stack = push(
            open_nodes, n_stack, low, middle, depth + 1, n_nodes - 2, n_trail, totals,
            hash_at(key, 0),
        )  # fmt: skip
    while n_trail > 0:
        n_trail -= 1
        constant[trail[n_trail]] = False
    return n_nodes, n_leaves, n_words


@kernel
def grow_subtrees(
    columns, y, rows, weights, begin, end, keys, depth, tree, allowed, n_bins, rules, B,
    scratch, offsets, random, kinds, sets, words, set_at, set_words,
):  # fmt: skip
    """Subtrees of slots of fewer than 2**31 rows, to `nodes` and `leaf_sums` of the scratch; how
    many rows of `leaf_sums` and how many words of `set_words` are then in use.

    columns : codes [F, N]
    allowed : bool[T, F], features that were drawn for each tree; bool[0, 0]: all are
    rules : criterion, k, max_depth, fewest rows to split, min_rows of a side, min_gain
    random : True: cuts are random. None: they are not, and what draws them is not compiled
    scratch : see there
    offsets : i64[D + 1], zeros; where each subtree's nodes begin is filled in. Leaves point
        into `leaf_sums`, of which the subtrees share rows
    kinds : u8[F], of features. None: all are numeric, and what follows is None too
    sets, words : work on categories, see sets.py, and room for a set
    set_at, set_words : i64[...], where each node's set begins, if it has one, and the sets
        u64[...]
    """
    (some, few), order, spare, work, open_nodes, known, sums, pure, nodes, leaf_sums = scratch
    blocks, upto = (columns, some, few), np.empty(3, np.int64)
    pure[:] = -1
    n_leaves = n_words = 0
    for d in range(len(begin)):
        load_rows(y, rows, weights, begin[d], end[d], *order)
        for f in range(allowed.shape[1]):
            known[0][f] = not allowed[tree[d], f]
        offsets[d + 1], n_leaves, n_words = grow_block(
            blocks, upto, end[d] - begin[d], keys[d], depth[d], order, spare, n_bins, rules, B,
            work, open_nodes, known, sums, pure, nodes, leaf_sums, offsets[d], n_leaves, random,
            kinds, sets, words, set_at, set_words, n_words,
        )  # fmt: skip
    for f in range(len(known[0])):
        known[0][f] = False
    return n_leaves, n_words
