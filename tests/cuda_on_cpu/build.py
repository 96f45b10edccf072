"""Kernels and the engine become shared libraries, built once for all processes."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).parent
KINDS = ("plain", "asan", "tsan")
KIND_VARIABLE = "GPUFOREST_CUDA_ON_CPU"

COMMON = ("-std=c++17", "-w", "-g", "-fPIC", "-shared", "-pthread", "-fcf-protection=none")
# arithmetic as the GPU's: IEEE, no fused multiply-add that the text does not ask for
KERNELS = (*COMMON, "-ffp-contract=off", "-fvisibility=hidden", "-fno-exceptions")
KERNELS_OF_KIND = {
    "plain": ("-O2",),
    "asan": (
        "-O1",
        "-fsanitize=address,undefined,float-cast-overflow",
        "-fno-sanitize-recover=all",
        "-fno-omit-frame-pointer",
    ),
    "tsan": ("-O1", "-fsanitize=thread"),
}
# the engine is not instrumented: it tells the sanitizers what they must know
ENGINE_OF_KIND = {
    "plain": ("-O2",),
    "asan": ("-O2", "-DCUDA_ON_CPU_ASAN"),
    "tsan": ("-O2", "-DCUDA_ON_CPU_TSAN"),
}
SANITIZER = {"asan": "libasan.so", "tsan": "libtsan.so"}
SANITIZER_OPTIONS = {
    # Python itself never frees all
    "asan": {"ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:exitcode=66"},
    "tsan": {
        "TSAN_OPTIONS": "halt_on_error=1:exitcode=66:report_bugs=1:history_size=2"
        ":ignore_noninstrumented_modules=1"
    },
}


class BuildError(Exception):
    """g++ refused a kernel."""


def default_kind() -> str:
    kind = os.environ.get(KIND_VARIABLE, "plain")
    if kind not in KINDS:
        raise ValueError(f"{KIND_VARIABLE}={kind}: it is one of {', '.join(KINDS)}")
    return kind


@functools.cache
def compiler() -> tuple[str, str] | None:
    """g++'s path and its version."""
    path = shutil.which("g++")
    if path is None:
        return None
    told = subprocess.run([path, "--version"], capture_output=True, text=True, env=bare())
    return (path, told.stdout) if told.returncode == 0 else None


def bare() -> dict[str, str]:
    """The environment without a sanitizer: the compiler needs none."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


@functools.cache
def sanitizer_library(kind: str) -> Path | None:
    """The library that a program must load first to run kernels of this kind."""
    if (found := compiler()) is None:
        return None
    query = [found[0], f"-print-file-name={SANITIZER[kind]}"]
    told = subprocess.run(query, capture_output=True, text=True, env=bare()).stdout.strip()
    return Path(told).resolve() if Path(told).is_absolute() and Path(told).exists() else None


def available(kind: str | None = None) -> str | None:
    """Why kernels of this kind cannot run in this process; None if they can."""
    kind = kind or default_kind()
    if sys.platform != "linux":
        return "kernels run on the CPU under Linux only"
    if compiler() is None:
        return "no g++ here"
    if kind != "plain":
        library = sanitizer_library(kind)
        if library is None:
            return f"g++ has no {SANITIZER[kind]} here"
        if str(library) not in Path("/proc/self/maps").read_text():
            return f"{library} is not loaded: see sanitized()"
    return None


def sanitized(
    kind: str, argv: Iterable[str | os.PathLike[str]], timeout: float = 600
) -> subprocess.CompletedProcess[str]:
    """Runs Python with these arguments under a sanitizer, kernels of that kind by default."""
    library = sanitizer_library(kind)
    if library is None:
        raise RuntimeError(f"g++ has no {SANITIZER[kind]} here")
    environment = {
        **os.environ,
        **SANITIZER_OPTIONS[kind],
        KIND_VARIABLE: kind,
        "LD_PRELOAD": str(library),
        "OPENBLAS_NUM_THREADS": "1",
    }
    return subprocess.run(
        [sys.executable, *argv], capture_output=True, text=True, env=environment, timeout=timeout
    )


def cache() -> Path:
    """This user's own folder of builds."""
    folder = Path(tempfile.gettempdir()) / f"cuda_on_cpu-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise RuntimeError(f"{folder} belongs to somebody else")
    return folder


def compile_once(source: str, flags: tuple[str, ...], after: tuple[str, ...], inputs: str) -> Path:
    """The library built from `source`, out of the cache if it was built before.

    `inputs` is what else decides the outcome: the text of headers.
    """
    found = compiler()
    if found is None:
        raise RuntimeError("no g++ here")
    told = "\0".join([found[1], source, *flags, *after, inputs])
    folder = cache() / hashlib.sha256(told.encode()).hexdigest()[:24]
    library = folder / "library.so"
    if library.exists():
        return library
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other processes wait for this build
        if not library.exists():
            text, built = folder / "kernels.cu", folder / f"{os.getpid()}.so"
            text.write_text(source)
            command = [found[0], *flags, "-x", "c++", str(text), "-x", "none", "-o", str(built)]
            run = subprocess.run([*command, *after], capture_output=True, text=True, env=bare())
            if run.returncode:
                raise BuildError(f"{' '.join(command)}\n{run.stderr}")
            os.replace(built, library)
    return library


@functools.cache
def build_engine(kind: str) -> Path:
    headers = "".join(path.read_text() for path in sorted(HERE.glob("*.hpp")))
    flags = (*COMMON, *ENGINE_OF_KIND[kind], f"-I{HERE}")
    return compile_once((HERE / "engine.cpp").read_text(), flags, (), headers)


EXPORTED = re.compile(
    r'extern\s+"C"\s+__global__\s+void\s+'
    r"(?:__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)\s*)?(\w+)\s*\("
)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
OPTION = re.compile(r"-[DUI].+")


def kernels_in(source: str) -> list[str]:
    """Names of the kernels in a text."""
    return EXPORTED.findall(COMMENT.sub(" ", source))


def build_kernels(source: str, options: tuple[str, ...], kind: str) -> Path:
    options = tuple(option for option in options if not option.lstrip("-").startswith("std="))
    for option in options:
        if not OPTION.fullmatch(option):
            raise ValueError(f"option {option}: only -D, -U and -I are known here")
    headers = (HERE / "cuda.hpp").read_text() + (HERE / "engine.hpp").read_text()
    for option in options:
        if option.startswith("-I"):
            files = (path for path in Path(option[2:]).rglob("*") if path.suffix in SUFFIXES)
            headers += "".join(f"{path}\0{path.read_text()}" for path in sorted(files))
    entries = "".join(f"\nCUDA_ON_CPU_ENTRY({name})" for name in dict.fromkeys(kernels_in(source)))
    include = ("-include", str(HERE / "cuda.hpp"))
    flags = (*KERNELS, *KERNELS_OF_KIND[kind], *options, *include)
    return compile_once(source + entries + "\n", flags, (str(build_engine(kind)),), headers)


SUFFIXES = {".h", ".hpp", ".cuh", ".cu", ".inl"}
