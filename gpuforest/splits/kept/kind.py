"""Cuts and sets, with the histograms of upper nodes: see growing/upper.py."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpuforest.backends.base import Array
from gpuforest.compiler.types import new_arrays
from gpuforest.core.frontier import Data, Frontier
from gpuforest.core.training import Training
from gpuforest.kernels.grow_subtrees.scratch import Scratch
from gpuforest.splits.base import Sets
from gpuforest.splits.kept.numba import FEATURES, MOST_ROWS, NODES, ROWS, Kept, grow_kept

# Room for upper nodes, by the rows of a block; where more would be, nodes are blocks of more rows
UPPER, SPARE = 4, 64


class Part(NamedTuple):
    """The upper nodes and blocks of some slots; see `Kept`."""

    begin: Array  # i64[D], where the slots begin
    offsets: Array
    nodes: Array
    sums: Array
    features: Array
    hists: Array
    rows: Array
    weights: Array


class Keeping(Sets):
    """Cuts, and sets of categories, of trees that grow whole on the CPU and keep histograms.

    most_rows : of a block; dtype : of kept sums"""

    name = "kept"
    cpu_only = has_sets = grows_whole = True
    by_level = False
    columns = 1  # a row's number
    kernel = grow_kept

    def __init__(self, most_rows: int, dtype: type[np.signedinteger[Any]]) -> None:
        self.most_rows, self.dtype, self.parts = most_rows, dtype, list[Part]()

    def cpu_scratch(self, training: Training, scratch: Scratch, data: Data) -> tuple[Any, ...]:
        n, k = len(scratch.leaf_sums), training.rules.n_tried
        upper = UPPER * n // self.most_rows + SPARE
        sizes = {"n": 2 * upper + n, "m": upper * k + training.n_features, "R": n, "D": n, "K": 5}
        sizes |= {"B": training.n_codes * training.hist_channels, "C": data.n_channels}
        kept = Kept(**new_arrays(Kept, np.empty, **sizes))
        kept.used[MOST_ROWS] = self.most_rows
        return (kept,)

    def written(self, slots: Frontier, of_kind: tuple[Any, ...]) -> None:
        (kept,) = of_kind
        nodes, features, rows = (slice(kept.used[i]) for i in (NODES, FEATURES, ROWS))
        weights = kept.weights[rows]
        small = np.min_scalar_type(int(weights.max(initial=0)))
        part = Part(
            slots.begin, kept.offsets[: slots.n_slots].copy(), kept.nodes[nodes].copy(),
            kept.sums[nodes].copy(), kept.features[features].copy(),
            kept.hists[features].astype(self.dtype), kept.rows[rows].copy(), weights.astype(small),
        )  # fmt: skip
        self.parts.append(part)
