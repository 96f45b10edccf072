"""The structs that CUDA kernels take by value, each declared once: C++ gets its text from here.

A field's annotation names its C++ type. An array is passed as a pointer to its first element;
None, where it may be absent, as a null pointer. Letters are those of dtypes.py.

A record that several launches take is a frozen dataclass, or `Reused`: launches keep its struct as
long as the record is there. Python cannot refer to a named tuple in this way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from functools import cache
from operator import attrgetter
from struct import Struct, calcsize
from typing import Annotated, Any, NamedTuple

import numpy as np

from gpuforest.compiler.types import hints_of, spec_of
from gpuforest.core.criteria import SQUARED_ERROR
from gpuforest.core.frontier import Frontier, Splits, Trees
from gpuforest.core.rules import Rules

Array = Any
Macros = tuple[tuple[str, str], ...]  # the names and the values of a kernel's macros
Packer = Callable[[Any, Callable[[Array], int]], np.ndarray]

I32 = Annotated[int, "i32"]
I64 = Annotated[int, "i64"]
U16 = Annotated[int, "u16"]
Codes8or16 = Annotated[Array, "const CODE*"]
TargetArray = Annotated[Array, "const TARGET*"]
U8s = Annotated[Array, "const u8*"]
I32s = Annotated[Array, "const i32*"]
I64s = Annotated[Array, "const i64*"]
ValuesOut = Annotated[Array, "VALUE*"]
I8sOut = Annotated[Array, "i8*"]
I32sOut = Annotated[Array, "i32*"]
I64sOut = Annotated[Array, "i64*"]
U64sOut = Annotated[Array, "u64*"]
F64sOut = Annotated[Array, "double*"]
SumsOut = Annotated[Array, "SUM*"]

# the dtypes of C++'s names; a name for several dtypes, as CODE, is a macro
DTYPES = {
    name: np.dtype(dtype)
    for dtype, name in {
        "bool": "bool", "int8": "i8", "uint8": "u8", "uint16": "u16", "int32": "i32",
        "uint32": "u32", "int64": "i64", "uint64": "u64", "float32": "float", "float64": "double",
    }.items()
}  # fmt: skip
C_NAMES = {dtype.name: name for name, dtype in DTYPES.items()} | {"f64": "double", "f32": "float"}


def record(name: str, kind: Any, fields: str) -> Any:
    """A record of numbers of one type."""
    return NamedTuple(name, [(field, kind) for field in fields.split()])


@dataclass(frozen=True, eq=False)
class Codes:
    """Codes [N, stride], F codes a row; n_bins i32[F], bins without the missing one, or None"""

    at: Codes8or16
    F: I64
    B: I64
    stride: I64
    n_bins: I32s


class Columns(NamedTuple):
    """Columns VALUE[F, n]; column f is in `spare` where swapped i32[F] is not zero."""

    at: ValuesOut
    spare: ValuesOut
    swapped: I32s
    n: I64


@dataclass(frozen=True, eq=False)
class Targets:
    """Targets of C channels: class code, or C - 1 moments, at at[first + r * stride] of row r. Rows
    of codes may hold class codes, see `cuda/launch.targets_of`."""

    at: TargetArray
    first: I64
    stride: I64
    C: I64


@dataclass(frozen=True, eq=False)
class Kinds:
    """What becomes of S slots, see number_kinds; a block takes a span of them."""

    kind: I8sOut
    rank: I64sOut
    counts: I64sOut
    tiles: I64sOut
    S: I64
    span: I64


@dataclass(frozen=True, eq=False)
class Tiles:
    """Rows of S slots in tiles of `size`; first i64[S + 1] counts tiles before a slot's.

    order : i64[...], tiles by their first rows, or null"""

    first: I64s
    order: I64s
    size: I64
    S: I64


@dataclass(frozen=True, eq=False)
class Histograms:
    """cells SUM[S, k, B, channels]: C channels, and a count of rows if needed. SUM is i32 for
    classes, whose weight stays below 2**31, else i64."""

    cells: SumsOut
    S: I64
    k: I64
    B: I64
    C: I64
    channels: I64


@dataclass(frozen=True, eq=False)
class Kept:
    """Codes that a level's histograms keep for its partition: codes u64[half] of each row, in the
    half of its position, a byte for each of the features i32[S, k] that is tried (-1: not)."""

    codes: U64sOut
    features: I32s
    k: I64
    half: I64


class Combined(NamedTuple):
    """Combinations of at most L features, k a slot: features (-1 behind the last) and weights
    i32[S, k, L]; coordinates i32[F, B]; n_bins, the bins of a combination."""

    features: I32s
    weights: I32s
    coordinates: I32s
    k: I64
    L: I64
    n_bins: I64


ALL = {
    record.__name__: record
    for record in (
        Codes, Columns, Targets, Frontier, Rules, Splits, Kinds, Tiles, Histograms, Kept, Combined,
        Trees,
    )
}  # fmt: skip


@cache
def c_types(record: type) -> dict[str, str]:
    """The C++ type of each field that is no record."""
    return {name: c for name, hint in hints_of(record).items() if (c := c_type(hint))}


def c_type(hint: Any) -> str:
    """The C++ type of an annotated field; empty for a record."""
    if is_dataclass(hint):
        return ""
    form: Any = hint.__metadata__[0]
    if isinstance(form, str) and "[" not in form:
        return str(C_NAMES.get(form, form))
    spec = spec_of(hint)
    if not isinstance(spec.dtype, str):
        return f"{spec.dtype.__name__}*"
    name: str = C_NAMES.get(spec.dtype, spec.dtype.upper())
    return f"{name}*" if spec.ndim else name


@cache
def values_of(record: type) -> Callable[[Any], tuple[Any, ...]]:
    """The function that returns the values of the fields that `c_types` names."""
    return attrgetter(*c_types(record))


@cache
def dtype_of(record: type) -> np.dtype[Any]:
    """The struct with the layout of C; a pointer is a u64."""
    types = c_types(record).items()
    return np.dtype([(n, "u8" if t[-1] == "*" else DTYPES[t]) for n, t in types], align=True)


def text_of(record: type) -> str:
    """The struct in C++; it does not compile if its layout differs from `dtype_of`. Sizes and
    alignments decide the layout: NVRTC 13.0 has no `offsetof`."""
    name, dtype = record.__name__, dtype_of(record)
    fields = [f"  {type} {field};\n" for field, type in c_types(record).items()]
    checks = [f"sizeof({name}) == {dtype.itemsize}"]
    for field in dtype.names or ():
        layout = dtype[field]
        checks.append(f"sizeof({name}::{field}) == {layout.itemsize}")
        checks.append(f"alignof(decltype({name}::{field})) == {layout.alignment}")
    asserts = [f'static_assert({check}, "");\n' for check in checks]
    return "".join([f"struct {name} {{\n", *fields, "};\n", *asserts])


@cache
def packer_of(kind: type, macros: Macros) -> Packer:
    """The function that packs records of a kind for kernels with these macros.

    It takes a record and a function that returns the device address of an array. It returns the
    struct as an array without axes, which CuPy passes by value. The array has plain bytes, because
    CuPy lists the fields of a dtype at each launch. None and arrays without elements become null
    pointers.

    macros : the kernel's macros, which define CODE and TARGET

    Raises
    ------
    TypeError : an array's dtype is not the one that the kernel reads, or it is not C-contiguous"""
    types = c_types(kind).values()
    return _packer(kind, tuple(pointed(t, macros) if t[-1] == "*" else None for t in types))


@cache
def _packer(kind: type, dtypes: tuple[np.dtype[Any] | None, ...]) -> Packer:
    """`packer_of` for fields that are arrays of these dtypes, or numbers: None."""
    layout, values_in, names = dtype_of(kind), values_of(kind), list(c_types(kind))
    letters = [layout[name].char for name in names]
    pack = Struct(f"{''.join(letters)}0{max(letters, key=calcsize)}").pack  # ends aligned
    plain = np.dtype(f"V{layout.itemsize}")

    def packed(record: Any, address: Callable[[Array], int]) -> np.ndarray:
        numbers: list[Any] = []
        for value, dtype in zip(values_in(record), dtypes, strict=True):
            if dtype is not None:
                if value is None:
                    value = 0
                elif value.dtype == dtype and value.flags.c_contiguous:
                    value = address(value) if value.size else 0
                else:
                    raise refusal(value, dtype, kind.__name__, names[len(numbers)])
            numbers.append(value)
        return np.ndarray((), plain, pack(*numbers))

    return packed


class Reused:
    """A named tuple that many launches take."""

    def __init__(self, record: Any) -> None:
        self.record = record

    def __getattr__(self, name: str) -> Any:
        return getattr(self.record, name)


def refusal(array: Array, dtype: np.dtype[Any], owner: str, name: str) -> TypeError:
    """The error where a kernel would read an array otherwise than it is."""
    found = f"{array.dtype}{'' if array.flags.c_contiguous else ', not C-contiguous'}"
    return TypeError(f"{owner}.{name} is an array of {found}, not {dtype}")


def pointed(type: str, macros: Macros) -> np.dtype[Any]:
    """The dtype of a C++ pointer's target with these macros; structs are words of 64 bits."""
    values = dict(macros)
    type = type.removeprefix("const ").removesuffix("*")
    if type == "SUM":
        type = "i32" if has_labels(values) else "i64"
    return DTYPES.get(values.get(type, type), DTYPES["i64"])


def has_labels(macros: dict[str, str]) -> bool:
    """Whether targets are class codes in a kernel with these macros, as in shared/cuda.cuh."""
    if "CRITERION" in macros:
        return int(macros["CRITERION"]) < SQUARED_ERROR
    return macros["LABELS"] == "1"
