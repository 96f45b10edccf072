"""How trees grow level by level on a CUDA device: see kernels/level and kernels/slots."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate
from typing import Any

import array_api_compat.numpy as host
import numpy as np

from gpuforest.backends.cuda.launch import (
    CudaLaunches,
    cell_type,
    codes_of,
    histogram_group,
    histograms_of,
    own_targets,
    padded,
    slot_bytes,
    target_macros,
    targets_of,
)
from gpuforest.compiler.types import new_arrays
from gpuforest.engine.assembly import distinct_sorted
from gpuforest.engine.binning import BinEdges, BinnedMatrix
from gpuforest.engine.criteria import xlogx
from gpuforest.engine.records import PER_SLOT, Frontier, Rules, Splits, Training
from gpuforest.kernels.grow_subtrees.structs import Combining
from gpuforest.kernels.shared import structs
from gpuforest.kernels.shared.constants import (
    CUT_SUMS,
    GROUP_CHANNELS,
    HISTOGRAM_THREADS,
    LEAST_TILE,
    MOST_TILE,
    SPLIT_THREADS,
    THREADS,
    XLOGX_TABLE_SIZE,
)
from gpuforest.kernels.shared.structs import Tiles

Array = Any

BAG_TILE = 4096  # rows that a block of in_bag takes
NO_SIGNS = np.zeros(0, np.int8)
TILE_SIZES = MOST_TILE // LEAST_TILE  # tiles have a multiple of LEAST_TILE rows
MOST_SHIFT = 24  # sums have fewer bits


class CudaLevels(CudaLaunches):
    """The kernels of the wide phase, and the O(nodes) work between them, in few launches."""

    def encode(self, X: Array, edges: BinEdges) -> Array:
        xp, (N, F) = self.xp, X.shape
        X = self.asarray(X)
        wide = edges.n_codes > 256
        stride = padded(F * (2 if wide else 1)) // (2 if wide else 1)
        codes = self.empty((N, stride), xp.uint16 if wide else xp.uint8)
        macros = {
            "VALUE": "float" if X.dtype == xp.float32 else "double",
            "CODE": "u16" if wide else "u8",
        }
        values = edges.values if len(edges.values) else np.zeros(1)
        arguments = (
            X, self.asarray(values), self.asarray(edges.offsets), edges.missing_code, N, F, stride,
            codes,
        )  # fmt: skip
        self.launch("encode", "encode", (self.blocks(N * F, THREADS),), arguments, macros=macros)
        return codes

    def bag(self, keys: Array, n_rows: int, n_draws: int, cumulative: Array | None) -> Array:
        T = keys.shape[0]
        weights = self.zeros((T, n_rows), self.xp.int32)
        grid = (self.blocks(n_draws, THREADS), min(T, 65535))
        self.launch("bag", "bag", grid, (keys, n_rows, n_draws, cumulative, T, weights))
        return weights

    def in_bag(self, bags: Array) -> tuple[Array, Array, Array]:
        xp, (T, N) = self.xp, bags.shape
        bags = xp.ascontiguousarray(bags)  # without draws, one row stands for all trees
        tiles = -(-N // BAG_TILE)
        counts, grid = self.empty(T * tiles, xp.int64), (self.blocks(T * tiles),)
        self.launch("bag", "count_in_bag", grid, (bags, N, T, BAG_TILE, tiles, counts))
        first = self.sums_before(counts)
        R = int(first[-1])
        rows, weights = self.empty(R, xp.int32), self.empty(R, xp.int32)
        offsets = self.empty(T + 1, xp.int64)
        arguments = (bags, N, T, BAG_TILE, tiles, first, rows, weights, offsets)
        self.launch("bag", "in_bag", grid, arguments)
        return rows, weights, offsets

    def totals(
        self, training: Training, rows: Array, weights: Array, begin: Array, end: Array
    ) -> Array:
        S, C, target = begin.shape[0], training.n_channels, training.target
        sums = self.zeros((S, C), self.xp.int64)
        tiles, n_tiles = self.tiles_of(begin, end, rows.shape[0])
        grid = (self.blocks(n_tiles) if S else 0, -(-C // GROUP_CHANNELS))
        slots = Frontier.of_rows(rows, weights, begin, end)
        # the rows of a tree are in order, so the array in order is read fastest
        y = own_targets(training, target.y)
        arguments, macros = (y, slots, tiles, sums), target_macros(training, y)
        self.launch("totals", "totals", grid, arguments, macros=macros)
        return sums

    def differs(
        self, training: Training, rows: Array, begin: Array, end: Array, values: Array
    ) -> Array:
        S = values.shape[0]
        found = self.zeros(S, self.xp.int32)
        tiles, n_tiles = self.tiles_of(begin, end, rows.shape[0])
        slots = Frontier.of_rows(rows, None, begin, end)
        y = own_targets(training, training.target.y)
        arguments, grid = (y, slots, tiles, values, found), (self.blocks(n_tiles) if S else 0,)
        macros = target_macros(training, y)
        self.launch("totals", "differs", grid, arguments, macros=macros)
        return found > 0

    def histogram(self, training: Training, slots: Frontier, features: Array) -> Array:
        features = self.xp.ascontiguousarray(features)
        shape = (*features.shape, training.n_codes, training.hist_channels)
        hist = self.zeros(shape, cell_type(self.xp, training))
        tiles, n_tiles = self.slot_tiles(slots)
        self.add_rows(training, slots, features, tiles, n_tiles, hist)
        return self.xp.astype(hist, self.xp.int64, copy=False)

    def add_rows(
        self,
        training: Training,
        slots: Frontier,
        features: Array,
        tiles: Tiles,
        n_tiles: int,
        hist: Array,
    ) -> None:
        """Add the slots' rows to `hist`; the histograms that are used hold zeros. Those of slots of
        one tile need not, if a block's memory holds one (see `histogram_group`)."""
        S, k = features.shape
        group, words, size = self.histogram_group(training, k)
        y = targets_of(self.xp, training)
        rows = codes_of(training), y, slots, tiles, features
        macros = self.macros(training.matrix, **target_macros(training, y))
        blocks = self.blocks(n_tiles) if S else 0
        if not group:
            arguments: tuple[Any, ...] = *rows, histograms_of(training, hist)
            grid = (blocks, min(k, 65535))
            self.launch("histogram", "histogram_direct", grid, arguments, macros=macros)
            return
        shared = -(-group * size // 16) * 16  # cells are cleared and read by fours
        # many threads hide each other's waiting: of few large blocks, or of more small ones
        few = shared > self.shared_share(4)
        arguments = *rows, group, words, histograms_of(training, hist)
        self.launch(
            "histogram", "histogram", (blocks, min(-(-k // group), 65535)), arguments,
            macros=macros, threads=HISTOGRAM_THREADS if few else THREADS, shared=shared,
        )  # fmt: skip

    def histogram_group(self, training: Training, k: int) -> tuple[int, int, int]:
        return histogram_group(training, k, self.shared_share(2), self.shared_limit)

    def best_split(
        self, training: Training, slots: Frontier, hist: Array, features: Array, need: Array
    ) -> Splits:
        best = self.no_splits(slots)
        # multiway splits pass the part of one feature
        hist = self.xp.astype(hist, cell_type(self.xp, training), copy=False)
        hist, features, need = (self.xp.ascontiguousarray(a) for a in (hist, features, need))
        self.cut(training, slots, hist, features, need, best)
        return best

    def no_splits(self, frontier: Frontier) -> Splits:
        """Splits that are not yet known."""
        S, C = frontier.sums.shape
        return Splits(**new_arrays(Splits, self.empty, S=S, C=C, W=0))

    def cut(
        self,
        training: Training,
        slots: Frontier,
        hist: Array,
        features: Array,
        need: Array | None,
        best: Splits,
    ) -> None:
        """Write the best splits by these features to `best`; `need` None: by all that vary."""
        xp, (S, k), rules, C = self.xp, hist.shape[:2], training.rules, training.n_channels
        score, found = self.empty((S, k), xp.float64), self.empty((S, k), xp.int32)
        warps = max(1, min(SPLIT_THREADS // 32, self.shared_limit // (8 * CUT_SUMS * C)))
        special = rules.random or rules.limited
        macros = {"CRITERION": str(rules.criterion.number), "SPECIAL": str(int(special))}
        hists, n_bins = histograms_of(training, hist), training.matrix.n_bins
        arguments: tuple[Any, ...] = (
            hists, features, slots, self.rules_of(training), n_bins, self.table(), score,
            found,
        )  # fmt: skip
        self.launch(
            "best_split", "best_cut", (self.blocks(S * k, warps),), arguments,
            macros=macros, threads=32 * warps, shared=8 * CUT_SUMS * C * warps,
        )  # fmt: skip
        arguments = hists, features, score, found, need, best
        self.launch(
            "best_split", "best_split", (self.blocks(S, SPLIT_THREADS // 32),), arguments,
            macros=macros, threads=SPLIT_THREADS,
        )  # fmt: skip

    def partition(
        self, training: Training, slots: Frontier, splits: Splits
    ) -> tuple[Array, Array, Array]:
        xp, f, S, matrix = self.xp, slots, slots.n_slots, training.matrix
        tiles, n_tiles = self.slot_tiles(f)
        n_left, grid = self.empty(S, xp.int64), (self.blocks(n_tiles) if S else 0,)
        half = f.rows.shape[0] // 2
        goes_left = self.empty(half // 32 + S + 1, xp.uint32)
        counts = self.empty(n_tiles, xp.int64)
        words = splits.sets.shape[1]
        macros = self.macros(matrix, SETS=str(int(words > 0)))
        arguments: tuple[Any, ...] = (
            codes_of(training), f, tiles, splits, words, half, goes_left, counts, n_left,
        )  # fmt: skip
        self.launch("partition", "mark", grid, arguments, macros=macros)
        arguments = f, tiles, splits, half, goes_left, counts, f.rows, f.weights, n_left
        self.launch("partition", "move", grid, arguments, macros=macros)
        return f.rows, f.weights, n_left

    def macros(self, matrix: BinnedMatrix, **more: str) -> dict[str, str]:
        return {"CODE": "u8" if matrix.codes.itemsize == 1 else "u16", **more}

    def table(self) -> Array:
        """n ln n of small n, for entropy's kernels."""
        if self._table is None:
            self._table = self.asarray(xlogx(host, np.arange(XLOGX_TABLE_SIZE, dtype=np.int64)))
        return self._table

    _table: Array | None = None

    def rules_of(self, training: Training) -> Rules:
        """The rules, whose signs are on the device."""
        rules = training.rules
        return replace(rules, signs=self.asarray(rules.signs)) if len(rules.signs) else rules

    def roots(
        self, training: Training, rows: Array, weights: Array, offsets: Array, keys: Array
    ) -> Frontier:
        T, C = keys.shape[0], training.n_channels
        sums = self.totals(training, rows, weights, offsets[:-1], offsets[1:])
        roots = self.new_slots(T, C, rows, weights, rows.shape[0])
        mean, compare = self.means(training, T)
        arguments = offsets, keys, sums, T, C, roots, mean, compare
        self.launch("slots", "root_slots", (self.blocks(T, THREADS),), arguments)
        if mean is not None:
            self.compare_rows(training, roots, roots, None, 0, mean, compare)
        return roots

    def sort_out(
        self, slots: Frontier, rules: Rules, deep_rows: int
    ) -> tuple[Array, Frontier, Frontier]:
        S, xp = slots.n_slots, self.xp
        # few forests have bounds, multiway splits or a least weight
        if not S or slots.per_slot != PER_SLOT or rules.min_weight_leaf > 1:
            return super().sort_out(slots, rules, deep_rows)
        span, n_spans = self.spans(S)
        counts = self.empty((4, n_spans), xp.int64)
        tiles = self.empty((TILE_SIZES, n_spans), xp.int64)
        kind, rank = self.empty(S, xp.int8), self.empty(S, xp.int64)
        C, kinds = slots.sums.shape[1], structs.Kinds(kind, rank, counts, tiles, S, span)
        # no kernel here reads the signs, which are on the host
        arguments: tuple[Any, ...] = slots, kinds, replace(rules, signs=NO_SIGNS), deep_rows
        self.launch("slots", "number_kinds", (n_spans,), arguments)
        n_wide, n_deep, rows_wide, rows_deep = self.asnumpy(counts).sum(axis=1).tolist()
        tile = self.tile_size(rows_wide)
        wide, deep = (
            self.new_slots(n, C, slots.rows, slots.weights, n_held, slots.allowed)
            for n, n_held in ((n_wide, rows_wide), (n_deep, rows_deep))
        )
        first = self.empty(n_wide + 1, xp.int64)
        arguments = slots, kinds, C, tile, wide, deep, first
        grid = n_spans, 1 + -(-min(span, S) // THREADS)
        self.launch("slots", "take_slots", grid, arguments)
        self.known_tiles[wide] = Tiles(first, tile, n_wide), rows_wide // tile + n_wide
        return kind, wide, deep

    def new_slots(
        self,
        S: int,
        C: int,
        rows: Array,
        weights: Array,
        n_held: int,
        allowed: Array | None = None,
    ) -> Frontier:
        """S slots of C channels, whose arrays kernels fill."""
        arrays = new_arrays(Frontier, self.empty, S=S, C=C)
        # whole words, see `differing`
        arrays["constant"] = self.empty(-(-S // 4) * 4, self.xp.bool)[:S]
        return Frontier(**arrays, rows=rows, weights=weights, n_held=n_held, allowed=allowed)

    def children(
        self,
        training: Training,
        wide: Frontier,
        splits: Splits,
        rows: Array,
        weights: Array,
        n_left: Array,
    ) -> Frontier:
        W, C = wide.n_slots, training.n_channels
        below = self.new_slots(2 * W, C, rows, weights, wide.n_held, wide.allowed)
        half = rows.shape[0] // 2
        mean, compare = self.means(training, 2 * W)
        arguments = (
            wide, W, C, splits.feature, splits.left, n_left, half, below, mean, compare,
        )  # fmt: skip
        self.launch("slots", "children", (self.blocks(2 * W, THREADS),), arguments)
        if mean is not None and W:
            self.compare_rows(training, wide, below, n_left, half, mean, compare)
        return below

    def means(self, training: Training, S: int) -> tuple[Array | None, Array | None]:
        """Room for the means of S slots, and for whether rows must be compared with them; None for
        classes, whose sums show whether all targets are equal."""
        if training.target.coding.is_classes:
            return None, None
        mean = self.empty((S, training.n_channels - 1), self.xp.int64)
        return mean, self.empty(S, self.xp.bool)

    def compare_rows(
        self,
        training: Training,
        above: Frontier,
        slots: Frontier,
        n_left: Array | None,
        half: int,
        mean: Array,
        compare: Array | None,
    ) -> None:
        """Slots with a target that differs from their mean are not constant.

        above : the slots above, whose rows have moved by `half`; or with `n_left` None, `slots`
        """
        tiles, n_tiles = self.slot_tiles(above)
        y = own_targets(training, training.target.y)
        held = replace(above, rows=slots.rows, weights=slots.weights)
        arguments = y, held, tiles, n_left, half, mean, compare, slots.constant
        macros = target_macros(training, y)
        self.launch("totals", "differing", (self.blocks(n_tiles),), arguments, macros=macros)

    def join(self, parts: list[Frontier], rows: Array, weights: Array) -> Frontier:
        ends = list(accumulate((part.n_slots for part in parts), initial=0))
        S, like = ends.pop(), parts[0]
        if not S or like.per_slot != PER_SLOT:
            return super().join(parts, rows, weights)
        C = like.sums.shape[1]
        held = sum(part.n_held for part in parts)
        slots = self.new_slots(S, C, rows, weights, held, like.allowed)
        first, table = self.asarray(np.array(ends)), self.table_of(parts)
        arguments = table, first, len(parts), S, C, slots
        self.launch("slots", "join_slots", (self.blocks(S, THREADS),), arguments)
        return slots

    def table_of(self, records: Iterable[Any]) -> Array:
        """Records on the device, one after another, as words i64[...]."""
        packed = [structs.packed(record, {}, self.address) for record in records]
        return self.asarray(np.array(packed).view(np.int64).reshape(-1))

    def row_keys(self, sums: Array) -> Array:
        """A hash u64[V] of each row i64[V, C]."""
        V, C = sums.shape
        keys = self.empty(V, self.xp.uint64)
        self.launch("leaf_rows", "row_keys", (self.blocks(V, THREADS),), (sums, V, C, keys))
        return keys

    def distinct_rows(self, sums: Array) -> tuple[np.ndarray, np.ndarray]:
        (V, C), keys, xp = sums.shape, self.row_keys(sums), self.xp
        order, (span, n_blocks) = xp.argsort(keys, stable=True), self.spans(V)
        counts, number, some = (self.empty(n, xp.int64) for n in (n_blocks, V, V))
        self.launch("leaf_rows", "count_keys", (n_blocks,), (keys, order, V, span, counts))
        other = self.empty(1, xp.int32)
        arguments: tuple[Any, ...] = keys, order, V, span, counts, number, some, other
        self.launch("leaf_rows", "number_keys", (n_blocks,), arguments)
        n = int(self.asnumpy(counts).sum())
        table = self.empty((n, C), xp.int64)
        arguments = sums, V, C, number, some, n, table, other
        grid = (self.blocks(V, THREADS),)
        self.launch("leaf_rows", "distinct_rows", grid, arguments)
        if int(other[0]):
            return distinct_sorted(self.asnumpy(sums))
        return self.asnumpy(table), self.asnumpy(number)

    level_kinds = ("numeric",)

    def level(self, training: Training, slots: Frontier) -> Splits:
        """In one round: features that do not vary are found without histograms."""
        best, S, k = self.no_splits(slots), slots.n_slots, training.rules.n_tried
        if not S:
            return best
        size = max(1, min(S, self.memory_budget // slot_bytes(training)))
        shape = (size, k, training.n_codes, training.hist_channels)
        hist = self.empty(shape, cell_type(self.xp, training))
        for s in range(0, S, size):
            chunk = slice(s, min(s + size, S))
            part = hist[: chunk.stop - s, ...]
            features = self.fill(training, slots, chunk, part)
            self.cut(training, slots.part(chunk), part, features, None, best.part(chunk))
        return best

    def fill(self, training: Training, slots: Frontier, chunk: slice, hist: Array) -> Array:
        """Add the rows of some slots to `hist`, and return the first k features of each slot's
        order that vary in it, i32[S, k], then -1."""
        (all_tiles, n_tiles), some = self.slot_tiles(slots), slots.part(chunk)
        tiles = Tiles(all_tiles.first[chunk.start : chunk.stop + 1], all_tiles.size, some.n_slots)
        (S, k), F = hist.shape[:2], training.n_features
        varies, features = (self.empty((S, n), self.xp.int32) for n in (F, k))
        codes = codes_of(training)
        macros, grid = self.level_macros(training), (self.blocks(S * F, THREADS),)
        arguments: tuple[Any, ...] = codes, some, S, varies
        self.launch("level", "compare_samples", grid, arguments, macros=macros)
        arguments, grid = (codes, some, tiles, k, varies), (self.blocks(n_tiles),)
        self.launch("level", "compare_rows", grid, arguments, macros=macros)
        always = int(self.histogram_group(training, k)[0] == 0)
        hists = histograms_of(training, hist)
        arguments = hists, some, F, varies, tiles, always, features
        self.launch("level", "draw_features", (self.blocks(S),), arguments, macros=macros)
        self.add_rows(training, some, features, tiles, n_tiles, hist)
        return features

    def level_macros(self, training: Training) -> dict[str, str]:
        labels = str(int(training.target.coding.is_classes))
        return self.macros(training.matrix, LABELS=labels)

    def project(
        self, training: Training, slots: Frontier, features: Array, weights: Array
    ) -> tuple[Array, Array, Array]:
        xp, c, (S, k, L), matrix = self.xp, training.combining, features.shape, training.matrix
        features, weights = (
            xp.ascontiguousarray(xp.astype(a, xp.int32)) for a in (features, weights)
        )
        own = structs.Combined(features, weights, c.coordinates, k, L, c.n_bins)
        tiles, n_tiles = self.slot_tiles(slots)
        rows: tuple[Any, ...] = codes_of(training), slots, tiles, own
        least, greatest = (xp.full((S, k), end, dtype=xp.int32) for end in (2**31 - 1, -(2**31)))
        grid, macros = (self.blocks(n_tiles), min(k, 65535)), self.macros(matrix)
        self.launch("project", "ends", grid, (*rows, least, greatest), macros=macros)
        some = (greatest >= least) & (features[:, :, min(1, L - 1)] >= 0)
        if L == 1:
            some = xp.zeros_like(some)
        low = xp.where(some, xp.astype(least, xp.int64), 0)
        spread = xp.where(some, xp.astype(greatest, xp.int64) - low, 0)
        shift = xp.zeros_like(low)
        for bits in range(MOST_SHIFT):
            shift = shift + xp.astype(spread >> bits >= c.n_bins, xp.int64)
        count = slots.n_stored
        first = xp.cumulative_sum(count) - count
        codes = self.empty((int(xp.sum(count)), k), matrix.codes.dtype)
        self.launch("project", "columns", grid, (*rows, first, low, shift, codes), macros=macros)
        return codes, low, shift

    def drawn_from(self, training: Training) -> Combining:
        """What the deep phase draws combinations from."""
        if not training.kind.combines:
            return Combining(None, None, None, None, 0, 0, 0, 0)
        c = training.combining
        arrays = c.coordinates, c.chances, c.numeric, c.position
        return Combining(
            *arrays, int(c.chances.shape[0]), int(c.numeric.shape[0]), c.heaviest, c.n_bins
        )
