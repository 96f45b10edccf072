"""The branches of a multiway split: a node's rows sorted by category, and the chain of splits."""

from typing import NamedTuple

import numpy as np

from gpuforest.compiler.decorators import device
from gpuforest.compiler.types import I64s
from gpuforest.kernels.grow_subtrees.cuts import fills, take_codes
from gpuforest.kernels.grow_subtrees.sorting import POSITION, SIXTEEN, sort_by_code
from gpuforest.kernels.histogram.numba import has_labels
from gpuforest.kernels.shared.hashing.numba import U


class Branches(NamedTuple):
    """The branches of the chains above a node, i64[...] each: a branch's category, where its rows
    end in the order, and whether no later branch is heavier; its weight until that is known."""

    code: I64s
    end: I64s
    heaviest: I64s


@device
def start_branch(branches, end, code):
    """Write a branch without rows, and return where the branches end."""
    branches.code[end], branches.heaviest[end] = code, 0
    return end + 1


@device
def sort_few(slot, order, spare, work, branches, top):
    """As sort_rows, by sorting the codes in `work.code`; the sorted rows are put into `spare`."""
    own, end, width, weight = order.own, top, order.own.shape[1], weight_column(order.own)
    sort_by_code(slot.n_rows, work)
    for i in range(slot.n_rows):
        at = slot.begin + np.int64(work.keys[U(i)] & POSITION)
        b = np.int64(work.keys[U(i)] >> SIXTEEN)
        if end == top or branches.code[end - 1] != b:
            end = start_branch(branches, end, b)
        branches.end[end - 1] = slot.begin + i + 1
        branches.heaviest[end - 1] += own[U(at), weight]
        spare.positions[U(i)] = order.positions[U(at)]
        for c in range(width):
            spare.own[U(i), U(c)] = own[U(at), U(c)]
    return end


@device
def sort_many(column, feature, slot, order, spare, counts, branches, top):
    """As sort_few, by counting the codes; `counts` i64[B] is scratch."""
    positions, own, low, end = order.positions, order.own, slot.begin, top
    high, width = low + slot.n_rows, own.shape[1]
    for b in range(feature.missing + 1):
        counts[b] = 0
    for i in range(low, high):
        counts[np.int64(column[U(positions[U(i)])])] += 1
    first = 0
    for i in range(feature.bins + 1):
        b = i if i < feature.bins else feature.missing
        if counts[b] > 0:
            end = start_branch(branches, end, b)
            first, counts[b] = first + counts[b], first
            branches.end[end - 1] = low + first
    for i in range(low, high):
        b = np.int64(column[U(positions[U(i)])])
        at = counts[b]
        counts[b] += 1
        spare.positions[U(at)] = positions[U(i)]
        for c in range(width):
            spare.own[U(at), U(c)] = own[U(i), U(c)]
    at = 0
    for j in range(top, end):
        for i in range(at, branches.end[j] - low):
            branches.heaviest[j] += spare.own[U(i), weight_column(own)]
        at = branches.end[j] - low
    return end


@device
def weight_column(own):
    """The column of `own` that holds weights."""
    return 1 if has_labels(own) else 0


@device
def sort_rows(column, feature, slot, scratch, counts, branches, top):
    """Sort a node's rows by category, missing values last, write its branches from `top` on, and
    return where they end."""
    order, spare, work = scratch.order, scratch.spare, scratch.work
    if fills(slot, feature):
        end = sort_many(column, feature, slot, order, spare, counts, branches, top)
    else:
        take_codes(column, slot, order, work.code)
        end = sort_few(slot, order, spare, work, branches, top)
    for i in range(slot.n_rows):
        order.positions[U(slot.begin + i)] = spare.positions[U(i)]
        for c in range(order.own.shape[1]):
            order.own[U(slot.begin + i), U(c)] = spare.own[U(i), U(c)]
    heaviest = np.int64(-1)  # of the branches that follow
    for j in range(end - 1, top - 1, -1):
        weight = branches.heaviest[j]
        branches.heaviest[j] = weight >= heaviest
        heaviest = max(heaviest, weight)
    return end


@device
def link_set(branches, first, high, bins, missing, words):
    """Write the set of a link: its category and, if its branch is the heaviest of those left, all
    categories that the node does not hold. Returns whether missing values go left."""
    for w in range((bins + 63) >> 6):
        words[w] = U(0)
    b = branches.code[first]
    if not branches.heaviest[first]:
        words[b >> 6] |= U(1) << U(b & 63)
        return False
    for c in range(bins):
        words[c >> 6] |= U(1) << U(c & 63)
    j, missing_left = first, True
    while branches.end[j] < high:
        j += 1
        c = branches.code[j]
        if c == missing:
            missing_left = False
        else:
            words[c >> 6] ^= U(1) << U(c & 63)
    return missing_left
