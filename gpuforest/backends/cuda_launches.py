"""A CUDA device, for any array namespace: launches of kernels, running sums and tiles of rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from gpuforest.backends.base import Backend
from gpuforest.compiler.source import parameters
from gpuforest.compiler.types import is_record
from gpuforest.engine.frontier import Frontier
from gpuforest.kernels.shared import structs
from gpuforest.kernels.shared.constants import LEAST_TILE, MOST_TILE, THREADS
from gpuforest.kernels.shared.structs import Tiles

Array = Any

NUMBERS: dict[type, Any] = {int: np.int64, bool: np.int64, float: np.float64}
RESERVED = 1856  # bytes of a block's shared memory for CUDA (1 KiB) and for static arrays
MOST_BLOCKS = 2**16  # of a grid; kernels loop over items beyond it
LEAST_SPAN, MOST_SPANS = 2048, 512  # slots that a block counts, and blocks, in kernels/slots


class CudaLaunches(Backend):
    """Launches on a device; a subclass gives access to the device."""

    # access to the device, for subclasses

    shared_limit: int  # the most bytes of dynamic shared memory that a block may take
    n_processors: int
    device_number: int

    @abstractmethod
    def kernel(self, operation: str, name: str, macros: dict[str, str], shared: int) -> Any:
        """A compiled kernel, called with grid, block, arguments and bytes of shared memory."""

    @abstractmethod
    def address(self, array: Array) -> int:
        """The device address of an array's first element."""

    @abstractmethod
    def free_bytes(self) -> int:
        """Bytes of device memory that are free, or unused in memory pools."""

    @abstractmethod
    def synchronise(self) -> None:
        """Wait for the work of the current stream."""

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
        """Launch a kernel, see `prepare`."""
        if 0 not in grid:
            self.prepare(
                operation, name, grid, arguments, macros=macros, threads=threads, shared=shared
            )()

    def prepare(
        self,
        operation: str,
        name: str,
        grid: tuple[int, ...],
        arguments: tuple[Any, ...],
        *,
        macros: dict[str, str] | None = None,
        threads: int = THREADS,
        shared: int = 0,
    ) -> Callable[[], None]:
        """A launch of a kernel that may be made again and again. Python numbers become 64-bit
        numbers, and records become structs; the arrays must be kept.

        Raises
        ------
        TypeError : an array is not one that the kernel reads
        """
        macros, declared = macros or {}, parameters(operation)[name]
        values = []
        for value, (kind, parameter) in zip(arguments, declared, strict=True):
            if is_record(value):
                value = structs.packed(value, macros, self.address)
            elif kind[-1] == "*" and value is not None:
                structs.refuse_other(value, structs.pointed(kind, macros), name, parameter)
            values.append(NUMBERS.get(type(value), lambda a: a)(value))
        kernel = self.kernel(operation, name, macros, shared)
        return partial(kernel, grid, (threads,), tuple(values), shared_mem=shared)

    def blocks(self, items: int, each: int = 1) -> int:
        """The number of blocks for so many items, if a block takes `each`."""
        return min(-(-items // each), MOST_BLOCKS)

    def shared_share(self, n: int) -> int:
        """Bytes of dynamic shared memory for a block, so that n blocks fit a multiprocessor."""
        return (self.shared_limit + RESERVED) // n - RESERVED

    def zeros(self, shape: Any, dtype: Any) -> Array:
        return self.xp.zeros(shape, dtype=dtype, device=self.device)

    def empty(self, shape: Any, dtype: Any) -> Array:
        return self.xp.empty(shape, dtype=dtype, device=self.device)

    def spans(self, S: int) -> tuple[int, int]:
        """The number of items in a block's span, and of blocks, where running sums are needed."""
        span = max(LEAST_SPAN, -(-S // MOST_SPANS))
        return span, -(-S // span)

    def sums_before(
        self,
        values: Array,
        begin: Array | None = None,
        *,
        size: int = 1,
        stride: int = 1,
        total: Array | None = None,
    ) -> Array:
        """Running sums of every `stride`-th of `values` i64[...], of none first: i64[S + 1]; or of
        the numbers of tiles of `size` in the ranges from begin[s] to values[s].

        total : i64[1], where the sum of all is written too, or None
        """
        S = -(-values.shape[0] // stride)
        (span, n_blocks), first = self.spans(max(S, 1)), self.empty(S + 1, self.xp.int64)
        sums = None
        if n_blocks > 1:
            sums = self.empty(n_blocks, self.xp.int64)
            arguments: tuple[Any, ...] = values, begin, stride, size, S, span, sums
            self.launch("slots", "sum_spans", (n_blocks,), arguments)
        arguments = values, begin, stride, size, S, span, sums, first, total
        self.launch("slots", "sums_before", (n_blocks,), arguments)
        return first

    def tile_size(self, n_held: int) -> int:
        """Rows of a tile of slots that hold so many: each processor gets eight tiles, or more."""
        tile = n_held // self.tile_share // LEAST_TILE * LEAST_TILE
        return max(LEAST_TILE, min(MOST_TILE, tile))

    @property
    def tile_share(self) -> int:
        return 8 * self.n_processors

    def tiles_of(self, begin: Array, end: Array, n_held: int) -> tuple[Tiles, int]:
        """The tiles of slots of rows begin .. end - 1, and an upper bound of their number.

        n_held : the slots have at most so many rows; the host does not know the exact number
        """
        tile, S = self.tile_size(n_held), begin.shape[0]
        first = self.sums_before(end, begin, size=tile)
        return Tiles(first, tile, S), n_held // tile + S

    def slot_tiles(self, slots: Frontier) -> tuple[Tiles, int]:
        """`tiles_of` the rows that slots hold; kept as long as these slots."""
        if slots not in self.known_tiles:
            self.known_tiles[slots] = self.tiles_of(slots.begin, slots.end, slots.n_held)
        return self.known_tiles[slots]

    @cached_property
    def known_tiles(self) -> WeakKeyDictionary[Frontier, tuple[Tiles, int]]:
        """Tiles of slots that are still there."""
        return WeakKeyDictionary()
