"""Compiled kernels on disk: files of object code, which code.py loads.

    SHA-256 of what follows | stamp of the sources | object code

A wheel holds them. Where it does not, they are compiled at first use and kept in the first of
several folders that can be written to.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import platform
import stat
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import llvmlite.binding as llvm

logger = logging.getLogger("gpuforest")

KERNELS = Path(__file__).parent
PACKAGED = KERNELS / "compiled"  # filled when the package is installed or a wheel is built
DIGEST = hashlib.sha256().digest_size
# files of this folder that change no code
NOT_COMPILED = {"build.py", "code.py", "objects.py", "numpy.py", "numba_cuda.py", "structs.py"}
HINT = "set NUMBA_CACHE_DIR to a folder that can be written to"
# What levels of x86-64 have beyond those below them, see its psABI; the highest first
LEVELS = {
    "x86-64-v4": ["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"],
    "x86-64-v3": [
        "avx",
        "avx2",
        "bmi",
        "bmi2",
        "f16c",
        "fma",
        "lzcnt",
        "movbe",
        "popcnt",
        "sse4.2",
    ],
    "x86-64": ["sse2"],
}

ALL = "all"  # a file without code, which is written when all kernels are on disk

_logged: set[str] = set()


class Target(NamedTuple):
    """Processors that code is compiled for: their name in files, and LLVM's name and features."""

    name: str
    cpu: str
    features: str


@functools.cache
def levels() -> list[Target]:
    """The levels of processors for which a wheel holds code, those that this machine has, the
    highest first."""
    features = llvm.get_host_cpu_features()
    found: list[Target] = []
    for target in reversed(all_levels()):  # a level has all that is below it
        if not all(features.get(feature, False) for feature in LEVELS.get(target.name, [])):
            break
        found.insert(0, target)
    return found


@functools.cache
def native() -> Target:
    """The highest level that this machine has. Code for its very processor was no faster."""
    return levels()[0]


def all_levels() -> list[Target]:
    """All levels of x86-64; elsewhere none but the machine's family."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return [Target("generic", "generic", "")]
    # vectors of 512 bits: a prediction takes half of the time
    return [Target(name, name, "-prefer-256-bit" * (name == "x86-64-v4")) for name in LEVELS]


@functools.cache
def stamp() -> bytes:
    """A hash of the sources of all kernels and of the constants that they use."""
    package = KERNELS.parent
    sources = [path for path in KERNELS.rglob("*.py") if path.name not in NOT_COMPILED]
    sources += [*(package / "common").glob("*.py"), package / "criteria.py", package / "nodes.py"]
    sources.sort(key=lambda path: path.relative_to(package).parts)
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).digest()


def folders(make: bool = False) -> Iterator[Path]:
    """The folders of compiled kernels besides the package's; new files go to the first that can
    be written to.

    Parameters
    ----------
    make : whether to create the temporary folder, which comes last
    """
    # each installation has a subfolder of its own, because several may share a folder
    own = f"gpuforest_{hashlib.sha256(str(KERNELS).encode()).hexdigest()[:16]}"
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen) / own
    else:
        yield KERNELS / "__pycache__"
        if (users := _users_cache()).is_absolute():  # a user without a home has "~/.cache"
            yield users / "gpuforest" / own
    if (temporary := _temporary(make)) is not None:
        yield temporary / own


def _users_cache() -> Path:
    """The folder of the user's caches, by the customs of the system."""
    if sys.platform == "win32":
        return Path(os.path.expanduser(os.environ.get("LOCALAPPDATA", "~/AppData/Local")))
    if sys.platform == "darwin":
        return Path(os.path.expanduser("~/Library/Caches"))
    return Path(os.path.expanduser(os.environ.get("XDG_CACHE_HOME") or "~/.cache"))


def _temporary(make: bool) -> Path | None:
    """The user's own folder for temporary files; None if another user could write to it, because
    code that is read from there is run."""
    user = os.getuid() if hasattr(os, "getuid") else None
    try:
        folder = Path(tempfile.gettempdir()) / f"gpuforest-{'' if user is None else user}"
        if make:
            folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    private = user is None or (found.st_uid == user and not found.st_mode & 0o077)
    return folder if stat.S_ISDIR(found.st_mode) and private else None


def read(name: str) -> bytes | None:
    """The object code of a kernel for this machine; None if there is none."""
    own = [folder / file_of(name, native()) for folder in (PACKAGED, *folders())]
    for path in (*own, *(PACKAGED / file_of(name, target) for target in levels())):
        try:
            code = unpacked(path.read_bytes())
        except OSError:
            continue
        except ValueError:
            log_once("unread", f"{path} is damaged; gpuforest compiles this kernel anew")
            continue
        if code is not None:
            return code
    return None


def unpacked(content: bytes) -> bytes | None:
    """The object code in a file's content; None if it was made from other sources.

    Raises
    ------
    ValueError : the content is damaged
    """
    rest = content[DIGEST:]
    if hashlib.sha256(rest).digest() != content[:DIGEST]:
        raise ValueError("its digest is another")
    return rest[len(stamp()) :] if rest.startswith(stamp()) else None


def file_of(name: str, target: Target) -> str:
    """The file of a kernel's object code."""
    return f"{name}.{target.name}.o"


def packed(code: bytes) -> bytes:
    """The content of a file of object code."""
    rest = stamp() + code
    return hashlib.sha256(rest).digest() + rest


def write(name: str, code: bytes) -> None:
    """Save object code to the first folder that can be written to."""
    failures = []
    for folder in folders(make=True):
        try:
            write_whole(folder / file_of(name, native()), packed(code))
        except OSError as error:
            failures.append(str(error))
            continue
        if folder.parent == _temporary(make=False):
            log_once(
                "unkept",
                f"gpuforest keeps its compiled kernels in {folder.parent}, because no lasting "
                f"folder can be written to ({failures[-1]}); {HINT}",
            )
        return
    log_once(
        "unkept",
        "gpuforest cannot keep its compiled kernels on disk, so every process compiles them "
        f"({failures[-1]}); {HINT}",
    )


def all_on_disk() -> bool:
    """Whether `gpuforest.kernels.build` has compiled all kernels for this machine."""
    return read(ALL) is not None


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, so that another process never reads a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex[:16]}")
    try:
        part.write_bytes(content)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def log_once(kind: str, message: str) -> None:
    """Log one record of each kind, because a dozen kernels meet the same problem."""
    if kind not in _logged:
        _logged.add(kind)
        logger.warning(message)
