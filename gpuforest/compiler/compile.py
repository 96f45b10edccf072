"""Numba compiles a kernel into machine code, in a process of its own.

`error_model="numpy"` drops the zero-division check, which keeps loops from being vectorised; no
fast-math and no contraction, which would change bits. The code of a kernel is one function

    i64 name(i64 *numbers)      integers; bits of floats; the address and the shape of an array

which calls what Numba compiled. It needs nothing of Numba or Python, so it runs without them.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba import _dynfunc, types  # type: ignore[attr-defined]
from numba.core import cgutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering
from numba.extending import typeof_impl
from numba.np.arrayobj import populate_array
from numba.np.numpy_support import from_dtype

from gpuforest.common.parallel import check_wanted
from gpuforest.compiler import lowering  # noqa: F401  # makes intrinsics known to Numba
from gpuforest.compiler.code import symbol_of
from gpuforest.compiler.decorators import Helper, Kernel
from gpuforest.compiler.processors import Target, system, target_machine
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
# Kernels call only memcpy and memset, which every process has, so no library of a certain release
# is named, except on macOS and Windows, which want the names. The last line makes a small file.
LINK = {
    "linux": [
        *("-shared", "-nostdlib", "-Wl,-z,text"),
        *("-Wl,-z,noseparate-code", "-Wl,-z,norelro", "-Wl,--build-id=none", "-Wl,--strip-all"),
    ],
    "darwin": ["-dynamiclib", "-Wl,-x"],
    "win32": ["-shared", "-s"],
}


# Numba would make machine code of every helper and of two wrappers for Python around it. Here only
# kernels become machine code, together with their helpers, which more than halves the time of
# compilation. These classes use undocumented parts of Numba, see `KNOWN`.


class HelperLibrary(JITCodeLibrary):
    """A helper's LLVM code, which kernels link; it never becomes machine code."""

    def _optimize_final_module(self) -> None:
        # a helper that calls others is optimised in its kernel, once these are inlined
        if not any(isinstance(linked, HelperLibrary) for linked in self._linking_libraries):
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class HelperLowering(NativeLowering):
    _name = "gpuforest_helper_lowering"

    def run_pass(self, state: Any) -> bool:
        check_wanted()  # after an interrupt, seconds of compilation would hold the exit up
        state.flags.no_compile = True
        state.library = HelperLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        super().run_pass(state)
        lowered = state["cr"]
        # what Numba knows the helper by; it has no machine code, so nothing may call it
        name = lowered.fndesc.qualname
        entry = _dynfunc.make_function(
            lowered.fndesc.lookup_module(), name, "", 0, lowered.env, (state.library,)
        )
        state.targetctx.insert_user_function(entry, lowered.fndesc, [state.library])
        state["cr"] = lowered._replace(cfunc=entry)
        return True


class HelperCompiler(Compiler):
    def define_pipelines(self) -> list[Any]:
        (manager,) = super().define_pipelines()
        manager.passes = [
            (HelperLowering if step is NativeLowering else step, text)
            for step, text in manager.passes
        ]
        manager._finalized = False
        manager.finalize()
        return [manager]


class KernelCompiler(HelperCompiler):
    """For a kernel: its arrays do not overlap, so loops need not check."""

    def define_pipelines(self) -> list[Any]:
        self.state.flags.noalias = True
        return super().define_pipelines()


# Releases of Numba with the inside that these classes know; others compile longer
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
    if isinstance(spec, Record):
        return types.NamedTuple([numba_type(f, choice) for f in spec.fields], spec.kind)
    if isinstance(spec, Optional):
        return numba_type(spec.inner, choice) if choice[spec.name] else types.none
    dtype = choice.get(spec.dtype, spec.dtype)
    scalar = getattr(types, dtype) if isinstance(dtype, str) else from_dtype(dtype_of(dtype))
    return types.Array(scalar, spec.ndim, "C") if spec.ndim else scalar


def argument(context: Any, builder: Any, words: Iterator[Any], kind: Any) -> Any:
    """The value of a Numba type, from the next words of a kernel's arguments."""
    if isinstance(kind, types.NamedTuple):
        values = [argument(context, builder, words, field) for field in kind.types]
        return context.make_tuple(builder, kind, values)
    if kind is types.none:
        return context.get_dummy_value()
    word = next(words)
    if isinstance(kind, types.Boolean):
        return builder.icmp_unsigned("!=", word, WORD(0))
    if not isinstance(kind, types.Array):
        return builder.bitcast(word, ir.DoubleType()) if kind is types.float64 else word
    found, item = context.make_array(kind)(context, builder), context.get_data_type(kind.dtype)
    data = builder.inttoptr(word, item.as_pointer())
    shape = [next(words) for _ in range(kind.ndim)]
    itemsize = WORD(context.get_abi_sizeof(item))
    strides = [itemsize]
    for n in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], n))
    sides = {"shape": shape, "strides": strides}
    packed = {name: cgutils.pack_array(builder, each) for name, each in sides.items()}
    populate_array(found, data=data, itemsize=itemsize, meminfo=None, **packed)
    return found._getvalue()


@global_compiler_lock  # type: ignore[untyped-decorator]
def module_of(kernel: Kernel, choice: Choice) -> Any:
    """A kernel and all that it calls, in LLVM's code, not optimised yet."""
    name = symbol_of(kernel.name_of(choice))
    kinds = tuple(numba_type(spec, choice) for spec in kernel.specs)
    checks = is_among(choice, kernel.checked)
    dispatcher = njit(kernel.function, inline=False, compiler=HELPERS if checks else KERNELS)
    dispatcher.compile(kinds)
    compiled = dispatcher.overloads[kinds]
    context = compiled.target_context
    module = context.codegen()._create_empty_module(name)
    entry = ir.Function(module, ir.FunctionType(WORD, [WORD.as_pointer()]), name)
    builder = ir.IRBuilder(entry.append_basic_block())
    places = (builder.gep(entry.args[0], [ir.IntType(32)(n)]) for n in count())
    words = map(builder.load, places)
    values = [argument(context, builder, words, kind) for kind in kinds]
    callee = context.declare_function(module, compiled.fndesc)
    status, _ = context.call_conv.call_function(builder, callee, types.none, kinds, values)
    builder.ret(builder.zext(status.is_error, WORD))
    whole = llvm.parse_assembly(cgutils.normalize_ir_text(str(module)))
    whole.link_in(compiled.library._get_module_for_linking(), preserve=True)
    # inlined, it would lose what is known of its arguments
    whole.get_function(callee.name).add_function_attribute("noinline")
    for value in (*whole.functions, *whole.global_variables):
        if not value.is_declaration and value.name != name:
            value.linkage = "internal"
    return whole


def is_among(choice: Choice, some: Choice | None) -> bool:
    """Whether a choice of types is a choice with `some` types; None stands for no choice."""
    return some is not None and some.items() <= choice.items()


def optimise(module: Any, machine: Any, plain: bool) -> None:
    """Optimise as Numba does: inline first, then vectorise; plain code less, without vectors."""
    options = llvm.create_pipeline_tuning_options(0)
    passes = llvm.create_pass_builder(machine, options)
    manager = passes.getModulePassManager()
    manager.add_loop_rotate_pass()
    manager.add_instruction_combine_pass()
    manager.add_jump_threading_pass()
    manager.run(module, passes)
    options = llvm.create_pipeline_tuning_options(1 if plain else 3)
    options.loop_vectorization, options.slp_vectorization = not plain, False
    options.loop_unrolling = False  # code was no faster, and took a sixth longer to compile
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)


def machine_codes(
    kernel: Kernel, choice: Choice, targets: list[Target], library: bool = True
) -> list[bytes]:
    """Machine code for each target: libraries if wanted and there is a linker, else objects."""
    module, codes = module_of(kernel, choice), []
    for target in targets:
        clone, code = module.clone(), None
        machine = target_machine(target, library=False)
        clone.triple, clone.data_layout = machine.triple, str(machine.target_data)
        optimise(clone, machine, is_among(choice, kernel.plain))
        if library and (command := linker()):
            whole = target_machine(target, library=True).emit_object(clone.clone())
            code = linked(whole, command)
        codes.append(code or machine.emit_object(clone))
    return codes


def linker() -> list[str] | None:
    """The command of the C compiler, which calls the linker, or None. On systems other than Linux
    only CC names one, because `cc` of macOS may open a window."""
    command = shlex.split(os.environ.get("CC", "")) or ["cc"] * (system() == "linux")
    found = system() in LINK and command and shutil.which(command[0])
    return command if found else None


def linked(code: bytes, command: list[str]) -> bytes | None:
    """A shared library of object code that runs at any address; None if it cannot be made."""
    try:
        with tempfile.TemporaryDirectory(prefix="gpuforest-") as folder:
            given, made = Path(folder, "kernel.o"), Path(folder, "kernel.lib")
            given.write_bytes(code)
            subprocess.run(
                [*command, *LINK[system()], "-o", str(made), str(given)],
                check=True,
                stdin=subprocess.DEVNULL,
                capture_output=True,
            )
            return made.read_bytes()
    except (OSError, subprocess.CalledProcessError):
        return None
