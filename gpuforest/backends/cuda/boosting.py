"""Rounds of boosting on a CUDA device, where raw predictions, gradients and rows stay.

A round waits for the device once, for its finished trees.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np

from gpuforest.backends.booster import ENOUGH_BITS, Booster, Boosting, Round, in_monotonic_order
from gpuforest.backends.cuda.launch import codes_for, macros_of
from gpuforest.backends.cuda.levels import CudaLevels
from gpuforest.common import hashing
from gpuforest.common.errors import BackendError
from gpuforest.compiler.types import dtype_of
from gpuforest.core.nodes import words_of as set_words_of
from gpuforest.kernels.boosted_tree import records
from gpuforest.kernels.boosted_tree.records import GrownTree, LossOf, TreeRows, TreesOut
from gpuforest.kernels.gradients.losses import exact_sum, quantile_of, unit_of
from gpuforest.kernels.shared.constants import FILL_FEATURES, FILL_PAD, HISTOGRAM_THREADS, THREADS
from gpuforest.kernels.shared.structs import Reused

Array = Any

STEPS_AT_ONCE = 255  # splits that are enqueued before the host asks whether trees are done
HEAD = 4  # words of a finished tree before its nodes, see `TreesOut`
FILL_ROWS, DIVIDE_ROWS = 1024, 8 * THREADS  # that a block takes at the least
SORT_BYTES = 64  # of a row's residual, while quantiles are looked for


def words_of(record: type) -> int:
    """The 64-bit words of a struct."""
    return dtype_of(record).itemsize // 8


class Sizes:
    """How much a fit takes on the device.

    n_residuals : rows whose residuals or losses are kept, where they are needed
    nodes : of a tree at the most
    slots : P, histograms of each tree; two more are scratch
    """

    def __init__(self, b: Boosting) -> None:
        edges = b.matrix.edges
        self.K, self.N, self.F, self.B = b.loss.n_raw, b.n_rows, edges.n_features, edges.n_codes
        self.W, self.words, self.n_groups = edges.most_words, b.n_words, len(b.groups)
        self.n_residuals = self.N if b.loss.by_order or b.by_loss else 0
        self.n_sorted = self.N if b.loss.by_order else 0
        self.leaves = b.n_leaves
        self.nodes = 2 * self.leaves - 1
        self.hist_bytes = int(self.F * self.B * self.words * 8)  # of a node
        self.slots = max(2, min(self.leaves + 1, b.memory // (self.K * self.hist_bytes)))

    def out_words(self, nodes: int) -> int:
        """Words of a finished tree of at most `nodes` nodes."""
        return HEAD + nodes + words_of(records.Leaf) * ((nodes + 1) // 2) + nodes * self.W

    @property
    def other_bytes(self) -> int:
        """Bytes of all but the histograms."""
        K, N, F, M, W = self.K, self.N, self.F, self.nodes, self.W
        rows = 16 * N + K * N * (8 + 8 * self.words + 8)
        rows += 16 * self.n_residuals + SORT_BYTES * self.n_sorted
        node = 8 * words_of(records.TreeNode) + self.n_groups + 8 * W + 8
        splits = 2 * F * 8 * (words_of(records.NodeSplit) + W) + 3 * F
        # with the numbers of histograms, at the most
        one = 8 * (words_of(records.TreeState) + self.leaves + 1)
        return rows + K * int(M * node + 8 * self.out_words(M) + splits + one)

    def fit_in(self, free: int) -> None:
        """Lower the number of histograms until everything fits `free` bytes.

        Raises
        ------
        BackendError : not even two histograms fit
        """
        each = self.K * self.hist_bytes
        self.slots = min(self.slots, (free - self.other_bytes) // each - 2)
        if self.slots < 2:
            raise BackendError(
                f"boosting {self.N} rows needs about {self.other_bytes + 4 * each} bytes of device "
                f"memory, of which {free} are free: lower max_leaf_nodes, free memory, or use "
                "backend='numba'"
            )


class CudaBooster(Booster):
    """The rounds of one fit on a device."""

    def __init__(self, backend: CudaLevels, boosting: Boosting) -> None:
        super().__init__(boosting)
        b, s, xp, empty = boosting, Sizes(boosting), backend.xp, backend.empty
        self.backend, self.sizes = backend, s
        s.fit_in(backend.free_bytes())
        self.macros = macros_of(b.matrix.codes, WORDS=b.n_words)
        self._launch = partial(backend.launch, "boosted_tree", macros=self.macros)
        self.y, self.weight = (
            None if a is None else backend.asarray(np.ascontiguousarray(a, np.float64))
            for a in (b.y, b.weight)
        )
        self.residuals, self.weights = (empty(s.n_residuals, xp.float64) for _ in range(2))
        self.delta: Array = empty(1, xp.float64) if b.loss.has_delta else None
        stats, order = empty((s.K, s.N, s.words), xp.int64), empty((s.K, 2, s.N), xp.int32)
        self.rows = Reused(TreeRows(stats, order, s.N, b.n_drawn))
        self.most = backend.asarray(np.array(b.bounds or (0.0, 0.0)).view(np.uint64))
        self.scales = empty(words_of(records.Scales), xp.int64)
        self.rules = Reused(b.rules(self.scales, backend.asarray))
        table = records.TreeTable.new(
            self._of_each_tree, M=s.nodes, P=s.slots, W=s.W, F=s.F, C=s.F * s.B * s.words,
            G=s.n_groups, parts=s.F,
        )  # fmt: skip
        self.table = Reused(table)
        self.out: Any = self._new_out(s.nodes) if s.leaves - 1 <= STEPS_AT_ONCE else None
        self.steps = self._step()
        self.splits: list[Callable[[], None]] = []  # what `_split` launches
        self.raw: Array = None
        self.loss: Any = None
        self.key = np.uint64(0)  # the key that draws the round's rows

    def _of_each_tree(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An array for all trees; structs are words of 64 bits."""
        if dtype.names:
            shape, dtype = (*shape, dtype.itemsize // 8), np.dtype(np.int64)
        return self.backend.empty((self.sizes.K, *shape), dtype)

    def _new_out(self, nodes: int) -> Reused:
        """Memory for finished trees of at most `nodes` nodes."""
        size = self.sizes.out_words(nodes)
        at = self.backend.empty((self.sizes.K, size), self.backend.xp.uint64)
        return Reused(TreesOut(at, size, nodes))

    def _shares(self, n_rows: int, least: int, others: int = 1) -> int:
        """Number of blocks for n_rows, `least` or more each; a grid has `others` times as many."""
        wanted = -(-4 * self.backend.n_processors // others)
        return max(1, min(-(-n_rows // least), wanted))

    def _step(self) -> dict[str, Callable[[], None]]:
        """The launches that split each tree once, by name; they are the same in all rounds."""
        backend, b, s = self.backend, self.boosting, self.sizes
        codes = codes_for(b.matrix.edges, b.matrix.codes, b.matrix.n_bins)
        rows, table = self.rows, self.table
        size = s.B * s.words * 8 + 4 * FILL_PAD
        share = backend.shared_share(2)
        most = min(s.F, FILL_FEATURES, (share if size <= share else backend.shared_limit) // size)
        if not most:
            raise BackendError(f"this GPU has too little shared memory for {s.B} bins")
        n_groups = -(-s.F // most)
        group = -(-s.F // n_groups)
        few = group * size > backend.shared_share(4)
        blocks = self._shares(b.n_drawn, FILL_ROWS, n_groups * s.K)
        prepare = partial(backend.prepare, "boosted_tree", macros=self.macros)
        grid, data = (blocks, min(n_groups, 65535), s.K), (codes, rows, table)
        threads, room = HISTOGRAM_THREADS if few else THREADS, 16 * s.B if s.W else 0
        steps = (backend.blocks(s.F), s.K), *data, self.rules
        return {
            "divide": prepare("divide", (self._shares(s.N, DIVIDE_ROWS), s.K), *data),
            "fill": prepare("fill", grid, *data, group, threads=threads, shared=group * size),
            "search": prepare("search", *steps, shared=room),
        }

    def begin(self, raw: np.ndarray, number: int) -> LossOf:
        backend, b = self.backend, self.boosting
        if self.raw is None:
            self.raw = backend.xp.asarray(backend.asarray(raw), copy=True)
            self.loss = Reused(b.loss.of_rows(self.y, self.weight, self.raw, self.delta))
        self.key = np.uint64(hashing.tree_keys(np, b.seed, number, number + 1)[0])
        if self.delta is not None:
            drawn = self._drawn_residuals()
            self.delta[:] = quantile_of(backend.xp, *drawn, b.loss.quantile)
        return cast(LossOf, self.loss)

    def _residuals(self) -> Array:
        """The sizes of the residuals of all rows."""
        return self.backend.xp.abs(self.y - self.raw[0, :])

    def _drawn_residuals(self) -> tuple[Array, Array | None, float]:
        """Sizes of the residuals of a round's rows, their weights, and `unit_of` these."""
        backend, b, s = self.backend, self.boosting, self.sizes
        residuals, weight, unit = self._residuals(), self.weight, 1.0
        if b.n_drawn < s.N:
            rows = backend.empty(b.n_drawn, backend.xp.int64)
            backend.launch_each("bag", "draw_rows", b.n_drawn, self.key, s.N, b.n_drawn, rows)
            residuals = backend.xp.take(residuals, rows)
            if weight is not None:  # the host waits
                weight = backend.xp.take(weight, rows)
                unit = unit_of(backend.asnumpy(weight))
        elif b.weight is not None:
            unit = unit_of(b.weight)
        return residuals, weight, unit

    def derive(self, loss: LossOf) -> bool:
        backend, b, s = self.backend, self.boosting, self.sizes
        if not b.loss.is_bounded:
            backend.launch("gradients", "largest", self._shares(s.N, THREADS), loss, self.most)
        arguments = self.most, self.scales, *b.bits, s.words == 1, b.loss.is_bounded
        backend.launch("gradients", "scales", 1, *arguments, threads=32)
        stats = s.words, self.rows.stats
        backend.launch_each("gradients", "gradients", s.N, loss, self.rules, *stats)
        return True  # `finish` looks whether gradients are too large

    def grow(self, number: int) -> None:
        b, s = self.boosting, self.sizes
        self._launch("begin", 1, self.table, np.uint64(b.seed), number * s.K, s.K)
        grid = self._shares(s.N, THREADS), s.K
        self._launch("roots", grid, self.rows, self.table, self.key, b.n_drawn < s.N)
        self.steps["search"]()  # nothing yet: it makes the roots
        n = max(1, min(s.leaves - 1, STEPS_AT_ONCE))
        for first in range(0, s.leaves - 1, n):  # steps beyond the last leaf do nothing
            if first and self._states()["done"].all():
                break
            self._split(n)
        self.steps["divide"]()
        if s.leaves - 1 > STEPS_AT_ONCE:
            self.out = None  # the memory of the last round's serves this one
            self.out = self._new_out(int(self._states()["n_nodes"].max()))
        self._launch("finish", s.K, self.table, self.rules, self.out)

    def _split(self, n: int) -> None:
        """Split each tree n times, which is the same number in all rounds."""
        if not self.splits:  # the first time: kernels are not loaded, and no second may follow
            self.splits = [*self.steps.values()] * n
        elif len(self.splits) > 1:
            self.splits = [self.backend.together(self.splits)]
        for launch in self.splits:
            launch()

    def _states(self) -> np.ndarray:
        """The states of the trees, TreeState[K]."""
        states = self.backend.asnumpy(self.table.states)
        return np.ascontiguousarray(states).view(dtype_of(records.TreeState)).ravel()

    @property
    def _leaf_blocks(self) -> int:
        """Blocks that share the rows of all leaves."""
        return self._shares(self.boosting.n_drawn, THREADS)

    @property
    def _leaves(self) -> int:
        """The most leaves of a finished tree."""
        return int(self.out.M + 1) // 2

    def _zero_sums(self) -> Array:
        """Two sums i64[leaves, 2] of each leaf."""
        return self.backend.zeros((self._leaves, 2), self.backend.xp.int64)

    def add_residual_bits(self, loss: LossOf) -> None:
        backend, rules, out, sums = self.backend, self.rules, self.out, self._zero_sums()
        digits = self.boosting.hessian_digits, ENOUGH_BITS
        arguments = loss, self.rows, rules, out, *digits, sums
        backend.launch("gradients", "sum_residual_bits", self._leaf_blocks, *arguments)
        backend.launch_each("gradients", "with_residual_bits", self._leaves, rules, out, sums)

    def add_quantiles(self, loss: LossOf) -> None:
        backend, xp, R, L = self.backend, self.backend.xp, self.boosting.n_drawn, self._leaves
        grown, rest, leaf = (self.rows, self.out), self.residuals[:R], backend.empty(R, xp.int32)
        weight = None if self.weight is None else self.weights[:R]
        backend.launch_each("gradients", "residuals", R, loss, *grown, rest, weight, leaf)
        order = xp.argsort(rest, stable=True)
        order = xp.take(order, xp.argsort(xp.take(leaf, order), stable=True))  # leaf by leaf
        upto, sums, weights = None, None, None
        if weight is not None:
            weights, whole = self._exact_sums(weight), backend.empty(R, xp.int64)
            arrays = weight, leaf, order, weights, whole
            backend.launch_each("gradients", "whole_weights", R, *grown, *arrays)
            upto = xp.cumulative_sum(whole)
        share, found = self.boosting.loss.share, backend.empty(L, xp.float64)
        rest_in_order = xp.take(rest, order)
        backend.launch_each(
            "gradients", "quantiles", L, self.out, rest_in_order, upto, share, found
        )
        if self.delta is not None:
            cut = xp.maximum(rest - xp.take(found, leaf), -self.delta)
            cut = xp.minimum(cut, self.delta)
            sums = self._exact_sums(cut if weight is None else cut * weight)
        steps = self.rules, self.out, found, sums, weights
        backend.launch_each("gradients", "set_steps", L, *steps)

    def _exact_sums(self, values: Array) -> Array:
        """The bits of the largest size of f64[R] in each leaf, and sums; see quantiles.cuh."""
        sums = self._zero_sums()
        arguments = self._leaf_blocks, self.rows, self.out, values, sums
        self.backend.launch("gradients", "largest_in_leaves", *arguments)
        self.backend.launch("gradients", "sum_in_leaves", *arguments)
        return sums

    def put_in_order(self) -> None:  # the host waits
        tree = self._tree(self.backend.asnumpy(self.out.at)[0])
        values = in_monotonic_order(tree, self.boosting.signs)
        size = words_of(records.Leaf)
        first = HEAD + self.out.M + records.Leaf._fields.index("added")
        self.out.at[0, first : first + size * len(values) : size] = self.backend.asarray(
            values.view(np.uint64)
        )

    def add_values(self, loss: LossOf) -> None:
        grid = self._shares(self.sizes.N, THREADS, self.sizes.K), self.sizes.K
        self._launch("add_values", grid, self.rows, self.out, self.raw)

    def finish(self, loss: LossOf, raw: np.ndarray) -> Round | None:
        words = self.backend.asnumpy(self.out.at)
        if words[0, 3]:
            return None
        if self.boosting.watched:
            raw[:] = self.backend.asnumpy(self.raw)
        mean = self._mean_loss(loss) if self.boosting.by_loss else None
        unit_g, unit_h = words[0, 1:3].view(np.float64).tolist()
        return Round([self._tree(row) for row in words], (unit_g, unit_h), mean)

    def _tree(self, row: np.ndarray) -> GrownTree:
        n, M, W, dtype = int(row[0]), self.out.M, self.sizes.W, dtype_of(records.Leaf)
        nodes, rest = row[HEAD : HEAD + n].copy(), row[HEAD + M :]
        n_words = dtype.itemsize // 8 * ((M + 1) // 2)
        leaves = rest[:n_words].view(dtype)[: (n + 1) // 2].copy()
        sets = rest[n_words:].reshape(M, W)[:n]
        used = set_words_of(np, nodes, self.boosting.matrix.edges.set_words, oblique=False)
        return GrownTree(nodes, sets[np.arange(W) < used[:, None]], leaves)

    def _mean_loss(self, loss: LossOf) -> float:
        """As `Loss.mean` of the raw predictions on the device."""
        backend, b, N = self.backend, self.boosting, self.sizes.N
        if self.delta is not None:  # of all rows, without their weights
            share = b.loss.quantile
            self.delta[:] = quantile_of(backend.xp, self._residuals(), None, 1.0, share)
        words, n_blocks = backend.zeros(2, backend.xp.uint64), self._shares(N, THREADS)
        values = self.residuals
        backend.launch("gradients", "losses", n_blocks, loss, values, words)
        backend.launch("gradients", "sum_losses", n_blocks, values, N, N.bit_length(), words)
        sums = backend.asnumpy(words)
        most, parts = float(sums.view(np.float64)[0]), int(sums.view(np.int64)[1])
        total = most  # where it is zero or infinite
        if most > 0 and np.isfinite(most):
            shift = 62 - N.bit_length() - int(np.frexp(most)[1])
            total = float(np.ldexp(float(parts), -shift))
        return total / (N if b.weight is None else exact_sum(b.weight))
