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
from gpuforest.kernels.grow_subtrees import numba as subtrees
from gpuforest.kernels.grow_subtrees.cuts import left_totals
from gpuforest.kernels.grow_subtrees.rows import words_of
from gpuforest.kernels.grow_subtrees.scratch import Scratch, Ways
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
def search_at_risk(growth, table, slot, n_trail, sets):
    """As `search` of kernels/grow_subtrees/numba.py, by the log-rank statistic."""
    data, rules, scratch, at_risk = growth.data, growth.rules, growth.scratch, growth.of_kind
    order, low, high = scratch.order, slot.begin, slot.begin + slot.n_rows
    expect(order.stats, low, high, at_risk)
    counted = Slot(
        slot.number, low, slot.n_rows, at_risk.sums[0], slot.key, at_risk.sums, slot.low, slot.high
    )
    if rules.random and len(sets.best) == 0:  # no feature has categories
        best, n_trail = subtrees.search_random(growth, table, counted, n_trail, sets)
    else:
        best, n_trail = subtrees.search(growth, table, counted, n_trail, sets)
    restore(order.stats, low, high, data.y, at_risk)
    if best.feature < 0:
        return NO_SPLIT, n_trail
    left, missing = at_risk.left, np.int64(data.n_codes - 1)
    left_totals(table[best.feature], order, slot, best, missing, words_of(sets), left)
    sums = Bin(left[0], left[len(left) - 1], best.left.rows)
    return Split(best.score, best.feature, best.bin, best.missing_left, sums), n_trail


WAYS = Ways(load_in_order, search_at_risk, subtrees.write_split, subtrees.no_link)


@kernel(plain={}, target="int64")
def grow_logrank(
    data: Data, slots: Frontier, rules: Rules, scratch: Scratch, offsets: I64s, written: I64s,
    sets: Sets, at_risk: AtRisk,
):  # fmt: skip
    """As grow_subtrees of kernels/grow_subtrees/numba.py, from the slots of roots."""
    subtrees.grow_slots(data, slots, rules, scratch, offsets, written, sets, WAYS, at_risk)
