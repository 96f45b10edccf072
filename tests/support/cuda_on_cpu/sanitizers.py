"""Which kind of build runs here, and programs run under a sanitizer.

As Python is not built with them, AddressSanitizer and ThreadSanitizer must be loaded before it.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cuda_on_cpu.build import compiler, plain

KINDS = ("plain", "asan", "tsan", "traced")
KIND_VARIABLE = "GPUFOREST_CUDA_ON_CPU"
LIBRARIES = {"asan": "libasan.so", "tsan": "libtsan.so"}
EXIT_CODE = 66  # of a program that a sanitizer ended
OPTIONS = {
    # Python never frees all
    "asan": {"ASAN_OPTIONS": "detect_leaks=0:", "UBSAN_OPTIONS": "print_stacktrace=1:"},
    # what other libraries do between themselves is not looked at
    "tsan": {"TSAN_OPTIONS": "halt_on_error=1:ignore_noninstrumented_modules=1:"},
}


def default_kind() -> str:
    kind = os.environ.get(KIND_VARIABLE, "plain")
    if kind not in KINDS:
        raise ValueError(f"{KIND_VARIABLE}={kind}: it is one of {', '.join(KINDS)}")
    return kind


@functools.cache
def library_of(kind: str) -> Path | None:
    """The library that a program must load first to run kernels of this kind."""
    if (found := compiler()) is None:
        return None
    query = [found[0], f"-print-file-name={LIBRARIES[kind]}"]
    library = Path(
        subprocess.run(query, capture_output=True, text=True, env=plain()).stdout.strip()
    )
    return library.resolve() if library.is_absolute() and library.exists() else None


def missing(kind: str) -> str | None:
    """Why nothing can be built of this kind."""
    if sys.platform != "linux":
        return "kernels run on the CPU under Linux only"
    if compiler() is None:
        return "no g++ here"
    if kind in LIBRARIES and library_of(kind) is None:
        return f"g++ has no {LIBRARIES[kind]} here"
    return None


def available(kind: str | None = None) -> str | None:
    """Why kernels of a kind, the default one if None, cannot run in this process, or None."""
    kind = kind or default_kind()
    reason = missing(kind)
    if reason is None and kind in LIBRARIES:
        library = str(library_of(kind))
        if library not in Path("/proc/self/maps").read_text():
            reason = f"the program runs without {library}"
    return reason


def sanitized(kind: str, argv: Sequence[Any], **how: Any) -> tuple[Any, str]:
    """Runs Python with these arguments; `how` is for subprocess.run. The returncode is EXIT_CODE if
    something was found. Also gives the reports.

    They go through files, since pytest keeps what a test prints until the test ends, and a
    sanitizer ends the whole program.
    """
    if (reason := missing(kind)) is not None:
        raise RuntimeError(reason)
    with tempfile.TemporaryDirectory() as folder:
        to = f"exitcode={EXIT_CODE}:log_path={folder}/report"
        environment = os.environ | {name: f"{value}{to}" for name, value in OPTIONS[kind].items()}
        environment |= {KIND_VARIABLE: kind, "OPENBLAS_NUM_THREADS": "1"}
        environment["LD_PRELOAD"] = str(library_of(kind))
        done = subprocess.run([sys.executable, *argv], env=environment, **how)
        return done, "\n".join(path.read_text() for path in sorted(Path(folder).iterdir()))


def main(arguments: Sequence[str]) -> int:
    """``asan|tsan ARGUMENTS OF PYTHON``"""
    if not arguments or arguments[0] not in LIBRARIES:
        print("usage: python tests/support/cuda_on_cpu asan|tsan [-m pytest | SCRIPT] ...")
        return 2
    done, reports = sanitized(arguments[0], arguments[1:])
    print(reports, end="", file=sys.stderr)
    return int(done.returncode)
