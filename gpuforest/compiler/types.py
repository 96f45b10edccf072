"""The types of what kernels take: annotations of their parameters and of the fields of records.

A kernel is compiled for these types and no others, so that no value that a user passes compiles
anything. Arrays are C-contiguous. A name that stands for several types, such as `code`, is the
same type in all of a kernel's arguments; the kernel is compiled for each.

A record is a named tuple, or a dataclass: kernels see those of its fields and properties that are
annotated with a type. Its Numba type, its C++ struct (see structs.py) and its arrays follow from
this declaration. A field is annotated with a name from below, or with a text such as "i64[S, C]",
which also says what its dimensions count.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Hashable, Iterator
from dataclasses import is_dataclass
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np

Choice = dict[str, Any]  # what a name in CHOICES stands for; whether an optional record is there


class Type(NamedTuple):
    """A number (ndim 0) or an array of numbers or structs. `dtype` is a NumPy dtype's name, or a
    name that stands for several (see `CHOICES`), or a named tuple whose fields are numbers: the
    struct. `shape` says what the dimensions count, where the annotation does. An array that may be
    None is then passed as one of no elements."""

    dtype: str | type
    ndim: int = 0
    shape: tuple[str, ...] = ()
    may_be_none: bool = False


# what stands for several types
CHOICES = {
    "code": ("uint8", "uint16"),  # bins
    "target": ("int32", "int64"),  # class codes, or moments
    "value": ("float32", "float64"),  # of X
}


class Record(NamedTuple):
    """A record, by the names and types of its fields."""

    kind: Any  # the named tuple that Numba knows it as: its own class, or one for a dataclass
    names: tuple[str, ...]
    fields: tuple[Any, ...]
    values: Callable[[Any], tuple[Any, ...]]  # of the fields of a record


class Optional(NamedTuple):
    """A record that may be None; then the code that needs it is not compiled."""

    name: str
    inner: Any


Array = Any
Bool = Annotated[bool, Type("bool")]
I64 = Annotated[int, Type("int64")]
U64 = Annotated[int, Type("uint64")]
F64 = Annotated[float, Type("float64")]
Bools = Annotated[Array, Type("bool", 1)]
Bools2 = Annotated[Array, Type("bool", 2)]
I8s = Annotated[Array, Type("int8", 1)]
U8s = Annotated[Array, Type("uint8", 1)]
U16s = Annotated[Array, Type("uint16", 1)]
U32s = Annotated[Array, Type("uint32", 1)]
I32s = Annotated[Array, Type("int32", 1)]
I32s2 = Annotated[Array, Type("int32", 2)]
I64s = Annotated[Array, Type("int64", 1)]
I64s2 = Annotated[Array, Type("int64", 2)]
I64s3 = Annotated[Array, Type("int64", 3)]
U64s = Annotated[Array, Type("uint64", 1)]
U64s2 = Annotated[Array, Type("uint64", 2)]
F64s = Annotated[Array, Type("float64", 1)]
F64s2 = Annotated[Array, Type("float64", 2)]
F64s3 = Annotated[Array, Type("float64", 3)]
Codes = Annotated[Array, Type("code", 1)]
Codes2 = Annotated[Array, Type("code", 2)]
Targets2 = Annotated[Array, Type("target", 2)]
Values = Annotated[Array, Type("value", 1)]
Values2 = Annotated[Array, Type("value", 2)]

Spec = Any  # Type, Record or Optional


def spec_of(annotation: Any, name: str = "") -> Spec:
    """The specification of an annotated parameter or field of this name."""
    if get_origin(annotation) is Annotated:
        form = annotation.__metadata__[0]
        if isinstance(form, Type):
            return form
        short, _, letters = form.removesuffix("]").partition("[")  # as in "i64[S, C]"
        shape = tuple(letters.split(", ")) if letters else ()
        may_be_none = NoneType in get_args(annotation.__origin__)
        return Type(SHORT.get(short, short), len(shape), shape, may_be_none)
    if get_origin(annotation) in (Union, UnionType):
        (inner,) = (a for a in get_args(annotation) if a is not NoneType)
        return Optional(name, spec_of(inner))
    return record_of(annotation)


@cache
def record_of(kind: Hashable) -> Record:
    fields = {name: spec_of(hint, name) for name, hint in hints_of(kind).items()}
    names = tuple(fields)
    if is_dataclass(kind):
        named: Any = namedtuple(getattr(kind, "__name__", ""), names)  # type: ignore[misc]
        return Record(named, names, tuple(fields.values()), attrgetter(*names))
    return Record(kind, names, tuple(fields.values()), tuple)


def hints_of(kind: Any) -> dict[str, Any]:
    """The annotations of those fields and properties of a record that kernels see."""
    hints = get_type_hints(kind, include_extras=True)
    if not is_dataclass(kind):
        return {name: hints[name] for name in kind._fields}
    for name, value in vars(kind).items():
        if isinstance(value, property):
            hints[name] = get_type_hints(value.fget, include_extras=True).get("return")
    return {  # numbers, arrays, and records of these
        name: hint
        for name, hint in hints.items()
        if get_origin(hint) is Annotated or (is_dataclass(hint) and hints_of(hint))
    }


def new_arrays(kind: Any, make: Callable[..., Any], **sizes: int) -> dict[str, Any]:
    """New arrays for the fields of a record whose dimensions all have a size, by their names, from
    a function of a shape and a dtype, such as `numpy.zeros`."""
    spec = record_of(kind)
    return {
        name: make(tuple(sizes[letter] for letter in form.shape), dtype=dtype_of(form.dtype))
        for name, form in zip(spec.names, spec.fields, strict=True)
        if isinstance(form, Type) and form.shape and sizes.keys() >= set(form.shape)
    }


def as_tuple(record: Any, change: Callable[[Any], Any]) -> Any:
    """A record as the named tuple that Numba knows, with each array and number changed."""
    kind: Any = type(record)
    spec = record_of(kind)
    parts = []
    for field, value in zip(spec.fields, spec.values(record), strict=True):
        if isinstance(field, Record):
            parts.append(as_tuple(value, change))
        elif value is None and isinstance(field, Type):
            parts.append(change(np.empty((0,) * field.ndim, dtype_of(field.dtype))))
        elif field.ndim:
            parts.append(change(value))
        else:
            parts.append(dtype_of(field.dtype).type(value).item())
    return spec.kind(*parts)


def names_of(spec: Spec) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The names in a specification that stand for several types, and what they may be."""
    if isinstance(spec, Type):
        if spec.dtype in CHOICES:
            yield spec.dtype, CHOICES[spec.dtype]
    elif isinstance(spec, Optional):
        yield spec.name, (False, True)
        yield from names_of(spec.inner)
    else:
        for field in spec.fields:
            yield from names_of(field)


SHORT = {
    "i8": "int8", "u8": "uint8", "u16": "uint16", "i32": "int32", "u32": "uint32", "i64": "int64",
    "u64": "uint64", "f32": "float32", "f64": "float64",
}  # fmt: skip
DTYPES = {name: np.dtype(name) for name in ("bool", *SHORT.values())}


@cache
def dtype_of(dtype: str | type) -> np.dtype[Any]:
    """The NumPy dtype of this name; or that of a struct, with the layout of C."""
    if isinstance(dtype, str):
        return DTYPES[dtype]
    fields = spec_of(dtype).fields
    names = zip(dtype._fields, fields, strict=True)  # type: ignore[attr-defined]
    return np.dtype([(name, dtype_of(field.dtype)) for name, field in names], align=True)
