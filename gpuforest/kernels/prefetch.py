"""A hint to the processor, which Numba lacks: memory that will be read soon."""

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Fetch the contiguous array's item at this flat index into cache, without waiting."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, values[0]).data
        address = builder.bitcast(builder.gep(data, [values[1]]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kinds = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
        hint = builder.module.declare_intrinsic("llvm.prefetch", [address.type], kinds)
        # to be read, and more than once, as data
        builder.call(hint, [address, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.none(array, index), generate
