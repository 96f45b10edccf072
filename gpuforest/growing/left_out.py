"""What leaving out rows changes of predictions: trees grow anew only where other rows pass.

Each row is left out by itself, in a case of its own. Where several cases turn a split to the same
other one, the trees below that grow once, and each case changes these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gpuforest.backends.base import Backend
from gpuforest.core.forest import Forest
from gpuforest.core.frontier import Splits
from gpuforest.core.nodes import is_leaf, leaf_rows
from gpuforest.core.training import Training
from gpuforest.growing.changed import Anew, grown_below, search_again, slots_at
from gpuforest.growing.splice import children, places_below
from gpuforest.growing.upper import (
    GONE,
    NUMPY,
    Changes,
    Rows,
    Upper,
    followed,
    goes_left,
    grow_whole,
    grown_slots,
    sends_left,
)
from gpuforest.splits.kept.again import Again
from gpuforest.splits.kept.kind import Keeping
from gpuforest.splits.kinds import kind_in

PAIRS_AT_ONCE = 2**25  # of rows and trees that compiled code walks
FEWEST_SHARED = 1024  # rows of a node below which trees grow once for several cases


class Trees(NamedTuple):
    """Trees as they are with all rows, and the leaves that P rows of a test reach."""

    forest: Forest
    upper: Upper
    row: np.ndarray  # i64[P]
    leaf: np.ndarray  # i64[P], ascending

    @classmethod
    def of(cls, forest: Forest, upper: Upper, row: np.ndarray, leaf: np.ndarray) -> Trees:
        """The same for leaves in any order."""
        order = np.argsort(leaf, kind="stable")
        return cls(forest, upper, row[order], leaf[order])

    def passing(self) -> tuple[np.ndarray, np.ndarray]:
        """The first of the P rows that passes each upper node, and the first behind these, i64[n]
        each."""
        low, high = np.zeros((2, len(self.upper.node)), int)
        there = np.flatnonzero(self.upper.below != GONE)
        at = self.upper.at(self.forest, there)
        begin, end = places_below(self.forest, at)
        ends = is_leaf(self.forest.nodes[at])
        low[there] = np.searchsorted(self.leaf, np.where(ends, at, begin))
        high[there] = np.searchsorted(self.leaf, np.where(ends, at + 1, end))
        return low, high


def spread(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of ranges i64[n], and the numbers in them, i64[sum of their lengths] each."""
    n = high - low
    first = np.repeat(low - (np.cumsum(n) - n), n)
    return np.repeat(np.arange(len(n)), n), first + np.arange(len(first))


def batches(size: np.ndarray, most: int) -> list[np.ndarray]:
    """Numbers of nodes that hold these numbers of rows, i64[n], about `most` rows at a time."""
    cuts = np.flatnonzero(np.diff(np.cumsum(size) // most)) + 1
    return np.split(np.arange(len(size)), cuts) if len(size) else []


class Walkers(NamedTuple):
    """Rows that walk down n nodes which grow again; codes of changed rows come first."""

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

    def again(self, forest: Forest, at: np.ndarray) -> Again:
        """What compiled code takes; the nodes are at places i64[n] of a forest."""
        row = self.row.astype(np.int32)
        sums = np.zeros((len(row), forest.leaf_sums.shape[1]), np.int64)
        base = forest.tree_offsets[np.searchsorted(forest.tree_offsets, at, "right") - 1]
        return Again(
            forest.nodes, forest.set_at, forest.sets, at, base, self.begin,
            self.codes, row, self.n_changed, np.empty_like(row), np.empty_like(row),
            np.empty(len(row), np.int64), sums,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class LeavingOut:
    """Adds up what leaving out each of m rows changes."""

    training: Training
    backend: Backend
    most_rows: int  # of a block
    at_once: int  # rows of nodes that grow at the same time
    codes: np.ndarray  # [n, F], of the rows of the test
    change: np.ndarray  # f64[m, n, n_values], of the sums over trees

    def add(self, trees: Trees, changes: Changes) -> None:
        """Add what changes in these trees when each of m rows leaves them."""
        low, high = trees.passing()
        cases = np.arange(len(changes.rows))
        of_trees = trees.upper, self.training, self.backend, trees.forest
        anew, _ = search_again(*of_trees, changes, cases, high > low)
        if len(anew.node):
            ranges = low[anew.node], high[anew.node]
            shared = self.add_shared(trees, changes, anew, *ranges)
            self.add_each(trees, changes, anew, *ranges, np.flatnonzero(~shared))

    def add_each(
        self, trees: Trees, changes: Changes, anew: Anew, low: np.ndarray, high: np.ndarray,
        some: np.ndarray,
    ) -> None:  # fmt: skip
        """Grow some of the nodes that grow anew, i64[k], each by itself."""
        for batch in batches(trees.upper.slots.n_rows[anew.node[some]], self.at_once):
            of_batch = some[batch]
            node, case = anew.node[of_batch], anew.case[of_batch]
            unit, pair = spread(low[of_batch], high[of_batch])
            row, before = trees.row[pair], values_at(trees.forest, trees.leaf[pair])
            held = anew.rows_of(trees.upper, changes, of_batch)
            if grow_whole(self.training, self.backend):
                walkers = Walkers.of(changes.codes, self.codes, case, unit, row)
                sums, differ = self.sums_below(trees, node, held, walkers)
                gain = replace(trees.forest, leaf_sums=sums).values - before
                gain[~differ] = 0
            else:
                grown = grown_below(trees.upper, self.training, self.backend, node, held)
                grown = replace(grown, combine=trees.forest.combine)
                gain = values_at(grown, self.leaves(grown, unit, row)) - before
            np.add.at(self.change, (case[unit], row), gain)

    def add_shared(
        self, trees: Trees, changes: Changes, anew: Anew, low: np.ndarray, high: np.ndarray
    ) -> np.ndarray:  # fmt: skip
        """Where several cases turn a split to the same other one, add what changes by that, and
        then by each case; returns which of the nodes that grow anew these are, bool[n]."""
        on, found, shared = np.flatnonzero(anew.found.feature >= 0), anew.found, anew.case < 0
        if not len(on):
            return shared
        parts = anew.node, found.feature, found.bin, found.missing_left
        key = np.column_stack([*(part[on] for part in parts), found.sets[on].view(np.int64)])
        _, first, group, n = np.unique(
            key, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        first = on[first]
        size, passing = trees.upper.slots.n_rows[anew.node[first]], (high - low)[first]
        # levels that grow: for each case the ones that rows of the test pass, or once all of them
        pays = (n > 1) & (n * (2 + np.log2(1 + passing)) > 1.5 * np.log2(1 + size))
        pays &= size >= FEWEST_SHARED
        shared[on] = pays[group]
        chosen = np.flatnonzero(pays)
        number = np.full(len(n), -1)
        for batch in batches(size[chosen], self.at_once):
            number[:] = -1
            number[chosen[batch]] = np.arange(len(batch))
            case = np.flatnonzero(number[group] >= 0)
            of_split = first[chosen[batch]]
            pair = spread(low[of_split], high[of_split])
            self.add_turned(trees, changes, anew, of_split, pair, on[case], number[group[case]])
        return shared

    def add_turned(
        self, trees: Trees, changes: Changes, anew: Anew, first: np.ndarray,
        pair: tuple[np.ndarray, np.ndarray], some: np.ndarray, split: np.ndarray,
    ) -> None:  # fmt: skip
        """Grow the sides of other splits from all rows, and leave out rows from these.

        first : i64[s], of the nodes that grow anew, one with each split; pair : numbers of splits,
        and of the rows that pass their nodes; some : i64[c], all nodes with these splits, and
        split : i64[c], which one each has"""
        splits, nodes = anew.found.take(NUMPY, first), anew.node[first]
        held = [trees.upper.rows_below(i) for i in nodes.tolist()]
        grown, upper = self.sides(trees.upper, nodes, held, splits)
        grown = replace(grown, combine=trees.forest.combine)
        # 1. the rows of the test, for all cases of a split
        missing, (of_pair, at) = trees.forest.edges.missing_code, pair
        row = trees.row[at]
        left = sends_left(splits.take(NUMPY, of_pair), self.codes[row], missing)
        leaf = self.leaves(grown, 2 * of_pair + ~left, row)
        gain = values_at(grown, leaf) - values_at(trees.forest, trees.leaf[at])
        begin = np.searchsorted(of_pair, np.arange(len(first) + 1))
        unit, at = spread(begin[split], begin[split + 1])
        np.add.at(self.change, (anew.case[some][unit], row[at]), gain[at])
        # 2. the row that leaves, for each case
        leaves = anew.row[anew.begin[some]]
        left = sends_left(splits.take(NUMPY, split), changes.codes[leaves], missing)
        weights = np.zeros((2 * len(first), len(changes.rows)), changes.weights.dtype)
        weights[2 * split + ~left, leaves] = anew.weight[anew.begin[some]]
        self.add(Trees.of(grown, upper, row, leaf), changes._replace(weights=weights))

    def sides(
        self, upper: Upper, nodes: np.ndarray, held: list[Rows], splits: Splits
    ) -> tuple[Forest, Upper]:
        """The trees below both sides of other splits of nodes i64[s], left ones first."""
        training, backend = self.training, self.backend
        wide = slots_at(upper, training, backend, nodes, held).with_room(NUMPY)
        below = followed(training, backend, kind_in(training), wide, splits)
        allowed = None if below.allowed is None else below.allowed[below.tree]
        tree = np.arange(below.n_slots, dtype=np.int32)
        below = replace(below, tree=tree, allowed=allowed)
        return grown_slots(training, backend, below, self.most_rows, False)

    def sums_below(
        self, trees: Trees, nodes: np.ndarray, held: list[Rows], walkers: Walkers
    ) -> tuple[np.ndarray, np.ndarray]:
        """The sums i64[p, C] of the leaves that rows of the test reach when nodes i64[k] grow again
        from these rows; and where they are not what they were, bool[p]."""
        slots = slots_at(trees.upper, self.training, self.backend, nodes, held)
        again = walkers.again(trees.forest, trees.upper.at(trees.forest, nodes))
        # with blocks as elsewhere, because what grows next may use the same scratch
        self.backend.grow_subtrees(self.training, slots, Keeping(self.most_rows, again))
        others = walkers.row >= walkers.n_changed
        return again.sums[others], again.reached[others] >= 0

    def leaves(self, grown: Forest, tree: np.ndarray, row: np.ndarray) -> np.ndarray:
        """The leaves i64[p] that rows i64[p] of the test reach, each in one tree i64[p]."""
        codes, root = self.codes, grown.tree_offsets[tree]
        size = len(codes) * grown.n_trees
        if len(tree) > size // 16 and size < PAIRS_AT_ONCE:  # compiled walks of all rows are faster
            return np.asarray(root + self.backend.apply(grown, codes)[row, tree])
        at, going = root.copy(), np.arange(len(tree))
        while len(going := going[~is_leaf(grown.nodes[at[going]])]):
            left = goes_left(grown, at[going], codes[row[going]])
            at[going] = root[going] + children(grown.nodes[at[going]]) + ~left
        return np.asarray(at)


def values_at(forest: Forest, leaves: np.ndarray) -> np.ndarray:
    """What leaves i64[m] predict, f64[m, n_values]."""
    return np.asarray(forest.values[leaf_rows(forest.nodes[leaves])])
