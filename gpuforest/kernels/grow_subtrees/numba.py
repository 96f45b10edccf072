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

from gpuforest.criteria import SQUARED_ERROR
from gpuforest.kernels.best_split.numba import scan
from gpuforest.kernels.compile import device, kernel
from gpuforest.kernels.hashing.numba import U, domain, hash_at, order_of, permute
from gpuforest.kernels.scoring.numba import class_score, grown, moment_score, node_score
from gpuforest.nodes import CHILD_SHIFT, FEATURE_SHIFT, LEAF_WORD, MISSING_SHIFT

LEAF = U(LEAF_WORD)
CHILD, MISSING, FEATURE = U(CHILD_SHIFT), U(MISSING_SHIFT), U(FEATURE_SHIFT)
INSERTION_ROWS = 24  # up to here insertion sort beats two passes over 256 counters


@device
def sort_by_code(code, n, wide, keys, spare, counts):
    """Places 0 .. n - 1 in ascending order of their codes, as code << 16 | place."""
    for i in range(n):
        keys[i] = (np.uint32(code[i]) << np.uint32(16)) | np.uint32(i)
    if n <= INSERTION_ROWS:
        for i in range(1, n):
            key, j = keys[i], i
            while j > 0 and keys[j - 1] > key:
                keys[j] = keys[j - 1]
                j -= 1
            keys[j] = key
        return keys
    for shift in (np.uint32(16), np.uint32(24)):
        if shift == 24 and not wide:
            break
        counts[:] = 0
        for i in range(n):
            counts[(keys[i] >> shift) & np.uint32(255)] += 1
        total = 0
        for d in range(256):
            counts[d], total = total, total + counts[d]
        for i in range(n):
            d = (keys[i] >> shift) & np.uint32(255)
            spare[counts[d]] = keys[i]
            counts[d] += 1
        keys, spare = spare, keys
    return keys


@device
def scan_sorted(
    keys, n, target, weight, missing, sums, n_weight, n_bins, criterion, min_rows, C, left
):  # fmt: skip
    """Best cut of one feature from rows sorted by code: (score, cut, missing_left).

    The same candidates, in the same order, as `scan` of a histogram.
    """
    is_classes = criterion < SQUARED_ERROR
    place, sixteen = np.uint32(0xFFFF), np.uint32(16)
    n_present = n
    while n_present > 0 and np.int64(keys[n_present - 1] >> sixteen) == missing:
        n_present -= 1
    best, best_code, upper, best_side, heavier = -np.inf, np.int64(-1), np.int64(0), 0, False
    for side in range(2 if n_present < n else 1):
        n_left, left_sum, right_sum = np.int64(0), np.int64(0), np.int64(0)
        left[:C] = 0
        if is_classes:
            for c in range(C):
                right_sum += grown(criterion, 0, sums[c])
        # the missing rows, last in order, go first where they go left
        start, rows_before = (n_present - n, n - n_present) if side == 1 else (0, 0)
        stop = n_present - 1 if side == 1 or n_present == n else n_present
        for step in range(start, stop):
            i = step if step >= 0 else n + step
            key = keys[i]
            at = key & place
            w = np.int64(weight[at])
            if is_classes:
                c = target[at, 0]
                left_sum += grown(criterion, left[c], w)
                right_sum -= grown(criterion, sums[c] - left[c] - w, w)
                left[c] += w
            else:
                left[0] += w
                for k in range(C - 1):
                    left[1 + k] += w * target[at, k]
            n_left += w
            if step < 0:
                continue
            code, after = np.int64(key >> sixteen), np.int64(keys[i + 1] >> sixteen)
            if code == after:
                continue
            rows_left = step + 1 + rows_before
            if rows_left < min_rows or n - rows_left < min_rows:
                continue
            if is_classes:
                n_right = n_weight - n_left
                score = class_score(criterion, left_sum, n_left, right_sum, n_right, left, sums, C)
            else:
                score = moment_score(criterion, left, sums, C)
            if score > best or (score == best and code < best_code):
                best, best_code, upper, best_side = score, code, after, side
                heavier = n_left > n_weight - n_left
    if best_code < 0:
        return best, np.int64(0), False
    cut = np.int64(n_bins) - 1 if upper == missing else (best_code + upper - 1) >> 1
    return best, cut, best_side == 1 if n_present < n else heavier


@kernel
def grow_subtrees(
    codes, y, is_classes, rows, weights, begin, end, keys, depth, n_bins, criterion, k, max_depth,
    min_split, min_rows, min_gain, B, C,
):  # fmt: skip
    """Subtrees of slots of at most 65,535 rows: nodes, offsets, leaf_sums, leaf_offsets."""
    D, F, K = len(begin), codes.shape[1], y.shape[1]
    most, total = 0, 0
    for d in range(D):
        most, total = max(most, end[d] - begin[d]), total + end[d] - begin[d]
    missing, wide = B - 1, codes.itemsize > 1
    fewest = max(min_split, 2 * min_rows)
    mask, shift = domain(F)
    # what comes out: a tree of n leaves has 2 n - 1 nodes
    nodes, offsets = np.empty(2 * total, np.uint64), np.zeros(D + 1, np.int64)
    leaf_sums, leaf_offsets = np.empty((min(total, 64), C), np.int64), np.zeros(D + 1, np.int64)
    n_nodes, n_leaves = 0, 0
    # the block, and the order of its rows
    block = np.empty((F, most), codes.dtype)
    at, spare_at = np.empty(most, np.uint16), np.empty(most, np.uint16)
    target, spare_target = np.empty((most, K), y.dtype), np.empty((most, K), y.dtype)
    weight, spare_weight = np.empty(most, np.int32), np.empty(most, np.int32)
    code, goes_left = np.empty(most, codes.dtype), np.empty(most, np.bool_)
    sort_keys, sort_spare = np.empty(most, np.uint32), np.empty(most, np.uint32)
    counts = np.empty(256, np.int64)
    # a histogram is worth while for nodes of more rows than this
    count_rows = min_rows > 1
    hist_rows = max(B * (C + count_rows) // 8, 64)
    hist = np.zeros(B * (C + count_rows) if hist_rows < most else 0, np.int64)
    sums, left = np.zeros(C, np.int64), np.zeros(C, np.int64)
    # nodes still to grow: range, depth, key, number, length of the trail above them
    lows, highs = np.empty(most + 1, np.int64), np.empty(most + 1, np.int64)
    depths, trails = np.empty(most + 1, np.int64), np.empty(most + 1, np.int64)
    numbers, node_keys = np.empty(most + 1, np.int64), np.empty(most + 1, np.uint64)
    constant, trail, n_trail = np.zeros(F, np.bool_), np.empty(F, np.int32), 0

    for d in range(D):
        base, n_block = n_nodes, end[d] - begin[d]
        for i in range(n_block):
            r = np.int64(rows[begin[d] + i])
            at[i], weight[i] = i, weights[begin[d] + i]
            for o in range(K):
                target[i, o] = y[r, o]
            for f in range(F):
                block[f, i] = codes[r, f]
        lows[0], highs[0], depths[0], node_keys[0] = 0, n_block, depth, keys[d]
        numbers[0], trails[0], n_stack = n_nodes, 0, 1
        n_nodes += 1
        while n_stack > 0:
            # the next node, and what is still known to be constant above it
            n_stack -= 1
            low, high, number = lows[n_stack], highs[n_stack], numbers[n_stack]
            node_depth, key, n = depths[n_stack], node_keys[n_stack], high - low
            while n_trail > trails[n_stack]:
                n_trail -= 1
                constant[trail[n_trail]] = False
            # its totals
            sums[:] = 0
            pure, n_weight = True, np.int64(0)
            for i in range(low, high):
                w = np.int64(weight[i])
                n_weight += w
                if is_classes:
                    sums[target[i, 0]] += w
                else:
                    sums[0] += w
                    for o in range(K):
                        sums[1 + o] += w * target[i, o]
                for o in range(K):
                    pure &= target[i, o] == target[low, o]
            best, best_f, cut, missing_left = -np.inf, np.int64(-1), np.int64(0), False
            if not (pure or n < fewest or node_depth >= max_depth):
                order, tried = order_of(key), 0
                for position in range(F):
                    if tried >= k:
                        break
                    f = position if k >= F else permute(order, position, F, mask, shift)
                    if constant[f]:
                        continue
                    # the feature's codes; does it vary?
                    varies, first = False, block[f, at[low]]
                    for i in range(n):
                        code[i] = block[f, at[low + i]]
                        varies |= code[i] != first
                    if not varies:
                        constant[f] = True
                        trail[n_trail] = f
                        n_trail += 1
                        continue
                    tried += 1
                    if n > hist_rows:
                        hist[:] = 0
                        for i in range(n):
                            b = np.int64(code[i]) * (C + count_rows)
                            w = np.int64(weight[low + i])
                            if is_classes:
                                hist[b + target[low + i, 0]] += w
                            else:
                                hist[b] += w
                                for o in range(K):
                                    hist[b + 1 + o] += w * target[low + i, o]
                            if count_rows:
                                hist[b + C] += 1
                        _, score, c, side = scan(
                            hist, B, C, sums, n_weight, n, n_bins[f], criterion, min_rows,
                            count_rows, left,
                        )  # fmt: skip
                    else:
                        in_order = sort_by_code(code, n, wide, sort_keys, sort_spare, counts)
                        score, c, side = scan_sorted(
                            in_order, n, target[low:high], weight[low:high], missing, sums,
                            n_weight, n_bins[f], criterion, min_rows, C, left,
                        )  # fmt: skip
                    if score > best or (score == best and f < best_f and score > -np.inf):
                        best, best_f, cut, missing_left = score, f, np.int64(c), side
            if best_f < 0 or best - node_score(criterion, sums, n_weight, C) < min_gain:
                # a leaf
                if n_leaves == len(leaf_sums):
                    more = np.empty((min(2 * n_leaves, total), C), np.int64)
                    more[:n_leaves] = leaf_sums
                    leaf_sums = more
                leaf_sums[n_leaves] = sums
                nodes[number] = LEAF | U(n_leaves - leaf_offsets[d])
                n_leaves += 1
                continue
            # a split: left rows before right rows, both in their order
            n_left, n_right = 0, 0
            for i in range(low, high):
                c = np.int64(block[best_f, at[i]])
                goes_left[i] = missing_left if c == missing else c <= cut
            for i in range(low, high):
                j = low + n_left
                if goes_left[i]:
                    at[j], weight[j] = at[i], weight[i]
                    for o in range(K):
                        target[j, o] = target[i, o]
                    n_left += 1
                else:
                    spare_at[n_right], spare_weight[n_right] = at[i], weight[i]
                    for o in range(K):
                        spare_target[n_right, o] = target[i, o]
                    n_right += 1
            for i in range(n_right):
                j = low + n_left + i
                at[j], weight[j] = spare_at[i], spare_weight[i]
                for o in range(K):
                    target[j, o] = spare_target[i, o]
            word = (U(best_f) << FEATURE) | (U(missing_left) << MISSING) | U(cut)
            nodes[number] = word | (U(n_nodes - base) << CHILD)
            # the left child is taken next, and all below it before the right child
            for side in (1, 0):
                lows[n_stack] = low if side == 0 else low + n_left
                highs[n_stack] = low + n_left if side == 0 else high
                depths[n_stack], trails[n_stack] = node_depth + 1, n_trail
                numbers[n_stack], node_keys[n_stack] = n_nodes + side, hash_at(key, side)
                n_stack += 1
            n_nodes += 2
        while n_trail > 0:
            n_trail -= 1
            constant[trail[n_trail]] = False
        offsets[d + 1], leaf_offsets[d + 1] = n_nodes, n_leaves
    return nodes[:n_nodes].copy(), offsets, leaf_sums[:n_leaves].copy(), leaf_offsets
