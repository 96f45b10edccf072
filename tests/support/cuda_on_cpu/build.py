"""The engine and kernels become shared libraries, built once for all processes."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent

COMMON = ("-std=c++17", "-w", "-fPIC", "-shared", "-pthread")
# arithmetic as the GPU's: IEEE, and no multiply-add is fused that the text does not fuse
KERNELS = (*COMMON, "-ffp-contract=off", "-fno-exceptions", "-fvisibility=hidden")
KERNELS_OF_KIND = {
    "plain": ("-O1",),
    "asan": (
        *["-O0", "-g1", "-fno-omit-frame-pointer", "-fno-sanitize-recover=all"],
        "-fsanitize=address,undefined,float-cast-overflow",
    ),
    "tsan": ("-O1", "-g", "-fsanitize=thread"),
    # vectors stay whole, and the engine has what ThreadSanitizer's library would have
    "traced": (
        *["-O2", "-fsanitize=thread", "-fno-tree-sra", "-fno-ipa-sra"],
        *["-nodefaultlibs", "-lstdc++", "-lm", "-lc", "-lgcc_s"],
    ),
}
# the engine is never instrumented: it informs the sanitizers itself
ENGINE = (*COMMON, "-O2", *(("-mno-red-zone",) if platform.machine() == "x86_64" else ()))
ENGINE_OF_KIND = {
    "plain": (),
    "asan": ("-DCUDA_ON_CPU_ASAN",),
    "tsan": ("-DCUDA_ON_CPU_TSAN",),
    "traced": ("-DCUDA_ON_CPU_TRACED",),
}

EXPORTED = re.compile(
    r'extern\s+"C"\s+__global__\s+void\s+'
    r"(?:__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)\s*)?(\w+)\s*\("
)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
OPTION = re.compile(r"-[DUI].+")
HEADERS = {".cu", ".cuh", ".h", ".hpp", ".inl"}


class BuildError(Exception):
    """g++ refused a text."""


@functools.cache
def compiler() -> tuple[str, str] | None:
    """g++'s path and what it says of its version."""
    path = shutil.which("g++")
    if path is None:
        return None
    done = subprocess.run([path, "--version"], capture_output=True, text=True, env=plain())
    return (path, done.stdout) if done.returncode == 0 else None


def plain() -> dict[str, str]:
    """The environment without a sanitizer: the compiler needs none."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


@functools.cache
def cache() -> Path:
    """This user's own folder of what was built."""
    from paths import kept

    return kept("cuda_on_cpu")


def build(text: str, flags: tuple[str, ...], libraries: tuple[str, ...], headers: str) -> Path:
    """The shared library of a text: from the cache, if the same was built before.

    headers : the contents of all that the text includes
    """
    found = compiler()
    if found is None:
        raise BuildError("no g++ here")
    portable = [flag.replace(str(HERE), "") for flag in flags]  # the same in another checkout
    everything = "\0".join([*found, text, *portable, *libraries, headers])
    folder = cache() / hashlib.sha256(everything.encode()).hexdigest()[:24]
    library = folder / "library.so"
    if library.exists():
        return library
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other processes wait for this one's build
        if not library.exists():
            source, fresh = folder / "kernels.cu", folder / "fresh.so"
            source.write_text(text)
            command = [found[0], *flags, "-x", "c++", source, "-x", "none", *libraries]
            run = subprocess.run(
                [*command, "-o", fresh], capture_output=True, text=True, env=plain()
            )
            if run.returncode:
                raise BuildError(f"{' '.join(map(str, command))}\n{run.stderr}")
            os.replace(fresh, library)
    return library


@functools.cache
def build_engine(kind: str) -> Path:
    headers = "".join(path.read_text() for path in sorted(HERE.glob("*.hpp")))
    text = f'#line 1 "engine.cpp"\n{(HERE / "engine.cpp").read_text()}'
    return build(text, (*ENGINE, *ENGINE_OF_KIND[kind], f"-I{HERE}"), (), headers)


def kernels_in(source: str) -> list[str]:
    return list(dict.fromkeys(EXPORTED.findall(COMMENT.sub(" ", source))))


def build_kernels(source: str, options: tuple[str, ...], kind: str) -> Path:
    # which C++ is meant matters to CUDA's own compiler only
    options = tuple(option for option in options if not option.lstrip("-").startswith("std="))
    if unknown := [option for option in options if not OPTION.fullmatch(option)]:
        raise ValueError(f"{', '.join(unknown)}: options may be -D, -U and -I")
    headers = "".join((HERE / name).read_text() for name in ("cuda.hpp", "engine.hpp"))
    for option in options:
        if option.startswith("-I"):
            files = sorted(p for p in Path(option[2:]).rglob("*") if p.suffix in HEADERS)
            headers += "".join(f"{path}\0{path.read_text()}" for path in files)
    flags = (*KERNELS, *KERNELS_OF_KIND[kind], *options, "-include", str(HERE / "cuda.hpp"))
    entries = "".join(f"\nCUDA_ON_CPU_ENTRY({name})" for name in kernels_in(source))
    return build(f"{source}{entries}\n", flags, (str(build_engine(kind)),), headers)
