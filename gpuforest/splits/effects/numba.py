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
from gpuforest.kernels.grow_subtrees.scratch import Scratch, Ways
from gpuforest.kernels.sets.numba import Sets
from gpuforest.kernels.shared.numba import U
from gpuforest.kernels.shared.records import Slot

ROOM = 2.0**58  # a pseudo-outcome is below 4 * (1 + slope) times the square of the largest moment


class Pseudo(NamedTuple):
    """What splits by effects need besides `Scratch`."""

    units: Annotated[Any, "f64[2]"]  # the scale of the moments, and a bound of them
    sums: Annotated[Any, "i64[2]"]  # of a node: its weight, and the sum of its pseudo-outcomes


@device
def enter(stats, low, high, sums, pseudo):
    """Put pseudo-outcomes, times weights, in place of rows' first moments, which move to the last
    column. As `pseudo_outcomes` of kind.py."""
    C, scale, most = len(sums), pseudo.units[0], pseudo.units[1]
    n, at = np.float64(sums[0]), 4 if len(sums) == 6 else 1
    y, w, z = sums[1] / n, sums[2] / n, sums[1 + at] / n
    of_y, of_w = sums[3] / n * scale - z * y, sums[4] / n * scale - z * w
    slope = of_y / of_w if of_w != 0 else 0.0
    step = ROOM / (n * (most * most) * (1.0 + abs(slope)))
    total = np.int64(0)
    for i in range(low, high):
        weight, first = stats[U(i), 0], stats[U(i), 1]
        y_i, w_i, z_i = first, stats[U(i), 2], stats[U(i), U(1 + at)]
        if weight != 1:
            y_i, w_i, z_i = y_i // weight, w_i // weight, z_i // weight
        r = (z_i - z) * ((y_i - y) - slope * (w_i - w))
        whole = weight * np.int64(np.floor(r * step + 0.5))
        stats[U(i), U(C)], stats[U(i), 1] = first, whole
        total += whole
    pseudo.sums[0], pseudo.sums[1] = sums[0], total


@device
def search_effects(growth, table, slot, n_trail, sets):
    """As `search` of kernels/grow_subtrees/numba.py, by pseudo-outcomes."""
    stats, pseudo = growth.scratch.order.stats, growth.of_kind
    low, high, C = slot.begin, slot.begin + slot.n_rows, len(slot.sums)
    enter(stats, low, high, slot.sums, pseudo)
    by_pseudo = Slot(
        slot.number, low, slot.n_rows, slot.weight, slot.key, pseudo.sums, slot.low, slot.high
    )
    best, n_trail = subtrees.search(growth, table, by_pseudo, n_trail, sets)
    for i in range(low, high):
        stats[U(i), 1] = stats[U(i), U(C)]
    return best, n_trail


WAYS = Ways(rows.load_rows, search_effects, subtrees.write_split, subtrees.no_link)


@kernel(plain={}, target="int64")
def grow_effects(
    data: Data, slots: Frontier, rules: Rules, scratch: Scratch, offsets: I64s, written: I64s,
    sets: Sets, pseudo: Pseudo,
):  # fmt: skip
    """As grow_subtrees of kernels/grow_subtrees/numba.py, from the slots of roots."""
    subtrees.grow_slots(data, slots, rules, scratch, offsets, written, sets, WAYS, pseudo)
