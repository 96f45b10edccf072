"""Boosters on the CPU: what grows the rounds of one fit of boosting, on NumPy or compiled.

    Booster.round -> largest, gradients -> trees -> rests -> add_values

boosting/rounds.py has what these share with devices.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from time import monotonic, sleep
from typing import Any

import numpy as np

from gpuforest.boosting import rounds
from gpuforest.common.parallel import Team
from gpuforest.engine.binning import BinnedMatrix
from gpuforest.kernels.boosted_tree import numba as compiled
from gpuforest.kernels.boosted_tree import records
from gpuforest.kernels.boosted_tree.numpy import grow_tree
from gpuforest.kernels.gradients import numba as compiled_gradients
from gpuforest.kernels.gradients import numpy as gradients
from gpuforest.kernels.gradients.numpy import LossNumbers, Units

Array = Any

# The cells of histograms, and the rows, for which a thread is worth the wait: some microseconds
SHARED = 4096, 2048
PATIENCE = 0.005  # seconds that a thread waits for more to do
LEAST_GRADIENTS = 2**15  # that are worth another thread


class Booster:
    """The rounds of one fit, on NumPy: the specification."""

    def __init__(self, boosting: rounds.Boosting) -> None:
        b = self.boosting = boosting
        self.matrix, self.y, self.memory = b.matrix, b.y, b.memory
        self.weight = np.zeros(0) if b.weight is None else b.weight  # f64[0]: all are one
        self.n_threads = b.backend.n_threads
        self.stats = np.empty((b.loss.n_raw, len(b.y), b.n_words), np.int64)
        # of tree k of the last round, in the order of its leaves
        self.rows: list[Array] = []
        self.others: list[Array] = []

    def close(self) -> None:
        """End what waits for work."""

    def round(self, raw: Array, number: int) -> rounds.Round | None:
        """Grow the K trees of a round, and add what they predict to raw f64[K, N]; None: gradients
        are too large for float64."""
        b, K = self.boosting, len(raw)
        rows, others = rounds.drawn_rows(b, number)
        loss = rounds.loss_numbers(b, raw, rows)
        units = rounds.units_of(b, *(rounds.bounds_of(b) or self.largest(loss, raw)))
        if units is None:
            return None
        self.gradients(loss, raw, units)
        rules = [rounds.rules_of(b, units, number * K + k) for k in range(K)]
        trees = self.trees(rules, rows, others)
        steps = []
        with np.errstate(over="ignore"):
            for k, tree in enumerate(trees):
                if len(few := rounds.with_few_digits(b, tree)):
                    rests = self.rests(loss, raw, units, tree.ranges[few])
                    rounds.add_rests(tree, few, rests, rules[k])
                # trees grow from gradients of size one, see `rules_of`
                trees[k] = tree._replace(values=tree.values / (units.g * rules[k].g))
                steps.append(rounds.steps_of(b, loss, trees[k], raw[k], self.rows[k]))
        self.add_values(raw, trees, steps)
        return rounds.Round(trees, steps, [(1.0 / units.g, r.h) for r in rules])

    def largest(self, loss: LossNumbers, raw: Array) -> tuple[float, float]:
        """The largest size of a gradient and of a hessian."""
        return gradients.largest(loss, self.y, raw, self.weight)

    def gradients(self, loss: LossNumbers, raw: Array, units: Units) -> None:
        """Compute the stats of all rows."""
        gradients.gradients(loss, self.y, raw, self.weight, units, self.stats)

    def rests(self, loss: LossNumbers, raw: Array, units: Units, ranges: Array) -> Array:
        """The sums i64[L, 2] of what rounding left of the gradients and hessians of each leaf's
        rows; ranges i64[L, 4] of the round's one tree."""
        rests = gradients.rests(loss, self.y, raw, self.weight, units)[0][self.rows[0]]
        return np.stack([rests[begin:end].sum(axis=0) for begin, end in ranges[:, :2]])

    def trees(
        self, rules: list[records.BoostRules], rows: Array, others: Array
    ) -> list[records.GrownTree]:
        """The K trees of a round, grown from the rows i32[R]; others i32[...] are only divided
        among their leaves."""
        self._take_rows(len(rules), rows, others)
        of_each = zip(self.stats, rules, self.rows, self.others, strict=True)
        return [grow_tree(self.matrix, *of_one) for of_one in of_each]

    def _take_rows(self, K: int, rows: Array, others: Array) -> None:
        if not self.rows:  # the same memory in each round
            self.rows, self.others = ([np.empty_like(a) for _ in range(K)] for a in (rows, others))
        for k in range(K):
            self.rows[k][:], self.others[k][:] = rows, others

    def add_values(self, raw: Array, trees: list[records.GrownTree], values: list[Array]) -> None:
        """Add the values f64[L] of the leaves of each tree to raw f64[K, N] at their rows."""
        for k, tree in enumerate(trees):
            for column, rows in ((0, self.rows[k]), (2, self.others[k])):
                for leaf, value in zip(tree.ranges, values[k], strict=True):
                    raw[k, rows[leaf[column] : leaf[column + 1]]] += value


def yield_thread() -> None:
    """Let other threads run on this processor."""
    os.sched_yield() if hasattr(os, "sched_yield") else sleep(0)


# A table, the tree, and by its number in its round what grows each tree in this memory
Workspace = tuple[records.GrowTable, records.GrownTree, "dict[int, PreparedTree]"]


class PreparedTree:
    """The kernels' calls that grow the tree k of each round in one workspace, on several threads of
    a team."""

    def __init__(
        self, booster: NumbaBooster, space: Workspace, k: int, rules: records.BoostRules,
        n_threads: int,
    ) -> None:  # fmt: skip
        self.team, (table, self.tree, _) = booster.team, space
        self.state = table.state
        self.n_helpers = min(n_threads, len(booster.columns.codes)) - 1
        self.shared = np.zeros(32, np.int64)
        data = booster.columns._replace(stats=booster.stats[k])
        both = data, rules, booster.rows[k], booster.others[k], table, self.shared
        words = booster.matrix.edges.set_words
        self.grow = compiled.grow_tree.prepared(*both, words, self.tree)
        self.help_grow = compiled.help_grow.prepared(*both)
        self.helping: list[SimpleQueue[BaseException | None]] = []

    def grown(self, rules: records.BoostRules) -> records.GrownTree:
        """Grow a tree by these rules."""
        state = self.state
        self.grow.change(1, rules)
        state["step"], state["n_threads"] = compiled.BEGUN, self.n_helpers + 1
        state["least_cells"], state["least_rows"] = SHARED
        self.send_helpers()
        self.grow()
        while state["step"][0] != compiled.DONE:
            yield_thread()  # a thread that has a part may need this processor
            self.check_helpers()
            self.grow()
        M, n_words = int(state["n_nodes"][0]), int(state["n_set_words"][0])
        L = (M + 1) // 2
        sizes = M, n_words, L, L, L
        return records.GrownTree(*(a[:n].copy() for a, n in zip(self.tree, sizes, strict=True)))

    def send_helpers(self) -> None:
        """Have other threads of the team help, counting those that still do."""
        self.check_helpers()
        self.owner = threading.get_ident()
        lacking = self.n_helpers - len(self.helping)
        self.helping += [self.team.begin(self.help_on, 1) for _ in range(lacking)]

    def help_on(self, _: int) -> None:
        """Help until there has been nothing to do for some milliseconds. A thread that sleeps
        sooner is woken so often that it hardly leaves the processor that the growing thread is on.
        """
        seen, last = 0, monotonic()
        while monotonic() - last < PATIENCE and not self.is_awaited:
            if self.shared[0] != seen:
                seen, last = self.shared[0], monotonic()
            self.help_grow()
            yield_thread()

    @property
    def is_awaited(self) -> bool:
        """Whether this thread has something else to do."""
        return self.team.has_tasks or threading.get_ident() == self.owner

    def check_helpers(self) -> None:
        """Forget threads that have ended; raise an error of theirs."""
        for done in [*self.helping]:
            with suppress(Empty):
                error = done.get_nowait()
                self.helping.remove(done)
                if error is not None:
                    raise error


class NumbaBooster(Booster):
    """The same, compiled, on threads."""

    def __init__(self, boosting: rounds.Boosting) -> None:
        super().__init__(boosting)
        self.spaces: SimpleQueue[Workspace] = SimpleQueue()
        self.columns = columns_of(self.matrix, self.stats[0])
        K, N, _ = self.stats.shape
        work = max(len(self.columns.codes), K, N * K // LEAST_GRADIENTS)
        self.team = Team(min(self.n_threads, work))
        self.n_threads = self.team.n_threads

    def close(self) -> None:
        self.team.close()

    def _n_blocks(self) -> int:
        """Of rows whose gradients threads compute."""
        K, N, _ = self.stats.shape
        return max(1, min(self.n_threads, N * K // LEAST_GRADIENTS))

    def _by_blocks(self, call: Callable[[int, int, int, Array], None]) -> None:
        """Have threads call a function of a block's number, its first row and the end of its rows,
        and scratch f64[3 + K, BLOCK]."""
        (K, N, _), n = self.stats.shape, self._n_blocks()

        def block(i: int) -> None:
            scratch = np.empty((3 + K, compiled_gradients.BLOCK))
            call(i, N * i // n, N * (i + 1) // n, scratch)

        self.team.run(block, n)

    def largest(self, loss: LossNumbers, raw: Array) -> tuple[float, float]:
        sizes, of = np.empty((self._n_blocks(), 2)), (loss, self.y, raw, self.weight)
        self._by_blocks(lambda i, *rows: compiled_gradients.largest(*of, sizes[i], *rows))
        return float(sizes[:, 0].max()), float(sizes[:, 1].max())

    def gradients(self, loss: LossNumbers, raw: Array, units: Units) -> None:
        of = loss, self.y, raw, self.weight, units, self.stats
        self._by_blocks(lambda i, *rows: compiled_gradients.gradients(*of, *rows))

    def rests(self, loss: LossNumbers, raw: Array, units: Units, ranges: Array) -> Array:
        sums, n = np.empty((len(ranges), 2), np.int64), min(self._n_blocks(), len(ranges))

        def part(i: int) -> None:
            begin, end = len(ranges) * i // n, len(ranges) * (i + 1) // n
            compiled_gradients.rests(
                loss, self.y, raw, self.weight, units, self.rows[0], ranges, begin, end, sums,
                np.empty((7, compiled_gradients.BLOCK)),
            )  # fmt: skip

        self.team.run(part, n)
        return sums

    def trees(
        self, rules: list[records.BoostRules], rows: Array, others: Array
    ) -> list[records.GrownTree]:
        """Each thread grows trees of its own, and all share the work on those that are left over,
        one after another."""
        K = len(rules)
        self._take_rows(K, rows, others)
        memory = self.memory // (self.n_threads if self.n_threads <= K else 1)
        trees: dict[int, records.GrownTree] = {}

        def grow(k: int, n_threads: int = 1) -> None:
            space = self._workspace(rules[k], memory)
            prepared = space[2]
            if k not in prepared:
                prepared[k] = PreparedTree(self, space, k, rules[k], n_threads)
            trees[k] = prepared[k].grown(rules[k])
            self.spaces.put(space)

        alone = K - K % self.n_threads
        if alone:
            self.team.run(grow, alone)
        for k in range(alone, K):
            grow(k, self.n_threads)
        return [trees[k] for k in range(K)]

    def _workspace(self, rules: records.BoostRules, memory: int) -> Workspace:
        """One that no tree grows in, of which histograms may take this memory."""
        with suppress(Empty):
            return self.spaces.get_nowait()
        edges, N, data = self.matrix.edges, len(self.y), self.columns
        leaves = max(1, min(rules.max_leaves, N // max(rules.min_rows, 1)))
        if rules.max_depth < 31:
            leaves = min(leaves, 2**rules.max_depth)
        M, W = 2 * leaves - 1, edges.most_words
        parts = min(self.n_threads, len(data.codes))
        size = int(data.cells[-1]) * self.stats.shape[2] * 8
        P = int(max(2, min(leaves + 1, memory // size)))
        table = records.new_table(data, M, len(rules.groups), P, parts, edges.n_codes, W)
        return table, records.new_tree(M, W), {}

    def add_values(self, raw: Array, trees: list[records.GrownTree], values: list[Array]) -> None:
        def add(k: int) -> None:
            for column, rows in ((0, self.rows[k]), (2, self.others[k])):
                if len(rows):
                    compiled.add_values(raw[k], rows, trees[k].ranges, column, values[k])

        if self._n_blocks() > 1:
            self.team.run(add, len(trees))
        else:
            for k in range(len(trees)):
                add(k)


def columns_of(matrix: BinnedMatrix, stats: Array) -> records.BoostColumns:
    """The columns of a binned matrix, each of one feature or of several; stats i64[N, words].

    Adjacent features share a column if in no row more than one of them has another code than its
    most common one, its `rest`, as those of a one-hot encoding. A row then adds to one histogram
    instead of many ("exclusive feature bundling" of Ke et al., "LightGBM", 2017). Such a column has
    the codes

        0 .. n_bins(a) - 1: a's but for its rest | n_bins(b) of b's but for its rest | .. | none

    where missing values have the code n_bins. In a column of its own a feature has all its codes.

    Where the matrix's codes lie by columns already, these are used, and missing values change
    their code there: a copy would take as much memory again, and nothing else reads them.
    """
    codes, n_bins = np.ascontiguousarray(matrix.codes.T), matrix.edges.n_bins.astype(np.int64)
    missing = matrix.edges.missing_code
    for column, n in zip(codes, n_bins.tolist(), strict=True):
        if n < missing:
            column[column == missing] = n
    runs = list(exclusive(codes, n_bins))
    starts = np.cumsum([0, *(len(run) for run in runs)])
    of_feature = np.repeat(np.arange(len(runs)), np.diff(starts)).astype(np.int32)
    first, rest = np.zeros(len(n_bins), np.int32), (n_bins + 1).astype(np.int32)
    out = codes if len(runs) == len(codes) else np.empty((len(runs), codes.shape[1]), codes.dtype)
    for c, run in enumerate(runs):
        begin, end = starts[c], starts[c + 1]
        if len(run) > 1:
            rest[begin:end] = run
            first[begin:end] = np.cumsum(n_bins[begin:end]) - n_bins[begin:end]
            out[c] = n_bins[begin:end].sum()
            for f in range(begin, end):
                rows = np.flatnonzero(codes[f] != rest[f])
                others = codes[f, rows].astype(np.int64)
                out[c, rows] = first[f] + others - (others > rest[f])
        elif out is not codes:
            out[c] = codes[begin]
    cells = np.concatenate([[0], np.cumsum(n_bins + 1)])
    return records.BoostColumns(
        out, stats, matrix.edges.kinds, starts, of_feature, first, rest, cells
    )


def exclusive(codes: Array, n_bins: Array) -> Iterator[list[int]]:
    """Runs of adjacent features that may share a column: of each its most common code, or -1 of a
    feature alone."""
    run: list[int] = []
    most = int(np.iinfo(codes.dtype).max)  # codes of a column, without the one for none
    room, used = 0, np.zeros(0, bool)
    for column, n in zip(codes, n_bins.tolist(), strict=True):
        common = most_common(column, n) if 2 * n <= most else -1
        others = column != common
        if run and common >= 0 and n <= room and not (used & others).any():
            run.append(common)
            room, used = room - n, used | others
            continue
        if run:
            yield run
        run, room, used = [common], most - n if common >= 0 else 0, others
    if run:
        yield run


def most_common(codes: Array, n: int) -> int:
    """The code that most rows have, if at least half have it; else -1. codes : u8 or u16 [N]"""
    code = int(np.bincount(codes, minlength=n + 1).argmax())
    return code if 2 * np.count_nonzero(codes == code) >= len(codes) else -1
