"""Grow: the open nodes of all trees of a wave are split together, level by level.

    frontier   the open nodes of one depth, of all trees of the wave
       |-- leaves: nodes that need no split, or that have no allowed split
       |-- deep: nodes of so few rows that the backend grows their whole subtrees at the end
       `-- wide: histogram, best split, partition -> the next frontier

Work proportional to nodes is array-API code here and in slots.py; work proportional to rows is in
kernels.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from queue import SimpleQueue
from typing import Any

import numpy as np

from gpuforest.backends.base import Active, Backend
from gpuforest.backends.slots import bounds_below
from gpuforest.common import hashing, parallel, progress
from gpuforest.core.forest import Forest
from gpuforest.core.frontier import Frontier, Splits
from gpuforest.core.training import Training
from gpuforest.growing.assemble import Level, grown_wave, no_subtrees
from gpuforest.growing.bags import held, tree_features
from gpuforest.splits.base import Kind
from gpuforest.splits.kinds import kind_in

Prune = Callable[[Forest], Forest]
Worker = tuple[Training, Backend, Active]
Idle = SimpleQueue[Worker]
Work = Callable[[Idle, int, int, int], Any]  # on idle workers, n_trees, trees of a wave, the first


def grow(
    training: Training, backend: Backend, begin: int, n_trees: int, prune: Prune | None = None,
    work: Work | None = None,
) -> list[Any]:  # fmt: skip
    """Grow the trees begin .. n_trees - 1 of the seed wave by wave, as memory allows; see `merged`.
    `prune` cuts a wave back as soon as it has grown: unpruned trees of one wave are in memory.
    `work` takes the place of `grow_wave`, which grows forests."""
    n_new, idle = n_trees - begin, Idle()
    if not n_new:  # max_features="oob" may have grown all of them
        return []
    workers, size = workers_of(training, backend, n_new)
    for worker in workers:
        idle.put(worker)
    growing = partial(grow_wave, idle, n_trees, size, prune)
    return parallel.parallel_map(
        partial(work, idle, n_trees, size) if work else growing,
        range(begin, n_trees, size),
        len(workers),
        lambda n: progress.report(min(n * size, n_new), n_new),
    )


@contextmanager
def working(idle: Idle) -> Iterator[tuple[Training, Backend]]:
    """The training and the backend of an idle worker, which is idle again afterwards."""
    training, backend, active = worker = idle.get()
    try:
        with active():
            yield training, backend
    finally:
        idle.put(worker)


def workers_of(training: Training, backend: Backend, n_trees: int) -> tuple[list[Worker], int]:
    """Workers of the waves that grow at once, for n_trees trees in all, and the trees of a wave."""
    places = backend.places(training, n_trees)
    workers, sizes = [], []
    for place, at, active in places:
        n_waves, worker, size = at.waves(
            place.sampling, place.n_channels, -(-n_trees // len(places)), place.node_words,
            len(place.rules.signs) > 0,
        )  # fmt: skip
        workers += [(keeping_scratch(place), worker, active)] * n_waves
        sizes.append(size)
    return workers, min(sizes)


def keeping_scratch(training: Training) -> Training:
    """The training, whose subtrees grow in memory that is kept from one call to the next."""
    matrix = training.matrix
    if matrix.scratch is not None:
        return training
    return replace(training, matrix=replace(matrix, scratch=deque()))


def grow_wave(
    idle: Idle, n_trees: int, size: int, prune: Prune | None, first: int,
    slots: list[Frontier] | None = None, kind: Kind | None = None,
) -> Forest:  # fmt: skip
    """Grow the trees first .. min(first + size, n_trees) - 1 on an idle worker; or the trees whose
    roots are the `slots` of a frontier, which is taken out of its list. kind : of split, if not
    that of the rules"""
    with working(idle) as (training, backend):
        kind, last = kind or kind_in(training), min(first + size, n_trees)
        frontier = slots.pop() if slots else roots(training, backend, first, last)
        deep_rows = kind.deep_rows(backend, training, frontier.max_rows)
        levels: list[Level] = []
        handed_over: list[Frontier] = []
        while frontier.n_slots:
            level, frontier = advance(training, backend, kind, frontier, deep_rows, handed_over)
            levels.append(level)
        deep = backend.nodes.join(backend, handed_over, frontier.rows, frontier.weights)
        del frontier, handed_over  # their rows make room
        subtrees = [
            backend.grow_subtrees(training, deep, kind)
            if deep.n_slots
            else no_subtrees(backend.xp, deep)
        ]
        del deep
        wave = grown_wave(backend, training, levels, subtrees)
        return wave if prune is None else prune(wave)


def advance(
    training: Training, backend: Backend, kind: Kind, frontier: Frontier, deep_rows: int,
    handed_over: list[Frontier],
) -> tuple[Level, Frontier]:  # fmt: skip
    """Split the slots of one depth: level, next frontier; deep slots go to `handed_over`."""
    sorts, wide, deep = backend.nodes.sort_out(backend, training, frontier, deep_rows)
    handed_over.append(deep)
    if len(handed_over) == 1 and wide.n_slots:
        wide = wide.with_room(backend.xp)
    splits = backend.level(training, wide) if kind.by_level else None
    if splits is None:
        splits = kind.search(backend, training, wide)
    splits = gaining(training, backend, wide, splits)
    of_splits = splits.feature, splits.bin, splits.missing_left, splits.sets
    below = split_slots(training, backend, kind, wide, splits)
    return (sorts, frontier.sums, *of_splits), below


def gaining(training: Training, backend: Backend, wide: Frontier, splits: Splits) -> Splits:
    """The splits of slots; with feature -1 where one gains too little, and its slot is a leaf."""
    rules, xp = training.rules, backend.xp
    if rules.min_gain == -math.inf:
        return splits
    gain = splits.score - rules.criterion.side_score(xp, wide.sums)
    return replace(splits, feature=xp.where(gain >= rules.min_gain, splits.feature, -1))


def roots(training: Training, backend: Backend, first: int, last: int) -> Frontier:
    """The frontier of depth 0 of the trees first .. last - 1."""
    rules, n_features = training.rules, training.n_features
    xp, T = backend.xp, last - first
    keys = hashing.tree_keys(np, training.seed, first, last)  # few: the host hashes them
    root_keys = backend.asarray(hashing.hash_at(keys, hashing.ROOT))
    in_bags = held(training, first, last, backend)
    slots = backend.nodes.roots(backend, training, in_bags, root_keys)
    bounds = None
    if len(rules.signs):
        ends = xp.asarray([-xp.inf, xp.inf], dtype=xp.float64)
        bounds = xp.broadcast_to(ends, (T, 2))
    allowed = tree_features(keys, rules.n_features_tree, rules.features_again, n_features, backend)
    return replace(slots, bounds=bounds, allowed=allowed)


def split_slots(
    training: Training, backend: Backend, kind: Kind, wide: Frontier, splits: Splits
) -> Frontier:
    """Two slots for each wide slot, left before right; they hold no rows if it is a leaf."""
    rules, xp = training.rules, backend.xp
    moved = kind.move(backend, training, wide, splits)
    below = backend.nodes.children(backend, training, wide, splits, moved)
    if wide.bounds is None:
        return below
    feature = xp.where(splits.feature >= 0, splits.feature, 0)
    sign = xp.take(backend.asarray(rules.signs), feature)
    values = kind.side_values(backend, training, below)
    return replace(below, bounds=bounds_below(xp, wide, values, sign))
