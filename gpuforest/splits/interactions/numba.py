"""Grow trees whose paths have features of one set: see kind.py."""

from typing import Annotated, Any, NamedTuple

from gpuforest.compiler.decorators import device, kernel
from gpuforest.compiler.types import I64s
from gpuforest.core.frontier import Data, Frontier
from gpuforest.core.rules import Rules
from gpuforest.kernels.grow_subtrees import numba as subtrees
from gpuforest.kernels.grow_subtrees.rows import load_rows
from gpuforest.kernels.grow_subtrees.scratch import Scratch, Ways
from gpuforest.kernels.sets.numba import Sets


class States(NamedTuple):
    """What nodes allow below them, see `states_of`, and the state of each node."""

    allowed: Annotated[Any, "bool[Q, F]"]
    after: Annotated[Any, "i32[Q, F]"]
    of_node: Annotated[Any, "i32[M]"]


@device
def search_allowed(growth, table, slot, n_trail, sets):
    """As `search` of kernels/grow_subtrees/numba.py. Features that the chosen one does not meet
    become constant below the node."""
    if growth.rules.random and len(sets.best) == 0:  # no feature has categories
        best, n_trail = subtrees.search_random(growth, table, slot, n_trail, sets)
    else:
        best, n_trail = subtrees.search(growth, table, slot, n_trail, sets)
    if best.feature < 0:
        return best, n_trail
    states, scratch = growth.of_kind, growth.scratch
    below = states.after[states.of_node[slot.number], best.feature]
    for f in range(len(scratch.constant)):
        if not scratch.constant[f] and not states.allowed[below, f]:
            scratch.constant[f], scratch.trail[n_trail] = True, f
            n_trail += 1
    return best, n_trail


@device
def write(growth, table, node, slot, split, n_stack, n_trail, sets, grown):
    """As `write_split` of kernels/grow_subtrees/numba.py; the children are in the next state."""
    states, child = growth.of_kind, grown.n_nodes
    below = states.after[states.of_node[node.number], split.feature]
    states.of_node[child] = states.of_node[child + 1] = below
    return subtrees.write_split(growth, table, node, slot, split, n_stack, n_trail, sets, grown)


WAYS = Ways(load_rows, search_allowed, write, subtrees.no_link)


@kernel(plain={})
def grow_interacting(
    data: Data, slots: Frontier, rules: Rules, scratch: Scratch, offsets: I64s, written: I64s,
    sets: Sets, states: States,
):  # fmt: skip
    """As `grow_subtrees` of kernels/grow_subtrees/numba.py, from the slots of roots."""
    states.of_node[:] = 0
    subtrees.grow_slots(data, slots, rules, scratch, offsets, written, sets, WAYS, states)
