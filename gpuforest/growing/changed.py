"""Rows leave trees or join them, and trees grow again only where that changes a split.

upper nodes   hold many rows, and keep the histograms that their splits come from. The changed
              rows are added there, and the search is done again: if it finds the same split,
              the rows go on to its sides; if not, all below grows anew
blocks        are the nodes below these: each keeps its rows, and grows anew if some change
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gpuforest.backends.base import Backend
from gpuforest.backends.slots import all_equal, pairs
from gpuforest.common import hashing
from gpuforest.core.forest import Forest
from gpuforest.core.frontier import Frontier, Splits
from gpuforest.core.nodes import SET_BIN, is_leaf, unpack
from gpuforest.core.training import Training
from gpuforest.growing.assemble import merged
from gpuforest.growing.bags import tree_features
from gpuforest.growing.grow import Idle, gaining, grow, grow_wave, roots, working
from gpuforest.growing.splice import children, spliced
from gpuforest.splits.base import Kind, draw_features
from gpuforest.splits.kinds import kind_in

NUMPY: Any = np
NO_ROWS = np.zeros(0, np.int32), np.zeros(0, np.int32)
ROWS_AT_ONCE = 2**24  # of nodes that grow anew
SEARCHED_AT_ONCE = 2**10  # nodes whose histograms are copied


def splits_of(training: Training, forest: Forest, tree: np.ndarray, node: np.ndarray) -> Splits:
    """The splits of nodes i64[n] of trees i64[n]; feature -1 where one is a leaf."""
    at = forest.tree_offsets[tree] + node
    found = Splits.none_yet(len(at), training.n_channels, training.n_words)
    found.feature[:], found.bin[:], found.missing_left[:], _ = unpack(np, forest.nodes[at])
    if len(forest.sets):
        n = forest.n_words(forest.nodes[at])
        split, word = np.nonzero(np.arange(training.n_words) < n[:, None])
        found.sets[split, word] = forest.sets[forest.set_at[at[split]] + word]
    return found


def same_splits(one: Splits, other: Splits) -> np.ndarray:
    """Which of n splits are the same, bool[n]."""
    same = (one.feature == other.feature) & (one.bin == other.bin) & (one.feature >= 0)
    same &= one.missing_left == other.missing_left
    by_set = one.bin == SET_BIN
    same[by_set] &= (one.sets[by_set] == other.sets[by_set]).all(axis=1)
    return np.asarray(same)


def goes_left(forest: Forest, at: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Whether rows with codes [n, F] go left at splits i64[n] of a forest, bool[n]."""
    feature, bins, missing_left, _ = unpack(np, forest.nodes[at])
    code = codes[np.arange(len(at)), feature].astype(np.int64)
    left, by_set = code <= bins, np.flatnonzero(bins == SET_BIN)
    if len(by_set):
        word = forest.set_at[at[by_set]] + (code[by_set] >> 6)  # of a missing value: any
        words = forest.sets[np.minimum(word, len(forest.sets) - 1)]
        left[by_set] = words >> (code[by_set] & 63).astype(np.uint64) & np.uint64(1)
    return np.asarray(np.where(code == forest.edges.missing_code, missing_left, left))


class Histogram(NamedTuple):
    """The features that the search of a node tries, i32[k], and sums by bins [k, B * width]."""

    features: np.ndarray
    sums: np.ndarray  # i32 for classes, else i64


class Rows(NamedTuple):
    """The rows of a node, i32[n], and their weights in the bag."""

    rows: np.ndarray
    weights: np.ndarray


def sums_dtype(training: Training) -> type[np.signedinteger[Any]]:
    """Of the sums of kept histograms: those of moments may be large."""
    return np.int32 if training.target.coding.is_classes else np.int64


def histograms(
    training: Training, backend: Backend, kind: Kind, slots: Frontier
) -> list[Histogram]:
    """The histograms of slots from their rows, until as many features vary as are tried."""
    k, F, S = training.rules.n_tried, training.n_features, slots.n_slots
    need, parts = np.full(S, k), [list[tuple[np.ndarray, np.ndarray]]() for _ in range(S)]
    dtype = sums_dtype(training)
    for first in range(0, F, k):
        some = np.flatnonzero(need > 0)
        if not len(some):
            break
        of = slots.take(NUMPY, some, int(slots.local_rows[some].sum()))
        features = draw_features(NUMPY, of.key, first, k, F)
        if of.allowed is not None:
            features = of.only_allowed(NUMPY, features)
        hist = backend.histogram(training, of, features)
        need[some] -= kind.best_of(backend, training, of, hist, features, need[some]).tried
        for i, s in enumerate(some.tolist()):
            parts[s].append((features[i], hist[i].reshape(len(features[i]), -1).astype(dtype)))
    return [Histogram(*map(np.concatenate, zip(*part, strict=True))) for part in parts]


def stacked(hists: list[Histogram]) -> Histogram:
    """Features i32[n, k] (-1: none) and sums i64[n, k, B * width] of n nodes."""
    k = max(len(h.features) for h in hists)
    if all(len(h.features) == k for h in hists):
        features, sums = map(np.stack, zip(*hists, strict=True))
        return Histogram(features, sums.astype(np.int64))
    features = np.full((len(hists), k), -1, np.int32)
    sums = np.zeros((len(hists), k, hists[0].sums.shape[1]), np.int64)
    for i, hist in enumerate(hists):
        n = len(hist.features)
        features[i, :n], sums[i, :n] = hist
    return Histogram(features, sums)


def best(
    training: Training, backend: Backend, kind: Kind, slots: Frontier, hist: Histogram
) -> Splits:
    """The best splits of slots by stacked histograms; feature -1 where there is none, or where
    more features would have to be looked at."""
    k, (features, sums) = training.rules.n_tried, hist
    shape = (*features.shape, training.n_codes, training.hist_channels)
    need = np.full(slots.n_slots, k)
    found = kind.best_of(backend, training, slots, sums.reshape(shape), features, need)
    found = gaining(training, backend, slots, found)
    sure = (found.tried == k) | (features.shape[1] >= training.n_features)
    return replace(found, feature=np.where(sure, found.feature, -1))


class Changes(NamedTuple):
    """Rows that leave trees or join them."""

    rows: np.ndarray  # i64[m], their numbers in the training
    codes: np.ndarray  # u8 or u16 [m, F]
    y: np.ndarray  # i32[m, 1] or i64[m, K]
    weights: np.ndarray  # i32[T, m], in the bags of the trees; negative: they leave


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


@dataclass(frozen=True, eq=False)
class Upper:
    """The upper nodes of trees, and the blocks below them: n nodes."""

    slots: Frontier  # which hold no rows
    splits: Splits
    node: np.ndarray  # i64[n], the number of each in its tree
    below: np.ndarray  # i64[n], the left one of the two below it; 0: it is a block
    kept: list[Histogram | Rows | None]  # None: a block that no changed row reaches
    root: np.ndarray  # i64[T], the numbers of the roots of the trees

    @property
    def n_bytes(self) -> int:
        """Bytes of histograms and rows."""
        return sum(a.nbytes for kept in self.kept if kept is not None for a in kept)

    def rows_below(self, i: int) -> Rows:
        """The rows of a block, or of all blocks below an upper node."""
        blocks, waiting = list[Any](), [i]
        while waiting:
            i = waiting.pop()
            if left := int(self.below[i]):
                waiting += [left, left + 1]
            else:
                blocks.append(self.kept[i])
        if len(blocks) == 1:
            return Rows(*blocks[0])
        return Rows(*map(np.concatenate, zip(*blocks, strict=True)))

    @classmethod
    def join(cls, parts: list[Upper]) -> Upper:
        """The upper nodes of the trees of several parts."""
        first = np.cumsum([0, *(len(part.node) for part in parts)])[:-1]
        below = [p.below + i * (p.below > 0) for p, i in zip(parts, first, strict=True)]
        root = [p.root + i for p, i in zip(parts, first, strict=True)]
        return cls(
            Frontier.join(NUMPY, [p.slots for p in parts], *NO_ROWS),
            Splits.join(NUMPY, [p.splits for p in parts]),
            np.concatenate([p.node for p in parts]),
            np.concatenate(below),
            [kept for p in parts for kept in p.kept],
            np.concatenate(root),
        )

    def only(self, stays: np.ndarray) -> Upper:
        """Some of the nodes, bool[n]."""
        at, number = np.flatnonzero(stays), np.cumsum(stays) - 1
        below = np.where(self.below[at] > 0, number[self.below[at]], 0)
        slots, splits = self.slots.take(NUMPY, at, 0), self.splits.take(NUMPY, at)
        kept = [self.kept[i] for i in at.tolist()]
        return Upper(slots, splits, self.node[at], below, kept, number[self.root])


def upper_of(
    training: Training, backend: Backend, forest: Forest, most_rows: int,
    changes: Changes | None = None,
) -> Upper:  # fmt: skip
    """The upper nodes of a forest: they hold more than `most_rows` rows of the training.

    changes : rows that the training lacks or has more than the forest, which grew from the rows
        before. Then only nodes that these reach are looked at, and one whose split is no longer
        the best is a block. None: the forest grew from the training"""

    def wave(idle: Idle, n_trees: int, size: int, first: int) -> Upper:
        with working(idle) as (training, backend):
            slots = roots(training, backend, first, min(first + size, n_trees))
            slots = replace(slots, tree=slots.tree + np.int32(first), allowed=allowed)
            node = np.zeros(slots.n_slots, int)
            return follow(training, backend, forest, slots, node, most_rows, changes)

    allowed = allowed_of(training, forest, backend)
    return Upper.join(grow(training, backend, 0, forest.n_trees, work=wave))


def allowed_of(training: Training, forest: Forest, backend: Backend) -> Any:
    """The features drawn for each tree, bool[T, F]; None: all."""
    keys, rules = hashing.tree_keys(np, forest.seed, 0, forest.n_trees), training.rules
    drawn = rules.n_features_tree, rules.features_again
    return tree_features(keys, *drawn, training.n_features, backend)


def follow(
    training: Training, backend: Backend, forest: Forest, slots: Frontier, node: np.ndarray,
    most_rows: int, changes: Changes | None = None,
) -> Upper:  # fmt: skip
    """The upper nodes from slots on, which are the nodes i64[S] of their trees; see `upper_of`."""
    kind, parts, S = kind_in(training), list[Upper](), slots.n_slots
    root, at, row = np.arange(S), *np.zeros((2, 0), int)
    if changes is not None:
        at, row = np.nonzero(changes.weights[slots.tree])
    while S:
        splits = splits_of(training, forest, slots.tree, node)
        reached = np.full(S, changes is None)
        reached[at] = True
        going = reached & (splits.feature >= 0) & (slots.n_rows > most_rows)
        going &= ~slots.must_end(NUMPY, training.rules)
        kept: list[Histogram | Rows | None] = [None] * S
        on = np.flatnonzero(going)
        wide = slots.take(NUMPY, on, 0)
        for chunk in kind.chunks(backend, training, wide):
            some = wide.part(chunk)
            hists = histograms(training, backend, kind, some)
            found = best(training, backend, kind, some, stacked(hists))
            going[on[chunk]] = same_splits(found, splits.take(NUMPY, on[chunk]))
            for i, hist in zip(on[chunk].tolist(), hists, strict=True):
                kept[i] = hist
        for i in np.flatnonzero(reached & ~going).tolist():
            kept[i] = rows_of(slots, i)
        # the slots below
        on, of_forest = np.flatnonzero(going), forest.tree_offsets[slots.tree] + node
        below, left = np.zeros(S, int), np.zeros(S, int)
        below[on] = S + 2 * np.arange(len(on))
        left[on] = children(forest.nodes[of_forest[on]])
        here = replace(slots, rows=NO_ROWS[0], weights=NO_ROWS[1], max_rows=0)
        parts.append(Upper(here, splits, node, below, kept, root))
        stays = going[at]
        at, row = at[stays], row[stays]
        if changes is not None:
            to_left = goes_left(forest, of_forest[at], changes.codes[row])
            at = below[at] - S + ~to_left
        node, S, root = pairs(NUMPY, left[on], left[on] + 1), 2 * len(on), root[:0]
        if S:
            wide = slots.take(NUMPY, on, int(slots.local_rows[on].sum()))
            wide = wide.with_room(NUMPY) if len(parts) == 1 else wide
            slots = followed(training, backend, kind, wide, splits.take(NUMPY, on))
    return Upper.join(parts)


def rows_of(slots: Frontier, i: int) -> Rows:
    """A copy of the rows of a slot; weights take few bytes."""
    inside = slice(int(slots.begin[i]), int(slots.end[i]))
    weights = slots.weights[inside]
    return Rows(slots.rows[inside].copy(), weights.astype(np.min_scalar_type(int(weights.max()))))


def followed(
    training: Training, backend: Backend, kind: Kind, wide: Frontier, splits: Splits
) -> Frontier:
    """The slots below known splits."""
    rows, weights, n_left = kind.move(backend, training, wide, splits)
    begin = (wide.begin + len(rows) // 2) % max(len(rows), 1)  # in the other half
    left, _ = backend.totals(training, rows, weights, begin, begin + n_left)
    moved, splits = (rows, weights, n_left), replace(splits, left=left)
    return backend.nodes.children(backend, training, wide, splits, moved)


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
            if case[0] == case[-1]:
                sums = hist.sums.astype(sums_dtype(training))
                pairs_of = zip(hist.features, sums, same[part].tolist(), strict=True)
                hists += [Histogram(f, of_f) for f, of_f, stay in pairs_of if stay]
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
        of_forest = forest.tree_offsets[upper.slots.tree[at]] + upper.node[at]
        left = goes_left(forest, of_forest, changes.codes[row])
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
    size = np.array([len(rows.rows) for rows in held])
    cuts = np.flatnonzero(np.diff(np.cumsum(size) // ROWS_AT_ONCE)) + 1
    grown, idle = list[Forest](), Idle()
    idle.put((training, backend, nullcontext))
    for first, last in pairwise([0, *cuts.tolist(), len(held)]):
        slots = slots_of(upper, training, backend, nodes[first:last], held[first:last])
        grown.append(grow_wave(idle, 0, 0, None, 0, [slots]))
    return merged(grown, training, backend.n_threads)


def slots_of(
    upper: Upper, training: Training, backend: Backend, nodes: np.ndarray, held: list[Rows]
) -> Frontier:
    """The slots of nodes i64[n] that hold these rows."""
    rows, weights = (np.concatenate(part).astype(np.int32) for part in zip(*held, strict=True))
    size = np.array([len(part.rows) for part in held])
    end = np.cumsum(size)
    sums, constant = backend.totals(training, rows, weights, end - size, end)
    return replace(
        upper.slots.take(NUMPY, nodes, len(rows)), n_rows=size, begin=end - size, end=end,
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
    grown = grown_below(upper, training, backend, anew.node, anew.rows)
    tree = upper.slots.tree[anew.node]
    at = forest.tree_offsets[tree] + upper.node[anew.node]
    forest, moves = spliced(forest, at, grown)
    # what is known of the nodes now
    node, kept, n = upper.node.copy(), upper.kept.copy(), len(upper.node)
    for t in np.unique(tree).tolist():
        of_tree = np.flatnonzero(upper.slots.tree == t)
        node[of_tree] += moves.of(t, node[of_tree])
    slots, below = upper.slots.take(NUMPY, np.arange(n), 0), upper.below.copy()
    for some in stays:
        slots.sums[some.node], slots.n_rows[some.node] = some.sums, some.n_rows
        for i, hist in zip(some.node.tolist(), some.hists, strict=True):
            kept[i] = hist
    gone = np.zeros(n, bool)
    waiting = below[anew.node]
    while len(waiting := waiting[waiting > 0]):
        waiting = np.concatenate([waiting, waiting + 1])
        gone[waiting] = True
        waiting = below[waiting]
    below[anew.node] = 0
    for i, rows in zip(anew.node.tolist(), anew.rows, strict=True):
        kept[i] = rows
    after = Upper(slots, upper.splits, node, below, kept, upper.root)
    # upper nodes that have become blocks stay so until rows change there again
    blocks = anew.node[upper.below[anew.node] == 0]
    if gone.any():
        after, blocks = after.only(~gone), (np.cumsum(~gone) - 1)[blocks]
    return forest, unfolded(after, training, backend, forest, most_rows, blocks)


def unfolded(
    upper: Upper, training: Training, backend: Backend, forest: Forest, most_rows: int,
    blocks: np.ndarray,
) -> Upper:  # fmt: skip
    """The upper nodes, where some blocks i64[n], if they hold many rows, have upper nodes below."""
    splits = ~is_leaf(
        forest.nodes[forest.tree_offsets[upper.slots.tree[blocks]] + upper.node[blocks]]
    )
    large = [i for i in blocks[splits].tolist() if len(upper.kept[i].rows) > 8 * most_rows]
    if not large:
        return upper
    at, held = np.array(large), [upper.rows_below(i) for i in large]
    slots = slots_of(upper, training, backend, at, held)
    inner = follow(training, backend, forest, slots, upper.node[at], most_rows)
    n, k = len(upper.node), len(large)
    both = Upper.join([upper, replace(inner, root=inner.root[:0])])
    for name in both.slots.per_slot:
        getattr(both.slots, name)[at] = getattr(inner.slots, name)[:k]
    for f in fields(Splits):
        getattr(both.splits, f.name)[at] = getattr(inner.splits, f.name)[:k]
    both.below[at] = both.below[n : n + k]
    for i, kept in zip(large, inner.kept, strict=False):
        both.kept[i] = kept
    stays = np.ones(len(both.node), bool)
    stays[n : n + k] = False
    return both.only(stays)
