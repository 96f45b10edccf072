"""The types of what kernels take: annotations of their parameters and of the fields of records.

A kernel is compiled for these types and no others, so that no value that a user passes compiles
anything. Arrays are C-contiguous. A name that stands for several types, such as `code`, is the
same type in all of a kernel's arguments; the kernel is compiled for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np

Choice = dict[str, Any]  # what a name in CHOICES stands for; whether an optional record is there


class Type(NamedTuple):
    """A number (ndim 0) or an array of numbers or structs.

    `dtype` is a NumPy dtype's name, or a name that stands for several (see `CHOICES`), or a named
    tuple whose fields are numbers: the struct.
    """

    dtype: str | type
    ndim: int = 0

    def dtype_in(self, choice: Choice) -> str | type:
        """The dtype's name, given what names stand for; or the struct."""
        return choice.get(self.dtype, self.dtype) if isinstance(self.dtype, str) else self.dtype


# what stands for several types
CHOICES = {
    "code": ("uint8", "uint16"),  # bins
    "target": ("int32", "int64"),  # class codes, or moments
    "value": ("float32", "float64"),  # of X
}


class Record(NamedTuple):
    """A named tuple, by the types of its fields."""

    kind: type
    fields: tuple[Any, ...]


class Optional(NamedTuple):
    """A record that may be None; then the code that needs it is not compiled."""

    name: str
    inner: Any


Array = Any
Bool = Annotated[bool, Type("bool")]
I64 = Annotated[Any, Type("int64")]
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
U64s3 = Annotated[Array, Type("uint64", 3)]
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
        return annotation.__metadata__[0]
    if get_origin(annotation) in (Union, UnionType):
        (inner,) = (a for a in get_args(annotation) if a is not NoneType)
        return Optional(name, spec_of(inner))
    hints = get_type_hints(annotation, include_extras=True)
    return Record(annotation, tuple(spec_of(hints[f], f) for f in annotation._fields))


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


def choices_of(specs: list[Spec], given: Choice) -> list[Choice]:
    """All choices of the types of a kernel's arguments, those of `given` names being given."""
    found = {name: values for spec in specs for name, values in names_of(spec)}
    found |= {name: (value,) for name, value in given.items() if name in found}
    return [dict(zip(found, values, strict=True)) for values in product(*found.values())]


DTYPES = {
    name: np.dtype(name)
    for name in (
        "bool", "int8", "uint8", "uint16", "int32", "uint32", "int64", "uint64", "float32",
        "float64",
    )
}  # fmt: skip


@cache
def dtype_of(dtype: str | type) -> np.dtype[Any]:
    """The NumPy dtype of this name; or that of a struct, with the layout of C."""
    if isinstance(dtype, str):
        return DTYPES[dtype]
    fields = spec_of(dtype).fields
    names = zip(dtype._fields, fields, strict=True)  # type: ignore[attr-defined]
    return np.dtype([(name, dtype_of(field.dtype)) for name, field in names], align=True)


def allocated(record: type, **shapes: int | tuple[int, ...]) -> Any:
    """A record of new arrays of these shapes, whose dtypes are those that it declares."""
    fields = zip(record._fields, spec_of(record).fields, strict=True)  # type: ignore[attr-defined]
    return record(**{name: np.empty(shapes[name], dtype_of(field.dtype)) for name, field in fields})
