"""O(nodes) work of levels on a CUDA device, in a few launches: see kernels/slots."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.backends.cuda_kernels import CudaKernels
from gpuforest.backends.cuda_targets import own_targets, target_macros
from gpuforest.compiler.types import new_arrays
from gpuforest.engine.assembly import distinct_sorted
from gpuforest.engine.frontier import PER_SLOT, Frontier, Rules, Splits
from gpuforest.engine.slots import Sorted
from gpuforest.kernels.shared import structs
from gpuforest.kernels.shared.constants import LEAST_TILE, MOST_TILE, THREADS
from gpuforest.kernels.shared.structs import Tiles

if TYPE_CHECKING:
    from gpuforest.engine.training import Training

Array = Any

NO_SIGNS = np.zeros(0, np.int8)
TILE_SIZES = MOST_TILE // LEAST_TILE  # tiles have a multiple of LEAST_TILE rows


class CudaNodes(CudaKernels):
    """The same results as slots.py and assembly.py, computed by CUDA kernels."""

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

    def sort_out(self, slots: Frontier, rules: Rules, deep_rows: int) -> Sorted:
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
        wide_slots, first = self.empty(n_wide, xp.int64), self.empty(n_wide + 1, xp.int64)
        arguments = slots, kinds, C, tile, wide, deep, wide_slots, first
        grid = n_spans, 1 + -(-min(span, S) // THREADS)
        self.launch("slots", "take_slots", grid, arguments)
        self.known_tiles[wide] = Tiles(first, tile, n_wide), rows_wide // tile + n_wide
        return Sorted(kind, wide_slots, wide, deep)

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
