"""Grow subtrees with multiway splits: as numba.py beside this file, but a categorical feature has
a branch for each category. The specification is gpuforest/multiway.py: the trees are the same.

    rows of a node, sorted by category        a a a b c c
    its chain of splits                       {a}? -- yes: rows 0 to 2; no: {b}? -- yes: ...
    branches[i]: category, end, is_heaviest   (a, 3, 1)  (b, 4, 0)  (c, 6, 1)

A chain is made at once; its links wait on the stack of open nodes for their place in the tree,
which is behind all that is below the categories before them.
"""

import numpy as np

from gpuforest.dtypes import CATEGORICAL
from gpuforest.kernels.compile import device, kernel, rare
from gpuforest.kernels.grow_subtrees.cuts import (
    best_cut,
    compact_set,
    left_totals,
    most_sorted,
    put_set,
    random_cut,
)
from gpuforest.kernels.grow_subtrees.numba import (
    CHILD,
    FEATURE,
    MISSING,
    is_pure,
    load_rows,
    node_totals,
    put_leaf,
    split_rows,
    weight_of,
)
from gpuforest.kernels.grow_subtrees.sorting import PLACE, SIXTEEN, sort_by_code
from gpuforest.kernels.hashing.numba import U, domain, hash_at, order_of, permute
from gpuforest.kernels.histogram.numba import has_labels
from gpuforest.kernels.scoring.numba import node_score, xlogx
from gpuforest.nodes import SET_BIN

CODE, END, HEAVIEST = range(3)  # of a branch
LOW, HIGH, DEPTH, NUMBER, TRAIL, FIRST, LINK, TOP = range(8)  # of an open node
ROUNDING = 1e-9  # a rounding's worth below the mean gain is the mean


def chain_arrays(most: int, n_features: int) -> tuple[np.ndarray, ...]:
    """Branches of the chains above a node of at most so many rows, open nodes, their keys, and of
    each feature what its split is worth."""
    return (
        np.empty((most + n_features + 2, 3), np.int64),
        np.empty((most + 2, 8), np.int64),
        np.empty(most + 2, np.uint64),
        np.empty((2, n_features), np.float64),
        np.empty((3, n_features), np.int64),
    )


@device
def all_branches(m, criterion, C, channels, min_rows, labels, sets):
    """Score of a split into all m categories in `sets`, -inf if one is too small, and the split's
    information."""
    some, score, parts, total = sets[4], 0.0, np.int64(0), np.int64(0)
    for i in range(m):
        at, n = i * channels, np.int64(0)
        for c in range(C if labels else 1):
            n += some[at + c]
        if min_rows > 1 and some[at + C] < min_rows:
            return -np.inf, 0.0
        score += node_score(criterion, some[at : at + C], n, C)
        parts += xlogx(n)
        total += n
    return score, np.float64(xlogx(total) - parts)


@device
def cut_spread(n_left, n):
    """Split information of a cut."""
    return np.float64(xlogx(n) - (xlogx(n_left) + xlogx(n - n_left)))


@rare
def most_worthy(m, worth, whole, gain_ratio):
    """Which of the first m splits is chosen, -1: none. `worth` f64[2, m]: score, information."""
    scores, spread = worth
    best, at = -np.inf, -1
    total, count = 0.0, 0.0
    if gain_ratio:
        for j in range(m):
            if scores[j] - whole > -np.inf:
                total += scores[j] - whole
                count += 1.0
    mean = total / count if count > 0.0 else total
    least = mean - ROUNDING * abs(mean)
    for j in range(m):
        value = scores[j]
        if gain_ratio:
            gain = scores[j] - whole
            is_worthy = gain > -np.inf and gain >= least and spread[j] > 0.0
            value = gain / spread[j] if is_worthy else -np.inf
        if value > best:
            best, at = value, j
    return at


@device
def sort_rows(table, f, order, spare, low, high, bins, B, channels, work, counts, branches, top):
    """Sort a node's rows by category, missing ones last, and write its branches from `top` on;
    where they end."""
    (places, own), (spare_places, spare_own), column = order, spare, table[f]
    code, keys, spare_keys, bytes_, _, _, _ = work
    n, missing, end = high - low, B - 1, top
    width, weight = own.shape[1], 1 if has_labels(own) else 0
    if n <= most_sorted(bins, channels):
        for i in range(n):
            code[U(i)] = column[U(places[U(low + i)])]
        sort_by_code(code, n, keys, spare_keys, bytes_)
        for i in range(n):
            at, b = low + np.int64(keys[U(i)] & PLACE), np.int64(keys[U(i)] >> SIXTEEN)
            if end == top or branches[end - 1, CODE] != b:
                branches[end, CODE], branches[end, HEAVIEST] = b, 0
                end += 1
            branches[end - 1, END] = low + i + 1
            branches[end - 1, HEAVIEST] += own[U(at), weight]
            spare_places[U(i)] = places[U(at)]
            for c in range(width):
                spare_own[U(i), U(c)] = own[U(at), U(c)]
    else:
        for b in range(B):
            counts[b] = 0
        for i in range(low, high):
            counts[np.int64(column[U(places[U(i)])])] += 1
        first = 0
        for i in range(bins + 1):
            b = i if i < bins else missing
            if counts[b] > 0:
                branches[end, CODE], branches[end, HEAVIEST] = b, 0
                first, counts[b] = first + counts[b], first
                branches[end, END] = low + first
                end += 1
        for i in range(low, high):
            b = np.int64(column[U(places[U(i)])])
            at = counts[b]
            counts[b] += 1
            spare_places[U(at)] = places[U(i)]
            for c in range(width):
                spare_own[U(at), U(c)] = own[U(i), U(c)]
        at = 0
        for j in range(top, end):
            for i in range(at, branches[j, END] - low):
                branches[j, HEAVIEST] += spare_own[U(i), weight]
            at = branches[j, END] - low
    for i in range(n):
        places[U(low + i)] = spare_places[U(i)]
        for c in range(width):
            own[U(low + i), U(c)] = spare_own[U(i), U(c)]
    heaviest = np.int64(-1)  # of the branches that follow
    for j in range(end - 1, top - 1, -1):
        weight = branches[j, HEAVIEST]
        branches[j, HEAVIEST] = weight >= heaviest
        heaviest = max(heaviest, weight)
    return end


@device
def link_set(branches, first, high, bins, missing, words):
    """The set of a link: its category, and if that is the heaviest of those that are left, all
    that the node does not hold; whether missing values go left."""
    for w in range((bins + 63) >> 6):
        words[w] = U(0)
    b = branches[first, CODE]
    if not branches[first, HEAVIEST]:
        words[b >> 6] |= U(1) << U(b & 63)
        return False
    for c in range(bins):
        words[c >> 6] |= U(1) << U(c & 63)
    j, missing_left = first, True
    while branches[j, END] < high:
        j += 1
        c = branches[j, CODE]
        if c == missing:
            missing_left = False
        else:
            words[c >> 6] ^= U(1) << U(c & 63)
    return missing_left


@device
def push(stack, keys, n_stack, low, high, depth, number, n_trail, first, feature, top, key):
    entry = stack[n_stack]
    entry[LOW], entry[HIGH], entry[DEPTH], entry[NUMBER] = low, high, depth, number
    entry[TRAIL], entry[FIRST], entry[LINK], entry[TOP] = n_trail, first, feature, top
    keys[n_stack] = key
    return n_stack + 1


@device
def best_feature(
    table, order, low, n, sums, n_weight, n_bins, rules, gain_ratio, B, work, key, known, n_trail,
    left_sums, random, kinds, sets, worth, found,
):  # fmt: skip
    """Look at the first k features that vary: which place of `worth` and `found` holds the best
    one, -1: none; and the trail's end."""
    criterion, k, _, _, min_rows, _ = rules
    (places, own), (constant, trail) = order, known
    F, C, missing, labels = len(constant), len(sums), B - 1, has_labels(own)
    (mask, shift), channels = domain(F), np.int64(C + (min_rows > 1))
    draw, position, m = order_of(key), 0, 0
    while m < k and position < F:
        f = position if k >= F else permute(draw, position, F, mask, shift)
        position += 1
        if constant[f]:
            continue
        spread, cut, side = 0.0, np.int64(SET_BIN), False
        if kinds[f] == CATEGORICAL:
            occupied = compact_set(
                table, f, places, own, low, n, n_bins, rules, B, work, work[4][0], False, C, sets
            )
            varies, score = occupied > 1, -np.inf
            if varies:
                score, spread = all_branches(
                    occupied, criterion, C, channels, min_rows, labels, sets
                )
        else:
            if random is None:
                varies, score, cut, side, _ = best_cut(
                    table, f, places, own, low, n, sums, n_weight, n_bins, rules, B, work,
                    work[4][0], False,
                )  # fmt: skip
            else:
                varies, score, cut, side, _ = random_cut(
                    table, f, places, own, low, n, sums, n_weight, n_bins, rules, B, work, key
                )
            if gain_ratio and score > -np.inf:
                left_totals(
                    table[f], places, own, low, low + n, cut, side, missing, None, left_sums
                )
                spread = cut_spread(weight_of(own, left_sums), n_weight)
        if not varies:
            constant[f], trail[n_trail] = True, f
            n_trail += 1
            continue
        worth[0, m], worth[1, m] = score, spread
        found[0, m], found[1, m], found[2, m] = f, cut, side
        m += 1
    whole = node_score(criterion, sums, n_weight, C)
    return most_worthy(m, worth, whole, gain_ratio), n_trail


@device
def grow_block(
    columns, n_rows, root_key, depth, order, spare, n_bins, rules, gain_ratio, B, work, chains,
    known, all_sums, pure, nodes, leaf_sums, n_nodes, n_leaves, random, kinds, sets, words, set_at,
    set_words, n_words,
):  # fmt: skip
    """As grow_block in numba.py."""
    criterion, _, max_depth, fewest, min_rows, min_gain = rules
    branches, stack, keys, worth, found = chains
    (constant, trail), (_, own), (sums, left_sums) = known, order, all_sums
    C, missing, base, n_trail = len(sums), B - 1, n_nodes, 0
    channels = np.int64(C + (min_rows > 1))
    n_stack = push(stack, keys, 0, 0, n_rows, depth, n_nodes, 0, -1, -1, 0, root_key)
    n_nodes += 1
    while n_stack > 0:
        # 1. the next node or link, and what is still known to be constant above it
        n_stack -= 1
        entry, key = stack[n_stack], keys[n_stack]
        low, high, depth, number = entry[LOW], entry[HIGH], entry[DEPTH], entry[NUMBER]
        n_above, first, f, top = entry[TRAIL], entry[FIRST], entry[LINK], entry[TOP]
        while n_trail > n_above:
            n_trail -= 1
            constant[trail[n_trail]] = False
        if first < 0:
            # 2. a node: its best split
            n, best = high - low, -1
            node_totals(own, low, high, sums)
            n_weight = weight_of(own, sums)
            if n >= fewest and depth < max_depth and not is_pure(own, low, high, sums, n_weight):
                best, n_trail = best_feature(
                    columns, order, low, n, sums, n_weight, n_bins, rules, gain_ratio, B, work,
                    key, known, n_trail, left_sums, random, kinds, sets, worth, found,
                )  # fmt: skip
            # 3. a leaf
            if best < 0 or worth[0, best] - node_score(criterion, sums, n_weight, C) < min_gain:
                n_leaves = put_leaf(nodes, leaf_sums, number, n_leaves, sums, own, pure)
                continue
            f, cut, side, depth = found[0, best], found[1, best], found[2, best] == 1, depth + 1
            # 4. a cut of numbers
            if cut != SET_BIN:
                word = (U(f) << FEATURE) | (U(side) << MISSING) | U(cut)
                nodes[number] = word | (U(n_nodes - base) << CHILD)
                n_nodes += 2
                middle = low + split_rows(
                    columns, f, order, spare, low, high, cut, side, missing, None
                )
                n_stack = push(
                    stack, keys, n_stack, middle, high, depth, n_nodes - 1, n_trail, -1, -1, top,
                    hash_at(key, 1),
                )  # fmt: skip
                n_stack = push(
                    stack, keys, n_stack, low, middle, depth, n_nodes - 2, n_trail, -1, -1, top,
                    hash_at(key, 0),
                )  # fmt: skip
                continue
            # 5. or the rows of all branches
            first = top
            top = sort_rows(
                columns, f, order, spare, low, high, np.int64(n_bins[f]), B, channels, work,
                sets[5], branches, top,
            )  # fmt: skip
        # 6. a link: its first category, and the next link or the last category
        side = link_set(branches, first, high, np.int64(n_bins[f]), missing, words)
        set_at[number] = n_words
        n_words = put_set(set_words, n_words, words, n_bins[f])
        word = (U(f) << FEATURE) | (U(side) << MISSING) | U(SET_BIN)
        nodes[number] = word | (U(n_nodes - base) << CHILD)
        n_nodes += 2
        middle = branches[first, END]
        goes_on = first + 1 if branches[first + 1, END] < high else -1
        n_stack = push(
            stack, keys, n_stack, middle, high, depth, n_nodes - 1, n_trail, goes_on, f, top,
            hash_at(key, 1),
        )  # fmt: skip
        n_stack = push(
            stack, keys, n_stack, low, middle, depth, n_nodes - 2, n_trail, -1, -1, top,
            hash_at(key, 0),
        )  # fmt: skip
    while n_trail > 0:
        n_trail -= 1
        constant[trail[n_trail]] = False
    return n_nodes, n_leaves, n_words


@kernel
def grow_multiway(
    columns, y, rows, weights, begin, end, keys, depth, tree, allowed, n_bins, rules, gain_ratio,
    B, scratch, chains, offsets, random, kinds, sets, words, set_at, set_words,
):  # fmt: skip
    """As grow_subtrees in numba.py; some features are categorical.

    gain_ratio : whether features are chosen by C4.5's gain ratio
    chains : see `chain_arrays`
    """
    _, order, spare, work, _, known, sums, pure, nodes, leaf_sums = scratch
    pure[:] = -1
    n_leaves = n_words = 0
    for d in range(len(begin)):
        load_rows(y, rows, weights, begin[d], end[d], *order)
        for f in range(allowed.shape[1]):
            known[0][f] = not allowed[tree[d], f]
        offsets[d + 1], n_leaves, n_words = grow_block(
            columns, end[d] - begin[d], keys[d], depth[d], order, spare, n_bins, rules, gain_ratio,
            B, work, chains, known, sums, pure, nodes, leaf_sums, offsets[d], n_leaves,
            random, kinds, sets, words, set_at, set_words, n_words,
        )  # fmt: skip
    for f in range(len(known[0])):
        known[0][f] = False
    return n_leaves, n_words
