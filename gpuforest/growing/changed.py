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

from gpuforest.backends.base import Backend, has
from gpuforest.backends.slots import all_equal
from gpuforest.core.forest import Forest
from gpuforest.core.frontier import Frontier, Splits
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
    sure,
)
from gpuforest.splits.kept.again import Again
from gpuforest.splits.kept.kind import Keeping, search
from gpuforest.splits.kinds import kind_in

ROWS_AT_ONCE = 2**24  # of nodes that grow anew
SEARCHED_AT_ONCE = 2**8  # nodes whose histograms are copied


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
    n, sign, keeps = len(upper.node), changes.sign, bool(case[0] == case[-1])
    tree, row = np.nonzero(changes.weights)
    at, weight, of_rows = upper.root[tree], np.abs(changes.weights[tree, row]), changes.of(training)
    cases, nodes = [at[:0]], [at[:0]]
    rows, stays = list[Rows](), list[Stays]()
    while len(row):
        # 1. the nodes that rows reach, and these rows side by side
        unit = case[row] * n + at
        order = np.argsort(unit, kind="stable")
        at, row, weight = at[order], row[order], weight[order]
        unit, count = np.unique(unit, return_counts=True)
        node, end = unit % n, np.cumsum(count)
        slots = upper.slots.take(NUMPY, node, len(row))
        held = row.astype(np.int32), weight.astype(np.int32)
        sums, _ = backend.totals(of_rows, *held, end - count, end)
        slots = replace(
            slots, sums=slots.sums + sign * sums, n_rows=slots.n_rows + sign * count,
            begin=end - count, end=end, rows=held[0], weights=held[1],
        )  # fmt: skip
        # 2. which of them keep their splits
        same, hists = (upper.below[node] > 0) & ~may_end(training, slots), list[Histogram]()
        on = np.flatnonzero(same)
        for part in np.array_split(on, -(-len(on) // SEARCHED_AT_ONCE)) if len(on) else ():
            known, which = np.unique(node[part], return_inverse=True)
            kept: list[Any] = [upper.kept[i] for i in known.tolist()]
            some = slots.take(NUMPY, part, slots.max_rows)
            found, after = searched(of_rows, backend, some, sign, kept, which, keeps)
            same[part] = same_splits(found, upper.splits.take(NUMPY, node[part]))
            if keeps:
                hists += [after[i] for i in np.flatnonzero(same[part]).tolist()]
        stays.append(Stays(node[same], slots.sums[same], slots.n_rows[same], hists))
        # 3. the rows of the others
        for i in np.flatnonzero(~same).tolist():
            own = slice(end[i] - count[i], end[i])
            held = upper.rows_below(node[i])
            rows.append(with_changes(held, changes.rows[row[own]], sign * weight[own]))
        cases.append(unit[~same] // n)
        nodes.append(node[~same])
        # 4. the nodes below
        go = np.repeat(same, count)
        at, row, weight = at[go], row[go], weight[go]
        left = goes_left(forest, upper.at(forest, at), changes.codes[row])
        at = upper.below[at] + ~left
    return Anew(np.concatenate(cases), np.concatenate(nodes), rows), stays


def searched(
    of_rows: Training, backend: Backend, slots: Frontier, sign: int, kept: list[Histogram],
    which: np.ndarray, keeps: bool,
) -> tuple[Splits, list[Histogram]]:  # fmt: skip
    """The best splits of slots by histograms of nodes, when the rows that slots hold join (sign 1)
    or leave (-1); and the histograms then, if they are kept, because each slot has its own.

    which : i64[S], the node of each slot"""
    if not has(backend, "grow_subtrees"):
        hist = stacked([kept[i] for i in which.tolist()])
        changed = backend.histogram(of_rows, slots, hist.features)
        hist.sums[:] += sign * changed.reshape(hist.sums.shape)
        found = best(of_rows, backend, kind_in(of_rows), slots, hist)
        dtype = sums_dtype(of_rows)
        return found, [
            Histogram(f.copy(), of_f.astype(dtype)) for f, of_f in zip(*hist, strict=True)
        ]
    features, sums = (np.concatenate(a) for a in zip(*kept, strict=True))
    end = np.cumsum([len(h.features) for h in kept])
    begin = np.append(0, end[:-1])
    of_nodes = features, sums, begin[which], end[which]
    found = search(of_rows, backend, slots, of_nodes, sign, keeps)
    n_searched = np.add.reduceat(features >= 0, begin, dtype=np.int64)[which]
    found = sure(of_rows, backend, slots, found, n_searched)
    ranges = zip(begin.tolist(), end.tolist(), strict=True) if keeps else ()
    return found, [Histogram(features[b:e].copy(), sums[b:e].copy()) for b, e in ranges]


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
    grown = [grown_from(training, backend, slots) for _, slots in parts]
    return merged(grown, training, backend.n_threads)


class Walkers(NamedTuple):
    """Rows that walk down n nodes which grow again; those that have changed come first in codes."""

    codes: np.ndarray  # [R, F]
    n_changed: int  # of them
    row: np.ndarray  # i64[W], the row of each walker, node by node
    begin: np.ndarray  # i64[n + 1], the first walker of each node

    @classmethod
    def of(
        cls, changed: np.ndarray, others: np.ndarray, row_of_node: np.ndarray, node: np.ndarray,
        row: np.ndarray,
    ) -> Walkers:  # fmt: skip
        """Of one changed row of each of n nodes, and of other rows, by their numbers.

        changed, others : codes [m, F] of these rows; row_of_node : i64[n]; node, row : i64[p],
        of the others, ascending by nodes"""
        n = len(row_of_node)
        begin = np.searchsorted(node, np.arange(n + 1))
        rows = np.insert(row + len(changed), begin[:-1], row_of_node)
        return cls(np.concatenate([changed, others]), len(changed), rows, begin + np.arange(n + 1))

    def again(self, forest: Forest, at: np.ndarray, some: slice, prunes: bool) -> Again:
        """What compiled code takes for some of the nodes, which are at places i64[n] of a forest."""
        inside = slice(*self.begin[[some.start, some.stop]])
        row, n = self.row[inside].astype(np.int32), forest.leaf_sums.shape[1]
        base = forest.tree_offsets[np.searchsorted(forest.tree_offsets, at[some], "right") - 1]
        return Again(
            forest.nodes, forest.set_at, forest.sets, forest.leaf_sums, at[some], base,
            self.begin[some.start : some.stop + 1] - inside.start, self.codes, row,
            self.n_changed, np.empty_like(row), np.empty_like(row), np.empty(len(row), np.int64),
            np.zeros((len(row), n), np.int64), prunes,
        )  # fmt: skip


def sums_below(
    upper: Upper, training: Training, backend: Backend, forest: Forest, nodes: np.ndarray,
    held: list[Rows], walkers: Walkers,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The sums i64[p, C] of the leaves that walkers which have not changed reach when nodes i64[n]
    grow again from the rows that these hold; and where they are not what they were, bool[p]."""
    at, found = upper.at(forest, nodes), list[Again]()
    for some, slots in slots_of(upper, training, backend, nodes, held):
        found.append(walkers.again(forest, at, some, True))
        backend.grow_subtrees(training, slots, Keeping(2**62, sums_dtype(training), found[-1]))
    sums, reached = (
        np.concatenate([getattr(a, name) for a in found]) for name in ("sums", "reached")
    )
    others = walkers.row >= walkers.n_changed
    return sums[others], reached[others] >= 0


def slots_of(
    upper: Upper, training: Training, backend: Backend, nodes: np.ndarray, held: list[Rows]
) -> Iterator[tuple[slice, Frontier]]:
    """Ranges of nodes i64[n], and slots that hold their rows, each in a tree of its own."""
    size = np.array([len(part.rows) for part in held])
    cuts = np.flatnonzero(np.diff(np.cumsum(size) // ROWS_AT_ONCE)) + 1
    for low, high in pairwise([0, *cuts.tolist(), len(held)]):
        some, n = held[low:high], size[low:high]
        rows, weights = (np.concatenate(part).astype(np.int32) for part in zip(*some, strict=True))
        end = np.cumsum(n)
        sums, constant = backend.totals(training, rows, weights, end - n, end)
        slots = upper.slots.take(NUMPY, nodes[low:high], len(rows))
        own = None if slots.allowed is None else slots.allowed[slots.tree]
        yield slice(low, high), replace(
            slots, tree=np.arange(high - low, dtype=np.int32), allowed=own, n_rows=n, begin=end - n,
            end=end, sums=sums, constant=constant, rows=rows, weights=weights,
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
    for _, slots in slots_of(upper, training, backend, anew.node, anew.rows):
        parts.append(grown_slots(training, backend, slots, most_rows))
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
