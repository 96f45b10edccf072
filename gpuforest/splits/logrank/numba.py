"""Grow trees by the log-rank statistic.

The rows of a node stay in the order of their times, so one pass over them gives the node's hazards:

    time           1    2    2+   3        + : no event
    at risk        4    3         1
    hazard rises  1/4  1/3       1/1
    expected      1/4  7/12 7/12 19/12     of each row: the hazard until its time

A side with D events and E expected events has the score D^2 / E. Over both sides that is the
sum of (D - E)^2 / E plus a term that all splits of the node share. Hazards are whole multiples
of 2**-30, so E and the scores are equal everywhere.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from gpuforest.compiler.decorators import device, kernel
from gpuforest.compiler.types import I64s, new_arrays
from gpuforest.core.frontier import Data, Frontier
from gpuforest.core.rules import Rules
from gpuforest.kernels.grow_subtrees.cuts import left_totals
from gpuforest.kernels.grow_subtrees.numba import grow_block, search, search_random, write_split
from gpuforest.kernels.grow_subtrees.rows import allow, node_totals, words_of
from gpuforest.kernels.grow_subtrees.scratch import Grown, OpenNode, Scratch
from gpuforest.kernels.sets.numba import Sets
from gpuforest.kernels.shared.numba import U
from gpuforest.kernels.shared.records import NO_SPLIT, Bin, Slot, Split

Array = Any

ONE = 2**30  # a hazard of one; there are fewer than 2**31 events, so that no sum can overflow


class AtRisk(NamedTuple):
    """What the log-rank statistic needs besides `Scratch`."""

    times: Annotated[Array, "i64[N, M]"]  # see `Target.times`
    by_time: Annotated[Array, "i64[N]"]  # all rows in the order of their times
    weight: Annotated[Array, "i64[N]"]  # of rows for a while; zeros else
    sums: Annotated[Array, "i64[C]"]  # of a node: expected events, and events
    left: Annotated[Array, "i64[C]"]  # channel sums of the left side


def new_at_risk(times: np.ndarray, C: int) -> AtRisk:
    """Scratch for rows of these times."""
    arrays = new_arrays(AtRisk, np.zeros, N=len(times), C=C)
    arrays["by_time"][:] = np.argsort(times[:, 0], kind="stable")
    return AtRisk(times=times, **arrays)


@device
def load_in_order(data, slots, d, order, at_risk):
    """As load_rows, but in the order of times, and with the rows' numbers."""
    stats, y, C, n = order.stats, data.y, data.y.shape[1] + 1, 0
    for i in range(slots.begin[d], slots.end[d]):
        at_risk.weight[slots.rows[i]] = slots.weights[i]
    for i in range(len(at_risk.by_time)):
        r = at_risk.by_time[i]
        w = at_risk.weight[r]
        if w > 0:
            order.positions[n] = r
            stats[n, 0], stats[n, C] = w, r
            for c in range(1, C):
                stats[n, c] = w * y[r, c - 1]
            at_risk.weight[r] = 0
            n += 1
    return n


@device
def expect(stats, low, high, at_risk):
    """Put expected and known events of rows in the order of times into `stats`. Their sums go to
    `at_risk.sums`, the numbers of draws to `at_risk.weight`."""
    times, sums, C = at_risk.times, at_risk.sums, len(at_risk.sums)
    n_at_risk, hazard, first = np.int64(0), np.int64(0), low
    for c in range(C):
        sums[c] = 0
    for i in range(low, high):
        stats[U(i), 0] //= times[U(stats[U(i), U(C)]), 2]
        n_at_risk += stats[U(i), 0]
    while first < high:
        last, events, leave = first, np.int64(0), np.int64(0)
        time = times[U(stats[U(first), U(C)]), 0]
        while last < high and times[U(stats[U(last), U(C)]), 0] == time:
            r = U(stats[U(last), U(C)])
            drawn, cause = stats[U(last), 0], times[r, 1]
            at_risk.weight[r] = drawn
            leave += drawn
            events += drawn if cause > 0 else 0
            for c in range(1, C):
                stats[U(last), U(c)] = drawn if cause == c else 0
                sums[c] += stats[U(last), U(c)]
            last += 1
        hazard += (2 * ONE * events + n_at_risk) // (2 * n_at_risk)
        n_at_risk -= leave
        for i in range(first, last):
            stats[U(i), 0] *= max(hazard, 1)
            sums[0] += stats[U(i), 0]
        first = last


@device
def restore(stats, low, high, y, at_risk):
    """Put back what rows add to channel sums."""
    C = len(at_risk.sums)
    for i in range(low, high):
        r = stats[U(i), U(C)]
        w = at_risk.weight[U(r)] * at_risk.times[U(r), 2]
        at_risk.weight[U(r)], stats[U(i), 0] = 0, w
        for c in range(1, C):
            stats[U(i), U(c)] = w * y[U(r), U(c - 1)]


@device
def search_at_risk(
    data, table, slot, rules, scratch, perfect, order_domain, n_trail, sets, at_risk
):  # fmt: skip
    """As `search` of kernels/grow_subtrees/numba.py, by the log-rank statistic."""
    order, low, high = scratch.order, slot.begin, slot.begin + slot.n_rows
    expect(order.stats, low, high, at_risk)
    counted = Slot(
        slot.number, low, slot.n_rows, at_risk.sums[0], slot.key, at_risk.sums, slot.low, slot.high
    )
    if rules.random and len(sets.best) == 0:  # no feature has categories
        best, n_trail, _, _ = search_random(
            data, table, counted, rules, scratch, np.inf, order_domain, n_trail, sets, None
        )
    else:
        best, n_trail, _, _ = search(
            data, table, counted, rules, scratch, np.inf, order_domain, n_trail, sets, None
        )
    restore(order.stats, low, high, data.y, at_risk)
    if best.feature < 0:
        return NO_SPLIT, n_trail, 0, 0
    left, missing = at_risk.left, np.int64(data.n_codes - 1)
    left_totals(table[best.feature], order, slot, best, missing, words_of(sets), left)
    sums = Bin(left[0], left[len(left) - 1], best.left.rows)
    split = Split(best.score, best.feature, best.bin, best.missing_left, sums)
    return split, n_trail, 0, 0


@kernel(plain={}, target="int64")
def grow_logrank(
    data: Data, slots: Frontier, rules: Rules, scratch: Scratch, offsets: I64s, written: I64s,
    sets: Sets, at_risk: AtRisk,
):  # fmt: skip
    """As grow_subtrees of kernels/grow_subtrees/numba.py, from the slots of roots."""
    zero: Any = np.int64(0)
    used, order, sums = scratch.used, scratch.order, scratch.sums
    blocks, grown = (data.codes, scratch.some, scratch.few), Grown(zero, zero, zero)
    for d in range(len(slots.begin)):
        n = load_in_order(data, slots, d, order, at_risk)
        node_totals(order.stats, 0, n, sums)
        root = OpenNode(
            zero, n, zero + slots.depth[d], grown.n_nodes, zero, sums[0], sums[len(sums) - 1],
            slots.key[d],
        )  # fmt: skip
        allow(scratch, slots, d)
        used[0], used[1], used[2] = root.high, 0, 0
        grown = grow_block(
            data, blocks, root, rules, scratch, sets, search_at_risk, write_split, at_risk, grown
        )
        offsets[d + 1] = grown.n_nodes
    scratch.refused[:] = scratch.constant[:] = False
    written[0], written[1] = grown.n_leaves, grown.n_words
