"""What the functions of intrinsics.py are in compiled kernels: instructions of LLVM."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel.models import PrimitiveModel
from numba.extending import intrinsic, overload, register_jitable, register_model

from gpuforest.compiler import intrinsics
from gpuforest.compiler.processors import family

WORD, NUMBER, NOTHING = ir.IntType(64), ir.IntType(32), ir.VoidType()
VECTOR = ir.VectorType(ir.DoubleType(), intrinsics.LANES)
PAIR = ir.VectorType(WORD, 2)
INLINE: Any = {"forceinline": True, "no_cpython_wrapper": True}


class FourType(types.Type):
    """Numba's type of four numbers."""


FOUR = FourType("four")


@register_model(FourType)
class FourModel(PrimitiveModel):
    """It is a vector, in registers and in memory."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, VECTOR)


def native(function: Any, signature: Callable[..., Any]) -> Callable[[Any], Any]:
    """Compile the decorated function's instructions in place of a function of intrinsics.py, where
    `signature`, of Numba's types of the arguments, returns the call's signature and not None."""
    names = ", ".join(inspect.signature(function).parameters)

    def register(generate: Any) -> Any:
        known = {"signature": signature, "generate": generate}
        known["code"] = intrinsic(eval(f"lambda _, {names}: (signature({names}), generate)", known))
        text = f"lambda {names}: (lambda {names}: code({names})) if signature({names}) else None"
        overload(function, jit_options=INLINE)(eval(text, known))
        return generate

    return register


def address(
    context: Any, builder: Any, signature: Any, values: Any, first: int = 0, kind: Any = None
) -> Any:
    """The address of an item: of the array that is argument `first`, at the index after it."""
    data = context.make_array(signature.args[first])(context, builder, values[first]).data
    item = builder.gep(data, [values[first + 1]])
    return item if kind is None else builder.bitcast(item, kind.as_pointer())


@native(intrinsics.load, lambda array, i: FOUR(array, i))
def _load(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return builder.load(address(context, builder, signature, values, kind=VECTOR), align=8)


@native(intrinsics.store, lambda array, i, four: types.none(array, i, four))
def _store(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    to = address(context, builder, signature, values, kind=VECTOR)
    builder.store(values[2], to, align=8)
    return context.get_dummy_value()


@native(intrinsics.four_of, lambda value: FOUR(types.float64))
def _four_of(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    four = ir.Constant(VECTOR, ir.Undefined)
    for lane in range(intrinsics.LANES):
        four = builder.insert_element(four, values[0], NUMBER(lane))
    return four


@native(intrinsics.total, lambda four: types.float64(FOUR))
def _total(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    a, b, c, d = (
        builder.extract_element(values[0], NUMBER(lane)) for lane in range(intrinsics.LANES)
    )
    return builder.fadd(builder.fadd(a, b), builder.fadd(c, d))


@native(intrinsics.add_pair, lambda cells, at, stats, i: types.none(cells, at, stats, i))
def _add_pair(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    to, source = (address(context, builder, signature, values, first, PAIR) for first in (0, 2))
    sums = builder.add(builder.load(to, align=8), builder.load(source, align=8))
    builder.store(sums, to, align=8)
    return context.get_dummy_value()


@native(intrinsics.load_shared, lambda array, i: types.int64(array, i))
def _load_shared(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return builder.load_atomic(address(context, builder, signature, values), "acquire", 8)


@native(intrinsics.store_shared, lambda array, i, value: types.none(array, i, types.int64))
def _store_shared(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    to = address(context, builder, signature, values)
    builder.store_atomic(values[2], to, "release", 8)
    return context.get_dummy_value()


@native(intrinsics.add_shared, lambda array, i, value: types.int64(array, i, types.int64))
def _add_shared(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    to = address(context, builder, signature, values)
    return builder.atomic_rmw("add", to, values[2], "seq_cst")


@native(intrinsics.pause, lambda: types.none())
def _pause(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    if family() == "x86_64":  # LLVM could not compile the hint of arm64, which does nothing there
        kind = ir.FunctionType(NOTHING, [])
        hint = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause")
        builder.call(hint, [])
    return context.get_dummy_value()


@native(intrinsics.prefetch, lambda array, index: types.none(array, index))
def _prefetch(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    item = address(context, builder, signature, values, kind=ir.IntType(8))
    kind = ir.FunctionType(NOTHING, [item.type, NUMBER, NUMBER, NUMBER])
    hint = builder.module.declare_intrinsic("llvm.prefetch", [item.type], kind)
    # to be read more than once, as data
    builder.call(hint, [item, NUMBER(0), NUMBER(3), NUMBER(1)])
    return context.get_dummy_value()


register_jitable(intrinsics.times)


for _operator, _name in (
    (operator.add, "fadd"), (operator.sub, "fsub"),
    (operator.mul, "fmul"), (operator.truediv, "fdiv"),
):  # fmt: skip

    @native(_operator, lambda a, b: FOUR(a, b) if a == b == FOUR else None)
    def _arithmetic(context: Any, builder: Any, _: Any, values: Any, name: str = _name) -> Any:
        return getattr(builder, name)(*values)
