"""Multiway splits: a branch for each category, as ID3 and C4.5 grow them (Quinlan 1986, 1993).

A forest stores a multiway split as a chain of binary splits on one feature. Each separates the
lowest remaining category from the others, so predicting, pruning and importances need no extra
code:

    outlook: sunny | overcast | rainy        x in {sunny}?  -- yes: its branch
                                                 no: x in {overcast}?  -- yes, no: two branches

All links of a chain have the depth of its first link. A feature is not used again below its
multiway split. Missing values are the last category; categories that the node does not hold go to
the heaviest branch. Numeric features have cuts.

Trees are grown whole on the CPU, which makes a chain at once; other backends hand these fits
over to it.
"""

from __future__ import annotations

from typing import Any

from gpuforest.core.frontier import Data
from gpuforest.core.training import Training
from gpuforest.kernels.grow_subtrees.scratch import Scratch
from gpuforest.splits.base import Sets
from gpuforest.splits.multiway.numba import grow_multiway, new_chains


class Multiway(Sets):
    """Categorical features have a branch for each category, numeric ones have cuts."""

    name = "multiway"
    title = "categorical_split='multiway'"
    cpu_only = whole_rows = grows_whole = True
    by_level = False
    kernel = grow_multiway
    row_bytes = 96  # of open nodes and branches

    def cpu_scratch(self, training: Training, scratch: Scratch, data: Data) -> tuple[Any, ...]:
        return (new_chains(len(scratch.order.positions), len(scratch.nodes), training.n_features),)
