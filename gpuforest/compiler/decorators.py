"""Marks of the functions that Numba compiles for the CPU. Importing them imports no Numba."""

from __future__ import annotations

import ctypes
import inspect
import struct
from collections.abc import Callable
from functools import cached_property, partial, update_wrapper
from itertools import product
from typing import Any, cast, get_type_hints

import numpy as np

from gpuforest.compiler import code, types
from gpuforest.compiler.types import CHOICES, Choice, Optional, Record, Spec, Type


class Helper:
    """A function that kernels call, with `inline` by its code in the place of each call. Called
    from Python, it is the Python function."""

    def __init__(self, function: Callable[..., Any], inline: bool) -> None:
        update_wrapper(self, function)
        self.function, self.inline = function, inline
        self.dispatcher: Any = None  # Numba's, where it compiles

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


# A helper that kernels call. It is inlined, so its arrays need not be passed field by field: for a
# node of a few rows that would cost more than all other work
device = partial(Helper, inline=True)
# A helper of few arguments that is not inlined, to keep compilation short
rare = partial(Helper, inline=False)


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """A kernel; see `Kernel`."""
    return partial(Kernel, **options) if function is None else Kernel(function)


class Kernel:
    """A function that Python calls as machine code.

    Parameters
    ----------
    function : Callable, which allocates and returns nothing; its parameters are annotated with the
        types of types.py. No array that it writes may overlap with another argument, because the
        code does not check that
    checked : types with which the code checks for overlaps all the same, because it is faster;
        {}: with all. Kernels whose threads write each other's arrays need that: otherwise LLVM
        keeps what it has read, whatever another thread writes
    plain : types with which LLVM optimises less and makes no vectors, because the code is as fast,
        and compiled in two thirds of the time
    **given : types of names that stand for several, where it needs but one
    """

    def __init__(
        self, function: Callable[..., Any], *, checked: Choice | None = None,
        plain: Choice | None = None, **given: Any,
    ) -> None:  # fmt: skip
        update_wrapper(self, function)
        self.function, self.given, self.checked, self.plain = function, given, checked, plain
        self.loaded: dict[tuple[Any, ...], tuple[Callable[[bytes], int], Callable[..., bytes]]] = {}

    @cached_property
    def specs(self) -> list[Spec]:
        hints = get_type_hints(self.function, include_extras=True)
        names = inspect.signature(self.function).parameters
        return [types.spec_of(hints[name], name) for name in names]

    @cached_property
    def choices(self) -> list[Choice]:
        """The types for which it is compiled."""
        found = {name: kinds for spec in self.specs for name, kinds in types.names_of(spec)}
        found |= {name: (kind,) for name, kind in self.given.items() if name in found}
        return [dict(zip(found, kinds, strict=True)) for kinds in product(*found.values())]

    def name_of(self, choice: Choice) -> str:
        """The name of the machine code for some types."""
        module = self.__module__.removeprefix("gpuforest.")
        chosen = [f"{name}_{kind}" for name, kind in sorted(choice.items())]
        return "-".join([f"{module}.{self.function.__name__}", *chosen])

    def __call__(self, *arguments: Any) -> None:
        function, numbers, choice = self.bound(arguments)
        if function(numbers):  # as `run`, which a prediction of one row would notice
            raise RuntimeError(f"the kernel {self.name_of(choice)} failed")

    def prepared(self, *arguments: Any) -> Callable[[], None]:
        """A call with these arguments that can be repeated in a tenth of the time."""
        return partial(self.run, *self.bound(arguments), arguments)

    def bound(self, arguments: tuple[Any, ...]) -> tuple[Callable[[bytes], int], bytes, Choice]:
        """The machine code for these arguments, their numbers, and their types."""
        numbers: list[Any] = []
        choice: Choice = {}
        for put, argument in zip(self.putters, arguments, strict=True):
            put(argument, numbers, choice)
        key = tuple(choice.values())
        if key not in self.loaded:
            if choice not in self.choices:
                raise TypeError(f"{self.function.__name__} is not compiled for {choice}")
            form = "".join(format_of(spec, choice) for spec in self.specs)
            self.loaded[key] = code.function_of(self.name_of(choice)), struct.Struct(form).pack
        function, pack = self.loaded[key]
        return function, pack(*numbers), choice

    def run(
        self, function: Callable[[bytes], int], numbers: bytes, choice: Choice, held: Any = None
    ) -> None:
        """Call machine code; `held` are the arguments whose addresses are among the numbers."""
        if function(numbers):
            raise RuntimeError(f"the kernel {self.name_of(choice)} failed")

    @cached_property
    def putters(self) -> list[Putter]:
        return [putter(spec) for spec in self.specs]


Putter = Callable[[Any, list[Any], Choice], None]


def putter(spec: Spec) -> Putter:
    """A function that appends the numbers of an argument, and its types, to those before it."""
    if isinstance(spec, Optional):
        inner, name = putter(spec.inner), spec.name

        def put_optional(value: Any, numbers: list[Any], choice: Choice) -> None:
            choice[name] = value is not None
            if value is not None:
                inner(value, numbers, choice)

        return put_optional
    if isinstance(spec, Record):
        fields, values = [putter(f) for f in spec.fields], spec.values

        def put_record(record: Any, numbers: list[Any], choice: Choice) -> None:
            for put, value in zip(fields, values(record), strict=True):
                put(value, numbers, choice)

        return put_record
    if spec.ndim:
        return array_putter(spec)
    return lambda value, numbers, choice: numbers.append(value)


_DATA = object.__basicsize__  # where NumPy's array, a C struct, has the address of its data
_word_at = ctypes.c_size_t.from_address
_known = np.zeros(1)
# whether this implementation of Python and NumPy has it there. It takes an eighth of the time of
# `array.ctypes.data`, and a prediction of one row would notice the rest
_IS_THERE = _word_at(id(_known) + _DATA).value == _known.ctypes.data


def array_putter(spec: Type) -> Putter:
    # the dtype's name, or a struct, which stands for itself
    ndim, name, nothing = spec.ndim, cast(str, spec.dtype), (0,) * (1 + spec.ndim)
    allowed = {types.dtype_of(dtype): dtype for dtype in CHOICES.get(name, (name,))}
    is_open = name in CHOICES

    def put(array: Any, numbers: list[Any], choice: Choice) -> None:
        if array is None and spec.may_be_none:
            numbers.extend(nothing)
            return
        dtype = allowed.get(array.dtype)
        if dtype is None or array.ndim != ndim or not array.flags.c_contiguous:
            raise TypeError(
                f"a kernel takes {name} of {ndim} dimensions, not {array.dtype} {array.strides}"
            )
        if is_open and choice.setdefault(name, dtype) != dtype:
            raise TypeError(f"a kernel takes {choice[name]}, not {dtype}")
        numbers.append(_word_at(id(array) + _DATA).value if _IS_THERE else array.ctypes.data)
        numbers.extend(array.shape)

    return put


def format_of(spec: Spec, choice: Choice) -> str:
    """What packs an argument: 64 bits for each number."""
    if isinstance(spec, Record):
        return "".join(format_of(f, choice) for f in spec.fields)
    if isinstance(spec, Optional):
        return format_of(spec.inner, choice) if choice[spec.name] else ""
    numbers = {"uint64": "Q", "float64": "d"}
    return "q" * (1 + spec.ndim) if spec.ndim else numbers.get(str(spec.dtype), "q")
