"""Grow: every open node of every tree of a wave advances at the same time.

    frontier   the open nodes of one depth, of all trees of the wave
       |-- leaves: nothing left to do, or no split found
       |-- deep: so few rows that the backend grows the whole subtree at the end
       `-- wide: histogram, best split, partition -> the next frontier

All that is O(nodes) here is array-API code; all that is O(rows) is a backend kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpuforest import hashing, multiway
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
    places,
)
from gpuforest.criteria import side_score, side_value
from gpuforest.forest import Forest
from gpuforest.frontier import Frontier, Rules, Splits, bounds_below
from gpuforest.medians import slot_medians
from gpuforest.parallel import parallel_map
from gpuforest.progress import report
from gpuforest.sampling import Sampling, tree_features, tree_weights

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend
    from gpuforest.binning import BinnedMatrix
    from gpuforest.target import Target

Array = Any
Prune = Callable[[Forest], Forest]


def grow(
    matrix: BinnedMatrix,
    target: Target,
    sampling: Sampling,
    rules: Rules,
    n_trees: int,
    seed: int,
    backend: Backend,
    earlier: Forest | None = None,
    prune: Prune | None = None,
) -> Forest:
    """Grow the trees 0 .. n_trees - 1 of `seed`, as many at once as memory allows.

    earlier : the first of them, grown (and pruned) before from the same data
    prune : see `grow_waves`
    """
    begin = 0 if earlier is None else earlier.n_trees
    waves = grow_waves(matrix, target, sampling, rules, begin, n_trees, seed, backend, prune)
    if earlier is not None:
        sizes = earlier.tree_offsets[1:] - earlier.tree_offsets[:-1]
        waves.insert(0, WaveTrees(earlier.nodes, sizes, earlier.leaf_sums, earlier.sets))
    return merged(waves, matrix, target, rules, seed, backend)


def grow_waves(
    matrix: BinnedMatrix,
    target: Target,
    sampling: Sampling,
    rules: Rules,
    begin: int,
    n_trees: int,
    seed: int,
    backend: Backend,
    prune: Prune | None = None,
) -> list[WaveTrees]:
    """Grow the trees begin .. n_trees - 1 of `seed`, and leave them as they grew together.

    prune : a function that cuts back the trees of a wave as soon as they have grown, so that the
        whole trees of one wave alone are in memory
    """
    n_new = n_trees - begin
    if not n_new:  # max_features="oob" may have grown them all
        return []
    n_workers, worker, size = waves_of(backend, sampling, target.coding.n_channels, n_new)

    def wave(first: int) -> WaveTrees:
        last = min(first + size, n_trees)
        trees = [grow_wave(matrix, target, sampling, rules, first, last, seed, worker)]
        if prune is None:
            return trees.pop()
        pruned = prune(merged(trees, matrix, target, rules, seed, worker))
        sizes = pruned.tree_offsets[1:] - pruned.tree_offsets[:-1]
        return WaveTrees(pruned.nodes, sizes, pruned.leaf_sums, pruned.sets)

    return parallel_map(
        wave, range(begin, n_trees, size), n_workers, lambda n: report(min(n * size, n_new), n_new)
    )


def merged(
    waves: list[WaveTrees],
    matrix: BinnedMatrix,
    target: Target,
    rules: Rules,
    seed: int,
    backend: Backend,
) -> Forest:
    """The forest of all waves, which are emptied."""
    nodes, tree_offsets, leaf_sums, sets = merge_waves(waves, target.coding, backend.n_threads)
    edges, coding = matrix.edges, target.coding
    multiway = rules.multiway and len(sets) > 0
    return Forest(nodes, tree_offsets, leaf_sums, edges, coding, seed, sets=sets, multiway=multiway)


def waves_of(
    backend: Backend, sampling: Sampling, n_channels: int, n_trees: int
) -> tuple[int, Backend, int]:
    """Waves that grow beside one another, the backend of each, and the trees of a wave."""
    n_workers, worker = backend.workers(n_trees)
    size = worker.wave_trees(sampling, n_channels, -(-n_trees // n_workers))
    rounds = -(-n_trees // (size * n_workers))
    return n_workers, worker, -(-n_trees // (rounds * n_workers))


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
    levels, deep = grow_levels(matrix, target, sampling, rules, first, last, seed, backend)
    subtrees = [backend.grow_subtrees(matrix, target, deep, rules)]
    del deep  # its rows make room
    return assemble(levels, subtrees.pop(), matrix.edges, target.coding, backend)


def grow_levels(
    matrix: BinnedMatrix,
    target: Target,
    sampling: Sampling,
    rules: Rules,
    first: int,
    last: int,
    seed: int,
    backend: Backend,
) -> tuple[list[Level], Frontier]:
    """The levels of a wave, and the slots that are left to the deep phase."""
    xp = backend.xp
    bags = tree_weights(sampling, target, seed, first, last, backend)
    frontier = roots(target, bags, rules, matrix.n_features, seed, first, backend)
    del bags
    deep_rows, has_sets = 0, matrix.edges.most_words > 0
    if rules.deep and rules.multiway:
        deep_rows = backend.multiway_rows if has_sets else 0
    elif rules.deep and (backend.deep_sets or not has_sets):
        deep_rows = backend.deep_rows(matrix, target, frontier.n_held)
    levels: list[Level] = []
    handed_over = []
    while frontier.n_slots:
        kind, rank, wide_slots, wide, deep = sort_out(frontier, rules, deep_rows, backend)
        handed_over.append(deep)
        if not levels and wide.n_slots:
            wide = wide.with_room(xp)
        goes_on = None
        if rules.multiway:
            splits, goes_on = multiway.level(matrix, target, wide, rules, backend)
        else:
            splits = backend.level(matrix, target, wide, rules)
        accepted = splits.feature >= 0
        if rules.min_gain > -math.inf:
            gain = splits.score - side_score(xp, wide.sums, rules.criterion)
            accepted = accepted & (gain >= rules.min_gain)
        feature = xp.where(accepted, splits.feature, -1)
        levels.append(
            Level(
                kind=kind,
                tree=frontier.tree,
                sums=frontier.sums,
                rank=rank,
                wide=wide_slots,
                feature=feature,
                bin=splits.bin,
                missing_left=splits.missing_left,
                sets=splits.sets,
                n_deep=deep.n_slots,
            )
        )
        frontier = advance(matrix, target, wide, splits, feature, rules, backend)
        if goes_on is not None:
            frontier = multiway.below(frontier, wide, feature, goes_on, matrix, backend)
    return levels, Frontier.join(xp, handed_over, frontier.rows, frontier.weights)


def roots(
    target: Target,
    bags: Array,
    rules: Rules,
    n_features: int,
    seed: int,
    first: int,
    backend: Backend,
) -> Frontier:
    """The frontier of depth 0 from bags i32[T, N]."""
    xp, T = backend.xp, bags.shape[0]
    rows, weights, offsets = backend.in_bag(bags)
    del bags
    keys = hashing.tree_keys(xp, seed, first, first + T, backend.device)
    begin, end = offsets[:-1], offsets[1:]
    sums, constant = backend.totals(target, rows, weights, begin, end)
    bounds = None
    if len(rules.signs):
        ends = xp.asarray([-xp.inf, xp.inf], dtype=xp.float64, device=backend.device)
        bounds = xp.broadcast_to(ends, (T, 2))
    pending = used = None
    if rules.multiway:
        pending = xp.full((T,), -1, dtype=xp.int32, device=backend.device)
        used = xp.zeros((T, n_features), dtype=xp.bool, device=backend.device)
    return Frontier(
        tree=xp.arange(T, dtype=xp.int32, device=backend.device),
        key=hashing.hash_at(keys, hashing.ROOT),
        begin=begin,
        end=end,
        sums=sums,
        constant=constant,
        depth=xp.zeros(T, dtype=xp.int32, device=backend.device),
        rows=rows,
        weights=weights,
        n_held=rows.shape[0],
        bounds=bounds,
        allowed=tree_features(keys, rules, n_features, backend),
        pending=pending,
        used=used,
    )


def sort_out(
    frontier: Frontier, rules: Rules, deep_rows: int, backend: Backend
) -> tuple[Array, Array, Array, Frontier, Frontier]:
    """What each slot is (i8[S], see assembly), each wide and each deep one's number among
    its like, the wide slots, and the wide and the deep ones. Here alone a level waits for
    the device.
    """
    xp, n_rows = backend.xp, frontier.n_rows
    deep = xp.asarray(DEEP, dtype=xp.int8, device=backend.device)
    is_few = n_rows <= deep_rows
    if frontier.pending is not None:
        is_few = is_few & (frontier.pending < 0)
    kind = xp.where(is_few, deep, WIDE)
    kind = xp.where(frontier.must_end(xp, rules), LEAF, kind)
    kind = xp.where(n_rows == 0, NONE, kind)
    masks = xp.stack([kind == WIDE, kind == DEEP])
    upto = xp.cumulative_sum(xp.astype(masks, xp.int64), axis=1)
    held = xp.sum(xp.where(masks, n_rows[None, :], 0), axis=1)
    numbers = backend.asnumpy(xp.concat([upto[:, -1], held]))
    n_wide, n_deep, rows_wide, rows_deep = numbers.tolist()
    wide = places(xp, upto[0, :], n_wide)
    return (
        kind,
        xp.where(masks[1, :], upto[1, :], upto[0, :]) - 1,
        wide,
        frontier.take(xp, wide, rows_wide),
        frontier.take(xp, places(xp, upto[1, :], n_deep), rows_deep),
    )


def advance(
    matrix: BinnedMatrix,
    target: Target,
    wide: Frontier,
    splits: Splits,
    feature: Array,
    rules: Rules,
    backend: Backend,
) -> Frontier:
    """Two slots for each wide one, left before right, without rows where it is a leaf."""
    xp = backend.xp
    rows, weights, n_left = backend.partition(
        matrix, wide, feature, splits.bin, splits.missing_left, splits.sets
    )
    size = rows.shape[0]
    begin = (wide.begin + size // 2) % size  # in the other half
    middle = begin + n_left
    end = begin + xp.where(feature >= 0, wide.n_rows, 0)
    begin, end = pairs(xp, begin, middle), pairs(xp, middle, end)
    sums = pairs(xp, splits.left, wide.sums - splits.left)
    if target.coding.is_classes:
        constant = xp.max(sums, axis=1) == xp.sum(sums, axis=1) if sums.shape[0] else begin > end
    else:
        constant = backend.constant(target, rows, weights, begin, end)
    sides = xp.arange(2, dtype=xp.uint64, device=backend.device)
    bounds = None
    if wide.bounds is not None:
        sign = xp.take(backend.asarray(rules.signs), xp.where(feature >= 0, feature, 0))
        if rules.medians:
            means = backend.asarray(slot_medians(target.y[:, 0], rows, weights, begin, end))
        else:
            means = side_value(xp, sums, rules.criterion)
        bounds = bounds_below(xp, wide, means, sign)
    return Frontier(
        tree=xp.repeat(wide.tree, 2),
        key=xp.reshape(hashing.hash_at(wide.key[:, None], sides[None, :]), (-1,)),
        begin=begin,
        end=end,
        sums=sums,
        constant=constant,
        depth=xp.repeat(wide.depth + 1, 2),
        rows=rows,
        weights=weights,
        n_held=wide.n_held,
        bounds=bounds,
        allowed=wide.allowed,
    )
