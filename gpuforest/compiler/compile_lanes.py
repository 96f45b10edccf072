"""How kernels compile the four numbers of lanes.py: as vectors of LLVM."""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.datamodel.models import PrimitiveModel
from numba.extending import intrinsic, overload, register_model

from gpuforest.compiler import lanes

VECTOR = ir.VectorType(ir.DoubleType(), lanes.LANES)
INLINE: Any = {"forceinline": True, "no_cpython_wrapper": True}


class FourType(types.Type):
    """Numba's type of four numbers."""

    def __init__(self) -> None:
        super().__init__(name="four")


FOUR = FourType()


@register_model(FourType)
class FourModel(PrimitiveModel):
    """It is a vector, in registers and in memory."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, VECTOR)


def _address(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    data = context.make_array(signature.args[0])(context, builder, values[0]).data
    return builder.bitcast(builder.gep(data, [values[1]]), VECTOR.as_pointer())


@intrinsic
def _load(typing_context: Any, array: Any, i: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load(_address(context, builder, signature, values), align=8)

    return FOUR(array, i), generate


@intrinsic
def _store(typing_context: Any, array: Any, i: Any, four: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        to = _address(context, builder, signature, values)
        builder.store(values[2], to, align=8)
        return context.get_dummy_value()

    return types.none(array, i, four), generate


@intrinsic
def _four_of(typing_context: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        found = ir.Constant(VECTOR, ir.Undefined)
        for lane in range(lanes.LANES):
            found = builder.insert_element(found, values[0], ir.Constant(ir.IntType(32), lane))
        return found

    return FOUR(types.float64), generate


@intrinsic
def _total(typing_context: Any, four: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        a, b, c, d = (
            builder.extract_element(values[0], ir.Constant(ir.IntType(32), lane))
            for lane in range(lanes.LANES)
        )
        return builder.fadd(builder.fadd(a, b), builder.fadd(c, d))

    return types.float64(FOUR), generate


def _arithmetic(instruction: str) -> Any:
    @intrinsic
    def operate(typing_context: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return getattr(builder, instruction)(*values)

        return FOUR(FOUR, FOUR), generate

    def operation(a, b):  # type: ignore[no-untyped-def]
        if isinstance(a, FourType) and isinstance(b, FourType):
            return lambda a, b: operate(a, b)  # type: ignore[call-arg]
        return None

    return operation


for _operator, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    overload(_operator, jit_options=INLINE)(_arithmetic(_instruction))


@overload(lanes.load, jit_options=INLINE)
def _inline_load(array, i):  # type: ignore[no-untyped-def]
    return lambda array, i: _load(array, i)  # type: ignore[call-arg]


@overload(lanes.store, jit_options=INLINE)
def _inline_store(array, i, four):  # type: ignore[no-untyped-def]
    return lambda array, i, four: _store(array, i, four)  # type: ignore[call-arg]


@overload(lanes.four_of, jit_options=INLINE)
def _inline_four_of(value):  # type: ignore[no-untyped-def]
    return lambda value: _four_of(value)  # type: ignore[call-arg]


@overload(lanes.total, jit_options=INLINE)
def _inline_total(four):  # type: ignore[no-untyped-def]
    return lambda four: _total(four)  # type: ignore[call-arg]
