"""Helpers of kernels are compiled to LLVM's intermediate code only.

Numba would make machine code of every helper and of two wrappers for Python around it. Here only
kernels become machine code, together with their helpers, which more than halves the time of
compilation. It uses undocumented parts of Numba, so compile.py uses it only with releases that it
was tested with.
"""

from __future__ import annotations

from typing import Any

from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering

from gpuforest.common.parallel import check_wanted


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


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelLowering(HelperLowering):
    """As HelperLowering, for a kernel: its arrays do not overlap, so loops need not check."""

    _name = "gpuforest_kernel_lowering"

    def run_pass(self, state: Any) -> bool:
        state.flags.noalias = True
        return super().run_pass(state)


class HelperCompiler(Compiler):
    lowering = HelperLowering

    def define_pipelines(self) -> list[Any]:
        (manager,) = super().define_pipelines()
        manager.passes = [
            (self.lowering if step is NativeLowering else step, text)
            for step, text in manager.passes
        ]
        manager._finalized = False
        manager.finalize()
        return [manager]


class KernelCompiler(HelperCompiler):
    lowering = KernelLowering
