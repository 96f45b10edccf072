"""Numba compiles a kernel into machine code, in a process of its own.

`error_model="numpy"` drops the zero-division check, which keeps loops from being vectorised; no
fast-math and no contraction, which would change bits. The code of a kernel is one function

    i64 name(i64 *numbers)      integers; bits of floats; the address and the shape of an array

which calls what Numba compiled. It needs nothing of Numba or Python, so it runs without them.
"""

from __future__ import annotations

import platform
from typing import Any

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import intrinsic, overload, register_jitable, typeof_impl
from numba.np.arrayobj import populate_array
from numba.np.numpy_support import from_dtype

from gpuforest.compiler import atomics, compile_lanes
from gpuforest.compiler.code import symbol_of
from gpuforest.compiler.decorators import Helper, Kernel
from gpuforest.compiler.helper_compiler import HelperCompiler, KernelCompiler
from gpuforest.compiler.link import linked, linker
from gpuforest.compiler.object_code import target_machine
from gpuforest.compiler.pairs import add_pair
from gpuforest.compiler.prefetch import prefetch
from gpuforest.compiler.processors import Target
from gpuforest.compiler.times import times
from gpuforest.compiler.types import Choice, Optional, Record, Spec, dtype_of

WORD = ir.IntType(64)
# The last three are options that Numba has, and keeps out of its documents and types: nothing
# is allocated, so arrays need no reference counts; and nothing but kernels is called
OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,
    "no_cfunc_wrapper": True,
    "no_cpython_wrapper": True,
}


# Releases of Numba with the inside that helper_compiler.py knows; others compile longer
KNOWN = (0, 61) <= numba.version_info[:2] <= (0, 68)
HELPERS, KERNELS = (HelperCompiler, KernelCompiler) if KNOWN else (Compiler, Compiler)


def njit(function: Any, inline: bool, compiler: type = HELPERS) -> Any:
    """The function as Numba compiles it, for each type but not for each constant."""
    dispatcher = numba.njit(**OPTIONS, forceinline=inline, pipeline_class=compiler)(function)
    template = dispatcher.get_call_template

    def plain_template(args: Any, kwargs: dict[str, Any]) -> Any:
        plain = [types.unliteral(a) for a in args]
        return template(plain, {name: types.unliteral(a) for name, a in kwargs.items()})

    dispatcher.get_call_template = plain_template
    return dispatcher


@typeof_impl.register(Helper)
def type_of_helper(helper: Helper, context: Any) -> Any:
    """The type of a helper, as kernels find it among their globals."""
    if helper.dispatcher is None:
        helper.dispatcher = njit(helper.function, helper.inline)
    return types.Dispatcher(helper.dispatcher)


def numba_type(spec: Spec, choice: Choice) -> Any:
    """Numba's type of an argument or field."""
    if isinstance(spec, Record):
        return types.NamedTuple([numba_type(f, choice) for f in spec.fields], spec.kind)
    if isinstance(spec, Optional):
        return numba_type(spec.inner, choice) if choice[spec.name] else types.none
    dtype = spec.dtype_in(choice)
    scalar = getattr(types, dtype) if isinstance(dtype, str) else from_dtype(dtype_of(dtype))
    return types.Array(scalar, spec.ndim, "C") if spec.ndim else scalar


@intrinsic
def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
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


_INLINE = compile_lanes.INLINE


@overload(prefetch, jit_options=_INLINE)
def _inline_prefetch(array, index):  # type: ignore[no-untyped-def]
    return lambda array, index: _prefetch(array, index)  # type: ignore[call-arg]


@intrinsic
def _add_pair(typing_context: Any, cells: Any, at: Any, stats: Any, i: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pair = ir.VectorType(WORD, 2)

        def address(array: int, index: int) -> Any:
            data = context.make_array(signature.args[array])(context, builder, values[array]).data
            return builder.bitcast(builder.gep(data, [values[index]]), pair.as_pointer())

        to, source = address(0, 1), address(2, 3)
        total = builder.add(builder.load(to, align=8), builder.load(source, align=8))
        builder.store(total, to, align=8)
        return context.get_dummy_value()

    return types.none(cells, at, stats, i), generate


@overload(add_pair, jit_options=_INLINE)
def _inline_add_pair(cells, at, stats, i):  # type: ignore[no-untyped-def]
    return lambda cells, at, stats, i: _add_pair(cells, at, stats, i)  # type: ignore[call-arg]


@intrinsic
def _load(typing_context: Any, array: Any, i: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load_atomic(address_in(context, builder, signature, values), "acquire", 8)

    return types.int64(array, i), generate


@intrinsic
def _store(typing_context: Any, array: Any, i: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        to = address_in(context, builder, signature, values)
        builder.store_atomic(values[2], to, "release", 8)
        return context.get_dummy_value()

    return types.none(array, i, types.int64), generate


@intrinsic
def _add(typing_context: Any, array: Any, i: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        to = address_in(context, builder, signature, values)
        return builder.atomic_rmw("add", to, values[2], "seq_cst")

    return types.int64(array, i, types.int64), generate


@intrinsic
def _pause(typing_context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        machine = platform.machine().lower()
        if machine in ("x86_64", "amd64"):
            kind = ir.FunctionType(ir.VoidType(), [])
            hint = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause")
            builder.call(hint, [])
        elif machine in ("arm64", "aarch64"):
            kind = ir.FunctionType(ir.VoidType(), [ir.IntType(32)])
            hint = cgutils.get_or_insert_function(builder.module, kind, "llvm.aarch64.hint")
            builder.call(hint, [ir.IntType(32)(1)])  # "yield"
        return context.get_dummy_value()

    return types.none(), generate


def address_in(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    """The address of an array's item: the first two arguments of an intrinsic."""
    data = context.make_array(signature.args[0])(context, builder, values[0]).data
    return builder.gep(data, [values[1]])


@overload(atomics.load, jit_options=_INLINE)
def _inline_load(array, i):  # type: ignore[no-untyped-def]
    return lambda array, i: _load(array, i)  # type: ignore[call-arg]


@overload(atomics.store, jit_options=_INLINE)
def _inline_store(array, i, value):  # type: ignore[no-untyped-def]
    return lambda array, i, value: _store(array, i, value)  # type: ignore[call-arg]


@overload(atomics.add, jit_options=_INLINE)
def _inline_add(array, i, value):  # type: ignore[no-untyped-def]
    return lambda array, i, value: _add(array, i, value)  # type: ignore[call-arg]


@overload(atomics.pause, jit_options=_INLINE)
def _inline_pause():  # type: ignore[no-untyped-def]
    return lambda: _pause()  # type: ignore[call-arg]


register_jitable(times)


class Words:
    """The words of a kernel's arguments, which are read one after another."""

    def __init__(self, builder: Any, address: Any) -> None:
        self.builder, self.address, self.n = builder, address, 0

    def next(self) -> Any:
        at = self.builder.gep(self.address, [ir.IntType(32)(self.n)])
        self.n += 1
        return self.builder.load(at)

    def value(self, context: Any, kind: Any) -> Any:
        """The value of a Numba type."""
        builder = self.builder
        if isinstance(kind, types.NamedTuple):
            return context.make_tuple(builder, kind, [self.value(context, t) for t in kind.types])
        if isinstance(kind, types.Array):
            return self.array(context, kind)
        if kind is types.none:
            return context.get_dummy_value()
        word = self.next()
        if isinstance(kind, types.Boolean):
            return builder.icmp_unsigned("!=", word, WORD(0))
        return builder.bitcast(word, ir.DoubleType()) if kind is types.float64 else word

    def array(self, context: Any, kind: Any) -> Any:
        builder, found = self.builder, context.make_array(kind)(context, self.builder)
        item = context.get_data_type(kind.dtype)
        data = builder.inttoptr(self.next(), item.as_pointer())
        shape = [self.next() for _ in range(kind.ndim)]
        itemsize = WORD(context.get_abi_sizeof(item))
        strides = [itemsize]
        for n in shape[:0:-1]:
            strides.insert(0, builder.mul(strides[0], n))
        populate_array(
            found,
            data=data,
            shape=cgutils.pack_array(builder, shape),
            strides=cgutils.pack_array(builder, strides),
            itemsize=itemsize,
            meminfo=None,
        )
        return found._getvalue()


@global_compiler_lock  # type: ignore[untyped-decorator]
def module_of(kernel: Kernel, choice: Choice) -> Any:
    """A kernel and all that it calls, in LLVM's code, not optimised yet."""
    name = symbol_of(kernel.name_of(choice))
    kinds = tuple(numba_type(spec, choice) for spec in kernel.specs)
    checks = kernel.checked is not None and kernel.checked.items() <= choice.items()
    dispatcher = njit(kernel.function, inline=False, compiler=HELPERS if checks else KERNELS)
    dispatcher.compile(kinds)
    compiled = dispatcher.overloads[kinds]
    context = compiled.target_context
    module = context.codegen()._create_empty_module(name)
    entry = ir.Function(module, ir.FunctionType(WORD, [WORD.as_pointer()]), name)
    builder = ir.IRBuilder(entry.append_basic_block())
    words = Words(builder, entry.args[0])
    values = [words.value(context, kind) for kind in kinds]
    callee = context.declare_function(module, compiled.fndesc)
    status, _ = context.call_conv.call_function(
        builder, callee, types.none, kinds, values
    )  # fmt: skip
    builder.ret(builder.zext(status.is_error, WORD))
    whole = llvm.parse_assembly(cgutils.normalize_ir_text(str(module)))
    whole.link_in(compiled.library._get_module_for_linking(), preserve=True)
    # inlined, it would lose what is known of its arguments
    whole.get_function(callee.name).add_function_attribute("noinline")
    for value in (*whole.functions, *whole.global_variables):
        if not value.is_declaration and value.name != name:
            value.linkage = "internal"
    return whole


def optimise(module: Any, machine: Any) -> None:
    """As Numba does: first without vectors, which inlines, then with them."""
    options = llvm.create_pipeline_tuning_options(0)
    passes = llvm.create_pass_builder(machine, options)
    manager = passes.getModulePassManager()
    manager.add_loop_rotate_pass()
    manager.add_instruction_combine_pass()
    manager.add_jump_threading_pass()
    manager.run(module, passes)
    options = llvm.create_pipeline_tuning_options(3)
    options.loop_vectorization, options.slp_vectorization = True, False
    options.loop_unrolling = False  # code was no faster, and took a sixth longer to compile
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)


def machine_codes(
    kernel: Kernel, choice: Choice, targets: list[Target], library: bool = True
) -> list[bytes]:
    """The machine code of a kernel for some types, for each of the targets: shared libraries where
    these are wanted and there is a linker, else object code."""
    module, found = module_of(kernel, choice), []
    for target in targets:
        own, code = module.clone(), None
        machine = target_machine(target, library=False)
        own.data_layout = str(machine.target_data)
        optimise(own, machine)
        if library and linker():
            code = linked(target_machine(target, library=True).emit_object(own.clone()))
        found.append(code or machine.emit_object(own))
    return found
