"""Rounds of boosting on a CUDA device: raw predictions, gradients and rows stay there.

A round waits for the device once, for its finished trees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from gpuforest.backends.cuda.launch import codes_for
from gpuforest.backends.cuda.levels import CudaLevels
from gpuforest.boosting import rounds
from gpuforest.boosting.losses import exact_sum, unit_of
from gpuforest.common import hashing
from gpuforest.common.errors import BackendError
from gpuforest.engine.nodes import FEATURE_SHIFT, has_set
from gpuforest.kernels.boosted_tree import records, structs
from gpuforest.kernels.shared.constants import FILL_FEATURES, HISTOGRAM_THREADS, THREADS
from gpuforest.kernels.shared.structs import dtype_of

Array = Any

STEPS_AT_ONCE = 255  # splits that are enqueued before the host asks whether trees are done
HEAD = 4  # words of a finished tree before its nodes, see `TreesOut`
FILL_ROWS, DIVIDE_ROWS = 1024, 8 * THREADS  # that a block takes at the least
SORT_BYTES = 64  # of a row's residual, while a quantile of all is looked for


def words_of(record: type) -> int:
    """The 64-bit words of a struct."""
    return dtype_of(record).itemsize // 8


class Sizes:
    """How much a fit takes on the device.

    drawn : R, rows that a round grows from
    n_residuals : rows whose residuals or losses are kept, where they are needed
    leaves, nodes : of a tree at the most
    slots : P, histograms of each tree, but for two that are scratch
    """

    def __init__(self, b: rounds.Boosting) -> None:
        edges = b.matrix.edges
        self.K, self.N, self.F, self.B = b.loss.n_raw, b.n_rows, edges.n_features, edges.n_codes
        self.W, self.words, self.n_groups = edges.most_words, b.n_words, len(b.groups)
        self.n_residuals = self.N if b.loss.by_order or b.by_loss else 0
        self.n_sorted = self.N if b.loss.has_delta else 0
        self.drawn = min(max(1, int(b.subsample * b.n_rows)), b.n_rows)
        leaves = max(1, min(b.max_leaves, self.drawn // max(b.min_rows, 1)))
        self.leaves = min(leaves, 2 ** min(b.max_depth, 31))
        self.nodes = 2 * self.leaves - 1
        self.slots = max(2, min(self.leaves + 1, b.memory // (self.K * self.hist_bytes)))

    @property
    def hist_bytes(self) -> int:
        """Bytes of a node's histograms."""
        return int(self.F * self.B * self.words * 8)

    def out_words(self, nodes: int) -> int:
        """Words of a finished tree of at most so many nodes."""
        return HEAD + nodes + words_of(structs.Leaf) * ((nodes + 1) // 2) + nodes * self.W

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
        """Take so few histograms that everything fits so many bytes.

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


class CudaBooster:
    """The rounds of one fit on a device."""

    def __init__(self, backend: CudaLevels, b: rounds.Boosting) -> None:
        self.backend, self.boosting, self.sizes = backend, b, Sizes(b)
        self.sizes.fit_in(backend.free_bytes())
        wide = b.matrix.codes.itemsize > 1
        self.macros = {"CODE": "u16" if wide else "u8", "WORDS": str(b.n_words)}
        self._put_rows()
        self._put_trees()
        self.steps = self._step()
        self.raw: Array = None

    def _put_rows(self) -> None:
        """Make what is known of rows."""
        backend, b, s, xp = self.backend, self.boosting, self.sizes, self.backend.xp
        self.y, self.weight = (
            None if a is None else backend.asarray(np.ascontiguousarray(a, np.float64))
            for a in (b.y, b.weight)
        )
        self.residuals, self.weights = (backend.empty(s.n_residuals, xp.float64) for _ in range(2))
        self.delta: Array = backend.empty(1, xp.float64) if b.loss.has_delta else None
        stats = backend.empty((s.K, s.N, s.words), xp.int64)
        order = backend.empty((s.K, 2, s.N), xp.int32)
        self.rows = structs.TreeRows(stats, order, s.N, s.drawn, b.n_bits)
        most = np.array(rounds.bounds_of(b) or (0.0, 0.0))
        self.most = backend.asarray(most.view(np.uint64))
        self.scales = backend.empty(words_of(structs.Scales), xp.int64)

    def _put_trees(self) -> None:
        """Make what trees grow in."""
        backend, b, s = self.backend, self.boosting, self.sizes
        xp, empty, edges = backend.xp, backend.empty, b.matrix.edges
        K, F, M = s.K, s.F, s.nodes
        self.table = structs.TreeTable(
            nodes=empty((K, M, words_of(records.TreeNode)), xp.int64),
            states=empty((K, words_of(records.TreeState)), xp.int64),
            groups=empty((K, M, s.n_groups), xp.bool),
            sets=empty((K, M, s.W), xp.uint64),
            open=empty((K, M), xp.int64),
            hist=empty((K, s.slots + 2, F, s.B, s.words), xp.int64),
            free=empty((K, s.slots), xp.int64),
            tried=empty((K, 3, F), xp.bool),
            splits=empty((K, 2, F, words_of(records.NodeSplit)), xp.int64),
            split_sets=empty((K, 2, F, s.W), xp.uint64),
            M=M,
            W=s.W,
            P=s.slots,
        )
        self.rules = structs.TreeRules(
            backend.asarray(np.ascontiguousarray(edges.n_bins, np.int32)),
            backend.asarray(np.ascontiguousarray(edges.kinds)),
            backend.asarray(np.ascontiguousarray(b.signs, np.int8)),
            backend.asarray(np.ascontiguousarray(b.groups, np.bool_)) if s.n_groups else None,
            self.scales, s.n_groups, b.min_rows, b.max_depth, s.leaves, b.max_leaves < s.drawn,
            b.l2, b.loss.most_value, b.share,
        )  # fmt: skip
        self.out = self._new_out(M) if s.leaves - 1 <= STEPS_AT_ONCE else None

    def _new_out(self, nodes: int) -> structs.TreesOut:
        """Room for finished trees of at most so many nodes."""
        size = self.sizes.out_words(nodes)
        at = self.backend.empty((self.sizes.K, size), self.backend.xp.uint64)
        return structs.TreesOut(at, size, nodes)

    def _shares(self, n_rows: int, least: int, others: int = 1) -> int:
        """The number of blocks that share so many rows, `least` each at the least; there are so
        many other blocks for each."""
        wanted = -(-4 * self.backend.n_processors // others)
        return max(1, min(-(-n_rows // least), wanted))

    def _step(self) -> dict[str, Callable[[], None]]:
        """The launches that split each tree once, by name; they are the same in all rounds."""
        backend, b, s, macros = self.backend, self.boosting, self.sizes, self.macros
        codes, rows, table = codes_for(b.matrix.edges, b.matrix.codes), self.rows, self.table
        size = s.B * s.words * 8
        share = backend.shared_share(2)
        most = min(s.F, FILL_FEATURES, (share if size <= share else backend.shared_limit) // size)
        if not most:
            raise BackendError(f"this GPU has too little shared memory for {s.B} bins")
        n_groups = -(-s.F // most)
        group = -(-s.F // n_groups)
        few = group * size > backend.shared_share(4)
        blocks = self._shares(s.drawn, FILL_ROWS, n_groups * s.K)
        rule_arguments = codes, rows, table, self.rules
        fill = backend.prepare(
            "boosted_tree", "fill", (blocks, min(n_groups, 65535), s.K),
            (codes, rows, table, group), macros=macros,
            threads=HISTOGRAM_THREADS if few else THREADS, shared=group * size,
        )  # fmt: skip
        search = backend.prepare(
            "boosted_tree", "search", (backend.blocks(s.F), s.K), rule_arguments, macros=macros,
            shared=16 * s.B if s.W else 0,
        )  # fmt: skip
        grid = self._shares(s.N, DIVIDE_ROWS), s.K
        divide = backend.prepare(
            "boosted_tree", "divide", grid, (codes, rows, table), macros=macros
        )
        pick = backend.prepare("boosted_tree", "pick", (s.K,), rule_arguments, macros=macros)
        return {"divide": divide, "fill": fill, "search": search, "pick": pick}

    def round(self, raw: np.ndarray, number: int) -> rounds.Round | None:
        """The round of this number, see `GrowsRounds`."""
        b = self.boosting
        if self.raw is None:
            xp = self.backend.xp
            self.raw = xp.asarray(self.backend.asarray(raw), copy=True)
        loss = structs.LossOf(
            self.y, self.weight, self.raw, self.sizes.N, self.sizes.K, b.loss.number,
            b.loss.quantile, self.delta,
        )  # fmt: skip
        key = np.uint64(hashing.tree_keys(np, b.seed, number, number + 1)[0])
        self._gradients(loss, key)
        self._grow(number, key)
        out = self._finish(loss)
        done = self._fetched(out)
        if done is None:
            return None
        if b.watched:
            raw[:] = self.backend.asnumpy(self.raw)
        return replace(done, loss=self._mean_loss(loss)) if b.by_loss else done

    def _mean_loss(self, loss: structs.LossOf) -> float:
        """As `Loss.mean` of the raw predictions on the device."""
        backend, b, N = self.backend, self.boosting, self.sizes.N
        if self.delta is not None:  # of all rows, without their weights
            self._find_delta(self._residuals(), None, 1.0)
        words, grid = backend.zeros(2, backend.xp.uint64), (self._shares(N, THREADS),)
        backend.launch("gradients", "losses", grid, (loss, self.residuals, words))
        arguments: tuple[Any, ...] = self.residuals, N, N.bit_length(), words
        backend.launch("gradients", "sum_losses", grid, arguments)
        sums = backend.asnumpy(words)
        most, parts = float(sums.view(np.float64)[0]), int(sums.view(np.int64)[1])
        total = most  # where it is zero or infinite
        if most > 0 and np.isfinite(most):
            shift = 62 - N.bit_length() - int(np.frexp(most)[1])
            total = float(np.ldexp(float(parts), -shift))
        return total / (N if b.weight is None else exact_sum(b.weight))

    def close(self) -> None:
        """Nothing waits for work."""

    def _gradients(self, loss: structs.LossOf, key: np.uint64) -> None:
        """Compute the stats of all rows; key : of the rows that are drawn."""
        backend, b, s = self.backend, self.boosting, self.sizes
        if self.delta is not None:
            self._find_delta(*self._drawn_residuals(key))
        grid = (backend.blocks(s.N, THREADS),)
        if not b.loss.is_bounded:
            few = (self._shares(s.N, THREADS),)
            backend.launch("gradients", "largest", few, (loss, self.most))
        arguments: tuple[Any, ...] = (
            self.most, self.scales, rounds.room_of(b), rounds.SUM_BITS - 2 * b.n_bits,
            s.words == 1, b.loss.is_bounded,
        )  # fmt: skip
        backend.launch("gradients", "scales", (1,), arguments, threads=32)
        arguments = loss, self.scales, b.n_bits, s.words, self.rows.stats
        backend.launch("gradients", "gradients", grid, arguments)

    def _residuals(self) -> Array:
        """The sizes of the residuals of all rows."""
        return self.backend.xp.abs(self.y - self.raw[0, :])

    def _drawn_residuals(self, key: np.uint64) -> tuple[Array, Array | None, float]:
        """The sizes of the residuals of the rows that a round grows from, their weights, and what
        makes whole numbers of these."""
        backend, b, s = self.backend, self.boosting, self.sizes
        rest, weight, unit = self._residuals(), self.weight, 1.0
        if s.drawn < s.N:
            rows = backend.empty(s.drawn, backend.xp.int64)
            arguments: tuple[Any, ...] = key, s.N, s.drawn, rows
            backend.launch("bag", "draw_rows", (backend.blocks(s.drawn, THREADS),), arguments)
            rest = backend.xp.take(rest, rows)
            if weight is not None:  # the host waits
                weight = backend.xp.take(weight, rows)
                unit = unit_of(backend.asnumpy(weight))
        elif b.weight is not None:
            unit = unit_of(b.weight)
        return rest, weight, unit

    def _find_delta(self, values: Array, weight: Array | None, unit: float) -> None:
        """Set delta to the loss's quantile of values f64[n], as `weighted_quantile` in
        boosting/losses.py has it."""
        xp, share, last = self.backend.xp, self.boosting.loss.quantile, len(values) - 1
        order = xp.argsort(values, stable=True)
        values = xp.take(values, order)
        if weight is None:
            at = share * last
            low, high, part = values[int(at)], values[min(int(at) + 1, last)], at - int(at)
        else:
            whole = xp.astype(xp.round(xp.take(weight, order) * unit), xp.int64)
            upto = xp.astype(xp.cumulative_sum(whole), xp.float64)  # below 2**52
            wanted = share * upto[last:]
            first = xp.clip(xp.searchsorted(upto, wanted), max=last)
            reached = xp.take(upto, first)
            after = xp.clip(xp.searchsorted(upto, reached, side="right"), max=last)
            # the share may end between two values
            after = xp.where(reached == wanted, after, first)
            low, high, part = xp.take(values, first), xp.take(values, after), 0.5
        self.delta[:] = low + (high - low) * part

    def _grow(self, number: int, key: np.uint64) -> None:
        """Grow the trees of a round."""
        backend, b, s, macros = self.backend, self.boosting, self.sizes, self.macros
        arguments: tuple[Any, ...] = self.table, np.uint64(b.seed), number * s.K, s.K
        backend.launch("boosted_tree", "begin", (1,), arguments, macros=macros)
        arguments = self.rows, self.table, key, s.drawn < s.N
        grid = self._shares(s.N, THREADS), s.K
        backend.launch("boosted_tree", "roots", grid, arguments, macros=macros)
        self.steps["pick"]()
        for i in range(s.leaves - 1):
            if i and i % STEPS_AT_ONCE == 0 and self._states()["done"].all():
                break
            for launch in self.steps.values():
                launch()
        self.steps["divide"]()

    def _states(self) -> np.ndarray:
        """The states of the trees, structs.TreeState[K]."""
        states = self.backend.asnumpy(self.table.states)
        return np.ascontiguousarray(states).view(dtype_of(records.TreeState))[:, 0]

    def _finish(self, loss: structs.LossOf) -> structs.TreesOut:
        """Write the trees of a round, and add what they predict to the raw predictions."""
        backend, b, s, macros = self.backend, self.boosting, self.sizes, self.macros
        out = self.out
        if out is None:
            out = self._new_out(int(self._states()["n_nodes"].max()))
        arguments: tuple[Any, ...] = self.table, self.rules, b.learning_rate, out
        backend.launch("boosted_tree", "finish", (s.K,), arguments, macros=macros)
        blocks = (backend.blocks((out.M + 1) // 2),)
        if rounds.has_rests(b):
            arguments = (
                loss, self.rows, out, self.scales, b.l2, b.loss.most_value, b.learning_rate,
                rounds.digits_of_hessians(b), rounds.ENOUGH_BITS,
            )  # fmt: skip
            backend.launch("gradients", "with_rests", blocks, arguments)
        if b.loss.by_order:
            arguments = (
                loss, self.rows, out, b.loss.share, b.learning_rate, self.residuals, self.weights,
            )  # fmt: skip
            backend.launch("boosted_tree", "leaf_values", blocks, arguments, macros=macros)
            if b.signs.any():
                self._put_in_order(out)
        grid = self._shares(s.N, THREADS, s.K), s.K
        arguments = self.rows, out, self.raw
        backend.launch("boosted_tree", "add_values", grid, arguments, macros=macros)
        return out

    def _put_in_order(self, out: structs.TreesOut) -> None:
        """Have what leaves of the one tree add respect monotonic constraints; the host waits."""
        tree, added = self._tree(self.backend.asnumpy(out.at)[0], out.M)
        values = rounds.in_monotonic_order(tree, self.boosting.signs, added)
        size = words_of(structs.Leaf)
        first = HEAD + out.M + structs.Leaf._fields.index("added")
        out.at[0, first : first + size * len(values) : size] = self.backend.asarray(
            values.view(np.uint64)
        )

    def _fetched(self, out: structs.TreesOut) -> rounds.Round | None:
        """The finished trees; None: gradients were too large for float64."""
        words = self.backend.asnumpy(out.at)
        if words[0, 3]:
            return None
        units = [tuple(row[1:3].view(np.float64).tolist()) for row in words]
        trees, added = zip(*(self._tree(row, out.M) for row in words), strict=True)
        return rounds.Round(list(trees), list(added), units)

    def _tree(self, row: np.ndarray, M: int) -> tuple[records.GrownTree, np.ndarray]:
        """A tree from its words, and what its leaves add; ranges have a fifth column, the half
        where a leaf's rows lie."""
        s, n, dtype = self.sizes, int(row[0]), dtype_of(structs.Leaf)
        nodes, rest = row[HEAD : HEAD + n].copy(), row[HEAD + M :]
        n_words = dtype.itemsize // 8 * ((M + 1) // 2)
        leaves = rest[:n_words].view(dtype)[: (n + 1) // 2]
        sets = rest[n_words:].reshape(M, s.W)[:n]
        split = np.flatnonzero(has_set(nodes))
        feature = (nodes[split] >> np.uint64(FEATURE_SHIFT)).astype(np.int64)
        set_words = self.boosting.matrix.edges.set_words[feature]
        sums, ranges = (
            np.stack([leaves[name] for name in names], axis=1)
            for names in (structs.Leaf._fields[:3], structs.Leaf._fields[3:8])
        )
        ranges[:, 2:4] -= s.drawn
        tree = records.GrownTree(
            nodes, sets[split][np.arange(s.W) < set_words[:, None]], sums, leaves["value"].copy(),
            ranges,
        )  # fmt: skip
        return tree, leaves["added"].copy()
