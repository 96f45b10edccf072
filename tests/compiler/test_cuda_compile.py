"""Every CUDA kernel, compiled for the GPUs that are meant: what it takes of them, and that its
instructions are the ones that were meant."""

import os
import re
from collections.abc import Iterator
from unittest.mock import Mock

import nvrtc
import pytest
from cuda_on_cpu.build import kernels_in
from cuda_variants import MACROS, PACKAGE, launches, variants

from gpuforest.backends.cuda.launch import RESERVED
from gpuforest.backends.cuda.source import OPTIONS, cuda_source

ARCHITECTURES = ["sm_75", "sm_90", "sm_100"]
ALL = "GPUFOREST_ALL_GPUS" in os.environ
if ALL:  # each takes half a minute more
    ARCHITECTURES += ["sm_80", "sm_86", "sm_89", "sm_120"]
# Processors with room for 1,536 threads, for all of which 40 registers each are left; what NVRTC
# takes there more than elsewhere, of registers and of bytes of stack (without combinations, and
# with them); and the module that takes most
SMALLER, ENOUGH = {"sm_86", "sm_89", "sm_120"}, 40
MORE_REGISTERS, MORE_SPILLED = {"sm_86": 8, "sm_89": 8, "sm_120": 16}, {"sm_120": (32, 104)}
HEAVIEST = {"CODE": "u8", "CRITERION": "3", "SPECIAL": "2", "BLOCKS": "2", "SUMS": "1"}
ALL_MACROS = "sm_90"  # values that change few instructions once only, for the time it takes
RARE = {("CODE", "u16"), ("SETS", "1"), ("SPECIAL", "1"), ("SPECIAL", "2")}
RARER = {("BLOCKS", "4"), ("TARGET", "u16"), ("TARGET", "i32")}  # for one criterion only
MOST_USED = ("0", "1", "3")  # criteria: Gini, entropy, squared error
SPECIAL_WITH_SUMS = {"0": "0", "1": "1", "3": "2"}  # by criterion, in the deep phase

# bytes of stack of a thread of the deep phase: of moments, whose sums have 64 bits; and with limits
# of cuts, which few forests have. Other classes spill nothing
SPILLED_BY_MOMENTS, SPILLED_BY_LIMITS = 32, 56
REGISTERS_OF_A_PROCESSOR = 65536
STATIC_SHARED = RESERVED - 1024  # bytes, beside dynamic ones; 1 KiB of a block is CUDA's own

DYNAMIC = {name for (_, name), shared in launches().items() if shared}

# Registers of a thread at the most, on sm_75 and on later ones: what was needed when this was
# last changed, in steps of 8. More of them leave room for fewer threads, which hide each other's
# waiting. There are enough for all 1,024 threads of sm_75 up to 64 each, and for all 2,048 of
# sm_80 and later up to 32.
REGISTERS = {
    "accumulate": (56, 40),  # a sum, and values of several leaves under way
    "add_values": (32, 32),  # waits for memory
    "apply": (24, 24),  # walks wait at every node: nothing but a row and a tree
    "bag": (32, 40),  # hashes of several draws at once
    "begin": (24, 32),  # a hash
    "best_cut": (88, 120),  # both sides of a cut and the best one so far; 128 threads a block
    "best_split": (48, 40),  # the winner, and its rival from another lane
    "children": (48, 48),  # a hash, and quotients of 64 bits
    "collect": (48, 32),  # waits for memory
    "columns": (40, 40),  # addresses of ten arrays
    "compare_rows": (64, 64),  # the permutation, and eight loads under way
    "compare_samples": (64, 48),  # eight loads under way
    "count_in_bag": (24, 32),  # waits for memory
    "count_keys": (56, 32),  # eight keys under way
    "differing": (48, 32),  # waits for memory
    "distinct_rows": (40, 32),  # waits for memory
    "divide": (64, 64),  # eight rows under way
    "draw_features": (56, 48),  # the four rounds of a permutation
    "draw_rows": (32, 24),  # a hash
    "edges": (56, 56),  # a sum and a quotient in 64 bits
    "encode": (24, 32),  # a search waits at every step
    "ends": (40, 48),  # the same, two sums, and the record of all fields of slots
    "fill": (56, 64),  # two blocks of 512 threads, or four of 256
    "first_rows": (32, 32),  # waits for memory
    "find_gaps": (56, 56),  # eight loads under way
    "finish": (64, 40),  # addresses of many fields
    "gradients": (64, 48),  # quotients of doubles, and the series of an exponential
    "grow_subtrees": (128, 128),  # two blocks of 256 threads
    "histogram": (64, 64),  # two blocks of 512 threads, or four of 256
    "histogram_direct": (48, 32),  # waits for memory
    "in_bag": (56, 40),  # loads of several rounds under way
    "join_slots": (32, 32),  # waits for memory
    "largest": (32, 64),  # the same for several rows at once
    "largest_in_leaves": (56, 32),  # loads of several rows at once
    "losses": (64, 80),  # two series of an exponential or a logarithm
    "mark": (32, 32),  # waits for memory
    "move": (64, 64),  # four positions in 64 bits
    "number_keys": (48, 32),  # a scan waits at every step
    "number_kinds": (64, 56),  # a scan, and a sum for each size of tiles
    "root_slots": (48, 40),  # quotients of 64 bits, and addresses
    "quantiles": (24, 32),  # a search waits at every step
    "residuals": (24, 24),  # the same
    "roots": (56, 64),  # the permutation, and sums in 64 bits
    "row_keys": (56, 40),  # a hash
    "rows_below": (32, 32),  # a hash
    "scales": (32, 32),  # one thread, which writes a record
    "search": (120, 128),  # both sides of a cut, sums up to it and the best one so far
    "share_gaps": (64, 64),  # blocks of 1,024 threads
    "sort_columns": (64, 64),  # values and their places, of several at once
    "set_steps": (32, 32),  # a quotient of doubles
    "sum_in_leaves": (64, 40),  # powers of two of several rows at once
    "sum_losses": (64, 32),  # the same
    "sum_residual_bits": (48, 48),  # three series of an exponential
    "sum_spans": (56, 40),  # quotients of 64 bits
    "sums_before": (48, 32),  # as these
    "take_slots": (64, 64),  # addresses of sixteen arrays
    "totals": (64, 48),  # sums of eight channels in 64 bits
    "whole_weights": (32, 32),  # a power of two
    "with_residual_bits": (40, 40),  # quotients of doubles
}

# instructions that must be there, because a kernel's speed rests on them
SHARED_SUM = r"ATOMS\.(ADD|POPC\.INC)"
GLOBAL_SUM = r"REDG?\.E\.ADD\.64"
WORD_SUM = r"REDG?\.E\.ADD\.STRONG"  # of 32 bits
NATIVE = {
    "bag": [WORD_SUM],
    "fill": [SHARED_SUM, GLOBAL_SUM],
    "grow_subtrees": [SHARED_SUM],
    "histogram": [SHARED_SUM, GLOBAL_SUM],
    "histogram_direct": [GLOBAL_SUM],
    "roots": [GLOBAL_SUM],
    "sum_in_leaves": [GLOBAL_SUM],
    "sum_losses": [GLOBAL_SUM],
    "sum_residual_bits": [GLOBAL_SUM],
    "totals": [GLOBAL_SUM],
}
# cells of histograms of classes have 32 bits
NATIVE_OF_CLASSES = {"histogram": [SHARED_SUM, WORD_SUM], "histogram_direct": [WORD_SUM]}
ATOMIC = r"\b(?:ATOM|RED)\w*\."

needs_compiler = pytest.mark.skipif(nvrtc.why_not() is not None, reason=str(nvrtc.why_not()))


def faults(
    module: nvrtc.Compiled,
    most_registers: dict[str, int],
    most_spilled: int = 0,
    native: dict[str, list[str]] = NATIVE,
) -> Iterator[str]:
    """What is wrong with a module."""
    for line in module.log.splitlines():
        if line.strip() and not line.startswith("ptxas info") and "bytes stack frame" not in line:
            yield f"a warning: {line}"
    for used in re.findall(r".*bytes stack frame.*", module.log):
        if max(map(int, re.findall(r"(\d+) bytes", used))) > most_spilled:
            yield f"registers do not suffice: {used}"
    for line in re.findall(r"\bfma\S*\.f\d+.*|\b(?:mul|add|sub)\.f64.*", module.ptx):
        yield f"a product and a sum that are one, or may become one: {line}"
    for line in re.findall(r"\b\S+\.ftz\S*.*", module.ptx):
        yield f"subnormal numbers become zeros: {line}"
    for kernel in module.kernels:
        patterns = native.get(kernel.name, [])
        for fault in faults_of(kernel, most_registers[kernel.name], most_spilled, patterns):
            yield f"{kernel.name}: {fault}"
        if "div." not in module.ptx and re.search(r"\bDFMA\b", kernel.sass):
            yield f"{kernel.name}: a product and a sum have become one"


def faults_of(
    kernel: nvrtc.Kernel, most_registers: int, most_spilled: int, native: list[str]
) -> Iterator[str]:
    if not kernel.threads:
        yield "no __launch_bounds__"
    bound = REGISTERS_OF_A_PROCESSOR // (max(kernel.threads, 1) * max(kernel.blocks, 1))
    if kernel.registers > min(bound, most_registers):
        yield f"{kernel.registers} registers, more than {min(bound, most_registers)}"
    if kernel.name in DYNAMIC and kernel.shared > STATIC_SHARED:
        yield f"{kernel.shared} bytes of static shared memory"
    for name, pattern in {
        "a loop of compare-and-swap": rf"{ATOMIC}\S*CAS.*",
        "an atomic on any kind of memory": r"\bATOM\..*",
        "an atomic on floats": rf"{ATOMIC}\S*F(?:16|32|64).*",
        "local memory": r"\b(?:LDL|STL)\b.*",
    }.items():
        if name == "local memory" and most_spilled:
            continue
        for instruction in sorted(set(re.findall(pattern, kernel.sass))):
            yield f"{name}: {instruction}"
    for pattern in native:
        if not re.search(pattern, kernel.sass):
            yield f"no {pattern}"


def is_compiled(macros: dict[str, str], architecture: str) -> bool:
    rare, rarer = RARE & macros.items(), RARER & macros.items()
    if architecture in SMALLER and HEAVIEST.items() <= macros.items():
        return True
    sums = macros.get("SUMS") == "1" and "SPECIAL" in macros and not ALL
    if sums and SPECIAL_WITH_SUMS.get(macros["CRITERION"]) != macros["SPECIAL"]:
        return False
    if architecture == ALL_MACROS and not ALL and {"CODE", "CRITERION", "SPECIAL"} <= macros.keys():
        # each two values together, not each three: by CODE, one load of another width, registers
        # and what is spilled were the same for all criteria
        criterion, special = int(macros["CRITERION"]), int(macros["SPECIAL"])
        if (macros["CODE"] == "u16") != (criterion + special) % 2:
            return False
        if special and macros["SUMS"] == "0" and macros["CRITERION"] not in MOST_USED:
            return False
        with_sets = criterion % 3 == (special + 1) % 3
        if macros["SUMS"] == "0" and (macros["SETS"] == "1") != with_sets:
            return False
    if not rarer:
        usual = not rare and (ALL or macros.get("CRITERION", "0") in MOST_USED)
        return architecture == ALL_MACROS or usual
    one = len(rarer) == 1 and not rare and macros.get("CRITERION", "0") == "0"
    return architecture == ALL_MACROS and one


CASES = [
    pytest.param(
        *(operation, macros, architecture),
        id="-".join((architecture, operation, *names)),
        # the first variant of an operation is compiled in every run
        marks=() if architecture == ALL_MACROS and not i else pytest.mark.deep,
    )
    for architecture in ARCHITECTURES
    for operation in MACROS
    for i, macros in enumerate(variants(operation))
    for names in [[f"{name}={value}" for name, value in macros.items()]]
    if is_compiled(macros, architecture)
]


@needs_compiler
@pytest.mark.parametrize(("operation", "macros", "architecture"), CASES)
def test_kernels_compile(operation, macros, architecture):
    module = nvrtc.compiled(cuda_source(operation), architecture, macros)
    assert {kernel.name for kernel in module.kernels} == set(kernels_in(cuda_source(operation)))
    later = architecture != "sm_75"
    enough, more = ENOUGH * (architecture in SMALLER), MORE_REGISTERS.get(architecture, 0)
    limits = {name: max(most[later] + more, enough) for name, most in REGISTERS.items()}
    if macros.get("SPECIAL") == "1":  # random or limited cuts, which few forests have
        limits["best_cut"] += 16
    if macros.get("SETS") == "1":  # where the sets of categories are
        limits["collect"] += 8
    if macros.get("SUMS") == "1":  # the sum of a combination, and what it is compared with
        limits["apply"] += 8
        limits["accumulate"] += 8
    # with more registers fewer warps of the deep phase would share a multiprocessor
    spilled = MORE_SPILLED.get(architecture, (0, 0))[macros.get("SUMS") == "1"]
    if operation == "grow_subtrees" and macros["SPECIAL"] == "2":
        spilled += SPILLED_BY_LIMITS
    elif operation == "grow_subtrees" and macros["TARGET"] == "i64" and macros["SETS"] == "0":
        spilled += SPILLED_BY_MOMENTS
    native = NATIVE | NATIVE_OF_CLASSES if macros.get("LABELS") == "1" else NATIVE
    found = list(faults(module, limits, spilled, native))
    assert not found, "\n".join(found)


# nothing is forgotten


def test_every_operation_is_compiled():
    assert set(MACROS) == {path.parent.name for path in PACKAGE.glob("kernels/*/cuda.cu")}


def test_every_kernel_is_launched_and_has_a_ceiling():
    kernels = {(o, name) for o in MACROS for name in kernels_in(cuda_source(o))}
    assert kernels == set(launches())
    assert {name for _, name in kernels} == set(REGISTERS)


# as CuPy compiles them


@pytest.fixture
def cupy_backend():
    pytest.importorskip("cupy", reason="needs pip install 'gpuforest[test-cuda]'")
    from gpuforest.backends.cuda import device as cupy

    return cupy


def test_static_shared_memory_is_counted(cupy_backend):
    assert cupy_backend.STATIC_SHARED == STATIC_SHARED


def test_options_are_those_that_cupy_passes_on(cupy_backend, monkeypatch):
    from cupy.cuda import compiler

    passed = []

    def compile(options=(), log_stream=None):
        passed.append(options)
        return b"", {}

    def raw_module(*, code, options, backend):
        compiler._compile_module_with_cache(code, options, arch="90", backend=backend)

    # CuPy's own way from options to NVRTC, where no device is asked
    monkeypatch.setenv("CUPY_CACHE_IN_MEMORY", "1")
    monkeypatch.setattr(cupy_backend.cupy, "RawModule", raw_module)
    programs = Mock(return_value=Mock(compile=compile))
    monkeypatch.setattr(compiler, "_NVRTCProgram", programs)
    monkeypatch.setattr(compiler, "_get_arch_for_options_for_nvrtc", lambda a: ("-arch=", "cubin"))
    monkeypatch.setattr(compiler, "_empty_file_preprocess_cache", {})
    monkeypatch.setattr(compiler, "function", Mock())
    cupy_backend.module.__wrapped__("level", (("A", "1"),), 0)
    assert set(passed[-1]) == {*OPTIONS, *nvrtc.CUPY_ADDS, "-arch="}
    # macros are lines of the text, so that all kernels have the same options
    assert programs.call_args.args[0] == "#define A 1\n" + cuda_source("level")


# the checks see what they are for

SEEDED = {
    "a warning": "int never_used;",
    "registers do not suffice": "volatile int many[64]; many[x[0] & 63] = 1;",
    "one, or may become one": "d[0] = __fma_rn(d[1], d[2], d[3]);",
    "subnormal numbers become zeros": "f[0] = f[1] * f[2];",
    "an atomic on floats": "atomicAdd(f, f[1]);",
}


@needs_compiler
@pytest.mark.deep
@pytest.mark.parametrize("architecture", ["sm_75", "sm_90"])
@pytest.mark.parametrize("fault", SEEDED)
def test_faults_are_seen(fault, architecture):
    text = f"""
typedef unsigned long long u64;
extern "C" __global__ void __launch_bounds__(256) best_cut(int* x, float* f, double* d) {{
  {SEEDED[fault]}
}}"""
    found = list(faults(nvrtc.compiled(text, architecture, {}), {"best_cut": 16}))
    assert any(fault in one for one in found), found
