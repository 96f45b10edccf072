"""Honest trees (Athey and Imbens 2016): rows that chose no split of a tree fill its leaves."""

from __future__ import annotations

from dataclasses import replace

from gpuforest.backends.base import Array, Backend
from gpuforest.core.forest import Forest
from gpuforest.core.training import Training
from gpuforest.explain.leaves import sums_of_rows
from gpuforest.growing.bags import draw_bags, in_part


def with_honest_leaves(forest: Forest, training: Training, backend: Backend, first: int) -> Forest:
    """The forest, of trees from number `first` on, whose leaves have the sums of the rows that
    `Sampling.parts` keeps for them. Each leaf has a row of the leaf table of its own."""
    sampling, seed, part = training.sampling, training.seed, training.sampling.parts
    assert part is not None
    if part[0] == part[1]:
        return forest

    def bags(trees: range, alone: Backend) -> Array:
        drawn = draw_bags(sampling, seed, first + trees.start, first + trees.stop, alone)
        return in_part(drawn, sampling, seed, first + trees.start, alone, part)

    # pairs of trees share their bag
    begins = range(-(first % 2), forest.n_trees, 2)
    pairs = [range(max(t, 0), min(t + 2, forest.n_trees)) for t in begins]
    return replace(forest, leaf_sums=sums_of_rows(forest, training, backend, bags, pairs))
