"""Grow subtrees by combinations of features; combinations.py says how they are drawn and stored.

The sums of a node's rows become codes in a column of their own, at the rows' positions in the
block, so that cuts and moves of rows take it for a feature's.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpuforest.common.dtypes import CATEGORICAL
from gpuforest.compiler.decorators import device
from gpuforest.compiler.types import I64, Bools, Codes2, I32s, I32s2, I64s2, U64s
from gpuforest.engine.nodes import OBLIQUE_BIN
from gpuforest.engine.records import Data
from gpuforest.kernels.best_split.limits import by_rows, feature_of
from gpuforest.kernels.grow_subtrees.cuts import best_cut, random_cut, set_of_rows
from gpuforest.kernels.grow_subtrees.scratch import Grown, Scratch
from gpuforest.kernels.grow_subtrees.writing import CHILD, FEATURE, MISSING
from gpuforest.kernels.project.numba import HOLE, add_up, steps_of
from gpuforest.kernels.shared.hashing.numba import LOW_32, U1, U32, U, hash_at, order_of, permute
from gpuforest.kernels.shared.records import NO_SPLIT, Feature, Slot, Split
from gpuforest.splits.oblique.terms import ALL_LEFT as EVERY
from gpuforest.splits.oblique.terms import DRAWS, ROUNDS, STRIDE, WEIGHT_BITS, WEIGHT_ZERO

if TYPE_CHECKING:
    from gpuforest.splits.oblique.terms import Combining

U31 = U(31)


class Oblique(NamedTuple):
    """What combinations are drawn from, see `Combining`, and scratch.

    refused : bool[F], features that the slot's tree did not draw
    terms : i64[3, L], features and weights of a combination, and what else was drawn
    sums : i32[most], of a node's rows
    codes : [2, n], the columns of the best combination so far and of the one that is looked at, as
        long as the longest block
    """

    coordinates: I32s2
    chances: U64s
    numeric: I32s
    position: I32s
    heaviest: I64
    n_bins: I64
    refused: Bools
    terms: I64s2
    sums: I32s
    codes: Codes2


@device
def refuse(oblique, slots, d):
    """Mark the features that a slot's tree did not draw."""
    for f in range(slots.allowed.shape[1]):
        oblique.refused[f] = not slots.allowed[slots.tree[d], f]


@device
def weight_in(h, heaviest):
    """The size of the weight that a hash draws."""
    return 1 + np.int64((((h & LOW_32) >> U1) * U(heaviest)) >> U31)


@device
def draw_terms(key, number, first, oblique):
    """Put the features and weights of a node's combination into `terms`, and return how many there
    are."""
    terms, others, at = oblique.terms, len(oblique.numeric) - 1, np.int64(oblique.position[first])
    base = DRAWS + number * STRIDE
    h = hash_at(key, base)
    terms[0, 0], terms[1, 0] = first, weight_in(h, oblique.heaviest)
    n, kept = 1, 1
    if at >= 0:
        for i in range(len(oblique.chances)):
            n += h < oblique.chances[i]
    for i in range(1, n):
        h = hash_at(key, base + i)
        last = others - (n - 1) + (i - 1)
        t = np.int64(((h >> U32) * U(last + 1)) >> U32)
        taken = False
        for earlier in range(1, i):
            taken |= terms[2, earlier] == t
        t = last if taken else t
        terms[2, i] = t
        f = np.int64(oblique.numeric[t + 1 if t >= at else t])
        if not oblique.refused[f]:
            size = weight_in(h, oblique.heaviest)
            terms[0, kept], terms[1, kept] = f, -size if h & U1 == U1 else size
            kept += 1
    return kept


@device
def may_vary(terms, n, constant):
    """Whether one of a combination's features may vary."""
    some = False
    for i in range(n):
        some |= not constant[terms[0, i]]
    return some


@device
def sum_column(table, slot, order, oblique, n_terms, missing, column):
    """Write the codes of a node's rows in the combination `terms`; returns low and shift."""
    add_up(
        table, order.positions, slot.begin, slot.n_rows, oblique.terms, n_terms,
        oblique.coordinates, missing, oblique.sums,
    )  # fmt: skip
    low, shift = steps_of(oblique.sums, slot.n_rows, oblique.n_bins)
    for i in range(slot.n_rows):
        s = oblique.sums[U(i)]
        code = oblique.n_bins if s == HOLE else (np.int64(s) - low) >> shift
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
def cut_column(column, feature, slot, rules, scratch, best, random, sets, is_set):
    """Whether a column varies in a node, and its best or its random split."""
    hist, limits, order = scratch.work.hists[0], by_rows(rules), scratch.order
    if is_set:
        return set_of_rows(column, feature, slot, rules, scratch, hist, False, best, random, sets)
    if random is None:
        return best_cut(
            column, feature, slot, order, rules.criterion.number, limits, scratch.work, hist, False
        )
    return random_cut(column, feature, slot, order, rules.criterion.number, limits, scratch.work)


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
def search_combined(
    data, table, slot, rules, scratch, enough, order_domain, n_trail, random, sets, oblique
):
    """As `search`, by combinations: the best split, the trail's length, the number of features of
    the best combination, and which of the columns is its."""
    k, best, (constant, trail) = rules.n_tried, NO_SPLIT, scratch.known
    C, width, F = len(slot.sums), np.int64(len(slot.sums) + rules.count_rows), len(constant)
    draw, (mask, fold), missing = order_of(slot.key), order_domain, data.n_codes - 1
    tried, combined, free, a = 0, 0, 0, 0
    while (
        a < F * ((k + F - 1) // F) and tried < k and (best.score < enough or best.score == -np.inf)
    ):
        first = np.int64(a % F if k >= F else permute(draw, a, F, mask, fold))
        number, at, a = a % k, a, a + 1
        if oblique.refused[first]:
            continue
        n = draw_terms(slot.key, at, first, oblique)
        if not may_vary(oblique.terms, n, constant):
            continue
        own, low, shift = numbered(slot, at, k), np.int64(0), np.int64(0)
        is_set = sets.kinds[first] == CATEGORICAL
        column, feature = table[first], feature_of(first, data, rules, C)
        if n > 1:
            column, bins = oblique.codes[free], np.int64(oblique.n_bins)
            low, shift = sum_column(table, slot, scratch.order, oblique, n, missing, column)
            feature = Feature(np.int64(number), bins, bins, np.int64(C), width, feature.is_classes)
        else:
            last = feature.missing
            if is_set:  # random orders of categories depend on the code of missing values
                column, last = oblique.codes[free], np.int64(oblique.n_bins)
                copy_codes(table[first], slot, scratch.order, missing, last, column)
            feature = Feature(
                np.int64(number + k * is_set), feature.bins, last, np.int64(C), width,
                feature.is_classes,
            )  # fmt: skip
        varies, split = cut_column(
            column, feature, own, rules, scratch, best.score, random, sets, is_set
        )
        tried += varies
        if not varies:
            if n == 1:
                constant[first], trail[n_trail] = True, first
                n_trail += 1
        elif split.score > best.score:
            best = Split(split.score, first, split.bin, split.missing_left, split.left)
            combined = n
            if n > 1:
                keep_words(oblique.terms, n, split.bin, low, shift, oblique.n_bins, sets.best)
                free = 1 - free
    return best, n_trail, combined, 1 - free


@device
def put_combination(scratch, number, first, split, n, sets, grown):
    """As `put_split`, for a combination of n features."""
    word = (U(split.feature) << FEATURE) | (U(split.missing_left) << MISSING) | U(OBLIQUE_BIN + n)
    scratch.nodes[number] = word | (U(grown.n_nodes - first) << CHILD)
    sets.at[number] = grown.n_words
    for w in range(1 + n // 2):
        sets.words[grown.n_words + w] = sets.best[w]
    return Grown(grown.n_nodes + 2, grown.n_leaves, grown.n_words + 1 + n // 2)


def new_oblique(scratch: Scratch, data: Data, combining: "Combining") -> Oblique:
    """Scratch beside another."""
    c, blocks = combining, (data.codes, scratch.some, scratch.few)
    longest = max(block.shape[1] for block in blocks)
    return Oblique(
        c.coordinates,
        c.chances,
        c.numeric,
        c.position,
        c.heaviest,
        c.n_bins,
        np.zeros(len(c.position), np.bool_),
        np.zeros((3, c.most_features), np.int64),
        np.empty(len(scratch.order.positions), np.int32),
        np.empty((2, longest), data.codes.dtype),
    )
