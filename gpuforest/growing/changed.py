"""Rows leave trees or join them, and trees grow again only where that changes a split.

The changed rows are added to the histograms of the upper nodes that they reach, and the search is
done again: if it finds the same split, the rows go on to its sides; if not, all below grows anew.
Blocks that they reach grow anew; see upper.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gpuforest.backends.base import Backend
from gpuforest.backends.slots import all_equal
from gpuforest.core.forest import Forest
from gpuforest.core.frontier import Frontier
from gpuforest.core.training import Training
from gpuforest.growing.assemble import merged
from gpuforest.growing.splice import children, spliced
from gpuforest.growing.upper import (
    NUMPY,
    Changes,
    Histogram,
    Rows,
    Upper,
    best,
    goes_left,
    grown_from,
    grown_slots,
    same_splits,
    stacked,
    sums_dtype,
)
from gpuforest.splits.kinds import kind_in

ROWS_AT_ONCE = 2**24  # of nodes that grow anew
SEARCHED_AT_ONCE = 2**8  # nodes whose histograms are copied


def contributions(training: Training, changes: Changes, row: np.ndarray, weight: np.ndarray) -> Any:
    """What rows add to channel sums, i64[n, C], and to the number of rows, i64[n]."""
    y, C = changes.y[row], training.n_channels
    if training.target.coding.is_classes:
        sums = np.where(np.arange(C) == y, weight[:, None], 0)
    else:
        sums = weight[:, None] * np.concatenate([np.ones((len(y), 1), np.int64), y], axis=1)
    return sums.astype(np.int64), np.sign(weight).astype(np.int64)


def add(
    training: Training, changes: Changes, hist: Histogram, at: np.ndarray, row: np.ndarray,
    weight: np.ndarray,
) -> None:  # fmt: skip
    """Add the changed rows i64[n] to stacked histograms of the nodes numbered `at` i64[n]."""
    sums, count = contributions(training, changes, row, weight)
    values = np.column_stack([sums, count]) if training.rules.count_rows else sums
    features, width = hist.features[at], training.hist_channels
    code = changes.codes[row[:, None], np.maximum(features, 0)].astype(np.int64)
    flat = hist.sums.reshape(*hist.features.shape, -1, width)
    pair, j = np.nonzero(features >= 0)
    np.add.at(flat, (at[pair], j, code[pair, j]), values[pair])


class Anew(NamedTuple):
    """Nodes that grow anew, because of the rows that change in a case."""

    case: np.ndarray  # i64[n]
    node: np.ndarray  # i64[n], numbers of upper nodes and blocks
    rows: list[Rows]  # that each holds then


class Stays(NamedTuple):
    """Upper nodes whose splits stay, i64[n], and what changed rows make of them."""

    node: np.ndarray
    sums: np.ndarray  # i64[n, C]
    n_rows: np.ndarray  # i64[n]
    hists: list[Histogram]


def search_again(
    upper: Upper, training: Training, backend: Backend, forest: Forest, changes: Changes,
    case: np.ndarray,
) -> tuple[Anew, list[Stays]]:  # fmt: skip
    """Search again for the splits of all upper nodes that changed rows reach, depth by depth. Rows
    with equal numbers in `case` i64[m] change together; each case begins with the trees as they
    are. Histograms are kept if there is one case."""
    n = len(upper.node)
    tree, row = np.nonzero(changes.weights)
    at, weight = upper.root[tree], changes.weights[tree, row].astype(np.int64)
    cases, nodes = [at[:0]], [at[:0]]
    rows, stays = list[Rows](), list[Stays]()
    while len(row):
        unit, number = np.unique(case[row] * n + at, return_inverse=True)
        node = unit % n
        slots = upper.slots.take(NUMPY, node, 0)
        sums, count = contributions(training, changes, row, weight)
        np.add.at(slots.sums, number, sums)
        np.add.at(slots.n_rows, number, count)
        same, hists = (upper.below[node] > 0) & ~may_end(training, slots), list[Histogram]()
        on = np.flatnonzero(same)
        for part in np.array_split(on, -(-len(on) // SEARCHED_AT_ONCE)) if len(on) else ():
            hist = stacked([upper.kept[i] for i in node[part].tolist()])
            place = np.full(len(node), -1)
            place[part] = np.arange(len(part))
            inside = place[number] >= 0
            add(training, changes, hist, place[number[inside]], row[inside], weight[inside])
            some = slots.take(NUMPY, part, 0)
            found = best(training, backend, kind_in(training), some, hist)
            same[part] = same_splits(found, upper.splits.take(NUMPY, node[part]))
            if case[0] == case[-1]:  # copies, which are freed one by one
                dtype, staying = sums_dtype(training), np.flatnonzero(same[part]).tolist()
                pairs_of = ((hist.features[i], hist.sums[i]) for i in staying)
                hists += [Histogram(f.copy(), of_f.astype(dtype)) for f, of_f in pairs_of]
        stays.append(Stays(node[same], slots.sums[same], slots.n_rows[same], hists))
        order = np.argsort(number, kind="stable")
        begin = np.searchsorted(number[order], np.arange(len(node) + 1))
        for i in np.flatnonzero(~same).tolist():
            of_node = order[begin[i] : begin[i + 1]]
            held = upper.rows_below(node[i])
            rows.append(with_changes(held, changes.rows[row[of_node]], weight[of_node]))
        cases.append(unit[~same] // n)
        nodes.append(node[~same])
        go = same[number]
        at, row, weight = at[go], row[go], weight[go]
        left = goes_left(forest, upper.at(forest, at), changes.codes[row])
        at = upper.below[at] + ~left
    return Anew(np.concatenate(cases), np.concatenate(nodes), rows), stays


def may_end(training: Training, slots: Frontier) -> np.ndarray:
    """Which nodes may be leaves whatever their features are, by their sums, bool[S]."""
    xp, sums, begin = NUMPY, slots.sums, slots.begin
    constant = all_equal(xp, training, sums, begin, begin, lambda *_: np.zeros(len(sums), bool))
    return np.asarray(replace(slots, constant=constant).must_end(xp, training.rules))


def with_changes(held: Rows, changed: np.ndarray, weights: np.ndarray) -> Rows:
    """The rows of a node without some, and with others: numbers i64[n], weights i64[n] negative
    where they leave."""
    leave, join = changed[weights < 0], weights > 0
    stay = held.rows != leave[0] if len(leave) == 1 else ~np.isin(held.rows, leave)
    rows, each = held.rows[stay], held.weights[stay]
    if not join.any():
        return Rows(rows, each)
    return Rows(
        np.concatenate([rows, changed[join].astype(rows.dtype)]),
        np.concatenate([each, weights[join].astype(np.min_scalar_type(int(weights.max())))]),
    )


def grown_below(
    upper: Upper, training: Training, backend: Backend, nodes: np.ndarray, held: list[Rows]
) -> Forest:
    """The trees that grow at nodes i64[n] from the rows that these hold."""
    parts = slots_of(upper, training, backend, nodes, held)
    grown = [grown_from(training, backend, slots) for slots in parts]
    return merged(grown, training, backend.n_threads)


def slots_of(
    upper: Upper, training: Training, backend: Backend, nodes: np.ndarray, held: list[Rows]
) -> Iterator[Frontier]:
    """The slots of nodes i64[n] that hold these rows, some at a time."""
    size = np.array([len(part.rows) for part in held])
    cuts = np.flatnonzero(np.diff(np.cumsum(size) // ROWS_AT_ONCE)) + 1
    for low, high in pairwise([0, *cuts.tolist(), len(held)]):
        some, n = held[low:high], size[low:high]
        rows, weights = (np.concatenate(part).astype(np.int32) for part in zip(*some, strict=True))
        end = np.cumsum(n)
        sums, constant = backend.totals(training, rows, weights, end - n, end)
        yield replace(
            upper.slots.take(NUMPY, nodes[low:high], len(rows)), n_rows=n, begin=end - n, end=end,
            sums=sums, constant=constant, rows=rows, weights=weights,
        )  # fmt: skip


def changed(
    upper: Upper, training: Training, backend: Backend, forest: Forest, most_rows: int,
    changes: Changes,
) -> tuple[Forest, Upper]:  # fmt: skip
    """The forest that grows from the training with these changes, and its upper nodes; those given
    stay as they are. The training has the rows that join."""
    together = np.zeros(len(changes.rows), int)
    anew, stays = search_again(upper, training, backend, forest, changes, together)
    if not len(anew.node):
        return forest, upper
    parts = []
    for slots in slots_of(upper, training, backend, anew.node, anew.rows):
        own = None if slots.allowed is None else slots.allowed[slots.tree]
        own_trees = replace(slots, tree=np.arange(slots.n_slots, dtype=np.int32), allowed=own)
        parts.append(grown_slots(training, backend, own_trees, most_rows))
    waves, inner = zip(*parts, strict=True)
    tree, at = upper.slots.tree[anew.node], upper.at(forest, anew.node)
    forest, moves = spliced(forest, at, merged(list(waves), training, backend.n_threads))
    node = upper.node.copy()
    for t in np.unique(tree).tolist():
        of_tree = np.flatnonzero(upper.slots.tree == t)
        node[of_tree] += moves.of(t, node[of_tree])
    # the new nodes are numbered in trees of their own, whose roots are nodes of the forest now
    first = np.cumsum([0, *(len(part.root) for part in inner)])
    own = np.concatenate([part.slots.tree + i for part, i in zip(inner, first, strict=False)])
    new, root = Upper.join(list(inner)), node[anew.node]
    begin = children(forest.nodes[forest.tree_offsets[tree] + root]) - 1
    new = replace(
        new, node=np.where(new.node > 0, new.node + begin[own], root[own]),
        slots=replace(new.slots, tree=tree[own]),
    )  # fmt: skip
    after = replace(upper, node=node).grafted(new, anew.node)
    for some in stays:
        after.slots.sums[some.node], after.slots.n_rows[some.node] = some.sums, some.n_rows
        after.put(some.node, after.below[some.node], some.hists)
    return forest, after.there()
