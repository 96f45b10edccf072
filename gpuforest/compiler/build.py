"""Compiles kernels: a family at its first use, all of them for a wheel or `gpuforest warmup`."""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from threading import Thread

import joblib

from gpuforest.compiler import objects
from gpuforest.compiler.code import LEFT, NOT_KEPT
from gpuforest.compiler.families import TITLES, members, variants
from gpuforest.compiler.objects import ALL
from gpuforest.compiler.processors import Target, all_levels, native


def compile_one(name: str, targets: list[Target], library: bool = True) -> list[bytes]:
    """The machine code of a kernel for each of the targets; see `machine_codes`."""
    from gpuforest.compiler.compile import machine_codes

    return machine_codes(*variants()[name], targets, library)


def compile_list(names: list[str], targets: list[Target], folder: Path | None) -> bool:
    """Compile kernels in this process, and keep each at once; False if one cannot be kept."""
    return all(keep(name, compile_one(name, targets), targets, folder) for name in names)


def lists_of(names: list[str], n_processes: int) -> list[list[str]]:
    """Lists of kernels, each compiled by one process: kernels of a module, which share helpers; or
    single kernels, because more than two processes need shorter lists."""
    lists: dict[str, list[str]] = {}
    for name in names:
        module = name.partition("-")[0].rpartition(".")[0]
        lists.setdefault(name if n_processes > 2 else module, []).append(name)
    return [*lists.values()]


def compile_some(
    names: list[str], targets: list[Target], folder: Path | None, n_processes: int
) -> bool:
    """Compile kernels in up to n_processes processes; False if one cannot be kept."""
    lists = lists_of(names, n_processes)
    n_processes = min(n_processes, len(lists))
    work = partial(compile_list, targets=targets, folder=folder)
    if n_processes <= 1:
        return all(map(work, lists))
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n_processes, spawn, initializer=begin_to_work) as pool:
        kept = all(pool.map(work, lists))
        pool.shutdown(cancel_futures=True)
    return kept


def begin_to_work() -> None:
    """Prepare a process that compiles: it ends when the process that began it has ended."""
    gc.disable()  # collecting garbage would take a tenth of the time
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def keep(name: str, codes: list[bytes], targets: list[Target], folder: Path | None) -> bool:
    """Keep a kernel's code for each target in a wheel's folder, or this machine's in the folder of
    new kernels (None); False if it cannot be kept."""
    if folder is None:
        return objects.write(name, *codes) is not None
    for target, code in zip(targets, codes, strict=True):
        objects.save(folder / objects.file_of(name, target, code), name, code)
    return True


def warm_up(
    families: list[str], n_processes: int, codes: str | None = None, target: str | None = None
) -> int:
    """Compile the missing kernels of families, see `members`, while no other process does so; a
    process that compiles those of all trees already goes on. Returns the exit status."""
    with ExitStack() as locks:
        held = []
        for family in families:
            file = objects.lock(family, wait=family == families[0] or codes is None)
            if file is not None:
                locks.enter_context(file)
                held.append(family)
        if families[0] not in held:
            return NOT_KEPT
        missing = [n for n in members(held, codes, target) if objects.read(n) is None]
        if not compile_some(missing, [native()], None, n_processes):
            return NOT_KEPT
        marks = [f"{ALL}-{family}" for family in held if codes != "uint16"]
        marks += [ALL] * (len(held) == len(TITLES) and codes is None)
        for mark in marks:
            if objects.read(mark) is None:
                objects.write(mark, b"")
    return 0 if held == families else LEFT


def fill(folder: Path, targets: list[Target], n_processes: int) -> int:
    """Write all kernels for the targets to a folder; returns how many kernels these are."""
    compile_some([*variants()], targets, folder, n_processes)
    keep(ALL, [b""] * len(targets), targets, folder)
    return len(variants())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m gpuforest.compiler.build", description=__doc__)
    parser.add_argument("targets", choices=("native", "levels"), help="this machine, or x86-64's")
    parser.add_argument("name", nargs="?", help="print the code of this kernel alone")
    parser.add_argument("--object", action="store_true", help="its object code, not linked")
    parser.add_argument("--to", type=Path, help="folder for all kernels of a wheel")
    parser.add_argument("--families", nargs="+", default=[*TITLES], choices=[*TITLES])
    parser.add_argument("--codes", choices=("uint8", "uint16"), help="bins (default: both types)")
    parser.add_argument("--target", help="int32 or int64: the targets whose kernels come first")
    parser.add_argument("--n-jobs", type=int, default=joblib.cpu_count(), help="processes")
    options = parser.parse_args()
    targets = [native()] if options.targets == "native" else all_levels()
    if options.name:
        gc.disable()
        for code in compile_one(options.name, targets, not options.object):
            sys.stdout.buffer.write(objects.packed(options.name, code))
    elif options.to:
        begin = time.monotonic()
        n_kernels = fill(options.to, targets, options.n_jobs)
        seconds = time.monotonic() - begin
        print(f"gpuforest compiled {n_kernels} kernels in {seconds:.0f} s", file=sys.stderr)
    else:
        return warm_up(options.families, options.n_jobs, options.codes, options.target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
