"""CUDA C++ run on the CPU, with the call shape of ``cupy.RawModule``.

    module = EmulatedModule(source, ("-DCODE=uint8_t",))
    kernel = module.get_function("histogram")
    kernel((4,), (256,), (codes, np.int32(len(codes)), counts), shared_mem=1024)

A launch runs one block after another, one fiber per thread. Threads take turns where they wait for
each other; `thread_order` shuffles the turns. What CUDA forbids or leaves undefined raises
`KernelError` where it is noticed; arguments that do not fit the parameters raise TypeError.
"""

from __future__ import annotations

import ctypes
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from cuda_on_cpu.build import (
    BuildError,
    available,
    build_engine,
    build_kernels,
    default_kind,
    kernels_in,
    sanitized,
)

__all__ = [
    "BuildError",
    "EmulatedModule",
    "KernelError",
    "available",
    "launches",
    "sanitized",
    "thread_order",
]

MOST_THREADS = 1024
SHARED_BY_DEFAULT = 48 << 10
SHARED_AT_MOST = 227 << 10
MOST_BLOCKS = (2**31 - 1, 65535, 65535)
MOST_IN_BLOCK = (1024, 1024, 64)

launches: Counter[str] = Counter()  # by kernel's name

one_launch = threading.Lock()  # the engine knows one at a time


class KernelError(RuntimeError):
    """What a kernel did is not allowed on a GPU either."""


class Order:
    """Where the turns of the threads come from."""

    seed = 0
    launches = 0  # since the seed was set

    @classmethod
    def next(cls) -> int:
        """A number for one launch: 0 for threads in order, else never twice the same."""
        cls.launches += 1
        return cls.seed and ((cls.seed << 32 | cls.launches) * 0x9E3779B97F4A7C15) % 2**64 | 1


@contextmanager
def thread_order(seed: int) -> Iterator[None]:
    """Launches within take the threads, and the blocks, in an order that depends on the seed.

    0 is the plain order. The order differs between launches and is the same each time.
    """
    before = Order.seed, Order.launches
    Order.seed, Order.launches = seed, 0
    try:
        yield
    finally:
        Order.seed, Order.launches = before


class Parameter(ctypes.Structure):
    """As cuda.hpp describes it."""

    _fields_ = [
        (name, ctypes.c_int) for name in ("kind", "size", "pointer", "writable")
    ]  # fmt: skip

    def __str__(self) -> str:
        name = {"b": "bool", "i": "int", "u": "uint", "f": "float", "V": "struct"}[chr(self.kind)]
        if self.kind == ord("V"):
            told = f"{name} of {self.size} bytes" if self.size else "void"
        else:
            told = name if name == "bool" else f"{name}{8 * self.size}"
        return f"pointer to {told}" if self.pointer else told

    def pack(self, value: Any) -> bytes:
        """The bytes that the kernel gets for an argument; TypeError if it is of another type."""
        if self.pointer:
            return self.address(value).to_bytes(8, "little")
        kind = chr(self.kind)
        if isinstance(value, np.generic):
            if value.dtype.itemsize != self.size or not self.takes(value.dtype.kind):
                raise TypeError(f"{value.dtype} for {self}")
        elif type(value) not in {"b": (bool,), "f": (float,), "V": ()}.get(kind, (int,)):
            raise TypeError(f"{type(value).__name__} for {self}")
        elif kind == "f" and self.size != 8:
            raise TypeError(f"a Python float is a float64, not a {self}")
        if kind == "V":
            return value.tobytes()
        try:
            packed = np.array(value.item() if isinstance(value, np.generic) else value).astype(
                f"{kind}{self.size}", casting="unsafe"
            )
            if kind in "iu":
                int(value).to_bytes(self.size, "little", signed=kind == "i")
        except OverflowError:
            raise TypeError(f"{value} does not fit {self}") from None
        return packed.tobytes()

    def takes(self, kind: str) -> bool:
        """Whether NumPy's kind can stand for the parameter's: signs may differ."""
        return kind in {"b": "b", "f": "f", "V": "V"}.get(chr(self.kind), "iu")

    def address(self, value: Any) -> int:
        if value is None:
            return 0
        if not isinstance(value, np.ndarray):
            raise TypeError(f"{type(value).__name__} for {self}")
        if not value.flags.c_contiguous:
            raise TypeError("the array is not C-contiguous")
        if self.writable and not value.flags.writeable:
            raise TypeError(f"a read-only array for {self}, which is not const")
        if self.size == 0:  # void
            return value.ctypes.data
        if self.kind == ord("V"):
            fits = value.nbytes % self.size == 0
        else:
            fits = value.itemsize == self.size and (
                self.takes(value.dtype.kind) or (self.size == 1 and value.dtype.kind in "biu")
            )
        if not fits:
            raise TypeError(f"an array of {value.dtype} for {self}")
        if value.ctypes.data % min(self.size, 16):
            raise TypeError("the array is not aligned")
        return value.ctypes.data


class Kernel:
    """A kernel, to be called as ``kernel(grid, block, args, shared_mem=0)``."""

    def __init__(self, name: str, library: ctypes.CDLL, engine: ctypes.CDLL) -> None:
        self.name = name
        self.max_dynamic_shared_size_bytes = SHARED_BY_DEFAULT
        self._call = library[f"cuda_on_cpu_call_{name}"]
        self._launch = engine.cuda_on_cpu_launch
        self._launch.restype = ctypes.c_char_p
        told = ctypes.POINTER(Parameter)()
        count = library[f"cuda_on_cpu_parameters_{name}"](ctypes.byref(told))
        self.parameters: list[Parameter] = told[:count]

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        args: tuple[Any, ...],
        shared_mem: int = 0,
    ) -> None:
        blocks = self._shape("grid", grid, MOST_BLOCKS)
        threads = self._shape("block", block, MOST_IN_BLOCK)
        if threads[0] * threads[1] * threads[2] > MOST_THREADS:
            raise KernelError(f"{self.name}: a block of more than {MOST_THREADS} threads")
        if shared_mem > min(self.max_dynamic_shared_size_bytes, SHARED_AT_MOST):
            raise KernelError(
                f"{self.name}: {shared_mem} bytes of dynamic shared memory; allowed are "
                f"{self.max_dynamic_shared_size_bytes} by its attribute, {SHARED_AT_MOST} at most"
            )
        values = self._values(args)
        pointers = (ctypes.c_void_p * max(len(values), 1))(*map(ctypes.addressof, values))
        with one_launch:
            launches[self.name] += 1
            error = self._launch(
                ctypes.cast(self._call, ctypes.c_void_p),
                pointers,
                (ctypes.c_uint * 3)(*blocks),
                (ctypes.c_uint * 3)(*threads),
                ctypes.c_size_t(shared_mem),
                ctypes.c_uint64(Order.next()),
            )
        if error:
            raise KernelError(f"{self.name}: {error.decode()}")

    def _shape(self, what: str, shape: tuple[int, ...], most: tuple[int, ...]) -> tuple[int, ...]:
        full = (*shape, 1, 1)[:3] if 1 <= len(shape) <= 3 else (0,)
        if not all(1 <= n <= limit for n, limit in zip(full, most, strict=False)):
            raise KernelError(f"{self.name}: no {what} can be of shape {shape}")
        return full

    def _values(self, args: tuple[Any, ...]) -> list[Any]:
        if len(args) != len(self.parameters):
            raise TypeError(
                f"{self.name} takes {len(self.parameters)} arguments, {len(args)} were given"
            )
        values = []
        for i, (parameter, value) in enumerate(zip(self.parameters, args, strict=True)):
            try:
                packed = parameter.pack(value)
            except TypeError as error:
                raise TypeError(f"{self.name}, argument {i}: {error}") from None
            values.append(ctypes.create_string_buffer(packed, len(packed)))
        return values


class EmulatedModule:
    """CUDA C++ text, built for the CPU.

    Kernels are functions declared ``extern "C" __global__ void``.

    source : the text
    options : -D, -U and -I options of the compiler
    kind : "plain", or under a sanitizer "asan" or "tsan"; by default what the environment variable
        GPUFOREST_CUDA_ON_CPU says, else "plain"
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
            raise AttributeError(f"no kernel {name} among {', '.join(self.names)}")
        return Kernel(name, self._library, self._engine)
