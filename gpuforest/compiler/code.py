"""Loads compiled kernels; if a file is missing, processes with Numba compile its family.

The system loads shared libraries. LLVM's library, which takes 40 MB, is needed only for kernels
that could not be linked, or that the system does not load from their folder.
"""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gpuforest.common import progress
from gpuforest.common.errors import BackendError
from gpuforest.common.parallel import check_wanted
from gpuforest.compiler import families, objects, processors

EXTRA = "pip install 'gpuforest[compile]'"  # Numba, which compiles kernels
BUILD = "gpuforest.compiler.build"  # the module that compiles
PATIENCE = 0.5  # seconds of compilation without a word
WORD = (
    "gpuforest is compiling the kernels of {}, once on this machine "
    "(`gpuforest warmup` does it ahead)"
)
CHANGED = "gpuforest's files have changed: start Python again"
NOT_KEPT, LEFT = 3, 4  # exit statuses of build.py: no folder can be written to; others do the rest
IN_BACKGROUND = (
    "gpuforest is compiling the kernels of {} in the background, once on this machine; meanwhile "
    "NumPy does small work, with the same results"
)
FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p)

_waits: ContextVar[bool] = ContextVar("waits", default=True)  # may work wait for a compilation
_lock = threading.RLock()
_shows = threading.Lock()  # held by the thread that shows how far a compilation is
# by family and type of bins: the process that compiles them, and the family that it was begun for
_builders: dict[tuple[str, str], tuple[Any, str]] = {}
_begun: list[Any] = []  # all of them, because Python warns of a process that is forgotten
if hasattr(os, "register_at_fork"):  # a forked process has not begun them
    os.register_at_fork(after_in_child=_builders.clear)
complete: set[str] = set()  # families on disk that this process asked for


class Later(BackendError):
    """A kernel is being compiled, and the work that needs it should not wait."""


def function_of(name: str) -> Callable[[bytes], int]:
    """The machine code of a kernel, which takes the numbers as bytes. Raises `BackendError` where
    it cannot be compiled, and `Later` while it is being compiled and this is `not_waiting`."""
    function = on_disk(name)
    if function is None and not has_compiler():
        raise BackendError(f"the kernel {name} is not compiled for this machine: {EXTRA}")
    if function is None and built(name):
        function = on_disk(name)
    if function is None:  # no folder can be written to, or the system loads nothing from there
        code = compiled(name, "--object")
        objects.write(name, code)
        function = loaded_object(name, code)
    return function


def on_disk(name: str) -> Callable[[bytes], int] | None:
    """The function in a kernel's file, if there is one that can be loaded."""
    found = (loaded(name, code, path) for path, code in objects.usable(name))
    return next((function for function in found if function is not None), None)


@functools.cache  # a prediction of one row would notice the time of asking again
def has_compiler() -> bool:
    """Whether Numba is installed, which compiles kernels."""
    return find_spec("numba") is not None and find_spec("llvmlite") is not None


@functools.cache
def can_run() -> bool:
    """True if compiled kernels are on disk for the system to load, or Numba is installed."""
    return has_compiler() or objects.all_linked()


def loaded(name: str, code: bytes, path: Path) -> Callable[[bytes], int] | None:
    """The function in a kernel's machine code; None if the system refuses to load the library."""
    if objects.suffix_of(code) == ".o":
        return loaded_object(name, code)
    try:
        return FUNCTION((symbol_of(name), ctypes.CDLL(str(path.absolute()))))
    except OSError as error:
        objects.logger.info("LLVM loads compiled kernels, because the system does not: %s", error)
        return None


def loaded_object(name: str, code: bytes) -> Callable[[bytes], int]:
    """The function in a kernel's object code, which LLVM loads."""
    if not has_compiler():
        raise BackendError(f"the kernel {name} is not linked, and only llvmlite loads it: {EXTRA}")
    with _lock:
        return FUNCTION(processors.address_of(symbol_of(name), code))


def symbol_of(name: str) -> str:
    """The name of a kernel's function in its machine code."""
    return "gpuforest_" + name.replace(".", "_").replace("-", "_")


def compiled(name: str, *options: str) -> bytes:
    """The machine code of a kernel, compiled by a process of its own, which takes some options."""
    process = build_process(name, *options)
    try:
        content, said = process.communicate()
    finally:  # an interrupt ends it too
        process.kill()
        process.wait()
    if process.returncode:
        raise refused(process.returncode, said)
    code = objects.unpacked(name, content)
    if code is None:
        raise BackendError(CHANGED)
    return code


def refused(status: int, said: bytes) -> BackendError:
    """The error of a process that could not compile, and said why."""
    why = said.decode(errors="replace")[-2000:] or f"the compiler ended with status {status}"
    return BackendError(
        f"backend 'numba' cannot compile its kernels here (backend='numpy' needs none): {why}"
    )


def built(name: str) -> bool:
    """Wait until a kernel is on disk, whichever process compiles it with its family. False if no
    folder can be written to."""
    family, codes = families.family_of(name), families.bins_in(name) or "uint8"
    target = families.variants()[name][1].get("target")
    while objects.read(name) is None:
        process, begun_for = begin(family, codes, target)
        if not _waits.get():
            objects.log_once("later", IN_BACKGROUND.format(families.TITLES[begun_for]))
            raise Later(f"the kernel {name} is being compiled")
        names = families.members([begun_for, families.SHARED], codes)
        watch(process, names, begun_for, name)
        status = process.poll()
        if status == NOT_KEPT:
            return False
        if status != LEFT and objects.read(name) is None:
            raise refused(status, process.stderr.read()) if status else BackendError(CHANGED)
    return True


@contextmanager
def not_waiting() -> Iterator[None]:
    """Raise `Later` inside where a kernel would have to be compiled first."""
    token = _waits.set(False)
    try:
        yield
    finally:
        _waits.reset(token)


def expect(family: str, target: str | None = None) -> None:
    """Begin to compile a family that a fit will need, `target`'s kernels first, unless on disk."""
    if not has_compiler() or objects.is_complete(family):
        complete.add(family)
    else:
        begin(family, "uint8", target)


def warm_up(family: str | None, n_jobs: int) -> tuple[int, int]:
    """Compile a family and shared kernels, or all; returns how many were missing, and how many
    exist."""
    asked = [*families.TITLES] if family is None else [*{family: None, families.SHARED: None}]
    names = families.members(asked)
    missing = [name for name in names if objects.read(name) is None]
    if missing and not has_compiler():
        raise BackendError(f"Numba, which compiles kernels, is not installed: {EXTRA}")
    if missing or (family is None and objects.read(objects.ALL) is None):
        process = build_process("--n-jobs", str(n_jobs), "--families", *asked)
        watch(process, names, family)
        said = process.communicate()[1]
        if process.returncode:
            raise refused(process.returncode, said)
    return len(missing), len(names)


def begin(family: str, codes: str, target: str | None) -> tuple[Any, str]:
    """Begin to compile a family and what all trees need for bins of type `codes`, unless a process
    does or could keep nothing; returns that process, and the family that it was begun for."""
    with _lock:
        found = _builders.get((family, codes))
        if found is None or found[0].poll() not in (None, NOT_KEPT):
            together = [*dict.fromkeys((family, families.SHARED))]
            first = [] if target is None else ["--target", target]
            found = build_process("--families", *together, "--codes", codes, *first), family
            _builders.update({(each, codes): found for each in together})
            _begun.append(found[0])
        return found


def watch(process: Any, names: list[str], family: str | None, awaited: str | None = None) -> None:
    """Wait until a process that compiles kernels ends, or the kernel `awaited` is on disk; show how
    many of `names` are there."""
    begun, report = time.monotonic(), None
    title = families.TITLES[family] if family else "all families"
    with ExitStack() as shown:
        while process.poll() is None and (awaited is None or objects.read(awaited) is None):
            check_wanted()
            time.sleep(objects.POLL)
            if report is None and time.monotonic() - begun > PATIENCE:
                report = shown.enter_context(showing(title))
            if report is not None:
                report(sum(map(objects.is_there, names)), len(names))


@contextmanager
def showing(title: str) -> Iterator[Callable[[int, int], None]]:
    """Say that kernels are being compiled; yields a function that draws the progress bar."""
    if not _shows.acquire(blocking=False):
        yield lambda done, total: None
        return
    try:
        with ExitStack() as stack:
            if not progress.is_heard() and sys.stderr.isatty():
                stack.enter_context(progress.progress_bar())
            elif not progress.is_heard():
                objects.log_once(title, WORD.format(title))
            stack.enter_context(
                progress.stage(f"compiling the kernels of {title}, once on this machine")
            )
            yield progress.report
    finally:
        _shows.release()


def build_process(*arguments: str) -> Any:
    """Start a process that compiles kernels, without modules of the current folder."""
    path = [str(objects.PACKAGED.parents[2]), *sys.path]
    env = {name: value for name, value in os.environ.items() if name != "NUMBA_DISABLE_JIT"}
    return subprocess.Popen(
        [sys.executable, "-P", "-m", BUILD, "native", *arguments],
        env={**env, "PYTHONPATH": os.pathsep.join(filter(None, path))},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
