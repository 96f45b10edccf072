"""A CUDA device, for any array namespace: launches of kernels, and the records that they take."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cache, partial
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from gpuforest.backends.base import Array, Backend
from gpuforest.backends.cuda import source
from gpuforest.core.bins import BinEdges, BinnedMatrix
from gpuforest.core.frontier import Frontier
from gpuforest.core.target import Target
from gpuforest.core.terms import Combining
from gpuforest.core.training import Training
from gpuforest.kernels.shared import constants, structs

# the type of a number, or what packs a record, or the dtype of an array; and the parameter's name
Parameter = tuple[Any, Any, Any, str]
RESERVED = 1856  # bytes of a block's shared memory for CUDA (1 KiB) and for static arrays
MOST_BLOCKS = 2**16  # of a grid; kernels loop over items beyond it
LEAST_SPAN, MOST_SPANS = 2048, 512  # slots that a block counts, and blocks, in kernels/slots
_claims = Lock()  # held while the padding of any matrix is claimed
# copies of matrices and of targets on other devices, by the device's number
_copies: WeakKeyDictionary[BinnedMatrix | Target, dict[int, Any]] = WeakKeyDictionary()
_codes: WeakKeyDictionary[BinnedMatrix, structs.Codes] = WeakKeyDictionary()


class CudaLaunches(Backend):
    """Launches on a device; a subclass gives access to the device."""

    # access to the device, for subclasses

    shared_limit: int  # the most bytes of dynamic shared memory that a block may take
    cache_bytes: int  # of the second level
    n_processors: int
    device_number: int

    def __init__(self, n_threads: int, memory_budget: int) -> None:
        super().__init__(n_threads, memory_budget)
        # kernels and their parameters by operation, name, shared memory and macros
        self.known_kernels: dict[Any, tuple[Any, list[Parameter]]] = {}
        # of records, and what packed them
        self.known_structs: WeakKeyDictionary[Any, tuple[structs.Packer, np.ndarray]]
        self.known_structs = WeakKeyDictionary()
        self.known_tiles: WeakKeyDictionary[Frontier, tuple[structs.Tiles, int]]
        self.known_tiles = WeakKeyDictionary()
        self.known_kept: WeakKeyDictionary[Frontier, structs.Kept] = WeakKeyDictionary()

    def active(self) -> AbstractContextManager[Any]:
        """Inside, this thread makes arrays and runs kernels on the backend's device."""
        return nullcontext()

    @abstractmethod
    def copied(self, array: Array) -> Array:
        """A copy on this device, which is active, of an array on any device."""

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

    def bytes_to_bring(self, training: Training) -> int:
        """Bytes of the arrays that `brought` would copy."""
        parts = (training.matrix, training.matrix.codes), (training.target, training.target.y)
        return sum(a.nbytes for of, a in parts if self.device_number not in _copies.get(of, ()))

    def brought(self, training: Training) -> Training:
        """The training with its arrays on this device."""
        matrix, target, here = training.matrix, training.target, self.device_number
        codes = _copies.setdefault(matrix, {})
        targets = _copies.setdefault(target, {})
        with self.active():
            if here not in codes:
                arrays = self.copied(matrix.codes), self.copied(matrix.n_bins)
                codes[here] = BinnedMatrix(*arrays, matrix.edges)
            if here not in targets:
                targets[here] = Target(target.coding, self.copied(target.y))
            combining = training.combining
            if training.combines:
                combining = Combining.of(matrix.edges, training.rules, self.asarray)
            self.synchronise()
        return replace(training, matrix=codes[here], target=targets[here], combining=combining)

    def launch(self, operation: str, name: str, grid: Any, *arguments: Any, **options: Any) -> None:
        """Launch a kernel in a grid, a shape or a number of blocks; options as of `prepare`."""
        grid = (grid,) if isinstance(grid, int) else grid
        if 0 not in grid:
            self.prepare(operation, name, grid, *arguments, **options)()

    def launch_each(
        self, operation: str, name: str, n: int, *arguments: Any, **options: Any
    ) -> None:
        """Launch a kernel of a thread for each of n items."""
        self.launch(operation, name, self.blocks(n, constants.THREADS), *arguments, **options)

    def prepare(
        self, operation: str, name: str, grid: tuple[int, ...], *arguments: Any,
        macros: dict[str, str] | None = None, threads: int = constants.THREADS, shared: int = 0,
    ) -> Callable[[], None]:  # fmt: skip
        """A reusable launch of a kernel: numbers become NumPy's, records structs; keep the arrays.
        TypeError: an array has another type than the kernel reads."""
        key = operation, name, shared, tuple(macros.items()) if macros else ()
        if (found := self.known_kernels.get(key)) is None:
            kernel = self.kernel(operation, name, macros or {}, shared)
            found = self.known_kernels[key] = kernel, parameters_of(operation, name, key[-1])
        values: list[Any] = []
        for value, (number, pack, dtype, parameter) in zip(arguments, found[1], strict=True):
            if number is not None:
                value = number(value)
            elif pack is not None:
                value = self.struct_of(value, pack)
            elif value is not None and (value.dtype != dtype or not value.flags.c_contiguous):
                raise structs.refusal(value, dtype, name, parameter)
            values.append(value)
        return partial(found[0], grid, (threads,), tuple(values), shared_mem=shared)

    def struct_of(self, record: Any, pack: structs.Packer) -> np.ndarray:
        """A record's struct; kept as long as the record, which holds the arrays and is frozen."""
        if not type(record).__weakrefoffset__:  # a named tuple
            return pack(record, self.address)
        kept = self.known_structs.get(record)
        if kept is None or kept[0] is not pack:
            kept = self.known_structs[record] = pack, pack(record, self.address)
        return kept[1]

    def together(self, launches: Sequence[Callable[[], None]]) -> Callable[[], None]:
        """Prepared launches whose kernels have run before, as one that makes them in this order."""

        def all_of_them() -> None:
            for launch in launches:
                launch()

        return all_of_them

    def blocks(self, items: int, each: int = 1) -> int:
        """The number of blocks that `items` items need, if a block takes `each` of them."""
        return min(-(-items // each), MOST_BLOCKS)

    def shared_share(self, n: int) -> int:
        """Bytes of dynamic shared memory for a block, so that n blocks fit a multiprocessor."""
        return (self.shared_limit + RESERVED) // n - RESERVED

    def zeros(self, shape: Any, dtype: Any) -> Array:
        return self.xp.zeros(shape, dtype=dtype)

    def empty(self, shape: Any, dtype: Any) -> Array:
        return self.xp.empty(shape, dtype=dtype)

    def spans(self, S: int) -> tuple[int, int]:
        """The number of items in a block's span, and of blocks, where running sums are needed."""
        span = max(LEAST_SPAN, -(-S // MOST_SPANS))
        return span, -(-S // span)

    def sums_before(
        self, values: Array, begin: Array | None = None, *, size: int = 1, stride: int = 1,
        total: Array | None = None,
    ) -> Array:  # fmt: skip
        """Running sums i64[S + 1], from 0 on, of every `stride`-th value of i64[...]. With `begin`,
        of the numbers of tiles of `size` in the ranges from begin[s] to values[s].

        total : i64[1], also gets the sum of all, or None"""
        S = -(-values.shape[0] // stride)
        (span, n_blocks), first = self.spans(max(S, 1)), self.empty(S + 1, self.xp.int64)
        items, sums = (values, begin, stride, size, S, span), None
        if n_blocks > 1:
            sums = self.empty(n_blocks, self.xp.int64)
            self.launch("slots", "sum_spans", n_blocks, *items, sums)
        self.launch("slots", "sums_before", n_blocks, *items, sums, first, total)
        return first

    def tile_size(self, max_rows: int) -> int:
        """Rows of a tile, if slots hold max_rows rows: each processor gets eight tiles or more."""
        tile = max_rows // (8 * self.n_processors) // constants.LEAST_TILE * constants.LEAST_TILE
        return max(constants.LEAST_TILE, min(constants.MOST_TILE, tile))

    def tiles_of(self, begin: Array, end: Array, max_rows: int) -> tuple[structs.Tiles, int]:
        """Tiles of slots of rows begin .. end - 1; bound of their number for <= max_rows rows."""
        tile, S = self.tile_size(max_rows), begin.shape[0]
        first = self.sums_before(end, begin, size=tile)
        return structs.Tiles(first, None, tile, S), max_rows // tile + S

    def slot_tiles(self, slots: Frontier) -> tuple[structs.Tiles, int]:
        """`tiles_of` the rows that slots hold; kept as long as these slots."""
        if slots not in self.known_tiles:
            self.known_tiles[slots] = self.tiles_of(slots.begin, slots.end, slots.max_rows)
        return self.known_tiles[slots]


@cache
def parameters_of(operation: str, name: str, macros: structs.Macros) -> list[Parameter]:
    """What becomes of each argument of a kernel with these macros."""
    found: list[Parameter] = []
    for kind, parameter in source.parameters(operation)[name]:
        if kind in source.STRUCTS:
            pack = structs.packer_of(source.STRUCTS[kind], macros)
            found.append((None, pack, None, parameter))
        elif kind[-1] == "*":
            found.append((None, None, structs.pointed(kind, macros), parameter))
        else:
            found.append((structs.DTYPES[kind].type, None, None, parameter))
    return found


def flags(backend: CudaLaunches, n: int) -> Array:
    """Room for n flags, of whole 32-bit words: see kernels/totals."""
    return backend.empty(-(-n // 4) * 4, backend.xp.bool)[:n]


def own_targets(training: Training, y: Array) -> structs.Targets:
    """Targets [N, K] in an array of their own."""
    return structs.Targets(y, 0, y.shape[1], training.n_channels)


def target_type(training: Training, y: structs.Targets) -> str:
    """The macro TARGET. Moments have one type, and a launch refuses another."""
    of_size = {1: "u8", 2: "u16", 4: "i32"}
    return of_size[y.at.itemsize] if training.target.coding.is_classes else "i64"


def target_macros(training: Training, y: structs.Targets) -> dict[str, str]:
    return macros_of(LABELS=training.target.coding.is_classes, TARGET=target_type(training, y))


def macros_of(codes: Array | None = None, **values: Any) -> dict[str, str]:
    """Macros of a kernel: CODE from `codes` if given, and `values`; truth values are 0 and 1."""
    code = {} if codes is None else {"CODE": "u8" if codes.itemsize == 1 else "u16"}
    return code | {n: v if isinstance(v, str) else str(int(v)) for n, v in values.items()}


def label_fits(training: Training) -> bool:
    """True if a row's class code is stored in the padding of its codes and read along with them. A
    read takes a sector of 32 bytes, and the padding's sector should hold one of the features that a
    node tries, on average. Else a small array of class codes stays better in the cache."""
    codes, F = training.matrix.codes, training.n_features
    beside = F % (32 // codes.itemsize)  # features in the sector of the padding
    room = codes.shape[1] > F and training.n_channels <= 256**codes.itemsize
    return bool(room and training.rules.n_tried * beside >= F)


def targets_of(xp: Any, training: Training) -> structs.Targets:
    """The targets where random rows are best read: class codes in the padding (`label_fits`) or
    apart. They are kept as long as the target. The padding holds one target at a time; a second one
    for the same matrix gets an array."""
    target, matrix = training.target, training.matrix
    if not target.coding.is_classes:
        return own_targets(training, target.y)
    with _claims:  # threads may grow trees from one matrix
        kept = matrix.targets.get(target)
        if kept is None:
            free = all(other.at is not matrix.codes for other in list(matrix.targets.values()))
            kept = _labels(xp, training, label_fits(training) and free)
            matrix.targets[target] = kept
    return kept


def _labels(xp: Any, training: Training, in_rows: bool) -> structs.Targets:
    """Class codes, copied to the rows of codes, or to an array of as few bytes as suffice."""
    y, codes, C = training.target.y, training.matrix.codes, training.n_channels
    if not in_rows:
        small = xp.uint8 if C <= 2**8 else xp.uint16 if C <= 2**16 else xp.int32
        return own_targets(training, xp.astype(y, small))
    F = training.n_features
    codes[:, F : F + 1] = xp.astype(y, codes.dtype)
    return structs.Targets(codes, F, codes.shape[1], C)


def cell_type(xp: Any, training: Training) -> Any:
    """The dtype of a cell, SUM in kernels. The weights of classes add up to less than 2**31."""
    return xp.int32 if training.target.coding.is_classes else xp.int64


def histograms_of(training: Training, hist: Array) -> structs.Histograms:
    S, k, B, channels = hist.shape
    return structs.Histograms(hist, S, k, B, training.n_channels, channels)


def slot_bytes(training: Training) -> int:
    """Bytes of a slot's histograms and of the other arrays of its search."""
    k, cell = training.rules.n_tried, 4 if training.target.coding.is_classes else 8
    cells = training.n_codes * training.hist_channels
    # a score, a cut and a feature's number; and whether each feature varies
    return k * (cell * cells + 16) + 4 * training.n_features


def histogram_group(training: Training, k: int, share: int, most: int) -> tuple[int, int, int]:
    """How many of k histograms a block holds (0: not one), 32-bit words of a bin, bytes of a
    histogram. A block has at most `most` bytes; two blocks of `share` fit a multiprocessor."""
    C, is_classes = training.n_channels, training.target.coding.is_classes
    # a word for a class, the weight or the count, two for a moment
    words = (C if is_classes else 2 * C - 1) + training.rules.count_rows
    size = 16 * (-(-training.n_codes * words // 4) | 1)  # see `constants.FILL_PAD`
    # two blocks on a multiprocessor at once, if one feature fits half of its memory
    group = min(k, constants.GROUP_FEATURES, (share if size <= share else most) // size)
    return -(-k // -(-k // group)) if group else 0, words, size  # groups of about one size


def padded(size: int) -> int:
    """Bytes of a row of codes in memory: whole sectors of 32 bytes, or 1/2, 1/4, ... of one."""
    return -(-size // 32) * 32 if size > 16 else max(4, 1 << (size - 1).bit_length())


def codes_for(edges: BinEdges, codes: Array, n_bins: Array | None = None) -> structs.Codes:
    return structs.Codes(codes, edges.n_features, edges.n_codes, codes.shape[1], n_bins)


def codes_of(training: Training) -> structs.Codes:
    """The codes of a fit, kept as long as the matrix."""
    matrix = training.matrix
    if (codes := _codes.get(matrix)) is None:
        codes = _codes[matrix] = codes_for(matrix.edges, matrix.codes, matrix.n_bins)
    return codes
