"""Splits by the features that may meet on a path: interaction constraints.

A node knows which sets of features hold all features that split the nodes above it, and tries those
features that are in any of these sets. That is the rule of boosting (scikit-learn's
`interaction_cst`); features that a node may not try count as constant there, and so below.

Trees are grown whole on the CPU; other backends hand these fits over to it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gpuforest.core.frontier import Data
from gpuforest.core.training import Training
from gpuforest.kernels.grow_subtrees.scratch import Scratch
from gpuforest.splits.base import Sets
from gpuforest.splits.interactions.numba import States, grow_interacting

MOST_CELLS = 2**27  # of the tables of states


class Interactions(Sets):
    """Cuts, and sets of categories, by features that may interact with those above."""

    name = "interactions"
    title = "interaction_cst"
    cpu_only = whole_rows = has_sets = grows_whole = True
    by_level = False
    kernel = grow_interacting
    row_bytes = 8  # the states of two nodes

    def cpu_scratch(self, training: Training, scratch: Scratch, data: Data) -> tuple[Any, ...]:
        allowed, after = states_of(training.rules.interactions, training.n_features)
        return (States(allowed, after, np.zeros(len(scratch.nodes), np.int32)),)


@cache
def states_of(sets: tuple[tuple[int, ...], ...], n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """The states that nodes can have: which features they allow, bool[Q, F], and the state below a
    split by each of these, i32[Q, F]. State 0 is the root's.

    A state is the sets that hold all features of a path, as the bits of an integer. With the sets
    {0, 1} and {1, 2}: below a split by 0 the first is left, and 0 and 1 are allowed; below a split
    by 1 both are left, and all are allowed.

    Raises
    ------
    ValueError : there are too many states"""
    holding = [
        sum(1 << i for i, members in enumerate(sets) if f in members) for f in range(n_features)
    ]
    states = [(1 << len(sets)) - 1]
    known, below = {states[0]: 0}, []
    for state in states:  # which grows
        left = [state & h for h in holding]
        for each in left:
            if each and each not in known:
                known[each] = len(states)
                states.append(each)
        below.append([known.get(each, -1) for each in left])
        if len(states) * n_features > MOST_CELLS:
            raise ValueError(
                f"interaction_cst has too many overlapping sets for {n_features} features: paths "
                f"can reach more than {MOST_CELLS // n_features} combinations of them. Pass fewer "
                "sets"
            )
    after = np.array(below, np.int32)
    return after >= 0, after
