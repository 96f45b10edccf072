"""The search for the splits of a level on a CUDA device: see kernels/level.

If all features are tried, the histograms of a level are kept for the next one. Of two slots below
a split, rows are added to the histograms of the smaller one; those of the larger one are what is
left of the slot above. Sums are integers, so the result is the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from gpuforest.backends.cuda_histograms import (
    NOT_KEPT,
    cell_type,
    cells_of,
    histograms_of,
    slot_bytes,
)
from gpuforest.backends.cuda_kernels import codes_of
from gpuforest.backends.cuda_nodes import CudaNodes
from gpuforest.frontier import Frontier, Rules, Splits
from gpuforest.kernels.shared.constants import THREADS
from gpuforest.kernels.shared.structs import Above, Tiles
from gpuforest.slots import Sorted

if TYPE_CHECKING:
    from gpuforest.training import Training

Array = Any

# By arithmetic for an H100, to read a cell of two histograms from memory takes as long as to add
# three rows in shared memory; and large slots have histograms in the cache
ROWS_A_CELL = 2


class CudaLevels(CudaNodes):
    """The same splits as by `Backend.level`, in few launches."""

    _kept: WeakKeyDictionary[Frontier, Above] | None = None  # the histograms of a level's slots

    def level(self, training: Training, slots: Frontier) -> Splits:
        """As the default, in one round: features that do not vary are found without histograms.

        With categorical features it is the default, which puts their bins in order.
        """
        if training.n_words:
            return super().level(training, slots)
        best, S, k = self.no_splits(slots), slots.n_slots, training.rules.n_tried
        if not S:
            return best
        above = self.above(training, slots)  # before there is memory for others
        size = max(1, min(S, self.memory_budget // slot_bytes(training)))
        shape = (size, k, training.n_codes, training.hist_channels)
        hist = self.empty(shape, cell_type(self.xp, training))
        if above is not NOT_KEPT:
            features = self.fill_smaller(training, slots, above, hist)
            found = self.cut(training, slots, hist, features, None, best, above)
        else:
            for s in range(0, S, size):
                chunk = slice(s, min(s + size, S))
                own = hist[: chunk.stop - s, ...]
                features = self.fill(training, slots, chunk, own)
                some = slots.part(chunk)
                found = self.cut(training, some, own, features, None, best.part(chunk))
        if size == S and self.saves_time(training, slots):
            self._kept = WeakKeyDictionary() if self._kept is None else self._kept
            self._kept[slots] = NOT_KEPT._replace(
                cells=hist, features=features, found=found, n_rows=slots.n_rows
            )
        return best

    def saves_time(self, training: Training, slots: Frontier) -> bool:
        """Whether slots have all features of those above, and rows enough on average."""
        rules, least = training.rules, ROWS_A_CELL * cells_of(training)
        return rules.n_tried >= training.n_features and slots.n_held >= slots.n_slots * least

    def above(self, training: Training, slots: Frontier) -> Above:
        """The histograms that those of the slots are taken from, if both fit the budget."""
        if not slots.above:
            return NOT_KEPT
        above: Above = slots.above.pop()
        S, k, xp = slots.n_slots, training.rules.n_tried, self.xp
        fit = (above.cells.shape[0] + S) * slot_bytes(training) <= self.memory_budget
        if not fit or not self.saves_time(training, slots):
            return NOT_KEPT
        return above._replace(
            column=self.empty((S, k), xp.int32),
            rest_of=self.empty(S, xp.int32),
            begin=self.empty(S, xp.int64),
            end=self.empty(S, xp.int64),
        )

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

    def fill_smaller(self, training: Training, slots: Frontier, above: Above, hist: Array) -> Array:
        """Add the rows of the smaller of the two slots below each one above to `hist`, and return
        the features that vary above, i32[S, k], then -1."""
        S, k = hist.shape[:2]
        features, size = self.empty((S, k), self.xp.int32), self.slot_tiles(slots)[0].size
        always = int(self.histogram_group(training, k)[0] == 0)
        hists = histograms_of(training, hist)
        arguments: tuple[Any, ...] = hists, above, slots, size, always, features
        macros, grid = self.level_macros(training), (self.blocks(S),)
        self.launch("level", "keep_features", grid, arguments, macros=macros)
        some = replace(slots, begin=above.begin, end=above.end)
        tiles, n_tiles = self.tiles_of(some.begin, some.end, slots.n_held)
        self.add_rows(training, some, features, tiles, n_tiles, hist)
        return features

    def level_macros(self, training: Training) -> dict[str, str]:
        labels = str(int(training.target.coding.is_classes))
        return self.macros(training.matrix, LABELS=labels)

    def children(
        self,
        training: Training,
        wide: Frontier,
        splits: Splits,
        rows: Array,
        weights: Array,
        n_left: Array,
    ) -> Frontier:
        below = super().children(training, wide, splits, rows, weights, n_left)
        if not self._kept or wide not in self._kept:
            return below
        return replace(below, above=[self._kept.pop(wide)])

    def sort_out(self, slots: Frontier, rules: Rules, deep_rows: int) -> Sorted:
        found = super().sort_out(slots, rules, deep_rows)
        if not slots.above:
            return found
        above = slots.above.pop()._replace(number=found.wide_slots)
        return found._replace(wide=replace(found.wide, above=[above]))
