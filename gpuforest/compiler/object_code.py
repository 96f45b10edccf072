"""What LLVM makes object code with, and what it loads object code with that was not linked."""

from __future__ import annotations

import functools
from typing import Any

import llvmlite.binding as llvm

from gpuforest.compiler.processors import Target, native


def target_machine(target: Target, library: bool) -> Any:
    """What LLVM makes object code with.

    Parameters
    ----------
    target : Target
    library : whether it will be linked into a shared library, which runs at any address; LLVM's
        loader gets what Numba gives it, because it may put code and constants far apart
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=target.cpu,
        features=target.features,
        opt=3,
        reloc="pic" if library else "static",
        codemodel="default" if library else "jitdefault",
        jit=not library,
    )


@functools.cache
def _engine() -> Any:
    """LLVM's loader; what it has loaded stays."""
    machine = target_machine(native(), library=False)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)


def address_of(symbol: str, code: bytes) -> int:
    """The address of a function in object code, which is loaded."""
    _engine().add_object_file(llvm.ObjectFileRef.from_data(code))
    _engine().finalize_object()
    address: int = _engine().get_function_address(symbol)
    return address
