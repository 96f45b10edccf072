"""Levels of processors that kernels are compiled for, and which of them this machine has."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import sys
from importlib import import_module
from typing import Any, NamedTuple

# Features that levels of x86-64 add to lower levels, see its psABI, by the names of Linux; the
# highest first
LEVELS = {
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "x86-64-v3": {
        "abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "popcnt", "sse4_2",
    },
    "x86-64": {"sse2"},
}  # fmt: skip


TRIPLE = "GPUFOREST_TRIPLE"  # LLVM's name of the machines for which a wheel is built


def family() -> str:
    """The family of processors that code is compiled for, by Linux's name."""
    triple = os.environ.get(TRIPLE)
    name = triple.partition("-")[0] if triple else platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name)


def system() -> str:
    """The system that code is compiled for, by Python's name."""
    triple = os.environ.get(TRIPLE)
    if not triple:
        return sys.platform
    return "darwin" if "apple" in triple else "win32" if "windows" in triple else "linux"


class Target(NamedTuple):
    """Processors that code is compiled for: their name in files, and LLVM's name and features."""

    name: str
    cpu: str
    features: str


@functools.cache
def levels() -> list[Target]:
    """Levels of processors in a wheel that this machine has, the highest first."""
    every, found = all_levels(), list[Target]()
    features = host_features() if every[1:] else set[str]()
    for target in reversed(every):  # a level has all that is below it
        if not LEVELS.get(target.name, set()) <= features:
            break
        found.insert(0, target)
    return found


@functools.cache
def native() -> Target:
    """The highest level that this machine has. Code for its very processor was no faster."""
    return levels()[0]


def all_levels() -> list[Target]:
    """All levels of x86-64; elsewhere none but the machine's family."""
    if family() != "x86_64":
        return [Target("generic", "generic", "")]
    # vectors of 512 bits: a prediction takes half of the time
    return [Target(name, name, "-prefer-256-bit" * (name == "x86-64-v4")) for name in LEVELS]


def host_features() -> set[str]:
    """What this machine's processor has, by the names of Linux."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as lines:
        for line in lines:  # no more is read than the first processor, of perhaps hundreds
            name, _, features = line.partition(":")
            if name.strip() == "flags":
                return {*features.split()}
    return numpy_features()


def numpy_features() -> set[str]:
    """The same as NumPy finds it, on any system."""
    has = import_module("numpy._core._multiarray_umath").__cpu_features__
    # a processor with the last three has all of v3; newer releases of NumPy know the levels
    v3 = has.get("X86_V3") or (has.get("AVX2") and has.get("FMA3") and has.get("F16C"))
    v4 = v3 and (has.get("X86_V4") or has.get("AVX512_SKX"))
    names = ["x86-64"] + ["x86-64-v3"] * bool(v3) + ["x86-64-v4"] * bool(v4)
    return {feature for name in names for feature in LEVELS[name]}


def target_machine(target: Target, library: bool) -> Any:
    """LLVM's machine for a shared library, which runs at any address, or for its own loader."""
    import llvmlite.binding as llvm

    if triple := os.environ.get(TRIPLE):
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        processors = llvm.Target.from_triple(triple)
    else:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        processors = llvm.Target.from_default_triple()
    return processors.create_target_machine(
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
    import llvmlite.binding as llvm

    machine = target_machine(native(), library=False)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)


def address_of(symbol: str, code: bytes) -> int:
    """The address of a function in object code that was not linked, which LLVM loads."""
    import llvmlite.binding as llvm

    _engine().add_object_file(llvm.ObjectFileRef.from_data(code))
    _engine().finalize_object()
    address: int = _engine().get_function_address(symbol)
    return address
