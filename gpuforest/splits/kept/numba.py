"""Grow trees by cuts and sets, and write out the histograms of their upper nodes.

    upper nodes   hold more than `most_rows` rows, and are split: their features and histograms
    blocks        are the nodes below these, or roots: their rows and weights

A block's rows are one range of the order, and nodes are taken from left to right. A node that
begins before UPTO, where the last block ends, is inside that block.

`search_kept` searches upper nodes again by what is kept of them, with rows that have changed since.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from gpuforest.common.dtypes import CATEGORICAL
from gpuforest.compiler.decorators import device, kernel
from gpuforest.compiler.types import I64, I32s, I64s, Targets2
from gpuforest.core.frontier import Data, Frontier, Splits
from gpuforest.core.rules import Rules
from gpuforest.kernels.best_split.cuts import Scan, feature_of, slot_at
from gpuforest.kernels.best_split.numba import improve
from gpuforest.kernels.grow_subtrees import cuts, rows
from gpuforest.kernels.grow_subtrees import numba as subtrees
from gpuforest.kernels.grow_subtrees.scratch import Scratch, Ways
from gpuforest.kernels.sets.numba import Sets
from gpuforest.kernels.shared.numba import U, has_labels, order_of
from gpuforest.kernels.shared.records import NO_SPLIT
from gpuforest.splits.kept.again import Again, divide, enter, leave, visit

Array = Any

NUMBER, LEFT, N_ROWS, FIRST, COUNT = range(5)  # of a node in `nodes`
NODES, FEATURES, ROWS, UPTO, MOST_ROWS = range(5)  # in `used`


class Kept(NamedTuple):
    """What is written of the upper nodes and blocks of slots, one slot after another."""

    # a node's number in its subtree; that of the left one below it, 0: a block; its rows; the first
    # of its features, or of its rows; and how many
    nodes: Annotated[Array, "i64[n, K]"]
    sums: Annotated[Array, "i64[n, C]"]
    features: Annotated[Array, "i32[m]"]
    hists: Targets2  # i32[m, B] of classes, else i64, of B codes and all channels
    rows: Annotated[Array, "i32[R]"]
    weights: Annotated[Array, "i32[R]"]
    offsets: Annotated[Array, "i64[D]"]  # the first node of each slot
    used: Annotated[Array, "i64[K]"]  # of these; UPTO; and what a block may hold
    stack: Annotated[Array, "i64[L, K]"]  # of open nodes that grow again: see again.py
    now: Annotated[Array, "i64[K]"]


class OfKind(NamedTuple):
    """What growth passes on to the functions here."""

    kept: Any
    again: Any


@device
def load(data, slots, d, order, of_kind):
    """As load_rows, with the rows' numbers behind what they add to a sum."""
    (kept, again), stats = of_kind, order.stats
    n = rows.load_rows(data, slots, d, order, kept)
    for i in range(n):
        stats[U(i), U(stats.shape[1] - 1)] = order.positions[U(i)]
    kept.offsets[d], kept.used[UPTO] = kept.used[NODES], 0
    if len(again.old) > 0:
        enter(kept, again, np.int64(slots.tree[d]))
        kept.used[UPTO] = n  # no histograms are wanted
    return n


@device
def put_node(kept, number, n_rows, sums, first, count):
    """Write what upper nodes and blocks have."""
    at = kept.used[NODES]
    node = kept.nodes[at]
    node[NUMBER], node[LEFT], node[N_ROWS] = number, 0, n_rows
    node[FIRST], node[COUNT] = first, count
    for c in range(len(sums)):
        kept.sums[at, c] = sums[c]
    kept.used[NODES] = at + 1


@device
def put_block(kept, stats, slot, number):
    """Write a node as a block, with its rows."""
    first, n, last = kept.used[ROWS], slot.n_rows, stats.shape[1] - 1
    put_node(kept, number, n, slot.sums, first, n)
    for i in range(n):
        at = U(slot.begin + i)
        kept.rows[U(first + i)] = stats[at, U(last)]
        kept.weights[U(first + i)] = stats[at, 1 if has_labels(stats) else 0]
    kept.used[ROWS], kept.used[UPTO] = first + n, slot.begin + n


@device
def resume(growth, node, n_stack, n_trail, sets, grown):
    """Write a node that will not be searched, or holds few rows, as a block; see also `visit`."""
    (kept, again), rules, scratch = growth.of_kind, growth.rules, growth.scratch
    if node.low >= kept.used[UPTO]:
        stats = scratch.order.stats
        slot = subtrees.slot_of(node, stats, scratch.sums)
        may_split = slot.n_rows >= rules.fewest_rows and node.depth < rules.max_depth
        is_block = slot.n_rows <= kept.used[MOST_ROWS] or not may_split
        is_block |= kept.used[FEATURES] + len(scratch.constant) > len(kept.features)
        if is_block or rows.is_pure(stats, slot):
            put_block(kept, stats, slot, node.number - growth.first)
    if len(again.old) > 0 and visit(kept, again, node.number, n_stack):
        return True, n_stack, rows.put_leaf(scratch, node.number, scratch.sums, grown)
    return False, n_stack, grown


@device
def keep_features(kept, m, batch, hists, data, count_rows, C):
    """Write the filled histograms of m features."""
    at, width = kept.used[FEATURES], C + count_rows
    for j in range(m):
        feature, kept.features[at + j] = feature_of(batch[j], data, count_rows, C), batch[j]
        to, end, missing = kept.hists[at + j], feature.bins * width, feature.missing * width
        for i in range(end):
            to[U(i)] = hists[U(j), U(i)]
        for i in range(end, missing):
            to[U(i)] = 0
        for i in range(missing, missing + width):
            to[U(i)] = hists[U(j), U(i)]
    kept.used[FEATURES] = at + m


@device
def search(growth, table, slot, n_trail, sets):
    """As `search` of grow_subtrees. Upper nodes look at constant features too, since a row that
    joins may change that, and stop at no score."""
    (kept, _), data, rules, scratch = growth.of_kind, growth.data, growth.rules, growth.scratch
    if slot.begin < kept.used[UPTO]:
        return subtrees.search(growth, table, slot, n_trail, sets)
    hists, batch, k, C = scratch.hists, scratch.batch, rules.n_tried, len(slot.sums)
    count_rows, best, tried, position = rules.count_rows, NO_SPLIT, 0, 0
    width, draw, first = np.int64(C + count_rows), order_of(slot.key), kept.used[FEATURES]
    while tried < k:
        m, position = subtrees.next_features(growth, min(k - tried, len(hists)), draw, position)
        if m == 0:
            break
        for j in range(m):
            cuts.clear(hists[j], feature_of(batch[j], data, count_rows, C))
        cuts.fill_batch(scratch, m, table, slot, C, width)
        keep_features(kept, m, batch, hists, data, count_rows, C)
        for j in range(m):
            f = np.int64(batch[j])
            varies, split = cuts.cut_or_set(
                table[f], feature_of(f, data, count_rows, C), slot, rules, scratch, hists[j], True,
                best.score, sets, sets.kinds[f] == CATEGORICAL,
            )  # fmt: skip
            tried += varies
            if varies and split.score > best.score:
                best = split
    number = slot.number - growth.first
    if subtrees.is_leaf(best, slot, rules):
        kept.used[FEATURES] = first
        put_block(kept, scratch.order.stats, slot, number)
    else:
        put_node(kept, number, slot.n_rows, slot.sums, first, kept.used[FEATURES] - first)
    return best, n_trail


@device
def write(growth, table, node, slot, split, n_stack, n_trail, sets, grown):
    """As `write_split`; but the rows of both sides are wanted of upper nodes, and of nodes that
    grow again."""
    (kept, again), data, scratch = growth.of_kind, growth.data, growth.scratch
    first, is_upper, grows_again = growth.first, node.low >= kept.used[UPTO], len(again.old) > 0
    if not (is_upper or grows_again):
        return subtrees.write_split(growth, table, node, slot, split, n_stack, n_trail, sets, grown)
    if is_upper:
        kept.nodes[kept.used[NODES] - 1, LEFT] = grown.n_nodes - first
    grown = rows.put_split(scratch, data, node.number, first, split, sets, grown)
    n_left = rows.split_rows(
        table[split.feature], scratch.order, scratch.spare, slot, split, np.int64(data.n_codes - 1),
        rows.words_of(sets),
    )  # fmt: skip
    if grows_again:
        divide(growth, kept, again, node.number, split, n_stack, sets)
    return subtrees.push_children(growth, n_stack, node, n_left, split.left, n_trail, grown), grown


WAYS = Ways(load, search, write, resume)


@kernel(checked={"target": "int32"})
def grow_kept(
    data: Data, slots: Frontier, rules: Rules, scratch: Scratch, offsets: I64s, written: I64s,
    sets: Sets, kept: Kept, again: Again,
):  # fmt: skip
    """As `grow_subtrees` of kernels/grow_subtrees/numba.py, and writes to `kept`; of nodes that
    grow again, to `again`."""
    kept.used[:MOST_ROWS] = 0
    of_kind = OfKind(kept, again)
    subtrees.grow_slots(data, slots, rules, scratch, offsets, written, sets, WAYS, of_kind)
    if len(again.old) > 0:
        for d in range(len(slots.begin)):
            leave(again, scratch, np.int64(slots.tree[d]))


@device
def add_changed(hist, f, data, slots, s, sign, count_rows):
    """Add the rows of a slot to the histogram of a feature, or with sign -1 take them away."""
    C = data.n_channels
    for i in range(slots.begin[s], slots.end[s]):
        r, w = slots.rows[i], sign * np.int64(slots.weights[i])
        at = np.int64(data.codes[f, r]) * (C + count_rows)
        if has_labels(data.y):
            hist[at + data.y[r, 0]] += w
        else:
            hist[at] += w
            for k in range(C - 1):
                hist[at + 1 + k] += w * data.y[r, k]
        if count_rows:
            hist[at + C] += sign


@kernel(plain={})
def search_kept(
    data: Data, slots: Frontier, rules: Rules, first: I64, last: I64, splits: Splits,
    features: I32s, sums: Targets2, begin: I64s, end: I64s, sign: I64, keeps: I64, hist: I64s,
    scan: Scan, sets: Sets,
):  # fmt: skip
    """Write the best splits of the slots first .. last - 1 by their histograms, `begin` to `end` of
    the features i32[m] and sums [m, B * width]. Slots hold rows that join (sign 1) or leave (-1),
    which are added to the sums if `keeps`. hist : scratch i64[B * width]"""
    for s in range(first, last):
        slot, best, tried = slot_at(slots, s, has_labels(data.y)), NO_SPLIT, 0
        for j in range(begin[s], end[s]):
            if features[j] < 0:
                continue
            for i in range(len(hist)):
                hist[U(i)] = sums[U(j), U(i)]
            add_changed(hist, features[j], data, slots, s, sign, rules.count_rows)
            if keeps:
                for i in range(len(hist)):
                    sums[U(j), U(i)] = hist[U(i)]
            if tried < rules.n_tried:
                feature = feature_of(features[j], data, rules.count_rows, len(slot.sums))
                varies, best = improve(hist, feature, slot, rules, best, splits, scan, sets)
                tried += varies
        splits.score[s], splits.feature[s], splits.bin[s] = best.score, best.feature, best.bin
        splits.missing_left[s], splits.tried[s] = best.missing_left, tried
