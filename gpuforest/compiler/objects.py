"""Compiled kernels on disk: files of machine code, which code.py loads.

    machine code | stamp of the sources | SHA-256 of both

The machine code of a file `.so` or `.dll` is a shared library; the system loads the file as it is,
because it overlooks what follows a library. A `.dylib` of macOS ends with its signature, so stamp
and digest are in a file beside it. The code of a file `.o` is object code, from where nothing could
link it. A wheel holds these files. Where it does not, kernels are compiled at first use and kept
in the first of several folders that can be written to, under names that hold the stamp, so that
several versions of the package share a folder. Code that another user could have put into such a
folder is not run.

A stamp is a hash of the modules that compile, the kernel's own, and all of this package that these
import at their beginning; so an edit makes only those kernels stale that could change.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import stat
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from functools import cache
from glob import glob
from pathlib import Path
from typing import IO

from gpuforest.compiler.processors import Target, levels, native

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

logger = logging.getLogger("gpuforest")

PACKAGE = Path(__file__).parents[1]
PACKAGED = PACKAGE / "compiler" / "compiled"  # filled when it is installed, or a wheel is built
DIGEST = hashlib.sha256().digest_size
HINT = "set NUMBA_CACHE_DIR to a folder that this user alone can write to"
# of this system's shared libraries and of object code
SUFFIXES = ({"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so"), ".o")
BESIDE = ".digest"  # what follows the name of a `.dylib` in that of its stamp and digest
VERSIONS = 8  # the most versions of a kernel that are kept
# the files of kernels. Kernels that compile longest come first, so that no process waits for
# one of them at the end
FILES = (
    "kernels/grow_subtrees/numba.py", "splits/*/numba.py", "kernels/*/numba.py",
    "kernels/*/oblique.py", "kernels/*/ranking.py", "explain/*_kernels.py",
)  # fmt: skip
MODULES = [
    *dict.fromkeys(
        path.removesuffix(".py").replace(os.sep, ".")
        for pattern in FILES
        for path in sorted(glob(pattern, root_dir=PACKAGE))
    )
]
COMPILER = "compiler.compile"
NO_PART = {"compiler.code", "common.parallel"}  # imported by what compiles, but change no code
ALL = "all"  # of all kernels together; no kernel's name begins with it
POLL = 0.05  # seconds between looks at what another process has

# at the beginning of a line, so neither in functions nor under TYPE_CHECKING; Numba compiles no
# import in a function
_IMPORT = re.compile(r"([\w.]*) import (?:\(([^)]*)\)|(.*))")
_logged: set[str] = set()


def folders(make: bool = False) -> Iterator[Path]:
    """Folders of compiled kernels besides the package's; new files go to the first that can be
    written to. `make` creates the temporary folder, which comes last."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen) / "gpuforest"
    elif (users := _users_cache()).is_absolute():  # a user without a home has "~/.cache"
        yield users / "gpuforest" / "kernels"
    if (temporary := _temporary(make)) is not None:
        yield temporary / "kernels"


def _users_cache() -> Path:
    """The folder of the user's caches, by the customs of the system."""
    windows = os.environ.get("LOCALAPPDATA", "~/AppData/Local")
    folder = {"win32": windows, "darwin": "~/Library/Caches"}.get(sys.platform)
    return Path(os.path.expanduser(folder or os.environ.get("XDG_CACHE_HOME") or "~/.cache"))


def _temporary(make: bool) -> Path | None:
    """The user's temporary folder; None if others could write code there, which would be run."""
    user = os.getuid() if hasattr(os, "getuid") else None
    try:
        folder = Path(tempfile.gettempdir()) / f"gpuforest-{'' if user is None else user}"
        if make:
            folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return None
    private = user is None or (status.st_uid == user and not status.st_mode & 0o077)
    return folder if stat.S_ISDIR(status.st_mode) and private else None


def check_trusted(folder: Path, file: Path | None = None) -> None:
    """Raise PermissionError if another user could have put code into a folder, or into `file`."""
    if not hasattr(os, "getuid"):
        return
    # the folder above may be shared as /tmp is: nobody replaces there what others own
    about = [(folder.parent, folder.parent.stat(), stat.S_ISVTX), (folder, folder.lstat(), 0)]
    if file is not None:
        about.append((file, file.lstat(), 0))
    for path, status, shared in about:
        if status.st_uid not in (0, os.getuid()):
            raise PermissionError(f"{path} belongs to user {status.st_uid}")
        if stat.S_ISLNK(status.st_mode):
            raise PermissionError(f"{path} is a link")
        if status.st_mode & 0o022 and not status.st_mode & shared:
            raise PermissionError(
                f"{path} can be written to by other users; `chmod go-w {path}` ends that"
            )


def usable(name: str) -> Iterator[tuple[Path, bytes]]:
    """A kernel's whole files of this machine and these sources, best first; its machine code."""
    for path in files_of(name):
        try:
            if path.parent != PACKAGED:
                check_trusted(path.parent, path)
            code = unpacked(name, content_of(path))
        except OSError:
            continue
        except ValueError:
            log_once("unread", f"{path} is damaged; gpuforest compiles this kernel anew")
            continue
        if code is not None:
            yield path, code


def files_of(name: str) -> Iterator[Path]:
    """Where a kernel for this machine may be, the best first."""
    places = [(folder, native()) for folder in (PACKAGED, *folders())]
    places += [(PACKAGED, target) for target in levels()]
    for folder, target in places:
        version = "" if folder == PACKAGED else version_of(name)
        yield from (folder / f"{name}{version}.{target.name}{suffix}" for suffix in SUFFIXES)


def is_there(name: str) -> bool:
    """Whether there is a file of a kernel, which nobody reads to find out."""
    return any(path.exists() for path in files_of(name))


def read(name: str) -> bytes | None:
    """The machine code of a kernel for this machine; None if there is none."""
    return next((code for _, code in usable(name)), None)


def unpacked(name: str, content: bytes) -> bytes | None:
    """The machine code in a file's content; None: from other sources; ValueError: damaged."""
    rest = content[:-DIGEST]
    if hashlib.sha256(rest).digest() != content[-DIGEST:]:
        raise ValueError("its digest is another")
    return rest.removesuffix(stamp(name)) if rest.endswith(stamp(name)) else None


def packed(name: str, code: bytes) -> bytes:
    """The content of a file of a kernel's machine code."""
    rest = code + stamp(name)
    return rest + hashlib.sha256(rest).digest()


def content_of(path: Path) -> bytes:
    """The content of a kernel's file and of the file beside it."""
    beside = path.with_name(path.name + BESIDE)
    return path.read_bytes() + (beside.read_bytes() if path.suffix == ".dylib" else b"")


def save(path: Path, name: str, code: bytes) -> None:
    """Write a kernel's file, and what is beside it."""
    content, n = packed(name, code), None
    if path.suffix == ".dylib":
        n = len(code)
        write_whole(path.with_name(path.name + BESIDE), content[n:])
    write_whole(path, content[:n])


def suffix_of(code: bytes) -> str:
    """The ending of names of files of machine code, by the head of ELF, Mach-O or Windows."""
    if code.startswith(b"\x7fELF") and code[16] == 3:
        return ".so"
    if code.startswith(b"\xcf\xfa\xed\xfe") and code[12] == 6:
        return ".dylib"
    return ".dll" if code.startswith(b"MZ") else ".o"


def file_of(name: str, target: Target, code: bytes, version: str = "") -> str:
    """The file of a kernel's machine code, without its version in a wheel."""
    return f"{name}{version}.{target.name}{suffix_of(code)}"


def version_of(name: str) -> str:
    """The part of a file's name that tells versions of a kernel apart."""
    return f".{stamp(name).hex()[:16]}"


def prepare(folder: Path) -> None:
    """Make a folder of kernels, and check that only this user can write to it."""
    for made in (folder.parent, folder):
        made.mkdir(mode=0o755, parents=True, exist_ok=True)
    check_trusted(folder)


def lock(name: str, wait: bool = True) -> IO[bytes] | None:
    """An open file that this process alone has, until it ends; None if there is no folder, or
    another process has it and this one does not wait."""
    for folder in folders(make=True):
        try:
            prepare(folder)
            file = open(folder / f"{name}.lock", "ab")  # noqa: SIM115  # the caller closes it
        except OSError:
            continue
        while not _is_taken(file):
            if not wait:
                file.close()
                return None
            time.sleep(POLL)
        return file
    return None


def _is_taken(file: IO[bytes]) -> bool:
    """Whether this process has taken an open file for itself."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError as error:
        logger.info("%s: several processes may compile the same kernels", error)
    return True


def write(name: str, code: bytes) -> Path | None:
    """Save machine code to the first folder that can be written to; returns the file or None."""
    failures = ["there is no home folder"]  # the last one is named
    for folder in folders(make=True):
        path = folder / file_of(name, native(), code, version_of(name))
        try:
            prepare(folder)
            save(path, name, code)
            files = sorted(folder.glob(f"{name}.*"), key=lambda file: file.stat().st_mtime)
            for old in files[:-VERSIONS]:
                old.unlink(missing_ok=True)
        except OSError as error:
            failures.append(str(error))
            continue
        if folder.parent == _temporary(make=False):
            log_once(
                "unkept",
                f"gpuforest keeps its compiled kernels in {folder.parent}, because no lasting "
                f"folder can be written to ({failures[-1]}); {HINT}",
            )
        return path
    log_once(
        "unkept",
        "gpuforest cannot keep its compiled kernels on disk, so every process compiles them "
        f"({failures[-1]}); {HINT}",
    )
    return None


def is_complete(family: str) -> bool:
    """True if all kernels of a family are compiled, which a file without code marks."""
    return any(read(mark) is not None for mark in (ALL, f"{ALL}-{family}"))


def all_linked() -> bool:
    """True if all kernels for this machine are shared libraries on disk."""
    found = next(usable(ALL), None)
    return found is not None and not any(
        path.suffix == ".o" and not path.name.startswith(ALL) for path in found[0].parent.iterdir()
    )


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; processes that run an older one keep it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex[:16]}")
    try:
        part.touch(mode=0o644)  # for nobody else to write to, whatever the umask
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


@cache
def sources() -> dict[str, tuple[bytes, list[str]]]:
    """Hash of the text, and imports, of each module that kernels are made from, by name. They are
    read at once, so that a process never mixes versions."""
    modules, left = dict[str, tuple[bytes, list[str]]](), [COMPILER, *MODULES]
    while left:
        if (module := left.pop()) not in modules:
            content = PACKAGE.joinpath(*module.split(".")).with_suffix(".py").read_bytes()
            modules[module] = hashlib.sha256(content).digest(), imports_of(content.decode())
            left += modules[module][1]
    return modules


def imports_of(text: str) -> list[str]:
    """The modules of this package that a module imports at its beginning."""
    modules = []
    for part in f"\n{text}".split("\nfrom gpuforest")[1:]:  # ten times as fast as a search
        if match := _IMPORT.match(part):
            module = match[1].removeprefix(".")
            if PACKAGE.joinpath(*module.split(".")).is_dir():
                names = re.findall(r"(\w+)(?: as \w+)?", (match[2] or match[3]).partition("#")[0])
                modules += [f"{module}.{name}".removeprefix(".") for name in names]
            else:
                modules.append(module)
    return [module for module in modules if module not in NO_PART]


@cache
def modules_of(module: str) -> frozenset[str]:
    """A module and all of this package that it imports, and these in turn."""
    reached, left = set[str](), [module]
    while left:
        if (name := left.pop()) not in reached:
            reached.add(name)
            left += sources()[name][1]
    return frozenset(reached)


@cache
def stamp(name: str) -> bytes:
    """A hash of the sources of a kernel of this name; or of all, for the marks of `is_complete`."""
    if name.startswith(ALL):
        modules = frozenset(sources())
    else:
        module = name.partition("-")[0].rpartition(".")[0]  # without types and function
        modules = modules_of(COMPILER) | modules_of(module)
    parts = (module.encode() + b"\0" + sources()[module][0] for module in sorted(modules))
    return hashlib.sha256(b"".join(parts)).digest()
