"""The best set of a categorical feature, compiled; order.py in this folder specifies it."""

from typing import Annotated, Any, NamedTuple

import numpy as np

from gpuforest.compiler.decorators import device, rare
from gpuforest.compiler.types import I64s, U8s, U64s, new_arrays
from gpuforest.core.nodes import SET_BIN
from gpuforest.kernels.best_split import cuts
from gpuforest.kernels.sets.order import ITERATIONS, MOST_TRIED
from gpuforest.kernels.shared import numba as shared
from gpuforest.kernels.shared.numba import U, free_side, hash_at, needs_some, node_score, pair_side
from gpuforest.kernels.shared.records import NO_BIN, Bin, Feature, Split

Array = Any

POSITION, CODE_BITS = 32, 0xFFFFFFFF  # a position is packed 32 bits above a code
MANY = 512  # the most keys that are sorted in buckets
U11 = U(11)


class CategoryWork(NamedTuple):
    """Scratch for one categorical feature of B - 1 bins."""

    codes: Annotated[Array, "i64[B]"]  # the occupied ones
    keys: Annotated[Array, "f64[B]"]  # that order them
    spare_codes: Annotated[Array, "i64[B]"]  # for merging
    spare_keys: Annotated[Array, "f64[B]"]
    # the sums of the occupied codes, by code and in order; an empty position follows, where
    # `scan_channels` looks for missing values
    some: Annotated[Array, "i64[W]"]
    ordered: Annotated[Array, "i64[W]"]
    # for the two ways to order categories of many classes
    off: Annotated[Array, "f64[B, C]"]
    sides: Annotated[Array, "i64[D, C]"]
    scatter: Annotated[Array, "f64[C, C]"]
    directions: Annotated[Array, "f64[D, C]"]


class Sets(NamedTuple):
    """The categorical features, and scratch for their sets."""

    kinds: U8s  # u8[F], of features
    work: CategoryWork
    best: U64s  # u64[W], the set of the best split of a node so far
    at: I64s  # i64[2 * total], where the set of a node of grown subtrees begins
    words: U64s  # the sets; pages that are not written take no memory


def new_sets(
    kinds: Array, C: int, width: int, n_words: int, n_codes: int, n_nodes: int = 0
) -> Sets:
    """Sets of n_words words for n_nodes nodes; histograms have `width` channels, n_codes codes."""
    sizes = {"B": n_codes, "C": C, "W": (n_codes + 1) * width, "D": 2}
    return Sets(
        kinds,
        CategoryWork(**new_arrays(CategoryWork, np.zeros, **sizes)),
        np.empty(n_words, np.uint64),
        np.empty(n_nodes, np.int64),
        np.empty(n_nodes // 2 * n_words, np.uint64),
    )


@rare
def along(m, feature, slot, work):
    """Fill keys: positions on the shares' first principal direction; absent classes skipped."""
    off, scatter, way, turned = work.off, work.scatter, work.directions[0], work.directions[1]
    held, K = work.sides[0], 0  # the classes that the slot holds, or all moments
    for c in range(0 if feature.is_classes else 1, feature.n_channels):
        held[K] = c
        K += slot.sums[c] != 0 or not feature.is_classes
    # 1. how the shares scatter: the matrix's upper half, and the category with most of it
    some, total, most, at, width = work.some, np.float64(slot.weight), -1.0, 0, feature.width
    for c in range(K):
        for d in range(c, K):
            scatter[c, d] = 0.0
    for i in range(m):
        sums = some[i * width : i * width + feature.n_channels]
        w, matters = np.float64(cuts.weight_of(sums, feature.is_classes)), 0.0
        for c in range(K):
            mean = np.float64(slot.sums[held[c]]) / total
            off[i, c] = np.float64(some[i * width + held[c]]) / w - mean
        for c in range(K):
            matters += off[i, c] * off[i, c]
            pull = w * off[i, c]
            for d in range(c, K):
                scatter[c, d] += pull * off[i, d]
        if matters * w > most:
            most, at = matters * w, i
    # 2. its direction
    for c in range(K):
        way[c] = off[at, c]
    for _ in range(ITERATIONS):
        largest = 0.0
        for c in range(K):
            turned[c] = 0.0
            for d in range(K):
                turned[c] += (scatter[c, d] if c <= d else scatter[d, c]) * way[d]
            largest = max(largest, abs(turned[c]))
        if largest > 0.0:
            for c in range(K):
                way[c] = turned[c] / largest
    for i in range(m):
        position = 0.0
        for c in range(K):
            position += off[i, c] * way[c]
        work.keys[i] = position


@rare
def bucket_sort(keys, codes, spare_keys, spare_codes, counts, m):
    """As insertion_sort, for a few hundred codes, which are divided into m buckets first."""
    low = high = keys[0]
    for i in range(m):
        low, high = min(low, keys[i]), max(high, keys[i])
        counts[i] = 0
    scale = np.float64(m - 1) / (high - low) if high > low else 0.0
    for i in range(m):
        counts[min(np.int64((keys[i] - low) * scale), m - 1)] += 1
    first = np.int64(0)
    for i in range(m):
        n, counts[i] = counts[i], first
        first += n
    for i in range(m):
        spare_keys[i], spare_codes[i] = keys[i], codes[i]
    for i in range(m):
        b = min(np.int64((spare_keys[i] - low) * scale), m - 1)
        keys[counts[b]], codes[counts[b]] = spare_keys[i], spare_codes[i]
        counts[b] += 1
    shared.insertion_sort(keys, codes, 0, m)


@device
def sort_codes(m, work):
    """Sort the `codes` of the compact bins by key; each has its position packed above it."""
    codes, keys = work.codes, work.keys
    for i in range(m):
        codes[i] |= np.int64(i) << POSITION
    if m <= shared.SHORT:
        shared.insertion_sort(keys, codes, 0, m)
    elif m <= MANY:
        bucket_sort(keys, codes, work.spare_keys, work.spare_codes, work.ordered, m)
    else:
        shared.merge_sort(keys, codes, work.spare_keys, work.spare_codes, m)


@device
def compact_bins(hist, feature, work):
    """Copy the occupied bins of a histogram to `work`, and return their number."""
    codes, some, m, width, C = work.codes, work.some, 0, feature.width, feature.n_channels
    for i in range(feature.bins + 1):
        b = i if i < feature.bins else feature.missing
        if cuts.weight_of(hist[b * width : b * width + C], feature.is_classes) > 0:
            codes[m] = b
            for c in range(width):
                some[m * width + c] = hist[b * width + c]
            m += 1
    return m


@rare
def best_of_all(m, feature, slot, criterion, limits, work):
    """Fill keys: zero for the categories of the best set, one for the others. Sets come in the
    order of a Gray code: each differs from the next by one category."""
    keys, some, left, right = work.keys, work.some, work.sides[0], work.sides[1]
    C, width, n = feature.n_channels, feature.width, slot.weight
    best, best_score, min_rows = 0, -np.inf, limits.min_rows
    rows_left, n_left = np.int64(0), np.int64(0)
    for c in range(C):
        left[c], right[c] = 0, slot.sums[c]
    for step in range(1, 1 << (m - 1)):
        s, i = step ^ (step >> 1), 0
        while not step >> i & 1:
            i += 1
        sign = np.int64(1) if s >> i & 1 else np.int64(-1)
        for c in range(C):
            w = sign * some[i * width + c]
            left[c] += w
            right[c] -= w
            if feature.is_classes or c == 0:
                n_left += w
        if min_rows > 1:
            rows_left += sign * some[i * width + C]
            if rows_left < min_rows or slot.n_rows - rows_left < min_rows:
                continue
        if n_left < limits.min_weight or n - n_left < limits.min_weight:
            continue
        score = node_score(criterion, left, n_left, C)
        score += node_score(criterion, right, n - n_left, C)
        if score > best_score or (score == best_score and s < best):
            best, best_score = s, score
    for i in range(m):
        keys[i] = 0.0 if best >> i & 1 else 1.0


@device
def best_pairs(m, feature, criterion, limits, scan, work):
    """As best_set, for two channels and cuts that are not random."""
    codes, some, width = work.codes, work.some, feature.width
    for i in range(m):
        a, b = some[i * width], some[i * width + 1]
        work.keys[i] = np.float64(b) / np.float64(a + b if feature.is_classes else a)
    sort_codes(m, work)
    n, second, n_rows = np.int64(0), np.int64(0), np.int64(0)
    for i in range(m):
        at, codes[i] = codes[i] >> POSITION, codes[i] & CODE_BITS
        a, b = some[at * width], some[at * width + 1]
        n += a + b if feature.is_classes else a
        second += b
        if width > 2:
            n_rows += some[at * width + 2]
        scan.weight[i], scan.second[i], scan.rows[i], scan.code[i] = n, second, n_rows, i
    cut = cuts.best_pair(m, in_order(m, np.int64(-1), feature), criterion, limits, scan)
    if m <= MOST_TRIED and (limits.min_rows > 1 or limits.min_weight > 1 or needs_some(criterion)):
        return best_allowed(m, cut, criterion, limits, scan, work)
    return cut


@device
def in_order(m, missing, feature):
    """A feature whose m bins are the occupied categories in order; missing : the missing code"""
    return Feature(
        feature.number, np.int64(m), missing, feature.n_channels, feature.width, feature.is_classes
    )


@rare
def best_allowed(m, cut, criterion, limits, scan, work):
    """best_pairs, allowed cuts only; or the best allowed set if limits forbid the best cut."""
    score, weight, second, rows = cut.score, scan.weight, scan.second, scan.rows
    n, a, n_rows = weight[m - 1], second[m - 1], rows[m - 1]
    highest, best, best_left = -np.inf, 0, NO_BIN
    for i in range(m - 1):
        n_left, a_left = weight[i], second[i]
        free = free_side(criterion, n_left, a_left) + free_side(criterion, n - n_left, a - a_left)
        highest = max(highest, free)
    if not highest > score:
        return cut
    for s in range(1, 1 << (m - 1)):
        if s & (s + 1) == 0:
            continue  # this set is a cut
        n_left, a_left, rows_left = np.int64(0), np.int64(0), np.int64(0)
        for i in range(m - 1):
            sign = (s >> i & 1) - (s >> (i + 1) & 1)  # 1 where a run ends, -1 before one begins
            n_left += sign * weight[i]
            a_left += sign * second[i]
            rows_left += sign * rows[i]
        too_few = rows_left < limits.min_rows or n_rows - rows_left < limits.min_rows
        if limits.min_rows > 1 and too_few:
            continue
        if not cuts.may_part(n_left, a_left, n, a, limits):
            continue
        new = pair_side(criterion, n_left, a_left) + pair_side(criterion, n - n_left, a - a_left)
        if new > score:
            score, best, best_left = new, s, Bin(n_left, a_left, np.int64(0))
    if best == 0:
        return cut
    # the categories whose bits are set in `best` come first
    codes, before, n_first, n_last = work.codes, work.spare_codes, np.int64(0), m
    for i in range(m):
        before[i] = codes[i]
        n_last -= 1 - (best >> i & 1)
    for i in range(m):
        if best >> i & 1:
            codes[n_first] = before[i]
            n_first += 1
        else:
            codes[n_last] = before[i]
            n_last += 1
    heavier = best_left.weight > n - best_left.weight
    return Split(score, cut.feature, n_first - 1, heavier, best_left)


@rare
def put_in_order(m, feature, slot, criterion, limits, is_random, work):
    """Sort the `codes` of the compact bins, and copy these bins in order to `ordered`."""
    codes, some, ordered, width = work.codes, work.some, work.ordered, feature.width
    if is_random:
        h = hash_at(slot.key, shared.CUT + feature.number)
        for i in range(m):
            work.keys[i] = np.float64(hash_at(h, codes[i]) >> U11)
    elif m <= MOST_TRIED:
        best_of_all(m, feature, slot, criterion, limits, work)
    else:
        along(m, feature, slot, work)
    sort_codes(m, work)
    for i in range(m):
        at, codes[i] = codes[i] >> POSITION, codes[i] & CODE_BITS
        for c in range(width):
            ordered[i * width + c] = some[at * width + c]
    for c in range(width):
        ordered[m * width + c] = 0


@device
def best_set(m, feature, slot, criterion, limits, is_random, scan, work):
    """The best set of a feature by its m compact bins in `work`, as a Split. `bin` is the position
    of the last left category; `missing_left`: the left side is heavier."""
    if feature.n_channels == 2 and not is_random:
        return best_pairs(m, feature, criterion, limits, scan, work)
    put_in_order(m, feature, slot, criterion, limits, is_random, work)
    ordered = in_order(m, np.int64(m), feature)
    if is_random:
        _, cut = cuts.random_of_bins(work.ordered, ordered, slot, criterion, limits, scan.left)
    else:
        _, cut = cuts.scan_channels(work.ordered, ordered, slot, criterion, limits, scan)
    cuts.left_of(work.ordered, ordered, cut.bin, False, scan.left)
    n_left = cuts.weight_of(scan.left, feature.is_classes)
    left = Bin(n_left, np.int64(scan.left[feature.n_channels - 1]), np.int64(0))
    return Split(cut.score, cut.feature, cut.bin, cut.missing_left, left)


@device
def split_by_set(m, feature, slot, rules, limits, scan, work, best, words):
    """As best_set; the set goes to `words` if its score is above `best`."""
    cut = best_set(m, feature, slot, rules.criterion.number, limits, rules.random, scan, work)
    side = False
    if cut.score > best:
        codes = work.codes
        side = write_set(m, cut.bin, cut.missing_left, feature.bins, feature.missing, codes, words)
    return Split(cut.score, feature.number, np.int64(SET_BIN), side, cut.left)


@device
def write_set(m, last, heavier, bins, missing, codes, words):
    """Write the set of the first of m ordered codes, up to position `last`, to `words`. Absent ones
    go left if the left side is `heavier`. Returns whether missing values go left."""
    missing_left = heavier
    for w in range(len(words)):
        words[w] = U(0)
    if heavier:
        for b in range(bins):
            words[b >> 6] |= U(1) << U(b & 63)
    for i in range(m):
        if codes[i] == missing:
            missing_left = i <= last
        elif (i <= last) != heavier:
            words[codes[i] >> 6] ^= U(1) << U(codes[i] & 63)
    return missing_left
