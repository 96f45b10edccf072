"""Honest trees (Athey and Imbens 2016): rows that chose no split of a tree fill its leaves."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np

from gpuforest.backends.base import Backend
from gpuforest.common.parallel import parallel_map
from gpuforest.core.forest import Forest
from gpuforest.core.nodes import leaf_rows
from gpuforest.core.training import Training
from gpuforest.explain.paths import one_tree
from gpuforest.growing.bags import draw_bags, in_part


def with_honest_leaves(forest: Forest, training: Training, backend: Backend, first: int) -> Forest:
    """The forest, of trees from number `first` on, whose leaves have the sums of the rows that
    `Sampling.parts` keeps for them. Each leaf has a row of the leaf table of its own."""
    sampling, seed, matrix = training.sampling, training.seed, training.matrix
    assert sampling.parts is not None
    if sampling.parts[0] == sampling.parts[1]:
        return forest
    y, sums = np.asarray(backend.asnumpy(training.target.y)), np.zeros_like(forest.leaf_sums)
    alone, part = copy(backend), sampling.parts
    bare = replace(forest, leaf_sums=forest.leaf_sums[:0])  # whose values nobody works out
    alone.n_threads = 1

    def fill(pair: range) -> None:
        bags = draw_bags(sampling, seed, first + pair.start, first + pair.stop, alone)
        bags = in_part(bags, sampling, seed, first + pair.start, alone, part)
        for t, weights in zip(pair, np.asarray(alone.asnumpy(bags)), strict=True):
            fill_tree(t, weights)

    def fill_tree(t: int, weights: np.ndarray) -> None:
        rows = np.flatnonzero(weights)
        if not len(rows):
            return
        codes = alone.xp.take(matrix.codes, alone.asarray(rows), axis=0)
        node = np.asarray(alone.asnumpy(alone.apply(one_tree(bare, t), codes)))[:, 0]
        leaf = leaf_rows(forest.nodes[node + forest.tree_offsets[t]])
        number = leaf - leaf.min()
        small = number.astype(np.min_scalar_type(number.max()))  # sorted by radix
        order = np.argsort(small, kind="stable")
        rows, leaf = rows[order], leaf[order]
        begin = np.flatnonzero(np.diff(leaf, prepend=-1))
        w = weights[rows].astype(np.int64)[:, None]
        added = np.concatenate([w, w * y[rows]], axis=1)
        sums[leaf[begin]] = np.add.reduceat(added, begin, axis=0)

    # pairs of trees share their bag
    begins = range(-(first % 2), forest.n_trees, 2)
    pairs = [range(max(t, 0), min(t + 2, forest.n_trees)) for t in begins]
    parallel_map(fill, pairs, backend.n_threads)
    return replace(forest, leaf_sums=sums)
