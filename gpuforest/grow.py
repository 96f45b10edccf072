"""Grow: every open node of every tree of a wave advances at the same time.

    frontier   the open nodes of one depth, of all trees of the wave
       |-- leaves: nothing left to do, or no split found
       |-- deep: so few rows that the backend grows the whole subtree at once
       `-- wide: histogram, best split, partition -> the next frontier

All that is O(nodes) here is array-API code; all that is O(rows) is a backend kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuforest import hashing
from gpuforest.assembly import Level, WaveTrees, assemble, merge_waves, pairs, spread
from gpuforest.criteria import side_score
from gpuforest.forest import Forest
from gpuforest.frontier import Frontier, Rules, Splits, Subtrees
from gpuforest.nodes import pack_splits
from gpuforest.progress import report
from gpuforest.sampling import Sampling, draw_bags

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend
    from gpuforest.binning import BinnedMatrix
    from gpuforest.target import Target

Array = Any


def grow(
    matrix: BinnedMatrix,
    target: Target,
    sampling: Sampling,
    rules: Rules,
    n_trees: int,
    seed: int,
    backend: Backend,
) -> Forest:
    """Grow the trees 0 .. n_trees - 1 of `seed`, as many at once as memory allows."""
    waves, size = [], backend.wave_trees(sampling, n_trees)
    for first in range(0, n_trees, size):
        last = min(first + size, n_trees)
        waves.append(grow_wave(matrix, target, sampling, rules, first, last, seed, backend))
        report(last, n_trees)
    nodes, tree_offsets, leaf_sums = merge_waves(waves, target.coding)
    return Forest(nodes, tree_offsets, leaf_sums, matrix.edges, target.coding, seed)


def grow_wave(
    matrix: BinnedMatrix,
    target: Target,
    sampling: Sampling,
    rules: Rules,
    first: int,
    last: int,
    seed: int,
    backend: Backend,
) -> WaveTrees:
    """Grow the trees first .. last - 1 together, level by level."""
    frontier = roots(target, draw_bags(sampling, seed, first, last, backend), seed, first, backend)
    deep_rows = backend.deep_rows(matrix, target)
    levels = []
    while frontier.n_slots:
        ends = frontier.must_end(rules)
        is_deep = ~ends & (frontier.n_rows <= deep_rows)
        wide = frontier.select(~ends & ~is_deep)
        deep = frontier.select(is_deep)
        splits = backend.level(matrix, target, wide, rules)
        subtrees = backend.grow_subtrees(matrix, target, deep, rules)
        gain = splits.score - side_score(backend.xp, wide.sums, rules.criterion)
        accepted = (splits.feature >= 0) & (gain >= rules.min_gain)
        levels.append(
            record(frontier, ~ends & ~is_deep, is_deep, splits, accepted, subtrees, backend)
        )
        frontier = advance(matrix, target, wide, splits, accepted, backend)
    return assemble(levels, target.coding, backend)


def roots(target: Target, bags: Array, seed: int, first: int, backend: Backend) -> Frontier:
    """The frontier of depth 0 from bags i32[T, N]."""
    xp, T = backend.xp, bags.shape[0]
    rows, weights, offsets = backend.in_bag(bags)
    keys = hashing.tree_keys(xp, seed, first, first + T, backend.device)
    begin, end = offsets[:-1], offsets[1:]
    sums, constant = backend.totals(target, rows, weights, begin, end)
    return Frontier(
        tree=xp.arange(T, dtype=xp.int32, device=backend.device),
        key=hashing.hash_at(keys, hashing.ROOT),
        begin=begin,
        end=end,
        sums=sums,
        constant=constant,
        rows=rows,
        weights=weights,
        depth=0,
    )


def record(
    frontier: Frontier,
    is_wide: Array,
    is_deep: Array,
    splits: Splits,
    accepted: Array,
    subtrees: Subtrees,
    backend: Backend,
) -> Level:
    """What became of each slot of a frontier."""
    xp = backend.xp
    word = pack_splits(xp, xp.where(accepted, splits.feature, 0), splits.bin, splits.missing_left)
    # from the wide slots back to all slots: the wide slot's rank among the wide
    is_split = spread(xp, is_wide, accepted)
    leaf = ~is_deep & ~is_split
    return Level(
        tree=frontier.tree,
        is_split=is_split,
        is_deep=is_deep,
        word=spread(xp, is_wide, word),
        leaf_sums=frontier.sums[leaf],
        subtrees=subtrees,
    )


def advance(
    matrix: BinnedMatrix,
    target: Target,
    wide: Frontier,
    splits: Splits,
    accepted: Array,
    backend: Backend,
) -> Frontier:
    """The children of the accepted splits, left before right, as the next frontier."""
    xp = backend.xp
    parent = wide.select(accepted)
    feature, bin = splits.feature[accepted], splits.bin[accepted]
    missing_left, left = splits.missing_left[accepted], splits.left[accepted]
    rows, weights, n_left = backend.partition(matrix, parent, feature, bin, missing_left)
    count = pairs(xp, n_left, parent.n_rows - n_left)
    end = xp.cumulative_sum(count, dtype=xp.int64)
    begin, sums = end - count, pairs(xp, left, parent.sums - left)
    if target.coding.is_classes:
        constant = xp.max(sums, axis=1) == xp.sum(sums, axis=1) if count.shape[0] else count > 0
    else:
        constant = backend.totals(target, rows, weights, begin, end)[1]
    return Frontier(
        tree=pairs(xp, parent.tree, parent.tree),
        key=pairs(xp, hashing.hash_at(parent.key, 0), hashing.hash_at(parent.key, 1)),
        begin=begin,
        end=end,
        sums=sums,
        constant=constant,
        rows=rows,
        weights=weights,
        depth=wide.depth + 1,
    )
