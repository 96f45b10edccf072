"""How trees grow level by level on a CUDA device: see kernels/level and kernels/slots."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import array_api_compat.numpy as host
import numpy as np

from gpuforest.backends.base import Array, Moved
from gpuforest.backends.cuda import launch
from gpuforest.backends.cuda.launch import CudaLaunches, codes_of, histograms_of, macros_of
from gpuforest.backends.slots import all_equal
from gpuforest.compiler.types import new_arrays
from gpuforest.core.bins import BinEdges
from gpuforest.core.criteria import xlogx
from gpuforest.core.frontier import Frontier, Splits
from gpuforest.core.rules import Rules
from gpuforest.core.training import Training
from gpuforest.kernels.shared import constants, structs
from gpuforest.kernels.shared.structs import Histograms, Kept, Tiles

MOST_SHIFT = 24  # sums have fewer bits
MOST_KEPT = 8  # features whose codes fit a word of 64 bits
NOT_KEPT = Kept(None, None, 0, 0)


class CudaLevels(CudaLaunches):
    """The kernels of the wide phase, and the O(nodes) work between them, in few launches."""

    # Whether histograms of classes keep the codes that they read for the partition, which then
    # reads no row of codes. No device has timed it yet: `benchmarks.gpu --plan turns` does
    keeps_codes = False

    def encode(self, X: Array, edges: BinEdges) -> Array:
        xp, (N, F) = self.xp, X.shape
        X = self.asarray(X)
        size = np.dtype(edges.code_dtype).itemsize
        codes = self.empty((N, launch.padded(F * size) // size), edges.code_dtype)
        macros = macros_of(codes, VALUE="float" if X.dtype == xp.float32 else "double")
        values = edges.values if len(edges.values) else np.zeros(1)
        table = self.asarray(values), self.asarray(edges.offsets), edges.missing_code
        arguments = X, *table, N, F, codes.shape[1], codes
        self.launch_each("encode", "encode", N * F, *arguments, macros=macros)
        return codes

    def sums(
        self, training: Training, rows: Array, weights: Array, begin: Array, end: Array
    ) -> Array:
        """Channel sums i64[S, C] of the rows of slots."""
        S, C = begin.shape[0], training.n_channels
        sums = self.zeros((S, C), self.xp.int64)
        tiles, n_tiles = self.tiles_of(begin, end, rows.shape[0])
        grid = (self.blocks(n_tiles) if S else 0, -(-C // constants.GROUP_CHANNELS))
        slots = Frontier.of_rows(rows, weights, begin, end)
        # the rows of a tree are in order, so the array in order is read fastest
        y = launch.own_targets(training, training.target.y)
        macros = launch.target_macros(training, y)
        self.launch("totals", "totals", grid, y, slots, tiles, sums, macros=macros)
        return sums

    def totals(
        self, training: Training, rows: Array, weights: Array, begin: Array, end: Array,
        sums: Array | None = None,
    ) -> tuple[Array, Array]:  # fmt: skip
        if sums is None:
            sums = self.sums(training, rows, weights, begin, end)

        def differs(end: Array, mean: Array) -> Array:
            constant = launch.flags(self, mean.shape[0])
            constant[...] = True
            tiles, n_tiles = self.tiles_of(begin, end, rows.shape[0])
            slots = Frontier.of_rows(rows, None, begin, end)
            y = launch.own_targets(training, training.target.y)
            compare = self.xp.ones_like(constant)
            arguments = y, slots, tiles, None, 0, mean, compare, constant
            macros = launch.target_macros(training, y)
            self.launch("totals", "differing", n_tiles, *arguments, macros=macros)
            return ~constant

        return sums, all_equal(self.xp, training, sums, begin, end, differs)

    def histogram(self, training: Training, slots: Frontier, features: Array) -> Array:
        features = self.xp.ascontiguousarray(features)
        shape = (*features.shape, training.n_codes, training.hist_channels)
        hist = self.zeros(shape, launch.cell_type(self.xp, training))
        tiles, n_tiles = self.slot_tiles(slots)
        self.add_rows(training, slots, features, tiles, n_tiles, histograms_of(training, hist))
        return self.xp.astype(hist, self.xp.int64, copy=False)

    def add_rows(
        self, training: Training, slots: Frontier, features: Array, tiles: Tiles, n_tiles: int,
        hists: Histograms, kept: Kept = NOT_KEPT,
    ) -> None:  # fmt: skip
        """Add the slots' rows to `hists`, which hold zeros; a slot of one tile needs none if a
        block's memory holds a histogram (see `histogram_group`)."""
        S, k = features.shape
        group, words, size = self.histogram_group(training, k)
        y = launch.targets_of(self.xp, training)
        rows = codes_of(training), y, slots, tiles, features
        macros = macros_of(
            training.matrix.codes, **launch.target_macros(training, y), KEPT=kept.k > 0
        )
        blocks = self.blocks(n_tiles) if S else 0
        if not group:
            grid = blocks, min(k, 65535)
            self.launch("histogram", "histogram_direct", grid, *rows, hists, macros=macros)
            return
        shared = group * size
        # many threads hide each other's waiting: of few large blocks, or of more small ones
        few = shared > self.shared_share(4)
        threads = constants.HISTOGRAM_THREADS if few else constants.THREADS
        self.launch(
            "histogram", "histogram", (blocks, min(-(-k // group), 65535)), *rows, group, words,
            hists, kept, macros=macros, threads=threads, shared=shared,
        )  # fmt: skip

    def histogram_group(self, training: Training, k: int) -> tuple[int, int, int]:
        return launch.histogram_group(training, k, self.shared_share(2), self.shared_limit)

    def best_split(
        self, training: Training, slots: Frontier, hist: Array, features: Array, need: Array
    ) -> Splits:
        best = self.no_splits(slots)
        hist = self.xp.astype(hist, launch.cell_type(self.xp, training), copy=False)
        hist, features, need = (self.xp.ascontiguousarray(a) for a in (hist, features, need))
        self.cut(training, slots, histograms_of(training, hist), features, need, best)
        return best

    def no_splits(self, frontier: Frontier) -> Splits:
        """Splits that are not yet known."""
        S, C = frontier.sums.shape
        return Splits(**new_arrays(Splits, self.empty, S=S, C=C, W=0))

    def cut(
        self, training: Training, slots: Frontier, hists: Histograms, features: Array,
        need: Array | None, best: Splits,
    ) -> None:  # fmt: skip
        """Write the best splits by these features to `best`; `need` None: by all that vary."""
        xp, S, k, rules, C = self.xp, hists.S, hists.k, training.rules, training.n_channels
        score, cut_bin = self.empty((S, k), xp.float64), self.empty((S, k), xp.int32)
        scratch = 8 * constants.CUT_SUMS * C
        warps = max(1, min(constants.SPLIT_THREADS // 32, self.shared_limit // scratch))
        special = rules.random or rules.limited
        macros = macros_of(CRITERION=rules.criterion.number, SPECIAL=special)
        rest = training.matrix.n_bins, self.table
        self.launch(
            "best_split", "best_cut", self.blocks(S * k, warps), hists, features, slots,
            self.rules_of(training), *rest, score, cut_bin,
            macros=macros, threads=32 * warps, shared=scratch * warps,
        )  # fmt: skip
        self.launch(
            "best_split", "best_split", self.blocks(S, constants.SPLIT_THREADS // 32), hists,
            features, score, cut_bin, need, best, macros=macros, threads=constants.SPLIT_THREADS,
        )  # fmt: skip

    def partition(self, training: Training, slots: Frontier, splits: Splits) -> Moved:
        xp, f, S, matrix = self.xp, slots, slots.n_slots, training.matrix
        tiles, n_tiles = self.ordered_tiles(training, f)
        n_left, n_blocks = self.empty(S, xp.int64), self.blocks(n_tiles) if S else 0
        half = f.rows.shape[0] // 2
        goes_left = self.empty(half // 32 + S + 1, xp.uint32)
        counts = self.empty(n_tiles, xp.int64)
        tiled, words = (f, tiles, splits), splits.sets.shape[1]
        kept, marks = self.known_kept.get(f, NOT_KEPT), (half, goes_left, counts)
        macros = macros_of(matrix.codes, SETS=words > 0, KEPT=kept.k > 0)
        arguments = codes_of(training), *tiled, words, *marks, n_left, kept
        self.launch("partition", "mark", n_blocks, *arguments, macros=macros)
        moved = f.rows, f.weights, n_left
        self.launch("partition", "move", n_blocks, *tiled, *marks, *moved, macros=macros)
        return moved

    @cached_property
    def table(self) -> Array:
        """n ln n of small n, for entropy's kernels."""
        return self.asarray(xlogx(host, np.arange(constants.XLOGX_TABLE_SIZE, dtype=np.int64)))

    def rules_of(self, training: Training) -> Rules:
        """The rules, whose signs are on the device."""
        rules = training.rules
        return replace(rules, signs=self.asarray(rules.signs)) if len(rules.signs) else rules

    def level(self, training: Training, slots: Frontier) -> Splits | None:
        """In one round: features that do not vary are found without histograms."""
        if training.n_words:
            return None
        best, S, k = self.no_splits(slots), slots.n_slots, training.rules.n_tried
        if not S:
            return best
        size = max(1, min(S, self.memory_budget // launch.slot_bytes(training)))
        shape = (size, k, training.n_codes, training.hist_channels)
        hist = self.empty(shape, launch.cell_type(self.xp, training))
        tried = self.empty((S, k), self.xp.int32)
        kept = self.kept_of(training, slots, tried)
        for s in range(0, S, size):
            chunk = slice(s, min(s + size, S))
            part, hists = slots.part(chunk), histograms_of(training, hist[: chunk.stop - s, ...])
            features = tried[chunk, :]
            self.fill(training, slots, part, s, hists, features, kept)
            self.cut(training, part, hists, features, None, best.part(chunk))
        return best

    def fill(
        self, training: Training, slots: Frontier, part: Frontier, begin: int, hists: Histograms,
        features: Array, kept: Kept,
    ) -> None:  # fmt: skip
        """Add the rows of a part of the slots, from `begin` on, to `hists`, and write to `features`
        i32[S, k] the first k of each slot's order that vary in it, then -1."""
        tiles, n_tiles = self.ordered_tiles(training, slots)
        if part is not slots:
            first = tiles.first[begin : begin + part.n_slots + 1]
            tiles = Tiles(first, None, tiles.size, part.n_slots)
        S, k, F = hists.S, hists.k, training.n_features
        varies = self.empty((S, F), self.xp.int32)
        codes, macros = codes_of(training), self.level_macros(training)
        self.launch_each("level", "compare_samples", S * F, codes, part, S, varies, macros=macros)
        arguments: tuple[Any, ...] = codes, part, tiles, k, varies
        self.launch("level", "compare_rows", self.blocks(n_tiles), *arguments, macros=macros)
        always = int(self.histogram_group(training, k)[0] == 0)
        arguments = hists, part, F, varies, tiles, always, features
        self.launch("level", "draw_features", self.blocks(S), *arguments, macros=macros)
        self.add_rows(training, part, features, tiles, n_tiles, hists, kept)

    def kept_of(self, training: Training, slots: Frontier, tried: Array) -> Kept:
        """Room for codes of the features that slots try, where they may be kept."""
        k, is_classes = tried.shape[1], training.target.coding.is_classes
        fits = k <= min(MOST_KEPT, self.histogram_group(training, k)[0])
        if not (self.keeps_codes and fits and is_classes and training.matrix.codes.itemsize == 1):
            return NOT_KEPT
        half = slots.rows.shape[0] // 2
        kept = Kept(self.empty(half, self.xp.uint64), tried, k, half)
        self.known_kept[slots] = kept
        return kept

    def ordered_tiles(self, training: Training, slots: Frontier) -> tuple[Tiles, int]:
        """`slot_tiles`, by their first rows where the cache does not hold all codes."""
        tiles, n_tiles = self.slot_tiles(slots)
        if tiles.order is None and training.matrix.codes.nbytes > self.cache_bytes:
            rows = self.empty(n_tiles, self.xp.int32)
            arguments, macros = (slots, tiles, n_tiles, rows), self.level_macros(training)
            self.launch_each("level", "first_rows", n_tiles, *arguments, macros=macros)
            tiles = replace(tiles, order=self.xp.argsort(rows))
            self.known_tiles[slots] = tiles, n_tiles
        return tiles, n_tiles

    def level_macros(self, training: Training) -> dict[str, str]:
        return macros_of(training.matrix.codes, LABELS=training.target.coding.is_classes)

    def project(
        self, training: Training, slots: Frontier, features: Array, weights: Array
    ) -> tuple[Array, Array, Array]:
        xp, c, (S, k, L), matrix = self.xp, training.combining, features.shape, training.matrix
        features, weights = (
            xp.ascontiguousarray(xp.astype(a, xp.int32)) for a in (features, weights)
        )
        combined = structs.Combined(features, weights, c.coordinates, k, L, c.n_bins)
        tiles, n_tiles = self.slot_tiles(slots)
        rows: tuple[Any, ...] = codes_of(training), slots, tiles, combined
        least, greatest = (xp.full((S, k), end, dtype=xp.int32) for end in (2**31 - 1, -(2**31)))
        grid, macros = (self.blocks(n_tiles), min(k, 65535)), macros_of(matrix.codes)
        self.launch("project", "ends", grid, *rows, least, greatest, macros=macros)
        varies = (greatest >= least) & (features[:, :, min(1, L - 1)] >= 0)
        if L == 1:
            varies = xp.zeros_like(varies)
        low = xp.where(varies, xp.astype(least, xp.int64), 0)
        spread = xp.where(varies, xp.astype(greatest, xp.int64) - low, 0)
        shift = xp.zeros_like(low)
        for bits in range(MOST_SHIFT):
            shift = shift + xp.astype(spread >> bits >= c.n_bins, xp.int64)
        count = slots.local_rows
        first = xp.cumulative_sum(count) - count
        codes = self.empty((int(xp.sum(count)), k), matrix.codes.dtype)
        self.launch("project", "columns", grid, *rows, first, low, shift, codes, macros=macros)
        return codes, low, shift
