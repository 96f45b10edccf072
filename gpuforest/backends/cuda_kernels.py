"""The kernels of the protocol on a CUDA device: their launches, for any namespace of arrays."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import array_api_compat.numpy as host
import numpy as np

from gpuforest.backends.base import Backend
from gpuforest.criteria import xlogx
from gpuforest.frontier import Frontier, Rules, Splits

if TYPE_CHECKING:
    from gpuforest.binning import BinEdges, BinnedMatrix
    from gpuforest.forest import Forest
    from gpuforest.target import Target

Array = Any

THREADS = 256  # of most kernels' blocks
SPLIT_THREADS = 128  # of best_split's: its warps work alone
RESERVED = 1536  # bytes of a block's shared memory for CUDA (1 KiB) and for static arrays
MOST_BLOCKS = 2**16  # kernels go on in strides
BAG_TILE = 4096  # rows that a block of in_bag takes
LEAST_TILE, MOST_TILE = 1024, 16_384  # and of the kernels over slots
MOST_FEATURES = 64  # of a histogram's group, as in its kernel
XLOGX_PLACES = 4096  # as in the kernels

# copies of forests on devices, by the device's number
_forests: WeakKeyDictionary[Forest, dict[int, tuple[Array, ...]]] = WeakKeyDictionary()


def padded(size: int) -> int:
    """Bytes of a row of codes in memory: whole sectors of 32, or a share of one."""
    return -(-size // 32) * 32 if size > 16 else max(4, 1 << (size - 1).bit_length())


def traverse_macros(forest: Forest, codes: Array) -> dict[str, str]:
    return {"CODE": "u8" if codes.itemsize == 1 else "u16", "SETS": str(int(len(forest.sets) > 0))}


class CudaKernels(Backend):
    """Kernels on a device, which a subclass gives access to."""

    # doors to the device, for subclasses

    shared_limit: int  # bytes of dynamic shared memory that a block may ask for beside others
    n_processors: int
    device_number: int

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._nothing: dict[Any, Array] = {}

    @abstractmethod
    def kernel(self, operation: str, name: str, macros: dict[str, str], shared: int) -> Any:
        """A compiled kernel, to be called with grid, block, arguments and shared memory."""

    @abstractmethod
    def free_bytes(self) -> int:
        """Device memory that is free, or in pools that can be used again."""

    def launch(
        self,
        operation: str,
        name: str,
        grid: tuple[int, ...],
        arguments: tuple[Any, ...],
        *,
        macros: dict[str, str] | None = None,
        threads: int = THREADS,
        shared: int = 0,
    ) -> None:
        """Run a kernel; Python numbers become 64-bit ones."""
        if 0 in grid:
            return
        types: dict[type, Any] = {int: np.int64, bool: np.int64, float: np.float64}
        values = tuple(types.get(type(a), lambda a: a)(a) for a in arguments)
        kernel = self.kernel(operation, name, macros or {}, shared)
        kernel(grid, (threads,), values, shared_mem=shared)

    def blocks(self, items: int, each: int = 1) -> int:
        """A grid for so many items, `each` a block."""
        return min(-(-items // each), MOST_BLOCKS)

    def shared_share(self, n: int) -> int:
        """Dynamic shared memory of a block, so that n of them fit a processor."""
        return (self.shared_limit + RESERVED) // n - RESERVED

    def zeros(self, shape: Any, dtype: Any) -> Array:
        return self.xp.zeros(shape, dtype=dtype, device=self.device)

    def empty(self, shape: Any, dtype: Any) -> Array:
        return self.xp.empty(shape, dtype=dtype, device=self.device)

    # kernels, in the order of the protocol

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
        weighted = cumulative is not None
        shares = cumulative if weighted else self.zeros(1, self.xp.int64)
        self.launch("bag", "bag", grid, (keys, n_rows, n_draws, shares, weighted, T, weights))
        return weights

    def in_bag(self, bags: Array) -> tuple[Array, Array, Array]:
        xp, (T, N) = self.xp, bags.shape
        bags = xp.ascontiguousarray(bags)  # without draws, one row stands for all trees
        tiles = -(-N // BAG_TILE)
        counts, grid = self.empty(T * tiles, xp.int64), (self.blocks(T * tiles),)
        self.launch("bag", "count_in_bag", grid, (bags, N, T, BAG_TILE, tiles, counts))
        first = xp.cumulative_sum(counts, include_initial=True)
        R = int(first[-1])
        rows, weights = self.empty(R, xp.int32), self.empty(R, xp.int32)
        arguments = (bags, N, T, BAG_TILE, tiles, first, rows, weights)
        self.launch("bag", "in_bag", grid, arguments)
        return rows, weights, xp.asarray(first[::tiles], copy=True)

    def tiles_of(self, n_rows: Array, n_held: int) -> tuple[int, int, Array]:
        """Rows of a tile, a bound of the number of tiles, and the first tile of each slot.

        i64[S + 1]. The slots hold at most `n_held` rows; how many exactly, the host does
        not know.
        """
        xp = self.xp
        tile = n_held // (8 * self.n_processors)
        tile = max(LEAST_TILE, min(MOST_TILE, tile // LEAST_TILE * LEAST_TILE))
        tiles = (n_rows + (tile - 1)) // tile
        return (
            tile,
            n_held // tile + n_rows.shape[0],
            xp.cumulative_sum(tiles, include_initial=True),
        )

    def totals(
        self, target: Target, rows: Array, weights: Array, begin: Array, end: Array
    ) -> tuple[Array, Array]:
        return self._totals(target, rows, weights, begin, end, True)

    def constant(
        self, target: Target, rows: Array, weights: Array, begin: Array, end: Array
    ) -> Array:
        return self._totals(target, rows, weights, begin, end, False)[1]

    def _totals(
        self,
        target: Target,
        rows: Array,
        weights: Array,
        begin: Array,
        end: Array,
        with_sums: bool,
    ) -> tuple[Array, Array]:
        xp, S, C = self.xp, begin.shape[0], target.coding.n_channels
        sums, differs = self.zeros((S, C), xp.int64), self.zeros(S, xp.int32)
        tile, n_tiles, first = self.tiles_of(end - begin, rows.shape[0])
        grid = (self.blocks(n_tiles) if S else 0, -(-C // 8) if with_sums else 1)
        arguments = (
            target.y, rows, weights, begin, end, C, first, S, tile, with_sums, sums, differs,
        )  # fmt: skip
        macros = {"LABELS": str(int(target.coding.is_classes))}
        self.launch("totals", "totals", grid, arguments, macros=macros)
        return sums, differs == 0

    def histogram(
        self,
        matrix: BinnedMatrix,
        target: Target,
        frontier: Frontier,
        features: Array,
        rules: Rules,
    ) -> Array:
        features = self.xp.ascontiguousarray(features)
        channels = target.coding.n_channels + rules.count_rows
        hist = self.zeros((*features.shape, matrix.edges.n_codes, channels), self.xp.int64)
        tiles = self.tiles_of(frontier.n_rows, frontier.n_held)
        self.add_rows(matrix, target, frontier, features, rules, tiles, hist)
        return hist

    def add_rows(
        self,
        matrix: BinnedMatrix,
        target: Target,
        frontier: Frontier,
        features: Array,
        rules: Rules,
        tiles: tuple[int, int, Array],
        hist: Array,
    ) -> None:
        """Add the slots' rows to `hist`, whose used parts hold zeros."""
        f, coding = frontier, target.coding
        (S, k), B, C = features.shape, matrix.edges.n_codes, coding.n_channels
        cells = (C if coding.is_classes else 2 * C - 1) + rules.count_rows
        # two blocks of a processor at once, where that leaves room for one feature
        share = self.shared_share(2)
        share = share if 4 * B * cells <= share else self.shared_limit
        group = min(k, MOST_FEATURES, share // (4 * B * cells))
        group = -(-k // -(-k // group)) if group else 0  # groups of about one size
        tile, n_tiles, first = tiles
        arguments = (
            matrix.codes, target.y, f.rows, f.weights, f.begin, f.end, features, B, C,
            rules.count_rows, matrix.codes.shape[1], k, first, S, tile, group, hist,
        )  # fmt: skip
        grid = (self.blocks(n_tiles) if S else 0, min(-(-k // group) if group else k, 65535))
        self.launch(
            "histogram", "histogram", grid, arguments,
            macros=self.macros(matrix, LABELS=str(int(coding.is_classes))),
            shared=4 * group * B * cells,
        )  # fmt: skip

    def best_split(
        self,
        matrix: BinnedMatrix,
        hist: Array,
        features: Array,
        need: Array,
        frontier: Frontier,
        rules: Rules,
    ) -> Splits:
        best = self.no_splits(frontier)
        need = self.xp.asarray(need, copy=True)
        # multiway splits ask for one feature's part
        hist, features = (self.xp.ascontiguousarray(a) for a in (hist, features))
        self.improve(matrix, hist, features, need, frontier, rules, best)
        return best

    def no_splits(self, frontier: Frontier) -> Splits:
        xp, S = self.xp, frontier.n_slots
        return Splits(
            xp.full((S,), -xp.inf, dtype=xp.float64, device=self.device),
            xp.full((S,), -1, dtype=xp.int32, device=self.device),
            self.zeros(S, xp.int32),
            self.zeros(S, xp.bool),
            xp.zeros_like(frontier.sums),
            self.zeros(S, xp.int64),
            self.empty((S, 0), xp.uint64),
        )

    def improve(
        self,
        matrix: BinnedMatrix,
        hist: Array,
        features: Array,
        need: Array,
        frontier: Frontier,
        rules: Rules,
        best: Splits,
    ) -> None:
        """Better splits from these features to `best`; `need` counts down."""
        xp, (S, k, B, channels) = self.xp, hist.shape
        C = frontier.sums.shape[1]
        score, found = self.empty((S, k), xp.float64), self.empty((S, k), xp.int32)
        warps = max(1, min(SPLIT_THREADS // 32, self.shared_limit // (16 * C)))
        special = rules.random or not rules.deep
        macros = {"CRITERION": str(rules.criterion), "SPECIAL": str(int(special))}
        has_signs, bounds = frontier.bounds is not None, frontier.bounds
        signs = self.asarray(rules.signs) if has_signs else self.nothing(xp.int8)
        arguments: tuple[Any, ...] = (
            hist, features, frontier.sums, frontier.n_rows, matrix.n_bins, rules.min_rows_leaf,
            rules.min_weight_leaf, rules.random, frontier.key, has_signs, signs,
            bounds if has_signs else self.nothing(xp.float64), B, C, channels, k, S, self.table(),
            score, found,
        )  # fmt: skip
        self.launch(
            "best_split", "best_cut", (self.blocks(S * k, warps),), arguments,
            macros=macros, threads=32 * warps, shared=16 * C * warps,
        )  # fmt: skip
        b = best
        arguments = (
            hist, features, score, found, B, C, channels, k, S, need,
            b.score, b.feature, b.bin, b.missing_left, b.left, b.tried,
        )  # fmt: skip
        self.launch(
            "best_split", "best_split", (self.blocks(S, SPLIT_THREADS // 32),), arguments,
            macros=macros, threads=SPLIT_THREADS,
        )  # fmt: skip

    def partition(
        self,
        matrix: BinnedMatrix,
        frontier: Frontier,
        feature: Array,
        bin: Array,
        missing_left: Array,
        sets: Array,
    ) -> tuple[Array, Array, Array]:
        xp, f, S = self.xp, frontier, frontier.n_slots
        n_rows = xp.where(feature >= 0, f.n_rows, 0)
        tile, n_tiles, first = self.tiles_of(n_rows, f.n_held)
        n_left, grid = self.zeros(S, xp.int64), (self.blocks(n_tiles) if S else 0,)
        goes_left = self.empty(n_tiles * tile // 32, xp.uint32)
        counts = self.zeros(n_tiles, xp.int64)
        macros = self.macros(matrix, SETS=str(int(sets.shape[1] > 0)))
        arguments: tuple[Any, ...] = (
            matrix.codes, f.rows, f.begin, f.end, feature, bin, missing_left,
            matrix.edges.missing_code, sets, sets.shape[1], matrix.codes.shape[1], first, S, tile,
            goes_left, counts,
        )  # fmt: skip
        self.launch("partition", "mark", grid, arguments, macros=macros)
        before = xp.cumulative_sum(counts, include_initial=True)
        arguments = (
            f.rows, f.weights, f.rows.shape[0] // 2, f.begin, f.end, first, S, tile, goes_left,
            before, n_left,
        )  # fmt: skip
        self.launch("partition", "move", grid, arguments, macros=macros)
        return f.rows, f.weights, n_left

    def apply(self, forest: Forest, codes: Array) -> Array:
        (N, stride), T = codes.shape, forest.n_trees
        nodes, offsets, _, set_at, sets = self.forest_here(forest)
        out = self.empty((N, T), self.xp.int64)
        missing = forest.edges.missing_code
        arguments = (nodes, offsets, codes, missing, set_at, sets, N, stride, T, out)
        macros = traverse_macros(forest, codes)
        self.launch("traverse", "apply", (self.blocks(N, 32),), arguments, macros=macros)
        return out

    def accumulate(
        self,
        forest: Forest,
        codes: Array,
        first: int,
        last: int,
        skip: Array | None,
        total: Array,
    ) -> Array:
        N, stride = codes.shape
        nodes, offsets, values, set_at, sets = self.forest_here(forest)
        left_out = self.zeros(1, self.xp.bool) if skip is None else skip
        arguments = (
            nodes, offsets[first : last + 1], values, codes, forest.edges.missing_code, set_at,
            sets, left_out, skip is not None, N, stride, last - first, values.shape[1], total,
        )  # fmt: skip
        macros = traverse_macros(forest, codes)
        self.launch("traverse", "accumulate", (self.blocks(N, 32),), arguments, macros=macros)
        return total

    def forest_here(self, forest: Forest) -> tuple[Array, ...]:
        """Nodes, offsets, values, where nodes' sets begin and the sets on the device; copied once
        while the forest lives."""
        copies = _forests.setdefault(forest, {})
        if self.device_number not in copies:
            f = forest
            copies[self.device_number] = tuple(
                self.asarray(a) for a in (f.nodes, f.tree_offsets, f.values, f.set_at, f.sets)
            )
        return copies[self.device_number]

    def macros(self, matrix: BinnedMatrix, **more: str) -> dict[str, str]:
        return {"CODE": "u8" if matrix.codes.itemsize == 1 else "u16", **more}

    def table(self) -> Array:
        """n ln n of small n, for entropy's kernels."""
        if self._table is None:
            self._table = self.asarray(xlogx(host, np.arange(XLOGX_PLACES, dtype=np.int64)))
        return self._table

    _table: Array | None = None

    def nothing(self, dtype: Any) -> Array:
        """In place of an array that a kernel will not look at."""
        if dtype not in self._nothing:
            self._nothing[dtype] = self.zeros(1, dtype)
        return self._nothing[dtype]
