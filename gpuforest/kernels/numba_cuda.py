"""Kernels of the numba-cuda backend, one element a thread; each operation's numpy.py specifies
them.

libNVVM fuses a product and a sum, and Numba cannot forbid it: `times` rounds products first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda
from numba.core import config

from gpuforest.compiler.decorators import Helper, device
from gpuforest.compiler.intrinsics import times
from gpuforest.core.nodes import OBLIQUE_BIN, SET_BIN
from gpuforest.core.terms import WEIGHT_BITS, WEIGHT_ZERO
from gpuforest.kernels.bag.numba import mulhi
from gpuforest.kernels.best_split import cuts as cutting
from gpuforest.kernels.shared.numba import LOW_32, U1, U32, U, below, goes_left, has_labels, hash_at
from gpuforest.kernels.shared.records import NO_BIN, Split
from gpuforest.kernels.traverse import numba as walking

if not config.ENABLE_CUDASIM:  # the simulator runs plain Python
    from numba.cuda import types
    from numba.cuda.dispatcher import CUDADispatcher
    from numba.cuda.extending import overload
    from numba.cuda.typing.typeof import typeof_impl

    _dispatchers: dict[Helper, CUDADispatcher] = {}

    @typeof_impl.register(Helper)
    def _type_of_helper(helper: Helper, context: Any) -> Any:
        if helper not in _dispatchers:
            options = {"device": True, "debug": False, "opt": True}
            _dispatchers[helper] = CUDADispatcher(helper.function, options)
        return types.Dispatcher(_dispatchers[helper])

    @overload(times)
    def _times(a, b):
        return lambda a, b: cuda.libdevice.dmul_rn(a, b)


@cuda.jit
def encode_values(X, edges, offsets, missing, codes):
    """A thread a value."""
    N, F = X.shape
    for at in range(cuda.grid(1), np.int64(N) * F, cuda.gridsize(1)):
        r, f = at // F, at % F
        # 1. the edges below the value (compared as float64, which holds any float32)
        x = np.float64(X[r, f])
        code = below(edges, offsets[f], offsets[f + 1], x)
        # 2. missing values
        codes[r, f] = missing if x != x else code


@cuda.jit
def draw(keys, n_draws, cumulative, weights):
    """A thread a draw; `cumulative` is empty for equal rows."""
    T, N = weights.shape
    total = U(cumulative[N - 1]) if len(cumulative) else U(N)
    for at in range(cuda.grid(1), np.int64(T) * n_draws, cuda.gridsize(1)):
        t, j = at // n_draws, at % n_draws
        # 1. a point in the total weight
        row = mulhi(hash_at(keys[t], j), total)
        # 2. the row whose share it falls in
        if len(cumulative):
            row = below(cumulative, 0, N, row + 1)
        # 3. count
        cuda.atomic.add(weights, (t, row), 1)


@device
def slot_and_position(i, first, begin):
    """Slot, and position in `rows`, of the i-th row; first i64[S + 1] counts rows before a slot."""
    s = below(first, 1, len(first), i + 1)
    return s, begin[s] + i - first[s]


@cuda.jit
def add_totals(y, rows, weights, begin, first, sums):
    """Add the rows to `sums`; each thread takes one row."""
    for i in range(cuda.grid(1), first[len(begin)], cuda.gridsize(1)):
        s, position = slot_and_position(i, first, begin)
        r, w = rows[position], np.int64(weights[position])
        if has_labels(y):
            cuda.atomic.add(sums, (s, y[r, 0]), w)
        else:
            cuda.atomic.add(sums, (s, 0), w)
            for k in range(y.shape[1]):
                cuda.atomic.add(sums, (s, 1 + k), w * y[r, k])


@cuda.jit
def compare_rows(y, rows, begin, first, values, differs):
    """Look for rows that differ from their slot's values; each thread takes one row."""
    for i in range(cuda.grid(1), first[len(begin)], cuda.gridsize(1)):
        s, position = slot_and_position(i, first, begin)
        for k in range(y.shape[1]):
            if y[rows[position], k] != values[s, k]:
                differs[s] = True


@cuda.jit
def add_histograms(data, slots, features, count_rows, first, hist):
    """Add the rows to hist i64[S, k, B, width]; each thread takes one row and one feature."""
    y, C, begin, k = data.y, data.n_channels, slots.begin, np.int64(features.shape[1])
    for at in range(cuda.grid(1), first[len(begin)] * k, cuda.gridsize(1)):
        j = at % k
        s, position = slot_and_position(at // k, first, begin)
        r, w = slots.rows[position], np.int64(slots.weights[position])
        # 1. the row's bin in the slot's j-th feature
        f = features[s, j]
        if f < 0:
            continue
        b = data.codes[r, f]
        # 2. add its weight, or weight and moments
        if has_labels(y):
            cuda.atomic.add(hist, (s, j, b, y[r, 0]), w)
        else:
            cuda.atomic.add(hist, (s, j, b, 0), w)
            for c in range(C - 1):
                cuda.atomic.add(hist, (s, j, b, 1 + c), w * y[r, c])
        # 3. count it
        if count_rows:
            cuda.atomic.add(hist, (s, j, b, C), 1)


@cuda.jit
def scan_features(data, slots, hist, features, rules, totals, scores, cuts):
    """Steps 1 to 6 for hist i64[S, k, B * width]; each thread takes one slot and one feature.

    totals i64[S, k, 5, B + 1] and scores f64[S, k, B + 1] : scratch"""
    S, k = features.shape
    for at in range(cuda.grid(1), np.int64(S) * k, cuda.gridsize(1)):
        s, j = at // k, at % k
        if features[s, j] < 0:
            continue
        slot = cutting.slot_at(slots, s, has_labels(data.y))
        feature = cutting.feature_of(features[s, j], data, rules.count_rows, data.n_channels)
        limits = cutting.limits_of(rules, slot, feature.number)
        bins, left, criterion = hist[s, j], cuts.left[s, j], rules.criterion.number
        if rules.random:
            varies, split = cutting.random_of_bins(bins, feature, slot, criterion, limits, left)
        else:
            own = totals[s, j]
            scratch = cutting.Scan(left, own[0], own[1], own[2], own[3], own[4], scores[s, j])
            varies, split = cutting.best_of_bins(bins, feature, slot, criterion, limits, scratch)
        cuts.varies[s, j], cuts.score[s, j], cuts.bin[s, j] = varies, split.score, split.bin
        cuts.missing_left[s, j] = split.missing_left
        if split.score > -np.inf:
            cutting.left_of(bins, feature, split.bin, split.missing_left, left)


@cuda.jit
def choose_features(features, need, cuts, splits):
    """Choose the first best of the features that may be tried; a thread a slot."""
    S, k = features.shape
    for s in range(cuda.grid(1), S, cuda.gridsize(1)):
        best, n_tried = -1, 0
        for j in range(k):
            if not cuts.varies[s, j] or n_tried >= need[s]:
                continue
            n_tried += 1
            if cuts.score[s, j] > splits.score[s]:
                best, splits.score[s] = j, cuts.score[s, j]
        splits.tried[s] = n_tried
        if best >= 0:
            splits.feature[s], splits.bin[s] = features[s, best], cuts.bin[s, best]
            splits.missing_left[s] = cuts.missing_left[s, best]
            for c in range(splits.left.shape[1]):
                splits.left[s, c] = cuts.left[s, best, c]


@cuda.jit
def choose_sides(data, slots, splits, sets, first, left):
    """Step 1: left[i] is 1 where the i-th row of all slots goes left; a thread a row.

    sets : u64[S * W], slot after slot"""
    n_words, missing = splits.sets.shape[1], data.n_codes - 1
    for i in range(cuda.grid(1), first[len(slots.begin)], cuda.gridsize(1)):
        s, position = slot_and_position(i, first, slots.begin)
        f = splits.feature[s]
        split = Split(0.0, f, splits.bin[s], splits.missing_left[s], NO_BIN)
        code = np.int64(data.codes[slots.rows[position], f])
        left[i] = goes_left(code, split, missing, sets, s * n_words)


@cuda.jit
def move(rows, weights, begin, first, rank):
    """Step 2: rank[i] of the rows before the i-th go left; each thread takes one row."""
    half = len(rows) // 2
    for i in range(cuda.grid(1), first[len(begin)], cuda.gridsize(1)):
        s, position = slot_and_position(i, first, begin)
        before = rank[i] - rank[first[s]]
        if rank[i + 1] == rank[i]:  # to the right: all that go left come first
            before = rank[first[s + 1]] - rank[i] + i - first[s]
        at = begin[s] + before + (half if begin[s] < half else -half)
        rows[at], weights[at] = rows[position], weights[position]


@device
def sum_goes_left(trees, at, split, codes, r):
    """As `sums_go_left` of traverse/numpy.py, for row r at node number `at` of the forest."""
    first, total = trees.set_at[at], np.int64(0)
    for i in range(split.bin - OBLIQUE_BIN):
        word = trees.sets[first + (i + 1) // 2]
        term = np.int64(word & LOW_32 if i % 2 else word >> U32)
        f = term >> WEIGHT_BITS
        code = np.int64(codes[r, f])
        if code == trees.missing:
            return split.missing_left
        weight = term % (1 << WEIGHT_BITS) - WEIGHT_ZERO
        total += weight * np.int64(trees.coordinates[f, code])
    threshold = np.int64(trees.sets[first] & LOW_32)  # of 32 bits with a sign
    return total <= (threshold - 2**32 if threshold >= 2**31 else threshold)


@device
def walk(trees, root, codes, r):
    """The leaf of row r in the tree at `root`, numbered in the tree; unneeded arrays are empty."""
    at, word = np.int64(0), trees.nodes[root]
    while word < walking.LEAF:
        bin, missing_left = np.int64(word & walking.BIN_BITS), (word >> walking.MISSING) & U1 == U1
        split = Split(0.0, np.int64(word >> walking.FEATURE), bin, missing_left, NO_BIN)
        first = np.int64(trees.set_at[root + at]) if split.bin == SET_BIN else np.int64(0)
        code = np.int64(codes[r, split.feature])
        is_left = goes_left(code, split, trees.missing, trees.sets, first)
        if len(trees.coordinates) and OBLIQUE_BIN < split.bin < SET_BIN:
            is_left = sum_goes_left(trees, root + at, split, codes, r)
        at = np.int64((word >> walking.CHILD) & walking.CHILD_BITS) + (
            not is_left
        )  # children are adjacent
        word = trees.nodes[root + at]
    return at


@cuda.jit
def walk_rows(trees, codes, out):
    """Write the leaves to out i64[N, T]; each thread takes one row in one tree."""
    N, T = out.shape
    for at in range(cuda.grid(1), np.int64(N) * T, cuda.gridsize(1)):
        r, t = at // T, at % T
        out[r, t] = walk(trees, trees.offsets[t], codes, r)


@cuda.jit
def add_leaves(trees, values, codes, skip, total):
    """Add leaf values to `total` in the order of the trees, a thread a row; skip may be empty."""
    offsets = trees.offsets
    for r in range(cuda.grid(1), len(codes), cuda.gridsize(1)):
        for t in range(len(offsets) - 1):
            if len(skip) and skip[t, r]:
                continue
            at = offsets[t] + walk(trees, offsets[t], codes, r)
            leaf = np.int64(trees.nodes[at] & walking.LEAF_BITS)
            for v in range(values.shape[1]):
                total[r, v] += values[leaf, v]
