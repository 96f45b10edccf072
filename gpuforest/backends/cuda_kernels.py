"""The launches of the protocol's kernels on a CUDA device."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import array_api_compat.numpy as host
import numpy as np

from gpuforest.backends.cuda_histograms import (
    cell_type,
    histogram_group,
    histograms_of,
)
from gpuforest.backends.cuda_launches import CudaLaunches
from gpuforest.backends.cuda_targets import own_targets, target_macros, targets_of
from gpuforest.compiler.types import new_arrays
from gpuforest.engine.criteria import xlogx
from gpuforest.engine.frontier import Frontier, Rules, Splits
from gpuforest.kernels.shared import structs
from gpuforest.kernels.shared.constants import (
    CUT_SUMS,
    GROUP_CHANNELS,
    HISTOGRAM_THREADS,
    SPLIT_THREADS,
    THREADS,
    XLOGX_TABLE_SIZE,
)
from gpuforest.kernels.shared.structs import Tiles

if TYPE_CHECKING:
    from gpuforest.engine.binning import BinEdges, BinnedMatrix
    from gpuforest.engine.training import Training

Array = Any

BAG_TILE = 4096  # rows that a block of in_bag takes


def padded(size: int) -> int:
    """Bytes of a row of codes in memory: whole sectors of 32 bytes, or 1/2, 1/4, ... of one."""
    return -(-size // 32) * 32 if size > 16 else max(4, 1 << (size - 1).bit_length())


def codes_for(edges: BinEdges, codes: Array) -> structs.Codes:
    return structs.Codes(codes, edges.n_features, edges.n_codes, codes.shape[1], None)


def codes_of(training: Training) -> structs.Codes:
    matrix = training.matrix
    return codes_for(matrix.edges, matrix.codes)._replace(n_bins=matrix.n_bins)


class CudaKernels(CudaLaunches):
    """The kernels, in the order of the protocol."""

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
