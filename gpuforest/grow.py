"""Grow: every open node of every tree of a wave advances at the same time.

    frontier   the open nodes of one depth, of all trees of the wave
       |-- leaves: nothing left to do, or no split found
       |-- deep: so few rows that the backend grows the whole subtree at the end
       `-- wide: histogram, best split, partition -> the next frontier

All that is O(nodes) here is array-API code; all that is O(rows) is a backend kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuforest import hashing
from gpuforest.assembly import (
    DEEP,
    LEAF,
    NONE,
    WIDE,
    Level,
    WaveTrees,
    assemble,
    merge_waves,
    pairs,
    spread,
)
from gpuforest.criteria import side_score
from gpuforest.forest import Forest
from gpuforest.frontier import Frontier, Rules, Splits
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
    waves, size = [], backend.wave_trees(sampling, target.coding.n_channels, n_trees)
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
    """Grow the trees first .. last - 1 together, level by level, then the deep slots."""
    xp = backend.xp
    frontier = roots(target, draw_bags(sampling, seed, first, last, backend), seed, first, backend)
    deep_rows = backend.deep_rows(matrix, target)
    levels, handed_over = [], []
    while frontier.n_slots:
        kind, wide_slots, wide, deep = sort_out(frontier, rules, deep_rows, backend)
        handed_over.append(deep)
        splits = backend.level(matrix, target, wide, rules)
        gain = splits.score - side_score(xp, wide.sums, rules.criterion)
        accepted = (splits.feature >= 0) & (gain >= rules.min_gain)
        levels.append(record(frontier, kind, wide_slots, splits, accepted, deep.n_slots, backend))
        frontier = advance(matrix, target, wide, splits, accepted, backend)
    deep = Frontier.join(xp, handed_over, frontier.rows, frontier.weights)
    subtrees = backend.grow_subtrees(matrix, target, deep, rules)
    return assemble(levels, subtrees, target.coding, backend)


def roots(target: Target, bags: Array, seed: int, first: int, backend: Backend) -> Frontier:
    """The frontier of depth 0 from bags i32[T, N]."""
    xp, T = backend.xp, bags.shape[0]
    rows, weights, offsets = backend.in_bag(bags)
    del bags
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
        depth=xp.zeros(T, dtype=xp.int32, device=backend.device),
        rows=xp.concat([rows, xp.empty_like(rows)]),
        weights=xp.concat([weights, xp.empty_like(weights)]),
        n_held=rows.shape[0],
    )


def sort_out(
    frontier: Frontier, rules: Rules, deep_rows: int, backend: Backend
) -> tuple[Array, Array, Frontier, Frontier]:
    """What each slot is (i8[S], see assembly), the numbers of the wide slots, and the
    wide and the deep ones. Here alone a level waits for the device.
    """
    xp, n_rows = backend.xp, frontier.n_rows
    kind = xp.where(n_rows <= deep_rows, xp.asarray(DEEP, device=backend.device), WIDE)
    kind = xp.where(frontier.must_end(rules), LEAF, kind)
    kind = xp.astype(xp.where(n_rows == 0, NONE, kind), xp.int8)
    is_wide, is_deep = kind == WIDE, kind == DEEP
    numbers = xp.stack(
        [
            *(xp.astype(xp.count_nonzero(mask), xp.int64) for mask in (is_wide, is_deep)),
            *(xp.sum(xp.where(mask, n_rows, 0)) for mask in (is_wide, is_deep)),
        ]
    )
    n_wide, n_deep, rows_wide, rows_deep = backend.asnumpy(numbers).tolist()
    # the highest kinds come last
    slots = xp.argsort(kind, stable=True)
    last = frontier.n_slots - n_wide
    wide = slots[last:]
    return (
        kind,
        wide,
        frontier.take(xp, wide, rows_wide),
        frontier.take(xp, slots[last - n_deep : last], rows_deep),
    )


def record(
    frontier: Frontier,
    kind: Array,
    wide_slots: Array,
    splits: Splits,
    accepted: Array,
    n_deep: int,
    backend: Backend,
) -> Level:
    """What became of each slot of a frontier."""
    xp = backend.xp
    is_wide = kind == WIDE
    word = pack_splits(xp, xp.where(accepted, splits.feature, 0), splits.bin, splits.missing_left)
    rejected = is_wide & ~spread(xp, is_wide, accepted)
    return Level(
        kind=xp.where(rejected, xp.asarray(LEAF, dtype=kind.dtype, device=backend.device), kind),
        tree=frontier.tree,
        word=spread(xp, is_wide, word),
        sums=frontier.sums,
        is_wide=is_wide,
        wide=wide_slots,
        n_deep=n_deep,
    )


def advance(
    matrix: BinnedMatrix,
    target: Target,
    wide: Frontier,
    splits: Splits,
    accepted: Array,
    backend: Backend,
) -> Frontier:
    """Two slots for each wide one, left before right, without rows where it is a leaf."""
    xp = backend.xp
    feature = xp.where(accepted, splits.feature, -1)
    rows, weights, n_left = backend.partition(
        matrix, wide, feature, splits.bin, splits.missing_left
    )
    half = rows.shape[0] // 2
    begin = xp.where(wide.begin < half, wide.begin + half, wide.begin - half)
    middle = begin + n_left
    end = xp.where(accepted, begin + wide.n_rows, begin)
    begin, end = pairs(xp, begin, middle), pairs(xp, middle, end)
    sums = pairs(xp, splits.left, wide.sums - splits.left)
    if target.coding.is_classes:
        constant = xp.max(sums, axis=1) == xp.sum(sums, axis=1) if sums.shape[0] else begin > end
    else:
        constant = backend.constant(target, rows, weights, begin, end)
    return Frontier(
        tree=pairs(xp, wide.tree, wide.tree),
        key=pairs(xp, hashing.hash_at(wide.key, 0), hashing.hash_at(wide.key, 1)),
        begin=begin,
        end=end,
        sums=sums,
        constant=constant,
        depth=pairs(xp, wide.depth, wide.depth) + 1,
        rows=rows,
        weights=weights,
        n_held=wide.n_held,
    )
