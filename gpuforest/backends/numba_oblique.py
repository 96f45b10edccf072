"""Combinations of features on the compiled CPU backend: their codes in the wide phase, and what
walks down trees need."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.common.parallel import parallel_map
from gpuforest.engine.forest import Forest
from gpuforest.engine.frontier import Frontier
from gpuforest.engine.training import Training
from gpuforest.splits.oblique.numba import project
from gpuforest.splits.oblique.walk import NO_SUMS, Sums, new_sums

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend

Array = Any

NO_LABELS = np.zeros((0, 1), np.int32)


def project_slots(
    backend: Backend, training: Training, slots: Frontier, features: Array, weights: Array
) -> tuple[Array, Array, Array]:
    """As `Backend.project`; a task takes a slot and a combination."""
    combining, (S, k, L) = training.combining, features.shape
    data = replace(training.columns, y=NO_LABELS)
    count = slots.n_stored
    first = np.cumsum(count) - count
    codes = np.empty((k, int(count.sum())), data.codes.dtype)
    low, shift = np.zeros((S, k), np.int64), np.zeros((S, k), np.int64)
    features = np.ascontiguousarray(features, np.int64)
    weights = np.ascontiguousarray(weights, np.int64)
    pieces = np.array([(s, j, first[s]) for j in range(k) for s in range(S)], np.int64)

    def part(some: Array) -> None:
        sums = np.empty(int(count[some[:, 0]].max(initial=0)), np.int32)
        project(
            data, slots, features, weights, combining.coordinates, combining.n_bins, some, sums,
            np.zeros((2, L), np.int64), codes, low, shift,
        )  # fmt: skip

    parallel_map(part, np.array_split(pieces, 4 * backend.n_threads), backend.n_threads)
    return codes.T, low, shift


def sums_of(forest: Forest, columns: Array) -> Sums | None:
    """What walks down the forest need for codes [F, N] if it has combinations; None if it has no
    sets either."""
    if forest.oblique:
        return new_sums(forest.walking, forest.edges.coordinates, *columns.shape)
    return NO_SUMS if len(forest.sets) else None
