"""Boosters on the CPU, on NumPy or compiled; growing/rounds.py has the order of a round's steps."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from queue import Empty, SimpleQueue
from time import monotonic, sleep
from typing import Any

import numpy as np

from gpuforest.backends import booster
from gpuforest.backends.rows import draw_rows
from gpuforest.common import hashing
from gpuforest.common.parallel import Team
from gpuforest.compiler.types import dtype_of
from gpuforest.core.bins import BinnedMatrix
from gpuforest.core.forest import Forest
from gpuforest.core.frontier import Trees
from gpuforest.core.nodes import is_leaf, leaf_rows
from gpuforest.kernels.boosted_tree import numba as compiled
from gpuforest.kernels.boosted_tree import records, vector
from gpuforest.kernels.boosted_tree.numpy import grow_tree, refilled_tree
from gpuforest.kernels.boosted_tree.records import MOST_STEP, GrownTree, LossOf, Scales, TreeTable
from gpuforest.kernels.gradients import numba as compiled_gradients
from gpuforest.kernels.gradients import numpy as gradients
from gpuforest.kernels.gradients.numpy import RESIDUAL_BITS

Array = Any

# The cells of histograms, and the rows, for which a thread is worth the wait: some microseconds
SHARED = 4096, 2048
PATIENCE = 0.005  # seconds that a thread waits for more to do
LEAST_GRADIENTS = 2**15  # that are worth another thread


class NumpyBooster(booster.Booster):
    """The rounds of one fit, on NumPy: the specification."""

    def __init__(self, boosting: booster.Boosting) -> None:
        super().__init__(boosting)
        b = boosting
        # of each raw prediction, and of each tree
        n_words = 2 if b.is_vector else b.n_words
        self.each = np.empty((b.loss.n_raw, b.n_rows, n_words), np.int64)
        self.stats = np.empty((1, b.n_rows, b.n_words), np.int64) if b.is_vector else self.each
        self.scales: Any = None  # `Scales` of the round
        self.rules = b.rules(np.zeros(1, dtype_of(Scales)))
        # the trees of the last round, what their leaves add to each raw prediction f64[L], and all
        # rows in the order of the leaves of each
        self.trees: list[GrownTree] = []
        self.added: list[Array] = []
        # of a tree for all outputs: sums of its leaves i64[L, K, 2], and in which leaf each row is
        self.sums: Array = None
        self.numbers: Array = None
        self.rows = np.empty(self.stats.shape[:2], np.int32)

    def begin(self, raw: Array, number: int) -> LossOf:
        b, delta, self.number = self.boosting, None, number
        self.rules = self.rules._replace(n_drawn=self.draw(number))
        if b.loss.has_delta:
            rows = self.rows[0, : self.rules.n_drawn]
            weight = None if b.weight is None else b.weight[rows]
            delta = np.array([b.loss.delta(b.y[rows] - raw[0, rows], weight)])
        return b.loss.of_rows(b.y, b.weight, raw, delta)

    def draw(self, number: int) -> int:
        """Put the round's rows before the others; their number."""
        self.rows[:], n_drawn = ordered_rows(self.boosting, number)
        return n_drawn

    def derive(self, loss: LossOf) -> bool:
        b = self.boosting
        most = b.bounds or self.largest(loss)
        self.scales = gradients.scales(*most, *b.bits, b.n_words == 1)
        if self.scales.overflows:
            return False
        self.gradients(loss)
        if b.is_vector:
            factors = vector.factors(b.seed, self.number, b.loss.n_raw)
            self.join(factors)
        return True

    def largest(self, loss: LossOf) -> tuple[float, float]:
        return gradients.largest(loss)

    def gradients(self, loss: LossOf) -> None:
        """Compute the stats of all rows, by the scales of the round."""
        self.rules = self.rules._replace(scale=self.scales)
        gradients.gradients(loss, self.rules, self.each)

    def join(self, factors: Array) -> None:
        """Compute the stats of the tree for all outputs."""
        vector.join(self.each, factors, self.boosting.n_bits, self.stats[0])

    def grow(self, number: int) -> None:
        b, K = self.boosting, len(self.stats)
        self.grow_trees([booster.root_key(b.seed, number * K + k) for k in range(K)])
        self.added = [tree.leaves["added"] for tree in self.trees]
        if b.is_vector:
            leaves = self.trees[0].leaves
            self.numbers = vector.leaf_numbers(self.rows[0], leaves)
            self.sums = self.leaf_sums(2 * len(leaves))[:, : len(leaves)].transpose(1, 0, 2)
            self.added = [*self.values(self.sums).T]

    def leaf_sums(self, n_parts: int) -> Array:
        """Sums i64[K, n_parts, 2] of gradients and hessians of all outputs in parts of the rows."""
        sums = np.zeros((len(self.each), n_parts, 2), np.int64)
        for stats, own in zip(self.each, sums, strict=True):
            vector.leaf_sums(stats, self.numbers, self.boosting.n_bits, own)
        return sums

    @np.errstate(over="ignore")
    def values(self, sums: Array) -> Array:
        """What leaves with these sums add, f64[L, K]."""
        b, scales = self.boosting, self.scales
        bottom = sums[:, :, 1] * scales.sum_h + b.l2
        value = -(sums[:, :, 0] * scales.sum_g) / np.where(bottom > 0, bottom, 1.0)
        most = b.loss.most_value * scales.g * scales.sum_g
        value = np.clip(np.where(bottom > 0, value, 0.0), -most, most) * scales.value
        return np.clip(value * b.learning_rate, -MOST_STEP, MOST_STEP)

    def grow_trees(self, keys: list[int]) -> None:
        self.trees = [
            grow_tree(self.boosting.matrix, stats, self.rules, rows, key)
            for stats, rows, key in zip(self.stats, self.rows, keys, strict=True)
        ]

    @np.errstate(over="ignore")
    def add_residual_bits(self, loss: LossOf) -> None:
        b, rules, scales, leaves = self.boosting, self.rules, self.scales, self.trees[0].leaves
        few_digits = leaves["h"] < leaves["n"] << b.hessian_digits
        few_digits |= np.abs(leaves["g"]) < leaves["n"] << booster.ENOUGH_BITS
        if not few_digits.any():
            return
        few, finer = leaves[few_digits], 2.0 ** (rules.n_bits - RESIDUAL_BITS)
        residual_g, residual_h = self.residual_bits(loss, few).T * finer
        top, bottom = few["g"] + residual_g, (few["h"] + residual_h) * scales.sum_h + rules.l2
        values = np.where(
            bottom > 0, -(top * scales.sum_g) / np.where(bottom > 0, bottom, 1.0), 0.0
        )
        most = rules.most * scales.g * scales.sum_g
        few["value"] = np.clip(values, -most, most) * scales.value
        few["added"] = np.clip(few["value"] * rules.rate, -MOST_STEP, MOST_STEP)
        leaves[few_digits] = few

    def residual_bits(self, loss: LossOf, leaves: Array) -> Array:
        """Sums i64[L, 2] of remainders of rows' gradients and hessians in a tree's leaves."""
        rules = self.rules._replace(scale=self.scales)
        residual_bits = gradients.residual_bits(loss, rules)[0][self.rows[0]]
        return np.stack([residual_bits[leaf["begin"] : leaf["end"]].sum(axis=0) for leaf in leaves])

    @np.errstate(over="ignore")
    def add_quantiles(self, loss: LossOf) -> None:
        b = self.boosting
        delta = 0.0 if loss.delta is None else float(loss.delta[0])
        for k, added in enumerate(self.added):
            single, leaves = b.loss.single(k), self.trees[k % len(self.trees)].leaves
            y = b.y if b.y.ndim == 1 else b.y[:, k]
            for leaf, (begin, end) in enumerate(leaves[["begin", "end"]].tolist()):
                step = 0.0
                if begin < end:
                    rows = self.rows[k % len(self.rows)][begin:end]
                    weight = None if b.weight is None else b.weight[rows]
                    step = single.best_step(y[rows] - loss.raw[k, rows], weight, delta)
                added[leaf] = np.clip(step * b.learning_rate, -MOST_STEP, MOST_STEP)

    def put_in_order(self) -> None:
        for tree in self.trees:
            tree.leaves["added"] = booster.in_monotonic_order(tree, self.boosting.signs)

    @np.errstate(over="ignore")
    def add_values(self, loss: LossOf) -> None:
        if self.boosting.is_vector:
            for raw, added in zip(loss.raw, self.added, strict=True):
                raw += np.tile(added, 2)[self.numbers]
            return
        for raw, tree, rows in zip(loss.raw, self.trees, self.rows, strict=True):
            for leaf in tree.leaves:
                raw[rows[leaf["begin"] : leaf["end"]]] += leaf["added"]
                raw[rows[leaf["other_begin"] : leaf["other_end"]]] += leaf["added"]

    def finish(self, loss: LossOf, raw: Array) -> booster.Round:
        units = self.scales.unit, self.scales.sum_h
        if not self.boosting.is_vector:
            return booster.Round(self.trees, units)
        return booster.Round(self.trees, units, None, self.sums, np.stack(self.added, axis=1))


class Refilling(NumpyBooster):
    """Rounds of known trees, whose leaves get the sums of other rows."""

    def __init__(self, boosting: booster.Boosting, forest: Forest, decay_rate: float) -> None:
        super().__init__(boosting)
        self.forest, self.decay_rate = forest, decay_rate

    @property
    def numbers_of_trees(self) -> range:
        """The numbers of the round's trees."""
        n = len(self.stats)
        return range(self.number * n, self.number * n + n)

    def grow_trees(self, keys: list[int]) -> None:
        matrix, trees = self.boosting.matrix, map(self.tree, self.numbers_of_trees)
        self.trees = [
            refilled_tree(matrix, stats, self.rules, rows, tree)
            for stats, rows, tree in zip(self.stats, self.rows, trees, strict=True)
        ]

    def tree(self, t: int) -> Trees:
        inside, forest = slice(*self.forest.tree_offsets[t : t + 2].tolist()), self.forest
        set_at = forest.set_at[inside] if len(forest.sets) else forest.set_at
        return replace(forest.walked(), nodes=forest.nodes[inside], set_at=set_at)

    def add_values(self, loss: LossOf) -> None:
        """Leaves without rows keep what they add, and the others a share of it."""
        forest: Any = self.forest
        for k, added in enumerate(self.added):
            i = k % len(self.trees)
            t, tree = self.numbers_of_trees[i], self.trees[i]
            nodes = forest.nodes[slice(*forest.tree_offsets[t : t + 2])]
            old, new = (leaf_rows(n[is_leaf(n)]) for n in (nodes, tree.nodes))
            before = np.empty(len(added))
            before[new] = forest.leaf_values[old, k]
            mixed = self.decay_rate * before + (1 - self.decay_rate) * added
            filled = mixed if self.decay_rate else added
            added[:] = np.where(tree.leaves["n"] > 0, filled, before)
        super().add_values(loss)


def ordered_rows(b: booster.Boosting, number: int) -> tuple[Array, int]:
    """Rows i32[N], a round's rows before the others, each part ascending; number of the first."""
    rows, of_rows = np.arange(b.n_rows, dtype=np.int32), b.row_groups
    key = int(hashing.tree_keys(np, b.seed, number, number + 1)[0])
    if of_rows is not None:
        n_groups = int(of_rows.max()) + 1
        groups = draw_rows(key, n_groups, max(1, int(b.subsample * n_groups)))
        drawn = rows[np.isin(of_rows, groups)]
    elif b.n_drawn == b.n_rows:
        return rows, b.n_rows
    else:
        drawn = draw_rows(key, b.n_rows, b.n_drawn).astype(np.int32)
    return np.concatenate([drawn, np.setdiff1d(rows, drawn, assume_unique=True)]), len(drawn)


# Lets other threads run on this processor
yield_thread: Callable[[], None] = getattr(os, "sched_yield", partial(sleep, 0))

# A table, the tree, and by its number in its round what grows each tree in this memory
Workspace = tuple[TreeTable, GrownTree, "dict[int, PreparedTree]"]


class PreparedTree:
    """Prepared kernel calls that grow tree k of each round, on a team of threads."""

    def __init__(self, owner: NumbaBooster, space: Workspace, k: int, n_threads: int) -> None:
        self.team, (table, self.tree, _) = owner.team, space
        self.state = table.states
        self.n_helpers = min(n_threads, len(owner.columns.codes)) - 1
        self.shared = np.zeros(32, np.int64)
        data = owner.columns._replace(stats=owner.stats[k])
        words = owner.boosting.matrix.edges.set_words
        both = data, owner.rules, owner.rows[k], table, self.shared, words, self.tree
        self.grow = compiled.grow_tree.prepared(*both, False)
        self.help_grow = compiled.grow_tree.prepared(*both, True)
        self.helping: list[SimpleQueue[BaseException | None]] = []

    def grown(self, key: int) -> GrownTree:
        state = self.state
        state["key"], state["step"], state["n_threads"] = key, compiled.BEGUN, self.n_helpers + 1
        state["least_cells"], state["least_rows"] = SHARED
        self.check_helpers()
        self.owner = threading.get_ident()
        lacking = self.n_helpers - len(self.helping)  # threads that still help count
        self.helping += [self.team.begin(self.help_on, 1) for _ in range(lacking)]
        self.grow()
        while state["step"][0] != compiled.DONE:
            yield_thread()  # a thread that has a part may need this processor
            self.check_helpers()
            self.grow()
        M, n_words = int(state["n_nodes"][0]), int(state["n_set_words"][0])
        nodes, sets, leaves = self.tree
        return GrownTree(nodes[:M].copy(), sets[:n_words].copy(), leaves[: (M + 1) // 2].copy())

    def help_on(self, _: int) -> None:
        """Help until some milliseconds pass without work. A thread that sleeps sooner is woken so
        often that it hardly leaves the processor of the growing thread."""
        seen, last = 0, monotonic()
        while monotonic() - last < PATIENCE:
            if self.team.has_tasks or threading.get_ident() == self.owner:
                return  # this thread has something else to do
            if self.shared[0] != seen:
                seen, last = self.shared[0], monotonic()
            self.help_grow()
            yield_thread()

    def check_helpers(self) -> None:
        """Forget threads that have ended, and raise their errors."""
        for done in [*self.helping]:
            with suppress(Empty):
                error = done.get_nowait()
                self.helping.remove(done)
                if error is not None:
                    raise error


class NumbaBooster(NumpyBooster):
    """The same, compiled, on threads."""

    def __init__(self, boosting: booster.Boosting, n_threads: int) -> None:
        super().__init__(boosting)
        self.spaces: SimpleQueue[Workspace] = SimpleQueue()
        self.columns = columns_of(boosting.matrix, self.stats[0])
        K, N, _ = self.each.shape
        blocks = N * K // LEAST_GRADIENTS
        work = max(len(self.columns.codes), K, blocks)
        self.team = Team(min(n_threads, work))
        self.n_threads = self.team.n_threads
        self.n_blocks = max(1, min(self.n_threads, blocks))  # of rows that threads share

    def begin(self, raw: Array, number: int) -> LossOf:
        if self.boosting.row_groups is not None:  # calls were prepared with another number of rows
            self.spaces = SimpleQueue()
        return super().begin(raw, number)

    def draw(self, number: int) -> int:
        b = self.boosting
        if b.row_groups is not None or b.n_drawn == b.n_rows:
            return super().draw(number)
        key = int(hashing.tree_keys(np, b.seed, number, number + 1)[0])
        compiled.draw_rows(key, b.n_drawn, np.zeros(b.n_rows, np.uint8), self.rows[0])
        self.rows[1:] = self.rows[0]
        return b.n_drawn

    def close(self) -> None:
        self.team.close()

    def by_blocks(self, call: Callable[[int, int, int, Array], None]) -> None:
        """Call a function of block, first row, end of rows, scratch f64[3 + K, BLOCK]."""
        (K, N, _), n = self.each.shape, self.n_blocks

        def block(i: int) -> None:
            scratch = np.empty((3 + K, compiled_gradients.BLOCK))
            call(i, N * i // n, N * (i + 1) // n, scratch)

        self.team.run(block, n)

    def largest(self, loss: LossOf) -> tuple[float, float]:
        sizes, kernel = np.zeros((self.n_blocks, 2)), compiled_gradients.gradients
        self.by_blocks(lambda i, *rows: kernel(loss, self.rules, self.each, sizes[i], *rows))
        return float(sizes[:, 0].max()), float(sizes[:, 1].max())

    def gradients(self, loss: LossOf) -> None:
        rules, none, kernel = self.rules, np.zeros(0), compiled_gradients.gradients
        rules.scale[0] = self.scales
        self.by_blocks(lambda i, *rows: kernel(loss, rules, self.each, none, *rows))

    def join(self, factors: Array) -> None:
        n_bits = self.boosting.n_bits
        self.by_blocks(
            lambda i, begin, end, _: compiled.join(
                self.each, factors, n_bits, begin, end, self.stats[0]
            )
        )

    def leaf_sums(self, n_parts: int) -> Array:
        sums = np.zeros((len(self.each), n_parts, 2), np.int64)

        def of_output(k: int) -> None:
            compiled.leaf_sums(self.each[k], self.numbers, self.boosting.n_bits, sums[k])

        self.team.run(of_output, len(self.each))
        return sums

    def residual_bits(self, loss: LossOf, leaves: Array) -> Array:
        sums, n = np.empty((len(leaves), 2), np.int64), min(self.n_blocks, len(leaves))

        def part(i: int) -> None:
            begin, end = len(leaves) * i // n, len(leaves) * (i + 1) // n
            scratch = np.empty((7, compiled_gradients.BLOCK))
            compiled_gradients.residual_bits(
                loss, self.rules, self.rows[0], leaves, begin, end, sums, scratch
            )

        self.team.run(part, n)
        return sums

    def grow_trees(self, keys: list[int]) -> None:
        """Grow an equal number of whole trees on each thread; all threads share the rest."""
        K = len(keys)
        trees: dict[int, GrownTree] = {}

        def grow(k: int, n_threads: int = 1) -> None:
            space = self.workspace()
            prepared = space[2]
            if k not in prepared:
                prepared[k] = PreparedTree(self, space, k, n_threads)
            trees[k] = prepared[k].grown(keys[k])
            self.spaces.put(space)

        alone = K - K % self.n_threads if K > 1 else 0
        if alone:
            self.team.run(grow, alone)
        for k in range(alone, K):
            grow(k, self.n_threads)
        self.trees = [trees[k] for k in range(K)]

    def workspace(self) -> Workspace:
        """A workspace that no tree is using."""
        with suppress(Empty):
            return self.spaces.get_nowait()
        b, data, (K, N, words) = self.boosting, self.columns, self.stats.shape
        edges, M, cells = b.matrix.edges, 2 * b.n_leaves - 1, int(data.cells[-1]) * words
        W, parts = edges.most_words, min(self.n_threads, len(data.codes))
        memory = b.memory // (self.n_threads if self.n_threads <= K else 1)
        P = int(max(2, min(b.n_leaves + 1, memory // (8 * cells))))
        table = TreeTable.new(
            np.empty, M=M, P=P, W=W, F=edges.n_features, C=cells, G=len(b.groups), parts=parts,
            threads=parts, BLOCK=max(records.BLOCK, edges.n_codes) * words, N=N,
            **{"B + 1": edges.n_codes + 1},
        )  # fmt: skip
        nodes, sets = np.empty(M, np.uint64), np.empty(b.n_leaves * W, np.uint64)
        return table, GrownTree(nodes, sets, np.empty(b.n_leaves, dtype_of(records.Leaf))), {}

    def add_values(self, loss: LossOf) -> None:
        def add(k: int) -> None:
            if self.boosting.is_vector:
                compiled.add_to_rows(loss.raw[k], self.numbers, np.tile(self.added[k], 2))
            else:
                compiled.add_values(loss.raw[k], self.rows[k], self.trees[k].leaves)

        if self.n_blocks > 1:
            self.team.run(add, len(loss.raw))
        else:
            for k in range(len(loss.raw)):
                add(k)


class HostLossBooster(NumbaBooster):
    """The same for losses whose derivatives Python computes."""

    largest = NumpyBooster.largest

    def begin(self, raw: Array, number: int) -> Any:
        loss: Any = super().begin(raw, number)
        return replace(loss, is_compiled=True)

    def gradients(self, loss: Any) -> None:
        super().gradients(loss.for_kernels)

    def residual_bits(self, loss: Any, leaves: Array) -> Array:
        return super().residual_bits(loss.for_kernels, leaves)


def columns_of(matrix: BinnedMatrix, stats: Array) -> records.BoostColumns:
    """The columns of a binned matrix, each of one feature or of several; stats i64[N, words].

    Adjacent features share a column if in every row at most one of them differs from its most
    common code, its `rest`, as the columns of a one-hot encoding do. A row then adds to one
    histogram instead of many ("exclusive feature bundling" of Ke et al., "LightGBM", 2017). A
    shared column has the codes

        0 .. n_bins(a) - 1: codes of a without its rest | n_bins(b) codes of b likewise | .. | none

    where missing values have the code n_bins. Alone in a column, a feature has all its codes.

    Where the matrix's codes lie by columns already, these are used, and missing values change
    their code there: a copy would take as much memory again, and nothing else reads them (those
    of BinnedData are copied before).
    """
    codes, n_bins = np.ascontiguousarray(matrix.codes.T), matrix.edges.n_bins.astype(np.int64)
    missing = matrix.edges.missing_code
    for column, n in zip(codes, n_bins.tolist(), strict=True):
        if n < missing:
            column[column == missing] = n
    # with few rows, looking for them takes longer than all histograms
    runs = list(exclusive(codes, n_bins)) if codes.shape[1] > 4 else [[-1]] * len(codes)
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
    return records.BoostColumns(out, stats, starts, of_feature, first, rest, cells)


def exclusive(codes: Array, n_bins: Array) -> Iterator[list[int]]:
    """Runs of adjacent features that may share a column: most common code of each, -1 if alone."""
    run: list[int] = []
    most = int(np.iinfo(codes.dtype).max)  # codes of a column, without the one for none
    room, used = 0, np.zeros(0, bool)
    for column, n in zip(codes, n_bins.tolist(), strict=True):
        counts = np.bincount(column) if 2 * n <= most else np.zeros(1)
        common = int(counts.argmax()) if 2 * counts.max() >= len(column) else -1
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
