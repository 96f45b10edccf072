"""Cuts and sets, with the histograms of upper nodes: see growing/upper.py."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpuforest.backends.base import Array, Backend
from gpuforest.common.parallel import cut_evenly, parallel_map
from gpuforest.compiler.types import new_arrays
from gpuforest.core.frontier import Data, Frontier, Splits
from gpuforest.core.training import Training
from gpuforest.kernels.best_split.cuts import scan_arrays
from gpuforest.kernels.grow_subtrees.scratch import Scratch
from gpuforest.kernels.sets.numba import new_sets
from gpuforest.splits.base import Sets
from gpuforest.splits.kept.again import Again
from gpuforest.splits.kept.numba import (
    FEATURES,
    MOST_ROWS,
    NODES,
    ROWS,
    Kept,
    grow_kept,
    search_kept,
)

NONE = new_arrays(Again, np.zeros, M=0, S=0, C=0, D=0, E=0, W=0)
NOTHING = Again(**NONE, codes=None, n_changed=0)
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

    most_rows : of a block; again : of nodes that grow again"""

    name = "kept"
    cpu_only = has_sets = grows_whole = True
    by_level = False
    columns = 1  # a row's number
    kernel = grow_kept

    def __init__(self, most_rows: int, again: Again | None = None) -> None:
        self.most_rows, self.again, self.parts = most_rows, again, list[Part]()

    def given(self, data: Data) -> tuple[Any, ...]:
        return (self.again or NOTHING._replace(codes=data.codes[:0]),)

    def cpu_scratch(self, training: Training, scratch: Scratch, data: Data) -> tuple[Any, ...]:
        n, k = len(scratch.leaf_sums), training.rules.n_tried
        upper = UPPER * n // self.most_rows + SPARE
        m, B = upper * k + training.n_features, training.n_codes * training.hist_channels
        sizes = {"n": 2 * upper + n, "m": m, "R": n, "D": n, "K": 5, "C": data.n_channels}
        arrays = new_arrays(Kept, np.empty, **sizes, L=len(scratch.open_nodes))
        kept = Kept(**arrays, hists=np.empty((m, B), data.y.dtype))
        kept.used[MOST_ROWS] = self.most_rows
        return (kept,)

    def written(self, slots: Frontier, of_kind: tuple[Any, ...]) -> None:
        (kept,) = of_kind
        if self.again is not None:
            return
        nodes, features, rows = (slice(kept.used[i]) for i in (NODES, FEATURES, ROWS))
        weights = kept.weights[rows]
        small = np.min_scalar_type(int(weights.max(initial=0)))
        part = Part(
            slots.begin, kept.offsets[: slots.n_slots].copy(), kept.nodes[nodes].copy(),
            kept.sums[nodes].copy(), kept.features[features].copy(),
            kept.hists[features].copy(), kept.rows[rows].copy(), weights.astype(small),
        )  # fmt: skip
        self.parts.append(part)


def search(
    of_rows: Training, backend: Backend, slots: Frontier, of_nodes: tuple[Array, ...], sign: int,
    keeps: bool,
) -> Splits:  # fmt: skip
    """The best splits of slots by kept histograms; see `search_kept`."""
    _, sums, *_ = of_nodes
    n_codes, C, S = of_rows.n_codes, of_rows.n_channels, slots.n_slots
    data, kinds = of_rows.columns, of_rows.matrix.edges.kinds
    splits = Splits.none_yet(S, C, of_rows.n_words)

    def part(s: slice) -> None:
        hist = np.empty(sums.shape[1], np.int64)
        sets = new_sets(kinds, C, of_rows.hist_channels, of_rows.n_words, n_codes)
        of_slots = data, slots, of_rows.rules, s.start, s.stop, splits, *of_nodes
        search_kept(*of_slots, sign, keeps, hist, scan_arrays(n_codes, C), sets)

    parallel_map(part, cut_evenly(np.ones(S), -(-S // backend.n_threads)), backend.n_threads)
    return splits
