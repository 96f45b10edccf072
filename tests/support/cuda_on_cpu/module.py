"""CUDA C++ run on the CPU, with the call shape of ``cupy.RawModule``.

    module = EmulatedModule(source, ("-DCODE=uint8_t",))
    kernel = module.get_function("histogram")
    kernel((4,), (256,), (codes, np.int32(len(codes)), counts), shared_mem=1024)

A launch runs its blocks one after another, one fiber per thread; threads take turns where they
wait for each other, in an order that `thread_order` shuffles. What a kernel must not do raises
KernelError where it is noticed; arguments that do not fit the parameters raise TypeError.
"""

from __future__ import annotations

import ctypes
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from typing import Any

import numpy as np

from cuda_on_cpu.build import build_engine, build_kernels, kernels_in
from cuda_on_cpu.sanitizers import available, default_kind

# of every GPU that is meant
MOST_BLOCKS = (2**31 - 1, 65535, 65535)
MOST_THREADS = (1024, 1024, 64)
MOST_THREADS_IN_ALL = 1024
SHARED_UNASKED = 48 << 10
SHARED_AT_MOST = 227 << 10

launches: Counter[str] = Counter()  # of each kernel, by its name
busy_turns: dict[str, tuple[int, int]] = {}  # by kernel, see `utilisation`


def utilisation(kernel: str) -> float:
    """How busy a kernel's warps were in all its launches, 0 to 1.

    A warp takes a turn where its lanes meet: in a shuffle, a vote or __syncwarp. Between two
    barriers of a block each warp could take as many turns as the one that comes last has taken
    and waited for, at barriers of some warps.
    """
    taken, possible = busy_turns[kernel]
    return taken / possible


@dataclass(frozen=True)
class Accesses:
    """Accesses to memory. Those of a warp's lanes at one place in the text are one warp access.

    lanes : accesses of all lanes
    warps : warp accesses
    parts : sectors of 32 bytes in all warp accesses; passes over the banks of shared memory
    least : as many parts as if neighbouring lanes wanted neighbours; as if no two met in a bank
    worst : the most sectors of one warp access; its worst bank conflict, 1 for none
    equal : for each warp access the most lanes that hit one address, in sum
    worst_equal : the most of them
    sectors, lines : of 32 and 64 bytes of global memory, each counted once between two meetings
        of all lanes of the warp; those that are read were not in a cache before
    """

    lanes: int = 0
    warps: int = 0
    parts: int = 0
    least: int = 0
    worst: int = 0
    equal: int = 0
    worst_equal: int = 0
    sectors: int = 0
    lines: int = 0

    def __add__(self, other: Accesses) -> Accesses:
        pairs = zip(fields(self), astuple(self), astuple(other), strict=True)
        most = {"worst", "worst_equal"}
        return Accesses(*(max(a, b) if f.name in most else a + b for f, a, b in pairs))


@dataclass(frozen=True)
class Traffic:
    """What a kernel asked of memory. A gather is a read of one element of global memory by each
    lane in more sectors than half the lanes; other reads are `reads`."""

    reads: Accesses = Accesses()
    gathers: Accesses = Accesses()
    writes: Accesses = Accesses()
    atomics: Accesses = Accesses()
    shared_reads: Accesses = Accesses()
    shared_writes: Accesses = Accesses()
    shared_atomics: Accesses = Accesses()

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(*(a + b for a, b in zip(self.all(), other.all(), strict=True)))

    def all(self) -> list[Accesses]:
        return [getattr(self, field.name) for field in fields(self)]

    @property
    def warps(self) -> int:
        """Warp accesses of all kinds."""
        return sum(accesses.warps for accesses in self.all())


asked: dict[str, Traffic] = {}  # by kernel, see `traffic`


def traffic(kernel: str) -> Traffic:
    """What a kernel asked of memory in all its launches in modules of the kind "traced"."""
    return asked[kernel]


one_launch = threading.Lock()  # the engine runs one at a time


class KernelError(RuntimeError):
    """A launch, or what a kernel did, is not allowed on a GPU."""


class Turns:
    """Where the order of the threads comes from."""

    seed = 0
    count = 0  # of launches since the seed was set

    @classmethod
    def next(cls) -> int:
        """What orders one launch: 0 for threads one by one, else a new number each time."""
        cls.count += 1
        return cls.seed and (cls.seed * 0x9E3779B97F4A7C15 + cls.count * 0xD1342543DE82EF95) % 2**64


@contextmanager
def thread_order(seed: int) -> Iterator[None]:
    """Launches within take threads and blocks in the seed's order; 0: one by one, as outside."""
    before = Turns.seed, Turns.count
    Turns.seed, Turns.count = seed, 0
    try:
        yield
    finally:
        Turns.seed, Turns.count = before


class Parameter(ctypes.Structure):
    """NumPy's letter for the kind, and the size, of a kernel's parameter or what it points to."""

    _fields_ = [(name, ctypes.c_int) for name in ("letter", "size", "pointer", "writable")]

    @property
    def kind(self) -> str:
        return chr(self.letter)

    def __str__(self) -> str:
        names = {"b": "bool", "i": f"int{8 * self.size}", "u": f"uint{8 * self.size}"}
        names |= {"f": f"float{8 * self.size}", "V": f"struct of {self.size} bytes"}
        name = names[self.kind] if self.size else "void"
        return f"pointer to {name}" if self.pointer else name

    def accepts(self, dtype: np.dtype[Any]) -> bool:
        """Whether it is of the same size and sort: integers may differ in their sign."""
        sorts = {"i": "iu", "u": "iu"}
        return dtype.itemsize == self.size and dtype.kind in sorts.get(self.kind, self.kind)

    def pack(self, argument: Any) -> bytes:
        if self.pointer:
            return self.address(argument).to_bytes(8, "little")
        if self.kind == "V":  # CuPy passes an array of one element by value
            fits = isinstance(argument, np.ndarray | np.void) and argument.size == 1
            if not fits or argument.dtype.kind != "V" or argument.dtype.itemsize != self.size:
                raise TypeError(f"{getattr(argument, 'dtype', type(argument).__name__)} for {self}")
            return bytes(argument.tobytes())
        if isinstance(argument, np.generic):
            fits = self.accepts(argument.dtype)
            value = argument.item()
        else:  # a Python float has 64 bits, an int as many as it needs
            value = argument
            types = {"b": bool, "i": int, "u": int, "f": float}
            fits = type(value) is types.get(self.kind) and (self.kind != "f" or self.size == 8)
        if not fits:
            name = argument.dtype if isinstance(argument, np.generic) else type(argument).__name__
            raise TypeError(f"{name} for {self}")
        kind = "?" if self.kind == "b" else f"{self.kind}{self.size}"
        try:
            return bytes(np.array(value, dtype=kind).tobytes())
        except OverflowError:
            raise TypeError(f"{value} does not fit {self}") from None

    def address(self, array: Any) -> int:
        """Where the kernel finds an array; null for None."""
        if array is None:
            return 0
        if not isinstance(array, np.ndarray):
            raise TypeError(f"{type(array).__name__} for {self}")
        if not array.flags.c_contiguous:
            raise TypeError("an array that is not C-contiguous")
        if self.writable and not array.flags.writeable:
            raise TypeError("a read-only array for a pointer that is not to const")
        if self.kind == "V":  # anything, or structs that lie in arrays of numbers
            fits = not self.size or array.nbytes % self.size == 0
        else:
            fits = self.accepts(array.dtype) or (self.size, array.dtype) == (1, np.dtype(bool))
        address = int(array.ctypes.data)
        if not fits:
            raise TypeError(f"an array of {array.dtype} for {self}")
        if address % max(min(self.size, 16), 1):
            raise TypeError(f"an array that is not aligned for {self}")
        return address


class Kernel:
    """One kernel. With more than 48 KiB of shared memory, `max_dynamic_shared_size_bytes` is set
    before it is called."""

    def __init__(self, name: str, library: ctypes.CDLL, engine: ctypes.CDLL) -> None:
        self.name = name
        self.max_dynamic_shared_size_bytes = SHARED_UNASKED
        self._launch = engine.cuda_on_cpu_launch
        self._launch.restype = ctypes.c_char_p
        self._turns = engine.cuda_on_cpu_turns
        self._turns.restype = ctypes.POINTER(ctypes.c_uint64)
        self._traffic = getattr(engine, "cuda_on_cpu_traffic", None)  # of traced builds
        if self._traffic is not None:
            self._traffic.restype = ctypes.POINTER(ctypes.c_uint64)
        self._entry = ctypes.cast(library[f"cuda_on_cpu_call_{name}"], ctypes.c_void_p)
        self._statics = (ctypes.c_void_p * 2)()
        library.cuda_on_cpu_statics(self._statics)
        described = ctypes.POINTER(Parameter)()
        count = library[f"cuda_on_cpu_parameters_{name}"](ctypes.byref(described))
        self.parameters: list[Parameter] = described[:count]

    def __call__(self, grid: Any, block: Any, args: tuple[Any, ...], shared_mem: int = 0) -> None:
        blocks = self._shape("grid", grid, MOST_BLOCKS)
        threads = self._shape("block", block, MOST_THREADS)
        if threads[0] * threads[1] * threads[2] > MOST_THREADS_IN_ALL:
            raise KernelError(f"{self.name}: more than {MOST_THREADS_IN_ALL} threads in a block")
        limit = min(self.max_dynamic_shared_size_bytes, SHARED_AT_MOST)
        if shared_mem > limit:
            raise KernelError(f"{self.name}: {shared_mem} bytes of shared memory, of {limit}")
        values = self._pack(args)
        addresses = (ctypes.c_void_p * (len(values) + 1))(*map(ctypes.addressof, values))
        with one_launch:
            launches[self.name] += 1
            error = self._launch(
                self._entry, addresses, self._statics, (ctypes.c_uint * 3)(*blocks),
                (ctypes.c_uint * 3)(*threads), ctypes.c_size_t(shared_mem),
                ctypes.c_uint64(Turns.next()),
            )  # fmt: skip
            before = busy_turns.get(self.name, (0, 0))
            found = self._turns()
            busy_turns[self.name] = before[0] + found[0], before[1] + found[1]
            if self._traffic is not None:
                asked[self.name] = asked.get(self.name, Traffic()) + self._asked()
        if error:
            raise KernelError(f"{self.name}: {error.decode()}")

    def _asked(self) -> Traffic:
        ways, each = len(fields(Traffic)), len(fields(Accesses))
        numbers = self._traffic()[: ways * each]
        return Traffic(*(Accesses(*numbers[each * w : each * (w + 1)]) for w in range(ways)))

    def _shape(self, what: str, shape: tuple[int, ...], most: tuple[int, ...]) -> tuple[int, ...]:
        full = (*shape, 1, 1)[:3]
        if len(shape) > 3 or not all(1 <= n <= m for n, m in zip(full, most, strict=True)):
            raise KernelError(f"{self.name}: a {what} of {shape}")
        return full

    def _pack(self, args: tuple[Any, ...]) -> list[Any]:
        if len(args) != len(self.parameters):
            raise TypeError(f"{self.name}: {len(args)} arguments, not {len(self.parameters)}")
        packed = []
        for number, (parameter, argument) in enumerate(zip(self.parameters, args, strict=True)):
            try:
                value = parameter.pack(argument)
            except TypeError as error:
                raise TypeError(f"{self.name}: argument {number} is {error}") from None
            packed.append(ctypes.create_string_buffer(value, len(value)))
        return packed


class EmulatedModule:
    """CUDA C++ text, built for the CPU; its kernels are ``extern "C" __global__ void``.

    `options` are -D, -U and -I; `kind` is one of build.KERNELS_OF_KIND, None for `default_kind`.
    """

    def __init__(self, source: str, options: tuple[str, ...] = (), kind: str | None = None) -> None:
        kind = kind or default_kind()
        if (reason := available(kind)) is not None:
            raise RuntimeError(reason)
        self.names = kernels_in(source)
        self._engine = ctypes.CDLL(str(build_engine(kind)))
        self._library = ctypes.CDLL(str(build_kernels(source, tuple(options), kind)))

    def get_function(self, name: str) -> Kernel:
        if name not in self.names:
            raise AttributeError(f"no kernel {name} in a text with {', '.join(self.names)}")
        return Kernel(name, self._library, self._engine)
