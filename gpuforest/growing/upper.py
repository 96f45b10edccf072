"""The upper nodes of trees, and what is kept of them, so that rows can leave and join.

upper nodes   hold many rows, and keep the histograms that their splits come from
blocks        are the nodes below these: each keeps its rows

Compiled code writes histograms while trees grow, see splits/kept; without it, `follow` fills them
again along the known splits.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from gpuforest.backends.base import Backend, has
from gpuforest.backends.slots import pairs
from gpuforest.common import hashing
from gpuforest.core.forest import Forest
from gpuforest.core.frontier import Frontier, Splits
from gpuforest.core.nodes import SET_BIN, unpack
from gpuforest.core.training import Training
from gpuforest.growing.bags import tree_features
from gpuforest.growing.grow import Idle, gaining, grow, grow_wave, roots, working
from gpuforest.growing.splice import children
from gpuforest.splits.base import Kind, draw_features
from gpuforest.splits.kept.kind import Keeping, Part
from gpuforest.splits.kept.numba import LEFT, N_ROWS, NUMBER
from gpuforest.splits.kinds import kind_in

NUMPY: Any = np
NO_ROWS = np.zeros(0, np.int32), np.zeros(0, np.int32)
GONE = -1  # instead of the node below
LEAST_THERE = 0.75  # if a smaller share of the nodes is there, the lists are made anew


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


class Changes(NamedTuple):
    """Rows that leave trees or join them."""

    rows: np.ndarray  # i64[m], their numbers in the training
    codes: np.ndarray  # u8 or u16 [m, F]
    y: np.ndarray  # i32[m, 1] or i64[m, K]
    weights: np.ndarray  # i32[T, m], in the bags of the trees; negative: they leave

    @property
    def sign(self) -> int:
        """Of what they add to sums: 1 if they join, and -1 if they leave."""
        return -1 if self.weights.min(initial=0) < 0 else 1

    def of(self, training: Training) -> Training:
        """The training of these rows alone."""
        matrix, target = training.matrix, training.target
        matrix, target = replace(matrix, codes=self.codes), replace(target, y=self.y)
        return replace(training, matrix=matrix, target=target)


@dataclass(frozen=True, eq=False)
class Upper:
    """The upper nodes of trees, and the blocks below them: n nodes."""

    slots: Frontier  # which hold no rows
    splits: Splits
    node: np.ndarray  # i64[n], the number of each in its tree
    below: np.ndarray  # i64[n], the left one of the two below it; 0: a block; GONE: no tree has it
    kept: list[Histogram | Rows | None]  # None: the node is gone, or no changed row reaches it
    root: np.ndarray  # i64[T], the numbers of the roots of the trees

    @property
    def n_bytes(self) -> int:
        """Bytes of histograms and rows."""
        return sum(a.nbytes for kept in self.kept if kept is not None for a in kept)

    def at(self, forest: Forest, nodes: np.ndarray) -> np.ndarray:
        """The places of nodes i64[m] in a forest, i64[m]."""
        return np.asarray(forest.tree_offsets[self.slots.tree[nodes]] + self.node[nodes])

    def rows_below(self, i: int) -> Rows:
        """The rows of a block, or of all blocks below an upper node."""
        if isinstance(of_block := self.kept[i], Rows):
            return of_block
        blocks, waiting = list[Any](), [i]
        while waiting:
            i = waiting.pop()
            if left := int(self.below[i]):
                waiting += [left, left + 1]
            else:
                blocks.append(self.kept[i])
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
            list(chain.from_iterable(p.kept for p in parts)),
            np.concatenate(root),
        )

    def grafted(self, inner: Upper, at: np.ndarray) -> Upper:
        """A copy, where the roots of others take the places of nodes `at` i64[m]."""
        both = Upper.join([self, replace(inner, root=inner.root[:0])])
        root, waiting = len(self.node) + inner.root, self.below[at]
        while len(waiting := waiting[waiting > 0]):  # what was below is gone
            waiting = np.concatenate([waiting, waiting + 1])
            both.put(waiting, GONE, [None] * len(waiting))
            waiting = self.below[waiting]
        for record in (both.slots, both.splits):
            for name in getattr(record, "per_slot", [f.name for f in fields(record)]):
                getattr(record, name)[at] = getattr(record, name)[root]
        both.put(at, both.below[root], [both.kept[i] for i in root.tolist()])
        both.put(root, GONE, [None] * len(root))
        return both

    def put(self, at: np.ndarray, below: Any, kept: Sequence[Histogram | Rows | None]) -> None:
        """Set what is below nodes i64[m], and what they keep."""
        self.below[at] = below
        for i, own in zip(at.tolist(), kept, strict=True):
            self.kept[i] = own

    def there(self) -> Upper:
        """The same without the nodes that are gone, once these are many."""
        stays = self.below != GONE
        at, number = np.flatnonzero(stays), np.cumsum(stays) - 1
        if len(at) > LEAST_THERE * len(stays):
            return self
        below = np.where(self.below[at] > 0, number[self.below[at]], 0)
        slots, splits = self.slots.take(NUMPY, at, 0), self.splits.take(NUMPY, at)
        kept = [self.kept[i] for i in at.tolist()]
        return Upper(slots, splits, self.node[at], below, kept, number[self.root])


def grown_with_upper(
    training: Training, backend: Backend, n_trees: int, most_rows: int
) -> tuple[list[Forest], Upper]:
    """The waves of a forest, and its upper nodes."""

    def wave(idle: Idle, n_trees: int, size: int, first: int) -> tuple[Forest, Upper]:
        with working(idle) as (training, backend):
            slots = roots(training, backend, first, min(first + size, n_trees))
            forest, upper = grown_slots(training, backend, slots, most_rows)
        slots = upper.slots
        slots = replace(slots, tree=slots.tree + np.int32(first), allowed=allowed)
        return forest, replace(upper, slots=slots)

    allowed = allowed_of(training, n_trees, backend)
    waves, upper = zip(*grow(training, backend, 0, n_trees, work=wave), strict=True)
    return list(waves), Upper.join(list(upper))


def grown_slots(
    training: Training, backend: Backend, slots: Frontier, most_rows: int, stays: bool = True
) -> tuple[Forest, Upper]:
    """The trees that grow from slots, whose numbers are those of the trees, and upper nodes.

    stays : whether what nodes keep lies in arrays of its own, which can be freed one by one"""
    if not grow_whole(training, backend):
        forest = grown_from(training, backend, slots)
        return forest, follow(training, backend, forest, slots, most_rows)
    kind = Keeping(most_rows)
    forest = grown_from(training, backend, slots, kind)
    return forest, written_nodes(training, forest, slots, kind.parts, stays)


def grow_whole(training: Training, backend: Backend) -> bool:
    """Whether compiled code grows whole trees, and not level by level."""
    return has(backend, "grow_subtrees") and not training.rules.limited


def grown_from(
    training: Training, backend: Backend, slots: Frontier, kind: Kind | None = None
) -> Forest:
    """The trees that grow from slots."""
    idle = Idle()
    idle.put((training, backend, nullcontext))
    return grow_wave(idle, 0, 0, None, 0, [slots], kind)


def upper_of(
    training: Training, backend: Backend, forest: Forest, most_rows: int, changes: Changes
) -> Upper:
    """The upper nodes that changed rows reach, with more than `most_rows` rows; one whose split is
    no longer the best is a block. The forest grew from the training before the changes."""

    def wave(idle: Idle, n_trees: int, size: int, first: int) -> Upper:
        with working(idle) as (training, backend):
            slots = roots(training, backend, first, min(first + size, n_trees))
            slots = replace(slots, tree=slots.tree + np.int32(first), allowed=allowed)
            return follow(training, backend, forest, slots, most_rows, changes)

    allowed = allowed_of(training, forest.n_trees, backend)
    return Upper.join(grow(training, backend, 0, forest.n_trees, work=wave))


def allowed_of(training: Training, n_trees: int, backend: Backend) -> Any:
    """The features drawn for each tree, bool[T, F]; None: all."""
    keys, rules = hashing.tree_keys(np, training.seed, 0, n_trees), training.rules
    drawn = rules.n_features_tree, rules.features_again
    return tree_features(keys, *drawn, training.n_features, backend)


def written_nodes(
    training: Training, forest: Forest, slots: Frontier, written: list[Part], stays: bool
) -> Upper:
    """As `follow`, from what was written while the trees of the slots grew."""
    S, held = slots.n_slots, np.flatnonzero(slots.local_rows)
    which = [held[np.searchsorted(slots.begin[held], part.begin)] for part in written]
    # 1. all nodes, part by part; slots that are leaves come first
    leaf = np.delete(np.arange(S), np.concatenate([held[:0], *which]))
    node_of = np.zeros((len(leaf), 5), int)
    node_of[:, N_ROWS] = slots.n_rows[leaf]
    nodes, sums, slot_of = [node_of], [slots.sums[leaf]], [leaf]
    kept: list[Histogram | Rows | None] = [rows_of(slots, i) for i in leaf.tolist()]
    for part, slot_numbers in zip(written, which, strict=True):
        nodes.append(part.nodes)
        sums.append(part.sums)
        slot_of.append(np.repeat(slot_numbers, np.diff([*part.offsets, len(part.nodes)])))
        for _, below, _, first, n in part.nodes.tolist():
            own, kind = slice(first, first + n), Histogram if below else Rows
            pair = (part.features, part.hists) if below else (part.rows, part.weights)
            kept.append(kind(*(a[own].copy() if stays else a[own] for a in pair)))
    node_of, sums_of, slot = (np.concatenate(a) for a in (nodes, sums, slot_of))
    number = (slot << 32) + node_of[:, NUMBER]
    order = np.argsort(number)
    # 2. level by level
    parts, root, wanted = list[Upper](), np.arange(S), np.arange(S) << 32
    tree, node, key, depth = slots.tree, np.zeros(S, int), slots.key, slots.depth
    while len(wanted):
        at = order[np.searchsorted(number[order], wanted)]
        none, on = np.zeros(len(at), int), np.flatnonzero(node_of[at, LEFT])
        here = replace(
            slots, tree=tree, key=key, n_rows=node_of[at, N_ROWS], begin=none, end=none,
            sums=sums_of[at], constant=none > 0, depth=depth, rows=NO_ROWS[0], weights=NO_ROWS[1],
            max_rows=0,
        )  # fmt: skip
        below = none.copy()
        below[on] = len(at) + 2 * np.arange(len(on))
        splits = splits_of(training, forest, tree, node)
        parts.append(Upper(here, splits, node, below, [kept[i] for i in at.tolist()], root))
        left = children(forest.nodes[forest.tree_offsets[tree[on]] + node[on]])
        node, root = pairs(NUMPY, left, left + 1), root[:0]
        wanted = (slot[at[on]] << 32) + node_of[at[on], LEFT]
        wanted = pairs(NUMPY, wanted, wanted + 1)
        tree, depth = np.repeat(tree[on], 2), np.repeat(depth[on] + 1, 2)
        key = pairs(NUMPY, *(hashing.hash_at(key[on], side) for side in (0, 1)))
    return Upper.join(parts)


def follow(
    training: Training, backend: Backend, forest: Forest, slots: Frontier, most_rows: int,
    changes: Changes | None = None,
) -> Upper:  # fmt: skip
    """The upper nodes of trees from their roots on, which are the slots; see `upper_of`."""
    kind, parts, S = kind_in(training), list[Upper](), slots.n_slots
    node, root, at, row = np.zeros(S, int), np.arange(S), *np.zeros((2, 0), int)
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
    features = np.full((len(hists), k), -1, np.int32)
    sums = np.zeros((len(hists), k, hists[0].sums.shape[1]), np.int64)
    for hist, to_features, to_sums in zip(hists, features, sums, strict=True):
        n = len(hist.features)
        to_features[:n], to_sums[:n] = hist
    return Histogram(features, sums)


def best(
    training: Training, backend: Backend, kind: Kind, slots: Frontier, hist: Histogram
) -> Splits:
    """The best splits of slots by stacked histograms; see `sure`."""
    k, (features, sums) = training.rules.n_tried, hist
    shape = (*features.shape, training.n_codes, training.hist_channels)
    need = np.full(slots.n_slots, k)
    found = kind.best_of(backend, training, slots, sums.reshape(shape), features, need)
    return sure(training, backend, slots, found, (features >= 0).sum(axis=1))


def sure(
    training: Training, backend: Backend, slots: Frontier, found: Splits, n_searched: np.ndarray
) -> Splits:
    """The best splits of slots, with feature -1 where there is none that gains enough, or where
    more features than those searched, i64[S], would have to be looked at."""
    found, n_allowed = gaining(training, backend, slots, found), np.int64(training.n_features)
    if slots.allowed is not None:
        n_allowed = slots.allowed.sum(axis=1)[slots.tree]
    are_all = (found.tried == training.rules.n_tried) | (n_searched == n_allowed)
    return replace(found, feature=np.where(are_all, found.feature, -1))


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
        left[by_set] = has_code(forest.sets[np.minimum(word, len(forest.sets) - 1)], code[by_set])
    return np.asarray(np.where(code == forest.edges.missing_code, missing_left, left))


def sends_left(splits: Splits, codes: np.ndarray, missing: int) -> np.ndarray:
    """Whether n splits send rows with codes [n, F] left, bool[n]."""
    code = codes[np.arange(len(codes)), splits.feature].astype(np.int64)
    left, by_set = code <= splits.bin, np.flatnonzero(splits.bin == SET_BIN)
    if len(by_set):
        word = np.minimum(code[by_set] >> 6, splits.sets.shape[1] - 1)
        left[by_set] = has_code(splits.sets[by_set, word], code[by_set])
    return np.asarray(np.where(code == missing, splits.missing_left, left))


def has_code(words: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Whether sets have codes i64[n], by the words u64[n] where their bits are, bool[n]."""
    return np.asarray((words >> (code & 63).astype(np.uint64) & np.uint64(1)).astype(bool))
