"""Compiles kernels ahead of their use: when the package is installed, when a wheel is built, and
by `gpuforest warmup`.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import re
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

from gpuforest.compiler import objects
from gpuforest.compiler.decorators import Kernel
from gpuforest.compiler.objects import ALL, MODULES
from gpuforest.compiler.processors import TRIPLE, Target, all_levels, native
from gpuforest.compiler.types import Choice


def all_kernels() -> Iterator[Kernel]:
    """All kernels."""
    for name in MODULES:
        module = import_module(f"gpuforest.{name}")
        yield from (
            value
            for value in vars(module).values()
            if isinstance(value, Kernel) and value.__module__ == module.__name__
        )


@cache
def variants() -> dict[str, tuple[Kernel, Choice]]:
    """All kernels, for all types that they take, by name."""
    return {
        kernel.name_of(choice): (kernel, choice)
        for kernel in all_kernels()
        for choice in kernel.choices
    }


def compile_one(name: str, targets: list[Target], library: bool = True) -> list[bytes]:
    """The machine code of a kernel for each of the targets; see `machine_codes`."""
    from gpuforest.compiler.compile import machine_codes

    return machine_codes(*variants()[name], targets, library)


def compile_list(names: list[str], targets: list[Target]) -> list[tuple[str, list[bytes]]]:
    """Names and machine codes of kernels that one process compiles."""
    return [(name, compile_one(name, targets)) for name in names]


def lists_of(names: list[str], n_processes: int) -> list[list[str]]:
    """Names of kernels, in lists that one process each compiles.

    Kernels for bins of both widths are made of one text (see `with_codes`). Those for the same
    targets, and those of a module, share helpers; but more than two processes need shorter lists.
    """
    lists: dict[Any, list[str]] = {}
    for name in names:
        kernel, choice = variants()[name]
        types = {type_of: value for type_of, value in choice.items() if type_of != "code"}
        key: Any = types.get("target", kernel.__module__)
        if n_processes > 2:
            key = kernel, *types.items()
        lists.setdefault(key, []).append(name)
    # the two of a pair one after the other
    return [sorted(some, key=lambda n: re.sub("code_[^-]*", "", n)) for some in lists.values()]


def compile_some(
    names: list[str], targets: list[Target], n_processes: int
) -> Iterator[tuple[str, list[bytes]]]:
    """Names and machine codes of kernels, which n_processes processes compile."""
    if n_processes == 1:
        yield from ((name, compile_one(name, targets)) for name in names)
        return
    work = partial(compile_list, targets=targets)
    spawn = multiprocessing.get_context("spawn")
    # collecting garbage would take a tenth of the time
    with ProcessPoolExecutor(n_processes, spawn, initializer=gc.disable) as pool:
        yield from chain.from_iterable(pool.map(work, lists_of(names, n_processes)))


def warm_up(n_processes: int) -> tuple[int, int]:
    """Compile the kernels that are not on disk for this machine; returns how many these were, and
    how many kernels there are."""
    missing = [name for name in variants() if objects.read(name) is None]
    for name, codes in compile_some(missing, [native()], n_processes):
        objects.write(name, *codes)
    if not objects.all_on_disk():
        objects.write(ALL, b"")
    return len(missing), len(variants())


def fill(folder: Path, targets: list[Target], n_processes: int) -> int:
    """Write all kernels for the targets to a folder; returns how many kernels these are. For this
    machine alone, kernels that it has compiled before are taken from disk."""
    here = targets == [native()] and not os.environ.get(TRIPLE)
    if here:
        warm_up(n_processes)
        kernels = [(name, [objects.read(name) or b""]) for name in variants()]
    if not here or not all(code for _, (code,) in kernels):
        kernels = [*compile_some(list(variants()), targets, n_processes)]
    for name, codes in (*kernels, (ALL, [b""] * len(targets))):
        for target, code in zip(targets, codes, strict=True):
            objects.save(folder / objects.file_of(name, target, code), name, code)
    return len(kernels)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m gpuforest.compiler.build", description=__doc__)
    parser.add_argument("targets", choices=("native", "levels"), help="this machine, or x86-64's")
    parser.add_argument("name", nargs="?", help="print the code of this kernel alone")
    parser.add_argument("--object", action="store_true", help="its object code, not linked")
    parser.add_argument("--to", type=Path, help="folder for all kernels")
    options = parser.parse_args()
    targets = [native()] if options.targets == "native" else all_levels()
    if options.name:
        gc.disable()
        for code in compile_one(options.name, targets, not options.object):
            sys.stdout.buffer.write(objects.packed(options.name, code))
        return
    begin = time.monotonic()
    n_kernels = fill(options.to, targets, os.cpu_count() or 1)
    seconds = time.monotonic() - begin
    print(f"gpuforest compiled {n_kernels} kernels in {seconds:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
