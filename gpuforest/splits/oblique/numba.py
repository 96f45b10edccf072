"""Combinations of features, compiled: their sums as codes in the wide phase (the specification is
numpy.py in this folder), and subtrees; terms.py says how they are drawn and stored.

The sums of a node's rows become codes in a column of their own, at the rows' positions in the
block, so that cuts and moves of rows take it for a feature's.
"""

from typing import Any, NamedTuple

import numpy as np

from gpuforest.common.dtypes import CATEGORICAL
from gpuforest.compiler.decorators import device, kernel
from gpuforest.compiler.types import Codes2, I32s, I64s, I64s2
from gpuforest.core.frontier import Data, Frontier
from gpuforest.core.nodes import OBLIQUE_BIN
from gpuforest.core.rules import Rules
from gpuforest.core.terms import ALL_LEFT as EVERY
from gpuforest.core.terms import DRAWS, ROUNDS, STRIDE, WEIGHT_BITS, WEIGHT_ZERO, Combining
from gpuforest.kernels.best_split.cuts import feature_of
from gpuforest.kernels.grow_subtrees import numba as subtrees
from gpuforest.kernels.grow_subtrees.cuts import cut_or_set
from gpuforest.kernels.grow_subtrees.numba import divide
from gpuforest.kernels.grow_subtrees.rows import load_rows, put_split
from gpuforest.kernels.grow_subtrees.scratch import Grown, Scratch, Ways
from gpuforest.kernels.project.numba import HOLE, add_up, steps_of
from gpuforest.kernels.sets.numba import Sets
from gpuforest.kernels.shared import numba as shared
from gpuforest.kernels.shared.numba import LOW_32, U1, U31, U32, U, hash_at, order_of, permute
from gpuforest.kernels.shared.records import NO_SPLIT, Feature, Slot, Split

Array = Any


class Oblique(NamedTuple):
    """What combinations are drawn from, and scratch."""

    combining: Combining
    terms: I64s2  # i64[3, L], features and weights of a combination, and the numbers it drew
    sums: I32s  # of a node's rows
    # [2, n], the columns of the best combination so far and of the one that is looked at, as long
    # as the longest block
    codes: Codes2
    # i64[2], of a node's best split: the number of its features, and its column if these are many
    found: I64s


@device
def weight_in(h, heaviest):
    """The size of the weight that a hash draws."""
    return 1 + np.int64((((h & LOW_32) >> U1) * U(heaviest)) >> U31)


@device
def draw_terms(key, number, first, combining, refused, terms):
    """Put the features and weights of a node's combination into `terms`; returns how many."""
    others, at = combining.n_numeric - 1, np.int64(combining.position[first])
    base = DRAWS + number * STRIDE
    h = hash_at(key, base)
    terms[0, 0], terms[1, 0] = first, weight_in(h, combining.heaviest)
    n, kept = 1, 1
    if at >= 0:
        for i in range(combining.most):
            n += h < combining.chances[i]
    for i in range(1, n):
        h = hash_at(key, base + i)
        last = others - (n - 1) + (i - 1)
        t = np.int64(((h >> U32) * U(last + 1)) >> U32)
        taken = False
        for earlier in range(1, i):
            taken |= terms[2, earlier] == t
        t = last if taken else t
        terms[2, i] = t
        f = np.int64(combining.numeric[t + 1 if t >= at else t])
        if not refused[f]:
            size = weight_in(h, combining.heaviest)
            terms[0, kept], terms[1, kept] = f, -size if h & U1 == U1 else size
            kept += 1
    return kept


@device
def sum_column(table, slot, order, oblique, n_terms, missing, column):
    """Write the codes of a node's rows in the combination `terms`; returns low and shift."""
    sums, n_bins = oblique.sums, oblique.combining.n_bins
    add_up(
        table, order.positions, slot.begin, slot.n_rows, oblique.terms, n_terms,
        oblique.combining.coordinates, missing, sums,
    )  # fmt: skip
    low, shift = steps_of(sums, slot.n_rows, n_bins)
    for i in range(slot.n_rows):
        s = sums[U(i)]
        code = n_bins if s == HOLE else (np.int64(s) - low) >> shift
        column[U(order.positions[U(slot.begin + i)])] = code
    return low, shift


@device
def copy_codes(codes, slot, order, missing, last, column):
    """Copy the codes of a node's rows to a column, where missing values have the code `last`."""
    for i in range(slot.n_rows):
        at = U(order.positions[U(slot.begin + i)])
        code = np.int64(codes[at])
        column[at] = last if code == missing else code


@device
def keep_words(terms, n, cut, low, shift, n_bins, words):
    """Write the words of a combination whose codes up to `cut` go left."""
    threshold = np.int64(EVERY) if cut >= n_bins - 1 else low + ((cut + 1) << shift) - 1
    words[0] = U(threshold) & LOW_32
    for i in range(1, 1 + n // 2):
        words[i] = U(0)
    for i in range(n):
        term = U(terms[0, i] << WEIGHT_BITS | (terms[1, i] + WEIGHT_ZERO))
        words[(i + 1) >> 1] |= term << (U(0) if i & 1 else U32)


@device
def numbered(slot, attempt, k):
    """The slot with the key for the random cuts of this attempt."""
    key = slot.key
    if attempt >= k:
        key = hash_at(key, ROUNDS + attempt // k)
    return Slot(
        slot.number, slot.begin, slot.n_rows, slot.weight, key, slot.sums, slot.low, slot.high
    )


@device
def search_combined(growth, table, slot, n_trail, sets):
    """As `search` of kernels/grow_subtrees/numba.py, by combinations of features."""
    data, rules, scratch, oblique = growth.data, growth.rules, growth.scratch, growth.of_kind
    k, best, constant, combining = rules.n_tried, NO_SPLIT, scratch.constant, oblique.combining
    C, width, F = len(slot.sums), np.int64(len(slot.sums) + rules.count_rows), len(constant)
    draw, (mask, fold), missing = order_of(slot.key), growth.order_domain, data.n_codes - 1
    tried, free, a, enough = 0, 0, 0, subtrees.enough_of(slot, rules, scratch)
    while (
        a < F * ((k + F - 1) // F) and tried < k and (best.score < enough or best.score == -np.inf)
    ):
        first = np.int64(a % F if k >= F else permute(draw, a, F, mask, fold))
        number, at, a = a % k, a, a + 1
        if scratch.refused[first]:
            continue
        n = draw_terms(slot.key, at, first, combining, scratch.refused, oblique.terms)
        may_vary = False
        for i in range(n):
            may_vary |= not constant[oblique.terms[0, i]]
        if not may_vary:
            continue
        keyed, low, shift = numbered(slot, at, k), np.int64(0), np.int64(0)
        is_set = sets.kinds[first] == CATEGORICAL
        column, feature = table[first], feature_of(first, data, rules.count_rows, C)
        if n > 1:
            column, bins = oblique.codes[free], np.int64(combining.n_bins)
            low, shift = sum_column(table, slot, scratch.order, oblique, n, missing, column)
            feature = Feature(np.int64(number), bins, bins, np.int64(C), width, feature.is_classes)
        else:
            last = feature.missing
            if is_set:  # random orders of categories depend on the code of missing values
                column, last = oblique.codes[free], np.int64(combining.n_bins)
                copy_codes(table[first], slot, scratch.order, missing, last, column)
            feature = Feature(
                np.int64(number + k * is_set), feature.bins, last, np.int64(C), width,
                feature.is_classes,
            )  # fmt: skip
        varies, split = cut_or_set(
            column, feature, keyed, rules, scratch, scratch.hists[0], False, best.score, sets,
            is_set,
        )  # fmt: skip
        tried += varies
        if not varies:
            if n == 1:
                constant[first], scratch.trail[n_trail] = True, first
                n_trail += 1
        elif split.score > best.score:
            best = Split(split.score, first, split.bin, split.missing_left, split.left)
            oblique.found[0], oblique.found[1] = n, free
            if n > 1:
                keep_words(oblique.terms, n, split.bin, low, shift, combining.n_bins, sets.best)
                free = 1 - free
    return best, n_trail


@device
def write_combined(growth, table, node, slot, split, n_stack, n_trail, sets, grown):
    """As `write_split` of kernels/grow_subtrees/numba.py, for a combination of n features."""
    data, scratch, oblique, f = growth.data, growth.scratch, growth.of_kind, split.feature
    n, column, missing, first = oblique.found[0], table[f], np.int64(data.n_codes - 1), growth.first
    if n < 2:
        grown = put_split(scratch, data, node.number, first, split, sets, grown)
    else:
        bin, child = OBLIQUE_BIN + n, grown.n_nodes - first
        scratch.nodes[node.number] = shared.split_word(f, bin, split.missing_left, child)
        sets.at[node.number] = grown.n_words
        for w in range(1 + n // 2):
            sets.words[grown.n_words + w] = sets.best[w]
        grown = Grown(grown.n_nodes + 2, grown.n_leaves, grown.n_words + 1 + n // 2)
        column, missing = oblique.codes[oblique.found[1]], np.int64(oblique.combining.n_bins)
    return divide(growth, column, missing, node, slot, split, n_stack, n_trail, sets, grown)


WAYS = Ways(load_rows, search_combined, write_combined, subtrees.no_link)


@kernel(checked={"target": "int32"}, plain={})
def grow_combined(
    data: Data, slots: Frontier, rules: Rules, scratch: Scratch, offsets: I64s, written: I64s,
    sets: Sets, oblique: Oblique,
):  # fmt: skip
    """As grow_subtrees, by combinations of features, whose words are written among the sets."""
    subtrees.grow_slots(data, slots, rules, scratch, offsets, written, sets, WAYS, oblique)


def new_oblique(scratch: Scratch, data: Data, combining: Combining) -> Oblique:
    """The scratch of oblique splits, besides `scratch`."""
    longest = max(block.shape[1] for block in (data.codes, scratch.some, scratch.few))
    return Oblique(
        combining,
        np.zeros((3, combining.most_features), np.int64),
        np.empty(len(scratch.order.positions), np.int32),
        np.empty((2, longest), data.codes.dtype),
        np.zeros(2, np.int64),
    )
