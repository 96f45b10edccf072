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
from gpuforest.splits.kept.kind import search
from gpuforest.splits.kinds import kind_in

ROWS_AT_ONCE = 2**24  # of nodes that grow anew
SEARCHED_AT_ONCE = 2**8  # nodes whose histograms are copied


class Anew(NamedTuple):
    """n nodes that grow anew, because of the rows that change in a case."""

    case: np.ndarray  # i64[n]
    node: np.ndarray  # i64[n], numbers of upper nodes and blocks
    found: Splits  # of upper nodes; feature -1: none
    begin: np.ndarray  # i64[n + 1], the first changed row of each
    row: np.ndarray  # i64[m]
    weight: np.ndarray  # i64[m], negative: it leaves

    @classmethod
    def join(cls, parts: list[Anew]) -> Anew:
        """The nodes of several parts."""
        case, node, found, begin, row, weight = zip(*parts, strict=True)
        first = np.cumsum([0, *map(len, row)])
        begins = [b[:-1] + i for b, i in zip(begin, first, strict=False)]
        case, node, row, weight = map(np.concatenate, (case, node, row, weight))
        return cls(
            case, node, Splits.join(NUMPY, list(found)),
            np.append(np.concatenate(begins), len(row)), row, weight,
        )  # fmt: skip

    def rows_of(self, upper: Upper, changes: Changes, some: np.ndarray) -> list[Rows]:
        """The rows that some of the nodes, i64[m], hold then."""
        held = list[Rows]()
        of_some = self.node[some], self.begin[some], self.begin[some + 1]
        numbers = changes.rows[self.row]
        for node, begin, end in zip(*(a.tolist() for a in of_some), strict=True):
            own = numbers[begin:end], self.weight[begin:end]
            held.append(with_changes(upper.rows_below(node), *own))
        return held


class Stays(NamedTuple):
    """Upper nodes whose splits stay, i64[n], and what changed rows make of them."""

    node: np.ndarray
    sums: np.ndarray  # i64[n, C]
    n_rows: np.ndarray  # i64[n]
    hists: list[Histogram]


def search_again(
    upper: Upper, training: Training, backend: Backend, forest: Forest, changes: Changes,
    case: np.ndarray, wanted: np.ndarray | None = None,
) -> tuple[Anew, list[Stays]]:  # fmt: skip
    """Search again for the splits of all upper nodes that changed rows reach, depth by depth. Rows
    with equal numbers in `case` i64[m] change together; each case begins with the trees as they
    are. Histograms are kept if there is one case.

    wanted : bool[n], the nodes to look at, with those above them; None: all"""
    n_cases, sign, keeps = int(case.max()) + 1, changes.sign, bool(case[0] == case[-1])
    tree, row = np.nonzero(changes.weights)
    at, weight, of_rows = upper.root[tree], np.abs(changes.weights[tree, row]), changes.of(training)
    anew, stays = list[Anew](), list[Stays]()
    while True:
        if wanted is not None:
            at, row, weight = (a[wanted[at]] for a in (at, row, weight))
        # 1. the nodes that rows reach, and these rows side by side
        unit = at * n_cases + case[row]
        order = np.argsort(unit, kind="stable")
        at, row, weight = at[order], row[order], weight[order]
        unit, count = np.unique(unit, return_counts=True)
        node, end = unit // n_cases, np.cumsum(count)
        slots = upper.slots.take(NUMPY, node, len(row))
        held = row.astype(np.int32), weight.astype(np.int32)
        sums, _ = backend.totals(of_rows, *held, end - count, end)
        slots = replace(
            slots, sums=slots.sums + sign * sums, n_rows=slots.n_rows + sign * count,
            begin=end - count, end=end, rows=held[0], weights=held[1],
        )  # fmt: skip
        # 2. which of them keep their splits
        same, hists = (upper.below[node] > 0) & ~may_end(training, slots), list[Histogram]()
        found = Splits.none_yet(len(node), training.n_channels, training.n_words)
        on = np.flatnonzero(same)
        number = np.cumsum(np.diff(node[on], prepend=-1) > 0) // SEARCHED_AT_ONCE
        for part in np.split(on, np.flatnonzero(np.diff(number)) + 1) if len(on) else ():
            known, which = np.unique(node[part], return_inverse=True)
            kept: list[Any] = [upper.kept[i] for i in known.tolist()]
            some = slots.take(NUMPY, part, slots.max_rows)
            new, after = searched(of_rows, backend, some, sign, kept, which, keeps)
            found.put(part, new)
            same[part] = same_splits(new, upper.splits.take(NUMPY, node[part]))
            if keeps:
                hists += [after[i] for i in np.flatnonzero(same[part]).tolist()]
        stays.append(Stays(node[same], slots.sums[same], slots.n_rows[same], hists))
        other, go = np.flatnonzero(~same), np.repeat(same, count)
        begin, case_of = np.append(0, np.cumsum(count[other])), unit[other] % n_cases
        of_rest = begin, row[~go], sign * weight[~go].astype(np.int64)
        anew.append(Anew(case_of, node[other], found.take(NUMPY, other), *of_rest))
        # 3. the nodes below
        at, row, weight = at[go], row[go], weight[go]
        if not len(row):
            return Anew.join(anew), stays
        left = goes_left(forest, upper.at(forest, at), changes.codes[row])
        at = upper.below[at] + ~left


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
    if len(changed) == 1 and weights[0] < 0:
        at = int((held.rows == changed[0]).argmax())
        return Rows(*(np.concatenate([part[:at], part[at + 1 :]]) for part in held))
    leave, join = changed[weights < 0], weights > 0
    stay = ~np.isin(held.rows, leave)
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
    """As `slots_at`, some nodes at a time."""
    size = np.cumsum([len(part.rows) for part in held]) // ROWS_AT_ONCE
    cuts = np.flatnonzero(np.diff(size)) + 1
    for low, high in pairwise([0, *cuts.tolist(), len(held)]):
        yield slots_at(upper, training, backend, nodes[low:high], held[low:high])


def slots_at(
    upper: Upper, training: Training, backend: Backend, nodes: np.ndarray, held: list[Rows]
) -> Frontier:
    """The slots of nodes i64[n] that hold these rows, each in a tree of its own."""
    n = np.array([len(part.rows) for part in held])
    rows, weights = (np.concatenate(part).astype(np.int32) for part in zip(*held, strict=True))
    end = np.cumsum(n)
    sums, constant = backend.totals(training, rows, weights, end - n, end)
    slots = upper.slots.take(NUMPY, nodes, len(rows))
    return replace(
        slots, tree=np.arange(len(n), dtype=np.int32), n_rows=n, begin=end - n, end=end, sums=sums,
        allowed=None if slots.allowed is None else slots.allowed[slots.tree], constant=constant,
        rows=rows, weights=weights,
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
    held = anew.rows_of(upper, changes, np.arange(len(anew.node)))
    slots = slots_of(upper, training, backend, anew.node, held)
    parts = [grown_slots(training, backend, part, most_rows) for part in slots]
    waves, inner = zip(*parts, strict=True)
    tree, at = upper.slots.tree[anew.node], upper.at(forest, anew.node)
    grown = merged(list(waves), training, backend.n_threads)
    forest, moves = spliced(forest, at, grown, backend)
    node = upper.node + moves.of(upper.slots.tree, upper.node)
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
