"""Grow trees by pseudo-outcomes of effects, see kind.py.

While a node's split is chosen, the pseudo-outcomes of its rows stand in place of their first
moment, so the search is that of a regression with two channels. It takes less time than histograms
of all channels would: a pass over the rows costs about as much as one feature of many.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from gpuforest.compiler.decorators import device, kernel
from gpuforest.compiler.types import I64s
from gpuforest.core.frontier import Data, Frontier
from gpuforest.core.rules import Rules
from gpuforest.kernels.grow_subtrees import numba as subtrees
from gpuforest.kernels.grow_subtrees import rows
from gpuforest.kernels.grow_subtrees.scratch import Growth, Scratch, Ways
from gpuforest.kernels.sets.numba import Sets
from gpuforest.kernels.shared.numba import U
from gpuforest.kernels.shared.records import Slot

ROOM = 2.0**58  # a pseudo-outcome is below 4 * (1 + slope) times the square of the largest moment


class Limited(NamedTuple):
    """The rules of the search in one node."""

    criterion: Any
    n_tried: Any
    random: Any
    min_rows_leaf: Any
    count_rows: Any


class Pseudo(NamedTuple):
    """What splits by effects need besides `Scratch`."""

    units: Annotated[Any, "f64[3]"]  # the scale of the moments, a bound of them, and `least_share`
    sums: Annotated[Any, "i64[2]"]  # of a node: its weight, and the sum of its pseudo-outcomes
    scratch: Scratch  # the same, with an order of weights and pseudo-outcomes


@device
def put_pseudo(stats, low, high, sums, pseudo):
    """Put the weights of rows, and these times pseudo-outcomes, beside `stats`, and their sums. As
    `pseudo_outcomes` of kind.py."""
    scale, most, to = pseudo.units[0], pseudo.units[1], pseudo.scratch.order.stats
    n, at = np.float64(sums[0]), 4 if len(sums) == 6 else 1
    y, w, z = sums[1] / n, sums[2] / n, sums[1 + at] / n
    of_y, of_w = sums[3] / n * scale - z * y, sums[4] / n * scale - z * w
    slope = of_y / of_w if of_w != 0 else 0.0
    step = ROOM / (n * (most * most) * (1.0 + abs(slope)))
    total = np.int64(0)
    for i in range(low, high):
        weight = stats[U(i), 0]
        y_i, w_i, z_i = stats[U(i), 1], stats[U(i), 2], stats[U(i), U(1 + at)]
        if weight != 1:
            y_i, w_i, z_i = y_i // weight, w_i // weight, z_i // weight
        r = (z_i - z) * ((y_i - y) - slope * (w_i - w))
        whole = weight * np.int64(np.floor(r * step + 0.5))
        to[U(i), 0], to[U(i), 1] = weight, whole
        total += whole
    pseudo.sums[0], pseudo.sums[1] = sums[0], total


@device
def search_effects(growth, table, slot, n_trail, sets):
    """As `search` of kernels/grow_subtrees/numba.py, by pseudo-outcomes."""
    pseudo, low, n, rules = growth.of_kind, slot.begin, slot.n_rows, growth.rules
    put_pseudo(growth.scratch.order.stats, low, low + n, slot.sums, pseudo)
    by_pseudo = Slot(slot.number, low, n, slot.weight, slot.key, pseudo.sums, slot.low, slot.high)
    least = max(np.int64(rules.min_rows_leaf), np.int64(np.ceil(pseudo.units[2] * n)))
    limited = Limited(rules.criterion, rules.n_tried, rules.random, least, least > 1)
    inner = Growth(growth.data, limited, pseudo.scratch, growth.order_domain, growth.first, None)
    return subtrees.search(inner, table, by_pseudo, n_trail, sets)


WAYS = Ways(rows.load_rows, search_effects, subtrees.write_split, subtrees.no_link)


@kernel(plain={"sets": True}, target="int64")
def grow_effects(
    data: Data, slots: Frontier, rules: Rules, scratch: Scratch, offsets: I64s, written: I64s,
    sets: Sets | None, pseudo: Pseudo,
):  # fmt: skip
    """As grow_subtrees of kernels/grow_subtrees/numba.py, from the slots of roots."""
    subtrees.grow_slots(data, slots, rules, scratch, offsets, written, sets, WAYS, pseudo)
