"""The best set of a categorical feature, compiled: bins that hold rows are put in order, and the
cuts between them are scored. The specification is category_order.py beside this file."""

from typing import NamedTuple

import numpy as np

from gpuforest.compiler.decorators import device, rare
from gpuforest.compiler.types import U8s
from gpuforest.kernels.best_split.category_order import MOST_TRIED
from gpuforest.kernels.best_split.limits import left_of, may_part, random_of_bins, weight_of
from gpuforest.kernels.best_split.scan import best_of_bins, best_pair
from gpuforest.kernels.best_split.set_order import POSITION, CategoryWork, along, sort_codes
from gpuforest.kernels.shared.hashing.numba import CUT, U, hash_at
from gpuforest.kernels.shared.records import NO_BIN, Bin, Feature, SetCut
from gpuforest.kernels.shared.scoring.loops import (
    CODE,
    ROWS,
    SECOND,
    WEIGHT,
    free_side,
    needs_some,
)
from gpuforest.kernels.shared.scoring.numba import node_score, pair_side

CODE_BITS = 0xFFFFFFFF
U11 = U(11)


class Categories(NamedTuple):
    """What a kernel needs if some features are categorical.

    kinds : u8[F], the kinds of features
    work : CategoryWork, scratch
    """

    kinds: U8s
    work: CategoryWork


@device
def compact_bins(hist, feature, work):
    """Copy the occupied bins of a histogram to `work`, and return their number."""
    codes, some, m, width = work.codes, work.some, 0, feature.width
    for i in range(feature.bins + 1):
        b = i if i < feature.bins else feature.missing
        n = np.int64(0)
        for c in range(feature.n_channels if feature.is_classes else 1):
            n += np.int64(hist[b * width + c])
        if n > 0:
            codes[m] = b
            for c in range(width):
                some[m * width + c] = hist[b * width + c]
            m += 1
    return m


@rare
def best_of_all(m, feature, slot, criterion, limits, work):
    """Fill the keys: zero for the categories of the best set, one for the others.

    Sets are tried in the order of a Gray code, so each differs from the next by one category.
    """
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
    codes, some, width, upto = work.codes, work.some, feature.width, scan.upto
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
        upto[WEIGHT, i], upto[SECOND, i], upto[ROWS, i], upto[CODE, i] = n, second, n_rows, i
    found = best_pair(m, in_order(m, np.int64(-1), feature), criterion, limits, scan)
    cut = SetCut(found.score, found.bin, found.missing_left, found.left)
    if m <= MOST_TRIED and (limits.min_rows > 1 or limits.min_weight > 1 or needs_some(criterion)):
        return best_allowed(m, cut, criterion, limits, upto, work)
    return cut


@device
def in_order(m, missing, feature):
    """A feature whose m bins are the occupied categories in order; missing values have the code
    `missing`."""
    return Feature(
        feature.number, np.int64(m), missing, feature.n_channels, feature.width, feature.is_classes
    )


@rare
def best_allowed(m, found, criterion, limits, upto, work):
    """As best_pairs: the best allowed cut `found`; or, if the best of all cuts is forbidden, the
    best allowed set of the categories."""
    score = found.score
    n, a, n_rows = upto[WEIGHT, m - 1], upto[SECOND, m - 1], upto[ROWS, m - 1]
    highest, best, best_left = -np.inf, 0, NO_BIN
    for i in range(m - 1):
        n_left, a_left = upto[WEIGHT, i], upto[SECOND, i]
        free = free_side(criterion, n_left, a_left) + free_side(criterion, n - n_left, a - a_left)
        highest = max(highest, free)
    if not highest > score:
        return found
    for s in range(1, 1 << (m - 1)):
        if s & (s + 1) == 0:
            continue  # this set is a cut
        n_left, a_left, rows_left = np.int64(0), np.int64(0), np.int64(0)
        for i in range(m - 1):
            sign = (s >> i & 1) - (s >> (i + 1) & 1)  # 1 where a run ends, -1 before one begins
            n_left += sign * upto[WEIGHT, i]
            a_left += sign * upto[SECOND, i]
            rows_left += sign * upto[ROWS, i]
        too_few = rows_left < limits.min_rows or n_rows - rows_left < limits.min_rows
        if limits.min_rows > 1 and too_few:
            continue
        if not may_part(n_left, a_left, n, a, limits):
            continue
        new = pair_side(criterion, n_left, a_left) + pair_side(criterion, n - n_left, a - a_left)
        if new > score:
            score, best, best_left = new, s, Bin(n_left, a_left, np.int64(0))
    if best == 0:
        return found
    cut = np.int64(put_first(m, best, work) - 1)
    return SetCut(score, cut, best_left.weight > n - best_left.weight, best_left)


@device
def put_first(m, chosen, work):
    """Put the categories whose bits are set in `chosen` first, and return their number."""
    codes, before, at, n_first = work.codes, work.spare_codes, 0, 0
    for i in range(m):
        before[i] = codes[i]
    for side in range(2):
        for i in range(m):
            if chosen >> i & 1 != side:
                codes[at] = before[i]
                at += 1
        if side == 0:
            n_first = at
    return n_first


@rare
def put_in_order(m, feature, slot, criterion, limits, is_random, work):
    """Sort the `codes` of the compact bins, and copy these bins in order to `ordered`."""
    codes, some, ordered, width = work.codes, work.some, work.ordered, feature.width
    if is_random:
        h = hash_at(slot.key, CUT + feature.number)
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
    """The best set of a feature by its m compact bins in `work`: a SetCut of them in order."""
    if feature.n_channels == 2 and not is_random:
        return best_pairs(m, feature, criterion, limits, scan, work)
    put_in_order(m, feature, slot, criterion, limits, is_random, work)
    ordered = in_order(m, np.int64(m), feature)
    if is_random:
        _, found = random_of_bins(work.ordered, ordered, slot, criterion, limits, scan.left)
    else:
        _, found = best_of_bins(work.ordered, ordered, slot, criterion, limits, scan)
    left_of(work.ordered, ordered, found.bin, False, scan.left)
    n_left = weight_of(scan.left, feature.is_classes)
    left = Bin(n_left, np.int64(scan.left[feature.n_channels - 1]), np.int64(0))
    return SetCut(found.score, found.bin, found.missing_left, left)


@device
def set_sums(m, cut, feature, work, left):
    """Fill the channel sums of a set's left side."""
    if feature.n_channels == 2:
        weight, second = cut.left.weight, cut.left.second
        left[0], left[1] = weight - second if feature.is_classes else weight, second
    else:
        left_of(work.ordered, in_order(m, np.int64(m), feature), cut.at, False, left)


@device
def write_set(m, cut, feature, work, words):
    """Write the set of a SetCut to `words`; returns whether missing values go left."""
    codes, missing_left = work.codes, cut.heavier
    for w in range(len(words)):
        words[w] = U(0)
    if cut.heavier:
        for b in range(feature.bins):
            words[b >> 6] |= U(1) << U(b & 63)
    for i in range(m):
        b = codes[i]
        if b == feature.missing:
            missing_left = i <= cut.at
        elif (i <= cut.at) != cut.heavier:
            words[b >> 6] ^= U(1) << U(b & 63)
    return missing_left
