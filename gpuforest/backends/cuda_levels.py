"""The search for the splits of a level on a CUDA device: see kernels/level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuforest.backends.cuda_histograms import (
    cell_type,
    histograms_of,
    slot_bytes,
)
from gpuforest.backends.cuda_kernels import codes_of
from gpuforest.backends.cuda_nodes import CudaNodes
from gpuforest.engine.frontier import Frontier, Splits
from gpuforest.kernels.shared.constants import THREADS
from gpuforest.kernels.shared.structs import Tiles

if TYPE_CHECKING:
    from gpuforest.engine.training import Training

Array = Any


class CudaLevels(CudaNodes):
    """The same splits as by `Kind.by_rounds`, in few launches."""

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
