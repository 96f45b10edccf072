"""Predictions on a CUDA device."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from gpuforest.backends.cuda_kernels import CudaKernels, codes_for
from gpuforest.engine.forest import Forest
from gpuforest.kernels.shared import structs

Array = Any

# copies of forests on devices, by the device's number
_forests: WeakKeyDictionary[Forest, dict[int, tuple[Array, ...]]] = WeakKeyDictionary()


def traverse_macros(forest: Forest, codes: Array) -> dict[str, str]:
    code, some = "u8" if codes.itemsize == 1 else "u16", len(forest.sets) > 0
    return {"CODE": code, "SETS": str(int(some)), "SUMS": str(int(forest.oblique and some))}


class CudaTraverse(CudaKernels):
    """The kernels over rows and the trees of a forest."""

    def apply(self, forest: Forest, codes: Array) -> Array:
        N, T = codes.shape[0], forest.n_trees
        nodes, offsets, _, set_at, sets, coordinates = self.forest_here(forest)
        out = self.empty((N, T), self.xp.int64)
        trees = structs.Trees(nodes, offsets, set_at, sets, coordinates, T)
        arguments = trees, codes_for(forest.edges, codes), N, out
        macros = traverse_macros(forest, codes)
        self.launch("traverse", "apply", (self.blocks(N, 32),), arguments, macros=macros)
        return out

    def accumulate(
        self, forest: Forest, codes: Array, trees: range, skip: Array | None, total: Array
    ) -> Array:
        N = codes.shape[0]
        nodes, offsets, values, set_at, sets, coordinates = self.forest_here(forest)
        offsets = offsets[trees.start : trees.stop + 1]
        own = structs.Trees(nodes, offsets, set_at, sets, coordinates, len(trees))
        arguments = (
            own, codes_for(forest.edges, codes), N, values, values.shape[1], skip, total,
        )  # fmt: skip
        macros = traverse_macros(forest, codes)
        self.launch("traverse", "accumulate", (self.blocks(N, 32),), arguments, macros=macros)
        return total

    def forest_here(self, forest: Forest) -> tuple[Array, ...]:
        """Nodes, offsets, values, `set_at`, sets and coordinates (None: no combinations) of a
        forest on the device; they are copied once and kept while the forest lives. All streams may
        read them."""
        copies = _forests.setdefault(forest, {})
        if self.device_number not in copies:
            f = forest
            made = (
                *map(self.asarray, (f.nodes, f.tree_offsets, f.values, f.set_at, f.sets)),
                self.asarray(f.edges.coordinates) if f.oblique else None,
            )
            self.synchronise()  # a stream does not wait for the copies of another
            copies[self.device_number] = made  # from here on other threads see it
        return copies[self.device_number]
