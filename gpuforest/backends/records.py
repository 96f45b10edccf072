"""The records that kernels take (see kernels/shared/records.py), from the stages' types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.engine.frontier import Frontier, Rules, Splits
from gpuforest.kernels.shared.records import Data, Found, RuleNumbers, Slots, Trees

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend
    from gpuforest.engine.forest import Forest
    from gpuforest.engine.training import Training

Array = Any


def columns_of(training: Training) -> Data:
    """As data_of, with the codes [F, N] of one feature after another; they are copied only if they
    lie otherwise."""
    return data_of(training, np.ascontiguousarray(training.matrix.codes.T))


def data_of(training: Training, codes: Array | None = None) -> Data:
    """The binned rows that trees grow from, with `codes` instead of the matrix's if given."""
    matrix = training.matrix
    codes = matrix.codes if codes is None else codes
    return Data(codes, training.target.y, matrix.n_bins, training.n_codes, training.n_channels)


def slots_of(backend: Backend, f: Frontier) -> Slots:
    """The open nodes of a frontier."""
    xp, device, bounds, allowed = backend.xp, backend.device, f.bounds, f.allowed
    if bounds is None:
        bounds = xp.empty((0, 2), dtype=xp.float64, device=device)
    if allowed is None:
        allowed = xp.empty((0, 0), dtype=xp.bool, device=device)
    return Slots(
        f.rows, f.weights, f.begin, f.end, f.n_rows, f.key, f.sums, f.tree, f.depth, bounds, allowed
    )


def numbers_of(backend: Backend, rules: Rules) -> RuleNumbers:
    """The rules of splits."""
    return RuleNumbers(
        criterion=rules.criterion.number,
        n_tried=rules.n_tried,
        max_depth=rules.max_depth,
        fewest_rows=max(rules.min_rows_split, 2 * rules.min_rows_leaf),
        min_rows=rules.min_rows_leaf,
        min_weight=rules.min_weight_leaf,
        count_rows=rules.count_rows,
        min_gain=float(rules.min_gain),
        is_random=rules.random,
        gain_ratio=rules.criterion.by_ratio,
        signs=backend.asarray(rules.signs),
    )


def no_splits(n_slots: int, n_channels: int, n_words: int) -> Found:
    """Arrays for the splits of so many slots, with no split found yet."""
    return Found(
        np.full(n_slots, -np.inf),
        np.full(n_slots, -1, np.int32),
        np.zeros(n_slots, np.int32),
        np.zeros(n_slots, np.bool_),
        np.zeros((n_slots, n_channels), np.int64),
        np.zeros(n_slots, np.int64),
        np.zeros((n_slots, n_words), np.uint64),
    )


def part_of(found: Found, slots: slice) -> Found:
    """The splits of a range of slots, as views."""
    return Found(*(array[slots] for array in found))


def found_of(s: Splits) -> Found:
    """Splits as the record that kernels take."""
    return Found(s.score, s.feature, s.bin, s.missing_left, s.left, s.tried, s.sets)


def trees_of(backend: Backend, forest: Forest, trees: range | None = None) -> Trees:
    """Some trees of a forest, of consecutive numbers; None: all."""
    offsets = forest.tree_offsets
    if trees is not None:
        offsets = offsets[trees.start : trees.stop + 1]
    arrays = forest.nodes, offsets, forest.set_at, forest.sets
    nodes, offsets, set_at, sets = arrays if backend.on_host else map(backend.asarray, arrays)
    return Trees(nodes, offsets, forest.edges.missing_code, set_at, sets)


def host_trees(forest: Forest, trees: range | None = None) -> Trees:
    """As `trees_of`, of arrays on the host."""
    offsets = forest.tree_offsets
    if trees is not None:
        offsets = offsets[trees.start : trees.stop + 1]
    return Trees(forest.nodes, offsets, forest.edges.missing_code, forest.set_at, forest.sets)
