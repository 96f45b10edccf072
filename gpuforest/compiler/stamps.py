"""Stamps of compiled kernels: which sources a kernel's machine code was made from.

These are the modules that compile, the kernel's own, and all of this package that these import at
their beginning; so an edit makes only those kernels stale that could change.
"""

from __future__ import annotations

import hashlib
import os
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[1]
# those that take longest to compile first, so that no process waits for one of them at the end
MODULES = [
    "kernels.grow_subtrees.numba", "splits.multiway.numba", "kernels.level.numba",
    "splits.absolute.numba", "kernels.best_split.numba", "kernels.edges.numba",
    "kernels.encode.numba", "kernels.traverse.numba", "kernels.partition.numba",
    "kernels.histogram.numba", "kernels.totals.numba", "kernels.bag.numba",
    "kernels.boosted_tree.numba", "kernels.gradients.numba", "kernels.project.numba",
    "explain.quantile_kernels", "explain.shap_kernels", "explain.background_kernels",
]  # fmt: skip
COMPILER = "compiler.compile"
NO_PART = {"compiler.code", "common.parallel"}  # imported by what compiles, but change no code
ALL = "all"  # of all kernels together

# at the beginning of a line, so neither in functions nor under TYPE_CHECKING; Numba compiles no
# import in a function
_IMPORT = re.compile(r"([\w.]*) import (?:\(([^)]*)\)|(.*))")


class Source(NamedTuple):
    """A module: a hash of its text, and the modules of this package that it imports."""

    digest: bytes
    imports: list[str]


@cache
def sources() -> dict[str, Source]:
    """All modules that kernels are made from, by their names in this package.

    They are read at once, so that a process never takes code of files that replace them later.
    """
    found = dict[str, Source]()
    left = [COMPILER, *MODULES]
    while left:
        if (module := left.pop()) not in found:
            with open(f"{path_of(module)}.py", "rb") as file:
                content = file.read()
            found[module] = Source(hashlib.sha256(content).digest(), imports_of(content.decode()))
            left += found[module].imports
    return found


def path_of(module: str) -> str:
    return os.path.join(PACKAGE, *module.split("."))


@cache
def is_folder(module: str) -> bool:
    return os.path.isdir(path_of(module))


def imports_of(text: str) -> list[str]:
    """The modules of this package that a module imports at its beginning."""
    found = []
    for part in f"\n{text}".split("\nfrom gpuforest")[1:]:  # ten times as fast as a search
        if match := _IMPORT.match(part):
            module = match[1].removeprefix(".")
            if is_folder(module):
                names = (match[2] or match[3]).split(",")
                found += [f"{module}.{n.split()[0]}".removeprefix(".") for n in names if n.strip()]
            else:
                found.append(module)
    return [module for module in found if module not in NO_PART]


@cache
def modules_of(module: str) -> frozenset[str]:
    """A module and all of this package that it imports, and these in turn."""
    found, left = set[str](), [module]
    while left:
        if (name := left.pop()) not in found:
            found.add(name)
            left += sources()[name].imports
    return frozenset(found)


@cache
def stamp(name: str) -> bytes:
    """A hash of the sources of a kernel of this name, or of `ALL` kernels."""
    if name == ALL:
        modules = frozenset(sources())
    else:
        own = name.partition("-")[0].rpartition(".")[0]  # without types and function
        modules = modules_of(COMPILER) | modules_of(own)
    every = (module.encode() + b"\0" + sources()[module].digest for module in sorted(modules))
    return hashlib.sha256(b"".join(every)).digest()
