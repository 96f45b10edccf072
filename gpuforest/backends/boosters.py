"""Boosters: what a backend does in a round of boosting. One is made for each fit."""

from __future__ import annotations

from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpuforest.boosting.rounds import one_round
from gpuforest.common.parallel import Team, parallel_map
from gpuforest.kernels.boosted_tree import numba as compiled
from gpuforest.kernels.boosted_tree.numpy import grow_tree
from gpuforest.kernels.boosted_tree.records import (
    BEGUN,
    DONE,
    N_NODES,
    N_PARTS,
    N_WORDS,
    STATUS,
    WIDE,
    BoostRows,
    BoostRules,
    GrownTree,
    Pool,
    Table,
    Tree,
    new_pool,
    new_table,
    new_tree,
)
from gpuforest.kernels.gradients import numba as compiled_gradients
from gpuforest.kernels.gradients.numpy import gradients, largest
from gpuforest.kernels.gradients.records import LossNumbers, Units

if TYPE_CHECKING:
    from gpuforest.binning import BinnedMatrix
    from gpuforest.boosting.rounds import Boosting, Round

Array = Any

WIDE_WORK = 2**17  # values to add up, from which threads share the features of a node: 0.1 ms
TASK_ROWS = 2**15  # rows whose gradients one task computes


class Booster:
    """The rounds of one fit, on NumPy: the specification.

    Parameters
    ----------
    matrix : the codes of all rows
    y : f64[N], numbers or class codes
    weight : f64[N], or f64[0]: all weights are one
    n_raw : K, the trees of a round
    n_words : 1 or 2, the words of a row's stats
    n_threads : int
    memory : int, bytes that histograms may take
    """

    def __init__(
        self,
        matrix: BinnedMatrix,
        y: Array,
        weight: Array,
        n_raw: int,
        n_words: int,
        n_threads: int,
        memory: int,
    ) -> None:
        self.matrix, self.y, self.weight = matrix, y, weight
        self.n_threads, self.memory = n_threads, memory
        self.stats = np.empty((n_raw, len(y), n_words), np.int64)
        self.kinds = np.zeros(matrix.n_features, np.uint8)
        self.kinds[: len(matrix.edges.kinds)] = matrix.edges.kinds
        self.codes = matrix.codes.T

    @classmethod
    def of(cls, b: Boosting) -> Booster:
        """The one of a fit."""
        weight = np.zeros(0) if b.weight is None else b.weight
        n_threads = b.backend.n_threads
        return cls(b.matrix, b.y, weight, b.loss.n_raw, b.n_words, n_threads, b.memory)

    def round(self, boosting: Boosting, raw: Array, number: int) -> Round:
        """Grow the round of this number; raw f64[K, N] is changed."""
        return one_round(boosting, self, raw, number)

    def data(self, k: int) -> BoostRows:
        """The rows and what they add to the sums of the round's tree k."""
        n_bins, n_codes = self.matrix.edges.n_bins, self.matrix.edges.n_codes
        return BoostRows(self.codes, self.stats[k], n_bins, self.kinds, n_codes)

    def largest(self, loss: LossNumbers, raw: Array) -> tuple[float, float]:
        """The largest size of a gradient and of a hessian."""
        out = np.zeros(2)
        largest(loss, self.y, raw, self.weight, out)
        return float(out[0]), float(out[1])

    def gradients(self, loss: LossNumbers, raw: Array, units: Units) -> None:
        """Compute the stats of all rows from raw f64[K, N]."""
        gradients(loss, self.y, raw, self.weight, units, self.stats)

    def trees(
        self, rules: list[BoostRules], rows: list[Array], others: list[Array]
    ) -> list[GrownTree]:
        """The K trees of a round; rows i32[R] and others i32[...] are those of each tree."""
        words = self.matrix.edges.set_words
        return [
            grow_tree(self.data(k), rules[k], rows[k], others[k], words) for k in range(len(rules))
        ]

    def close(self) -> None:
        """End what waits for work."""

    def add_values(self, raw: Array, tree: GrownTree, values: Array, *rows: Array) -> None:
        """Add the values f64[L] of leaves to raw f64[N] at their rows, and at their others."""
        for column, own in zip((0, 2), rows, strict=True):
            for leaf, value in zip(tree.ranges, values, strict=True):
                raw[own[leaf[column] : leaf[column + 1]]] += value


class Room(NamedTuple):
    """Memory to grow one tree in."""

    table: Table
    pool: Pool
    tree: Tree
    state: Array
    spare: Array


class NumbaBooster(Booster):
    """The same, compiled, on threads."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.rooms: SimpleQueue[Room] = SimpleQueue()
        self.codes = np.ascontiguousarray(self.codes)
        self.team = Team(self.n_threads)

    def close(self) -> None:
        self.team.close()

    def _blocks(self) -> list[slice]:
        N = len(self.y)
        size = max(1024, min(TASK_ROWS, -(-N // self.n_threads)))
        return [slice(r, min(r + size, N)) for r in range(0, N, size)]

    def largest(self, loss: LossNumbers, raw: Array) -> tuple[float, float]:
        def part(rows: slice) -> Array:
            out = np.empty(2)
            scratch = np.empty((4, compiled_gradients.BLOCK))
            compiled_gradients.largest(
                loss, self.y, raw, self.weight, out, rows.start, rows.stop, scratch
            )
            return out

        found = np.max(parallel_map(part, self._blocks(), self.n_threads), axis=0)
        return float(found[0]), float(found[1])

    def gradients(self, loss: LossNumbers, raw: Array, units: Units) -> None:
        def part(rows: slice) -> None:
            scratch = np.empty((4, compiled_gradients.BLOCK))
            compiled_gradients.gradients(
                loss, self.y, raw, self.weight, units, self.stats, rows.start, rows.stop, scratch
            )

        blocks = self._blocks()
        self.team.run(lambda i: part(blocks[i]), len(blocks))

    def trees(
        self, rules: list[BoostRules], rows: list[Array], others: list[Array]
    ) -> list[GrownTree]:
        """Each thread grows a tree, if there are many, or all share the features of one."""
        K = len(rules)
        outer = self.n_threads if self.n_threads <= K else 1
        inner = self.n_threads if outer == 1 else 1

        def tree(k: int) -> GrownTree:
            return self._tree(k, rules[k], rows[k], others[k], inner, self.memory // outer)

        return parallel_map(tree, range(K), outer)

    def _tree(
        self, k: int, rules: BoostRules, rows: Array, others: Array, n_threads: int, memory: int
    ) -> GrownTree:
        data, room = self.data(k), self._room(rules, n_threads, memory)
        table, pool, tree, state, spare = room
        parts = pool.gains.shape[0]
        state[STATUS], state[N_PARTS], state[WIDE] = BEGUN, parts, WIDE_WORK
        F = self.matrix.n_features
        ends = np.linspace(0, F, parts + 1).astype(int).tolist()
        words = self.matrix.edges.set_words

        searches = [
            compiled.search.prepared(data, rules, table, pool, state, rows, ends[p], ends[p + 1], p)
            for p in range(parts if parts > 1 else 0)
        ]
        go_on = compiled.grow_tree.prepared(
            data, rules, rows, others, words, table, pool, state, spare, tree
        )
        while True:
            go_on()
            if state[STATUS] == DONE:
                break
            self.team.run(lambda p: searches[p](), parts)
        M = int(state[N_NODES])
        L = (M + 1) // 2
        grown = GrownTree(
            tree.nodes[:M].copy(), tree.sets[: state[N_WORDS]].copy(), tree.sums[:L].copy(),
            tree.values[:L].copy(), tree.ranges[:L].copy(),
        )  # fmt: skip
        self.rooms.put(room)
        return grown

    def _room(self, rules: BoostRules, n_threads: int, memory: int) -> Room:
        with suppress(Empty):
            return self.rooms.get_nowait()
        edges, N, F = self.matrix.edges, len(self.y), self.matrix.n_features
        leaves = max(1, min(rules.max_leaves, N // max(rules.min_rows, 1)))
        if rules.max_depth < 31:
            leaves = min(leaves, 2**rules.max_depth)
        M, W = 2 * leaves - 1, edges.most_words
        words, B = self.stats.shape[2], edges.n_codes
        parts = min(n_threads, F) if n_threads > 1 else 1
        P = int(max(2, min(leaves + 1, memory // (F * B * words * 8))))
        return Room(
            new_table(M, len(rules.groups), W), new_pool(P, parts, F, B, words, W),
            new_tree(M, W), np.zeros(16, np.int64), np.empty(N, np.int32),
        )  # fmt: skip

    def add_values(self, raw: Array, tree: GrownTree, values: Array, *rows: Array) -> None:
        for column, own in zip((0, 2), rows, strict=True):
            if len(own):
                compiled.add_values(raw, own, tree.ranges, column, values)
