"""What types the kernels of the numba-cuda backend take.

A type is a dtype, with its dimensions if it is an array's: i8, or i8[:,:]. Some dtypes stand for
several: codes, y and X in `KINDS`. A record's name stands for the types of its fields.
"""

from dataclasses import is_dataclass
from itertools import product
from typing import Any

import numpy as np
from numba import types
from numba.np.numpy_support import from_dtype

from gpuforest.compiler.types import Record, Spec, as_tuple, record_of
from gpuforest.core.frontier import Data, Frontier, Splits, Trees
from gpuforest.core.rules import Rules
from gpuforest.kernels.shared.records import Cuts

RECORDS = {record.__name__: record for record in (Cuts, Data, Frontier, Rules, Splits, Trees)}

# every kernel by name, and the types of its arguments
KERNELS = {
    "encode_values": "X[:,:] f8[:] i8[:] i8 codes[:,:]",
    "draw": "u8[:] i8 i8[:] i4[:,:]",
    "add_totals": "y[:,:] i4[:] i4[:] i8[:] i8[:] i8[:,:]",
    "compare_rows": "i8[:,:] i4[:] i8[:] i8[:] i8[:,:] b1[:]",
    "add_histograms": "Data Frontier i4[:,:] b1 i8[:] i8[:,:,:,:]",
    "scan_features": "Data Frontier i8[:,:,:] i4[:,:] Rules i8[:,:,:,:] f8[:,:,:] Cuts",
    "choose_features": "i4[:,:] i8[:] Cuts Splits",
    "choose_sides": "Data Frontier Splits u8[:] i8[:] i8[:]",
    "move": "i4[:] i4[:] i8[:] i8[:] i8[:]",
    "walk_rows": "Trees codes[:,:] i8[:,:]",
    "add_leaves": "Trees f8[:,:] codes[:,:] b1[:,:] f8[:,:]",
}
KINDS = {"codes": ("u1", "u2"), "y": ("i4", "i8"), "X": ("f4", "f8")}
NAMES = {"code": "codes", "target": "y", "value": "X"}  # of the same kinds in compiler/types.py


def is_record(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def words_of(spec: Spec, chosen: dict[str, str]) -> Any:
    """A record's fields in the words of `KERNELS`."""
    if isinstance(spec, Record):
        return spec.kind(*(words_of(field, chosen) for field in spec.fields))
    name = NAMES.get(spec.dtype)
    word = chosen[name] if name else np.dtype(spec.dtype).str[1:]
    return f"{word}[{','.join(':' * spec.ndim)}]" if spec.ndim else word


def signatures(kernel: str) -> list[tuple[Any, ...]]:
    """The types of a kernel's arguments, once for each choice of the dtypes that kinds stand for.

    Those of a record are a named tuple of its fields.
    """

    def parsed(text: str, chosen: dict[str, str]) -> list[Any]:
        found: list[Any] = []
        for word in text.split():
            dtype, bracket, dimensions = word.partition("[")
            if word in RECORDS:
                found.append(words_of(record_of(RECORDS[word]), chosen))
            else:
                found.append(chosen.get(dtype, dtype) + bracket + dimensions)
        return found

    choices = [dict(zip(KINDS, dtypes, strict=True)) for dtypes in product(*KINDS.values())]
    return list(dict.fromkeys(tuple(parsed(KERNELS[kernel], chosen)) for chosen in choices))


def described(value: Any) -> Any:
    """The type of an argument, in the same words; `value` is an array, a number or a record."""
    if is_dataclass(value):
        value = as_tuple(value, lambda part: part)
    if is_record(value):
        return type(value)(*map(described, value))
    if isinstance(value, bool | int | float):
        return {bool: "b1", int: "i8", float: "f8"}[type(value)]
    dtype = value.dtype.str[1:]
    return f"{dtype}[{','.join(':' * value.ndim)}]" if value.ndim else dtype


def numba_type(word: Any) -> Any:
    """The type that Numba gives to such an argument; arrays are contiguous."""
    if is_record(word):
        return types.BaseTuple.from_types([numba_type(one) for one in word], type(word))
    dtype, bracket, dimensions = word.partition("[")
    one = from_dtype(np.dtype(dtype))
    return types.Array(one, dimensions.count(":"), "C") if bracket else one
