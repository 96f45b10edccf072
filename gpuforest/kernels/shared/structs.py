"""The structs that CUDA kernels take by value, each declared once: C++ gets its text from here.

A field's annotation names its C++ type. An array is passed as a pointer to its first element;
None, where it may be absent, as a null pointer. Letters are those of dtypes.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, NamedTuple, get_type_hints

import numpy as np

from gpuforest.compiler.types import Type
from gpuforest.engine.criteria import SQUARED_ERROR

Array = Any

I32 = Annotated[int, "i32"]
I64 = Annotated[int, "i64"]
F64 = Annotated[float, "double"]
U16 = Annotated[int, "u16"]
Codes8or16 = Annotated[Array, "const CODE*"]
TargetArray = Annotated[Array, "const TARGET*"]
U8s = Annotated[Array, "const u8*"]
Bools = Annotated[Array, "const bool*"]
Signs = Annotated[Array, "const i8*"]
I8s = Annotated[Array, "const i8*"]
I32s = Annotated[Array, "const i32*"]
I64s = Annotated[Array, "const i64*"]
U64s = Annotated[Array, "const u64*"]
F64s = Annotated[Array, "const double*"]
ValuesOut = Annotated[Array, "VALUE*"]
BoolsOut = Annotated[Array, "bool*"]
I8sOut = Annotated[Array, "i8*"]
I32sOut = Annotated[Array, "i32*"]
I64sOut = Annotated[Array, "i64*"]
U64sOut = Annotated[Array, "u64*"]
F64sOut = Annotated[Array, "double*"]
Sums = Annotated[Array, "const SUM*"]
SumsOut = Annotated[Array, "SUM*"]

DTYPES = {
    name: np.dtype(dtype)
    for name, dtype in {
        "bool": np.bool_,
        "i8": np.int8,
        "u8": np.uint8,
        "u16": np.uint16,
        "u32": np.uint32,
        "i32": np.int32,
        "i64": np.int64,
        "u64": np.uint64,
        "float": np.float32,
        "double": np.float64,
    }.items()
}


class Codes(NamedTuple):
    """A matrix of codes [N, stride]; the first F codes of a row are its features."""

    at: Codes8or16
    F: I64
    B: I64
    stride: I64


class Columns(NamedTuple):
    """Columns VALUE[F, n], of which each is in `spare` where swapped i32[F] is not zero."""

    at: ValuesOut
    spare: ValuesOut
    swapped: I32s
    n: I64


class Targets(NamedTuple):
    """Targets of C channels: a class code of each row, or C - 1 moments. Those of row r begin at
    at[first + r * stride]; rows of codes may hold class codes, see `cuda_targets.targets_of`."""

    at: TargetArray
    first: I64
    stride: I64
    C: I64


class Slots(NamedTuple):
    """Slot s holds rows[begin[s] .. end[s] - 1], with their weights."""

    rows: I32s
    weights: I32s
    begin: I64s
    end: I64s


class Fields(NamedTuple):
    """What is known of S slots, as in frontier.Frontier; sums i64[S, C]."""

    tree: I32sOut
    key: U64sOut
    n_rows: I64sOut
    begin: I64sOut
    end: I64sOut
    sums: I64sOut
    constant: BoolsOut
    depth: I32sOut


class Kinds(NamedTuple):
    """What becomes of S slots, see number_kinds; a block takes a span of them."""

    kind: I8sOut
    rank: I64sOut
    counts: I64sOut
    tiles: I64sOut
    S: I64
    span: I64


class Ends(NamedTuple):
    """A slot of fewer rows, or as deep, is a leaf; one of at most `deep_rows` rows is deep."""

    fewest: I64
    max_depth: I64
    deep_rows: I64


class Tiles(NamedTuple):
    """The rows of S slots in tiles of `size`; first i64[S + 1] counts the tiles before a slot's."""

    first: I64s
    size: I64
    S: I64


class Histograms(NamedTuple):
    """cells SUM[S, k, B, channels]: C channels, and one more where rows are counted. SUM is i32 for
    classes, whose total weight stays below 2**31, and else i64."""

    cells: SumsOut
    S: I64
    k: I64
    B: I64
    C: I64
    channels: I64


class Draws(NamedTuple):
    """How S slots draw k of F features. varies i32[S, F]: 1 if a feature is known to vary,
    else 0; `allowed` bool[T, F] holds the features that the trees drew, None: they have all."""

    key: U64s
    tree: I32s
    allowed: Bools
    varies: I32sOut
    F: I64
    k: I64


class Nodes(NamedTuple):
    """The nodes of S slots, as cuts need them; bounds f64[S, 2], or None if there are none."""

    sums: I64s
    n_rows: I64s
    key: U64s
    bounds: F64s


class CutRules(NamedTuple):
    """The limits on cuts: n_bins i32[F], bins that may hold rows, but for missing values; signs
    i8[F] or None; and the table of n ln n."""

    n_bins: I32s
    signs: Signs
    table: I64s
    min_weight: I64
    min_rows: I32
    random: I32


class Splits(NamedTuple):
    """The best splits of S slots so far; left i64[S, C]."""

    score: F64sOut
    feature: I32sOut
    bin: I32sOut
    missing_left: BoolsOut
    left: I64sOut
    tried: I64sOut


class Sides(NamedTuple):
    """The rules by which rows of S slots go left; sets u64[S, words] of splits by a set."""

    feature: I32s
    bin: I32s
    missing_left: Bools
    sets: U64s
    words: I64


class Combined(NamedTuple):
    """Combinations of at most L features, k of each slot: features and weights i32[S, k, L], a
    feature is -1 behind the last; coordinates i32[F, B], and the bins of a combination."""

    features: I32s
    weights: I32s
    coordinates: I32s
    k: I64
    L: I64
    n_bins: I64


class Trees(NamedTuple):
    """The nodes of T trees, which begin at `offsets`; a node's set or combination begins at
    `set_at`, and combinations add `coordinates` i32[F, B]; None: there are none."""

    nodes: U64s
    offsets: I64s
    set_at: I64s
    sets: U64s
    coordinates: I32s
    T: I64


ALL = {
    record.__name__: record
    for record in (
        Codes, Columns, Targets, Slots, Fields, Kinds, Ends, Tiles, Histograms, Draws, Nodes,
        CutRules, Splits, Sides, Combined, Trees,
    )
}  # fmt: skip


@cache
def c_types(record: type) -> dict[str, str]:
    """The C++ type of each field; numbers may be declared as in compiler/types.py."""
    hints = get_type_hints(record, include_extras=True)
    declared = {name: hints[name].__metadata__[0] for name in record._fields}  # type: ignore[attr-defined]
    return {name: c_name(t) if isinstance(t, Type) else t for name, t in declared.items()}


def c_name(number: Type) -> str:
    """The C++ type of a number."""
    return next(name for name, dtype in DTYPES.items() if dtype == number.dtype)


@cache
def dtype_of(record: type) -> np.dtype[Any]:
    """The struct with the layout of C; a pointer is a u64."""
    types = c_types(record).items()
    return np.dtype([(n, "u8" if t[-1] == "*" else DTYPES[t]) for n, t in types], align=True)


def text_of(record: type) -> str:
    """The struct in C++; it does not compile if its layout differs from `dtype_of`.

    The sizes and alignments of its fields decide the layout. NVRTC 13.0 has no `offsetof`.
    """
    name, dtype = record.__name__, dtype_of(record)
    fields = [f"  {type} {field};\n" for field, type in c_types(record).items()]
    checks = [f"sizeof({name}) == {dtype.itemsize}"]
    for field in dtype.names or ():
        own = dtype[field]
        checks.append(f"sizeof({name}::{field}) == {own.itemsize}")
        checks.append(f"alignof(decltype({name}::{field})) == {own.alignment}")
    asserts = [f'static_assert({check}, "");\n' for check in checks]
    return "".join([f"struct {name} {{\n", *fields, "};\n", *asserts])


def packed(record: Any, macros: dict[str, str], address: Callable[[Array], int]) -> np.ndarray:
    """The struct's bytes as an array without axes, which CuPy passes by value.

    macros : the kernel's macros, which define CODE and TARGET
    address : function that returns the device address of an array

    Raises
    ------
    TypeError : an array's dtype is not the one that the kernel reads
    """
    kind = record.__class__
    values: list[Any] = []
    for value, dtype in zip(record, _dtypes(kind, tuple(macros.items())), strict=True):
        if dtype is not None and value is not None:
            refuse_other(value, dtype, kind.__name__, kind._fields[len(values)])
            value = address(value)
        values.append(value or 0)
    return np.array(tuple(values), dtype=dtype_of(kind))


def refuse_other(array: Array, dtype: np.dtype[Any], owner: str, name: str) -> None:
    """Raise TypeError if a kernel would read an array otherwise than it is."""
    if array.dtype != dtype or not array.flags.c_contiguous:
        found = f"{array.dtype}{'' if array.flags.c_contiguous else ', not C-contiguous'}"
        raise TypeError(f"{owner}.{name} is an array of {found}, not {dtype}")


@cache
def _dtypes(record: type, macros: tuple[tuple[str, str], ...]) -> list[np.dtype[Any] | None]:
    """The dtype of each field that is an array, for a kernel with these macros."""
    return [
        pointed(type, dict(macros)) if type[-1] == "*" else None
        for type in c_types(record).values()
    ]


def pointed(type: str, macros: dict[str, str]) -> np.dtype[Any]:
    """The dtype of what a C++ pointer points to in a kernel with these macros; structs are words
    of 64 bits."""
    type = type.removeprefix("const ").removesuffix("*")
    if type == "SUM":
        type = "i32" if has_labels(macros) else "i64"
    return DTYPES.get(macros.get(type, type), DTYPES["i64"])


def has_labels(macros: dict[str, str]) -> bool:
    """Whether targets are class codes in a kernel with these macros, as in shared/cuda.cuh."""
    if "CRITERION" in macros:
        return int(macros["CRITERION"]) < SQUARED_ERROR
    return macros["LABELS"] == "1"
