"""Boosters: what a backend does in a round of boosting. One is made for each fit."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from queue import Empty, SimpleQueue
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpuforest.boosting.columns import columns_of
from gpuforest.boosting.rounds import one_round
from gpuforest.common.parallel import Team
from gpuforest.compiler.decorators import PreparedCall
from gpuforest.kernels.boosted_tree import numba as compiled
from gpuforest.kernels.boosted_tree.numpy import grow_tree
from gpuforest.kernels.boosted_tree.records import (
    BEGUN,
    CELLS_SHARED,
    DONE,
    N_NODES,
    N_THREADS,
    N_WORDS,
    ROWS_SHARED,
    STATUS,
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
from gpuforest.kernels.gradients.numpy import gradients, largest, rests
from gpuforest.kernels.gradients.records import LossNumbers, Units

if TYPE_CHECKING:
    from gpuforest.boosting.rounds import Boosting, Round
    from gpuforest.engine.binning import BinnedMatrix

Array = Any

# The cells of histograms, and the rows, for which a thread is worth the wait: some microseconds
SHARED = 4096, 2048
PATIENCE = 0.005  # seconds that a thread waits for more to do
LEAST_GRADIENTS = 2**15  # that are worth another thread


def give_way() -> None:
    """Let other threads run on this processor."""
    os.sched_yield() if hasattr(os, "sched_yield") else sleep(0)


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
        self.rows: list[Array] = []
        self.others: list[Array] = []

    @classmethod
    def of(cls, b: Boosting) -> Booster:
        """The one of a fit."""
        weight = np.zeros(0) if b.weight is None else b.weight
        n_threads = b.backend.n_threads
        return cls(b.matrix, b.y, weight, b.loss.n_raw, b.n_words, n_threads, b.memory)

    def round(self, boosting: Boosting, raw: Array, number: int) -> Round | None:
        """Grow the round of this number; raw f64[K, N] is changed. None: see `one_round`."""
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

    def rests(self, loss: LossNumbers, raw: Array, units: Units, ranges: Array) -> Array:
        """The sums i64[L, 2] of what rounding left of the gradients and hessians of each leaf's
        rows; ranges i64[L, 4] of the round's one tree."""
        found = rests(loss, self.y, raw, self.weight, units)[0][self.rows[0]]
        return np.stack([found[begin:end].sum(axis=0) for begin, end in ranges[:, :2]])

    def trees(self, rules: list[BoostRules], rows: Array, others: Array) -> list[GrownTree]:
        """The K trees of a round, grown from the rows i32[R]; others i32[...] are only divided
        among their leaves.

        Until the next round, self.rows[k] and self.others[k] hold them in the order of the leaves
        of tree k.
        """
        words = self.matrix.edges.set_words
        self._take_rows(len(rules), rows, others)
        return [
            grow_tree(self.data(k), own, self.rows[k], self.others[k], words)
            for k, own in enumerate(rules)
        ]

    def _take_rows(self, K: int, rows: Array, others: Array) -> None:
        if not self.rows:  # the same memory in each round
            self.rows, self.others = ([np.empty_like(a) for _ in range(K)] for a in (rows, others))
        for k in range(K):
            self.rows[k][:], self.others[k][:] = rows, others

    def close(self) -> None:
        """End what waits for work."""

    def add_values(self, raw: Array, trees: list[GrownTree], values: list[Array]) -> None:
        """Add the values f64[L] of the leaves of each tree to raw f64[K, N] at their rows."""
        for k, tree in enumerate(trees):
            for column, own in ((0, self.rows[k]), (2, self.others[k])):
                for leaf, value in zip(tree.ranges, values[k], strict=True):
                    raw[k, own[leaf[column] : leaf[column + 1]]] += value


class Calls:
    """The kernels' calls that grow the tree k of each round in the same memory."""

    def __init__(self, team: Team, grow: PreparedCall, help_grow: PreparedCall) -> None:
        self.team, self.grow, self.help_grow = team, grow, help_grow
        self.helping: list[SimpleQueue[BaseException | None]] = []

    def send(self, n: int) -> None:
        """Have so many threads of the team help, those included that still do."""
        self.check()
        self.owner = threading.get_ident()
        self.helping += [self.team.begin(self.help_on, 1) for _ in range(n - len(self.helping))]

    def help_on(self, _: int) -> None:
        """Help until there has been nothing to do for some milliseconds. A thread that sleeps
        sooner is woken so often that it hardly leaves the processor that the growing thread is on.
        """
        shared, seen, last = self.help_grow.arguments[-1], 0, monotonic()
        while monotonic() - last < PATIENCE and not self.is_awaited:
            if shared[0] != seen:
                seen, last = shared[0], monotonic()
            self.help_grow()
            give_way()

    @property
    def is_awaited(self) -> bool:
        """Whether this thread has something else to do."""
        return self.team.has_tasks or threading.get_ident() == self.owner

    def check(self) -> None:
        """Forget threads that have ended; raise an error of theirs."""
        for done in [*self.helping]:
            with suppress(Empty):
                error = done.get_nowait()
                self.helping.remove(done)
                if error is not None:
                    raise error


class Room(NamedTuple):
    """Memory to grow one tree in. calls : by the tree's number in its round"""

    table: Table
    pool: Pool
    tree: Tree
    state: Array
    spare: Array
    calls: dict[int, Calls]


class NumbaBooster(Booster):
    """The same, compiled, on threads."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.rooms: SimpleQueue[Room] = SimpleQueue()
        self.columns = columns_of(self.matrix, self.kinds, self.stats[0])
        K, N, _ = self.stats.shape
        work = max(len(self.columns.codes), K, N * K // LEAST_GRADIENTS)
        self.team = Team(min(self.n_threads, work))
        self.n_threads = self.team.n_threads

    def close(self) -> None:
        self.team.close()

    def _blocks(self) -> list[slice]:
        N, K = len(self.y), len(self.stats)
        n = max(1, min(self.n_threads, N * K // LEAST_GRADIENTS))
        return [slice(N * i // n, N * (i + 1) // n) for i in range(n)]

    def _scratch(self, raw: Array) -> Array:
        return np.empty((3 + len(raw), compiled_gradients.BLOCK))

    def largest(self, loss: LossNumbers, raw: Array) -> tuple[float, float]:
        def part(rows: slice, out: Array) -> None:
            compiled_gradients.largest(
                loss, self.y, raw, self.weight, out, rows.start, rows.stop, self._scratch(raw)
            )

        blocks = self._blocks()
        found = np.empty((len(blocks), 2))
        self.team.run(lambda i: part(blocks[i], found[i]), len(blocks))
        return float(found[:, 0].max()), float(found[:, 1].max())

    def gradients(self, loss: LossNumbers, raw: Array, units: Units) -> None:
        def part(rows: slice) -> None:
            compiled_gradients.gradients(
                loss, self.y, raw, self.weight, units, self.stats, rows.start, rows.stop,
                self._scratch(raw),
            )  # fmt: skip

        blocks = self._blocks()
        self.team.run(lambda i: part(blocks[i]), len(blocks))

    def rests(self, loss: LossNumbers, raw: Array, units: Units, ranges: Array) -> Array:
        out, n = np.empty((len(ranges), 2), np.int64), min(len(self._blocks()), len(ranges))

        def part(i: int) -> None:
            begin, end = len(ranges) * i // n, len(ranges) * (i + 1) // n
            compiled_gradients.rests(
                loss, self.y, raw, self.weight, units, self.rows[0], ranges, begin, end, out,
                np.empty((7, compiled_gradients.BLOCK)),
            )  # fmt: skip

        self.team.run(part, n)
        return out

    def trees(self, rules: list[BoostRules], rows: Array, others: Array) -> list[GrownTree]:
        """Each thread grows trees of its own, and all share the work on those that are left over,
        one after another."""
        K = len(rules)
        self._take_rows(K, rows, others)
        memory = self.memory // (self.n_threads if self.n_threads <= K else 1)
        found: dict[int, GrownTree] = {}

        def tree(k: int, n_threads: int = 1) -> None:
            found[k] = self._tree(k, rules[k], n_threads, memory)

        alone = K - K % self.n_threads
        if alone:
            self.team.run(tree, alone)
        for k in range(alone, K):
            tree(k, self.n_threads)
        return [found[k] for k in range(K)]

    def _tree(self, k: int, rules: BoostRules, n_threads: int, memory: int) -> GrownTree:
        room = self._room(rules, memory)
        tree, state = room.tree, room.state
        state[N_THREADS] = min(n_threads, len(self.columns.codes))
        if k not in room.calls:
            room.calls[k] = self._calls(room, k, rules)
        calls = room.calls[k]
        calls.grow.change(1, rules)
        state[STATUS] = BEGUN
        calls.send(int(state[N_THREADS]) - 1)
        calls.grow()
        while state[STATUS] != DONE:
            give_way()  # a thread that has a part may need this processor
            calls.check()
            calls.grow()
        M = int(state[N_NODES])
        L = (M + 1) // 2
        grown = GrownTree(
            tree.nodes[:M].copy(), tree.sets[: state[N_WORDS]].copy(), tree.sums[:L].copy(),
            tree.values[:L].copy(), tree.ranges[:L].copy(),
        )  # fmt: skip
        self.rooms.put(room)
        return grown

    def _calls(self, room: Room, k: int, rules: BoostRules) -> Calls:
        table, pool, tree, state, spare, _ = room
        words, shared = self.matrix.edges.set_words, np.zeros(32, np.int64)
        data = self.columns._replace(stats=self.stats[k])
        given = data, rules, self.rows[k], self.others[k]
        return Calls(
            self.team,
            compiled.grow_tree.prepared(*given, words, table, pool, state, spare, tree, shared),
            compiled.help_grow.prepared(*given, table, pool, state, spare, shared),
        )

    def _room(self, rules: BoostRules, memory: int) -> Room:
        with suppress(Empty):
            return self.rooms.get_nowait()
        edges, N = self.matrix.edges, len(self.y)
        leaves = max(1, min(rules.max_leaves, N // max(rules.min_rows, 1)))
        if rules.max_depth < 31:
            leaves = min(leaves, 2**rules.max_depth)
        M, W = 2 * leaves - 1, edges.most_words
        data, state = self.columns, np.zeros(24, np.int64)
        parts = min(self.n_threads, len(data.codes))
        state[CELLS_SHARED], state[ROWS_SHARED] = SHARED
        size = int(data.cells[-1]) * self.stats.shape[2] * 8
        P = int(max(2, min(leaves + 1, memory // size)))
        return Room(
            new_table(M, len(rules.groups), W), new_pool(P, parts, data, edges.n_codes, W),
            new_tree(M, W), state, np.empty(N, np.int32), {},
        )  # fmt: skip

    def add_values(self, raw: Array, trees: list[GrownTree], values: list[Array]) -> None:
        def tree(k: int) -> None:
            for column, own in ((0, self.rows[k]), (2, self.others[k])):
                if len(own):
                    compiled.add_values(raw[k], own, trees[k].ranges, column, values[k])

        if len(self._blocks()) > 1:
            self.team.run(tree, len(trees))
        else:
            for k in range(len(trees)):
                tree(k)
