"""Source text of CUDA kernels from package data, with includes replaced by their text.

A text without includes serves as the key of a compiler's cache. Includes of "generated/..." declare
Python's constants and the structs of structs.py.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from gpuforest.common import dtypes, elementary, hashing
from gpuforest.core import criteria, nodes, terms
from gpuforest.kernels.boosted_tree import records as boosted_tree
from gpuforest.kernels.edges import numpy as edges
from gpuforest.kernels.gradients import numpy as gradients
from gpuforest.kernels.grow_subtrees import structs as deep_structs
from gpuforest.kernels.sets import order
from gpuforest.kernels.shared import constants, structs

# no contraction: a * b + c rounded once would differ from the other backends' bits
OPTIONS = ("--std=c++17", "--fmad=false")

CONSTANTS: dict[str, int | float | tuple[float, ...]] = {
    name: getattr(module, name)
    for module, names in {
        criteria: "LN2 SQRT2 ATANH XLOGX_SCALE",
        nodes: "CHILD_SHIFT MISSING_SHIFT FEATURE_SHIFT BIN_MASK CHILD_MASK LEAF_MASK LEAF_WORD "
        "SET_BIN",
        hashing: "GOLDEN MIX_1 MIX_2 ROOT PERMUTATION CUT HASHES",
        edges: "TINY SUM_BITS",
        dtypes: "CATEGORICAL",
        elementary: "LN2_HIGH LN2_LOW LOG2_E FACTORIALS MOST",
        boosted_tree: "CATEGORY_ROWS MOST_STEP",
        gradients: " ".join(name for name in vars(gradients) if name.isupper()),
        constants: " ".join(name for name in vars(constants) if name.isupper()),
        order: "MOST_TRIED",
        terms: "WEIGHT_BITS WEIGHT_ZERO DRAWS ROUNDS STRIDE OBLIQUE_BIN",
    }.items()
    for name in names.split()
}
# the text uses these in #if, where a name without a macro is silently 0
CRITERIA = ("GINI", "ENTROPY", "MISCLASSIFICATION", "SQUARED_ERROR", "POISSON")
IN_IF = ("LIMITED",)

STRUCTS = structs.ALL | boosted_tree.STRUCTS | deep_structs.ALL | {"Combining": terms.Combining}

_KERNEL = re.compile(
    r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\(([^)]*)\)'
)
_INCLUDE = re.compile(r'^#include "(.+)"\n', re.MULTILINE)


@cache
def cuda_source(operation: str) -> str:
    """The whole text of kernels/<operation>/cuda.cu; errors name the original lines."""
    seen: set[str] = set()

    def whole(name: str) -> str:
        if name in seen:
            return ""
        seen.add(name)
        text, parts, begin, line = _read(name), [f'#line 1 "{name}"\n'], 0, 1
        for include in _INCLUDE.finditer(text):
            parts.append(text[begin : include.start()])
            line += text.count("\n", begin, include.end())
            begin = include.end()
            parts += [whole(include[1]), f'#line {line} "{name}"\n']
        return "".join([*parts, text[begin:]])

    return whole(f"{operation}/cuda.cu")


@cache
def parameters(operation: str) -> dict[str, list[tuple[str, str]]]:
    """The C++ type and the name of each parameter of an operation's kernels."""
    declared = {}
    for kernel, text in _KERNEL.findall(cuda_source(operation)):
        pairs = (" ".join(parameter.split()).rpartition(" ") for parameter in text.split(","))
        declared[kernel] = [(type, name) for type, _, name in pairs]
    return declared


def _read(name: str) -> str:
    if name == "generated/constants.cuh":
        return constants_text()
    if name.startswith("generated/"):
        return structs.text_of(STRUCTS[name[len("generated/") : -len(".cuh")]])
    return files("gpuforest.kernels").joinpath(name).read_text()


def constants_text() -> str:
    """C++ declarations of Python's constants."""
    numbers = [f"#define {name} {getattr(criteria, name)}\n" for name in CRITERIA]
    return "".join([*numbers, *(_declared(name, CONSTANTS[name]) for name in CONSTANTS)])


def _declared(name: str, value: int | float | tuple[float, ...]) -> str:
    if name in IN_IF:
        return f"#define {name} {value}\n"
    if isinstance(value, tuple):  # a macro for a kernel's own array: kernels read no host arrays
        return f"#define {name} {{{', '.join(map(repr, value))}}}\n"
    if isinstance(value, int) and value >= 2**31:
        return f"constexpr unsigned long long {name} = {value}ull;\n"
    if isinstance(value, int):
        return f"constexpr int {name} = {value};\n"
    return f"constexpr double {name} = {float(value)!r};\n"
