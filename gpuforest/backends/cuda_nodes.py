"""O(nodes) work on a CUDA device, in a few launches: see kernels/slots and kernels/leaf_rows."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from gpuforest.backends.cuda_kernels import CudaKernels
from gpuforest.common.dtypes import MAX_ROWS
from gpuforest.frontier import PER_SLOT, Frontier, Rules, Splits
from gpuforest.kernels.shared import structs
from gpuforest.kernels.shared.constants import THREADS
from gpuforest.levels import Level
from gpuforest.slots import Sorted

if TYPE_CHECKING:
    from gpuforest.training import Training

Array = Any


def fields_of(slots: Frontier) -> structs.Fields:
    return structs.Fields(*(getattr(slots, name) for name in structs.Fields._fields))


class CudaNodes(CudaKernels):
    """The results of slots.py, levels.py and leaf_rows.py, by other means."""

    def sort_out(self, slots: Frontier, rules: Rules, deep_rows: int) -> Sorted:
        S, xp = slots.n_slots, self.xp
        # few forests have bounds, multiway splits or a least weight
        if not S or slots.per_slot != PER_SLOT or rules.min_weight_leaf > 1:
            return super().sort_out(slots, rules, deep_rows)
        span, n_blocks = self.spans(S)
        kind, rank, order = self.empty(S, xp.int8), self.empty(S, xp.int64), self.empty(S, xp.int64)
        counts, totals = self.empty(4 * n_blocks, xp.int64), self.empty(4, xp.int64)
        fewest = min(max(rules.min_rows_split, 2 * rules.min_rows_leaf), MAX_ROWS + 1)
        ends = structs.Ends(fewest, min(rules.max_depth, MAX_ROWS), deep_rows)
        fields, C = fields_of(slots), slots.sums.shape[1]
        arguments: tuple[Any, ...] = fields, S, ends, span, kind, counts
        self.launch("slots", "count_kinds", (n_blocks,), arguments)
        arguments = kind, S, span, counts, n_blocks, rank, order, totals
        self.launch("slots", "number_kinds", (n_blocks,), arguments)
        n_wide, n_deep, rows_wide, rows_deep = self.asnumpy(totals).tolist()
        wide, deep = self.new_slots(slots, n_wide), self.new_slots(slots, n_deep)
        wide_slots = self.empty(n_wide, xp.int64)
        arguments = fields, S, C, order, n_wide, n_deep, wide, deep, wide_slots
        grid = (self.blocks(n_wide + n_deep, THREADS),)
        self.launch("slots", "take_slots", grid, arguments)
        return Sorted(
            kind,
            rank,
            wide_slots,
            replace(slots, **wide._asdict(), n_held=rows_wide),
            replace(slots, **deep._asdict(), n_held=rows_deep),
        )

    def new_slots(self, like: Frontier, n: int) -> structs.Fields:
        """Uninitialised fields of n slots."""
        own = fields_of(like)
        return structs.Fields(*(self.empty((n, *a.shape[1:]), a.dtype) for a in own))

    def children(
        self,
        training: Training,
        wide: Frontier,
        splits: Splits,
        rows: Array,
        weights: Array,
        n_left: Array,
    ) -> Frontier:
        W, C, xp = wide.n_slots, training.n_channels, self.xp
        below = self.new_slots(wide, 2 * W)
        mean = until = None
        if not training.target.coding.is_classes:
            mean, until = self.empty((2 * W, C - 1), xp.int64), self.empty(2 * W, xp.int64)
        arguments = (
            fields_of(wide), W, C, splits.feature, splits.left, n_left, rows.shape[0] // 2, below,
            mean, until,
        )  # fmt: skip
        self.launch("slots", "children", (self.blocks(2 * W, THREADS),), arguments)
        constant = below.constant
        if mean is not None and W:
            differ = self.differs(training, rows, below.begin, until, mean)
            constant = constant & ~differ
        own = below._replace(constant=constant)._asdict()
        held = {"rows": rows, "weights": weights, "n_held": wide.n_held}
        return Frontier(**own, **held, allowed=wide.allowed)

    def positions(self, levels: list[Level], blocks: Array) -> tuple[Array, Array, Array]:
        ends = list(accumulate(int(level.kind.shape[0]) for level in levels))
        size, position, below = (self.empty(ends[-1], self.xp.int64) for _ in range(3))
        last, under = blocks.shape[0], size[:0]
        for level, end in zip(reversed(levels), reversed(ends), strict=True):
            S, first = level.kind.shape[0], last - level.n_deep
            own, grid = size[end - S : end], (self.blocks(S, THREADS),)
            arguments: tuple[Any, ...] = level.kind, level.rank, S, blocks[first:last], under, own
            self.launch("slots", "subtree_sizes", grid, arguments)
            last, under = first, own
        roots = levels[0].kind.shape[0]
        position[:roots], below[:roots] = 0, 1
        for i, level in enumerate(levels[:-1]):
            begin = ends[i - 1] if i else 0
            W, inside = level.wide.shape[0], slice(ends[i], ends[i + 1])
            arguments = level.wide, W, below[begin : ends[i]], size[inside], position[inside]
            arguments += (below[inside],)
            grid = (self.blocks(2 * W, THREADS),)
            self.launch("slots", "node_positions", grid, arguments)
        return size[:roots], position, below

    def row_keys(self, sums: Array) -> Array:
        V, C = sums.shape
        keys = self.empty(V, self.xp.uint64)
        self.launch("leaf_rows", "row_keys", (self.blocks(V, THREADS),), (sums, V, C, keys))
        return keys

    def rows_are(self, table: Array, number: Array, sums: Array) -> bool:
        (V, C), found = sums.shape, self.zeros(1, self.xp.int32)
        arguments = table, number, sums, V, C, found
        self.launch("leaf_rows", "rows_differ", (self.blocks(V, THREADS),), arguments)
        return not int(found[0])
