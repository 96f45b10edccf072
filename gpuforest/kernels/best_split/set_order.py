"""The order of a node's categories in which their best set is a cut, compiled. The specification
is category_order.py beside this file."""

from typing import NamedTuple

import numpy as np

from gpuforest.compiler.decorators import device, rare
from gpuforest.compiler.types import F64s, F64s2, I64s, I64s2
from gpuforest.kernels.best_split.category_order import ITERATIONS

POSITION = 32  # a position is packed so many bits above a code
SHORT, MANY = 24, 512  # the most keys that are sorted by insertion, and in buckets


class CategoryWork(NamedTuple):
    """Scratch for one categorical feature.

    codes, keys : i64[B], f64[B], the occupied codes, and the keys that order them
    spare_codes, spare_keys : the same, for merging
    some, ordered : i64[(B + 1) * width], the sums of the occupied codes, by code and in order; an
        empty position follows, where `best_of_bins` looks for missing values
    off, sides, scatter, directions : f64[B, C], i64[2, C], f64[C, C] and f64[2, C], for the two
        ways to order categories of many classes
    """

    codes: I64s
    keys: F64s
    spare_codes: I64s
    spare_keys: F64s
    some: I64s
    ordered: I64s
    off: F64s2
    sides: I64s2
    scatter: F64s2
    directions: F64s2


def category_arrays(B: int, C: int, width: int) -> CategoryWork:
    """Scratch for a feature of B - 1 bins."""
    return CategoryWork(
        np.empty(B, np.int64),
        np.empty(B, np.float64),
        np.empty(B, np.int64),
        np.empty(B, np.float64),
        np.zeros((B + 1) * width, np.int64),
        np.zeros((B + 1) * width, np.int64),
        np.zeros((B, C), np.float64),
        np.zeros((2, C), np.int64),
        np.zeros((C, C), np.float64),
        np.zeros((2, C), np.float64),
    )


@device
def insertion_sort(keys, codes, low, high):
    """Sort the positions low .. high - 1 by key; equal keys keep their order."""
    for i in range(low + 1, high):
        key, code, j = keys[i], codes[i], i
        while j > low and keys[j - 1] > key:
            keys[j], codes[j] = keys[j - 1], codes[j - 1]
            j -= 1
        keys[j], codes[j] = key, code


@rare
def merge_sort(keys, codes, spare_keys, spare_codes, m):
    """As insertion_sort, for m codes: short runs are sorted and merged."""
    for low in range(0, m, SHORT):
        insertion_sort(keys, codes, low, min(low + SHORT, m))
    width = SHORT
    while width < m:
        for low in range(0, m, 2 * width):
            middle, high = min(low + width, m), min(low + 2 * width, m)
            i, j = low, middle
            for at in range(low, high):
                if j >= high or (i < middle and keys[i] <= keys[j]):
                    spare_keys[at], spare_codes[at] = keys[i], codes[i]
                    i += 1
                else:
                    spare_keys[at], spare_codes[at] = keys[j], codes[j]
                    j += 1
        for at in range(m):
            keys[at], codes[at] = spare_keys[at], spare_codes[at]
        width *= 2


@device
def held_channels(feature, slot, held):
    """Fill `held` with the classes that the slot holds, or all moments, and return their number."""
    K = 0
    for c in range(0 if feature.is_classes else 1, feature.n_channels):
        held[K] = c
        K += slot.sums[c] != 0 or not feature.is_classes
    return K


@device
def scatter_of(m, feature, slot, K, work):
    """Fill the upper half of the scatter matrix of K channels' shares; returns the category with
    the largest part of the scatter."""
    some, off, scatter, held = work.some, work.off, work.scatter, work.sides[0]
    total, most, at, width = np.float64(slot.weight), -1.0, 0, feature.width
    for c in range(K):
        for d in range(c, K):
            scatter[c, d] = 0.0
    for i in range(m):
        weight = np.int64(0)
        for c in range(feature.n_channels if feature.is_classes else 1):
            weight += some[i * width + c]
        w, matters = np.float64(weight), 0.0
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
    return at


@rare
def along(m, feature, slot, work):
    """Fill the keys: each category's position on the first principal direction of the shares.

    Classes that the node does not hold would add zeros, and are skipped.
    """
    off, scatter, way, found = work.off, work.scatter, work.directions[0], work.directions[1]
    K = held_channels(feature, slot, work.sides[0])
    # 1. how the shares scatter
    at = scatter_of(m, feature, slot, K, work)
    # 2. its direction
    for c in range(K):
        way[c] = off[at, c]
    for _ in range(ITERATIONS):
        largest = 0.0
        for c in range(K):
            total = 0.0
            for d in range(K):
                total += (scatter[c, d] if c <= d else scatter[d, c]) * way[d]
            found[c] = total
            largest = max(largest, abs(total))
        if largest > 0.0:
            for c in range(K):
                way[c] = found[c] / largest
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
    insertion_sort(keys, codes, 0, m)


@device
def sort_codes(m, work):
    """Sort the `codes` of the compact bins by key; each has its position packed above it."""
    codes, keys = work.codes, work.keys
    for i in range(m):
        codes[i] |= np.int64(i) << POSITION
    if m <= SHORT:
        insertion_sort(keys, codes, 0, m)
    elif m <= MANY:
        bucket_sort(keys, codes, work.spare_keys, work.spare_codes, work.ordered, m)
    else:
        merge_sort(keys, codes, work.spare_keys, work.spare_codes, m)
