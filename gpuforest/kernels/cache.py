"""Compiled kernels on disk, so that later processes need not compile them.

A file holds the machine code of one kernel for one signature and processor:

    SHA-256 of what follows | stamp of all kernels' sources | pickled signature and code

Numba's own cache raises an error if no folder can be written to, the disk is full or a file is
damaged. Here the kernel is then compiled, and one log record gives the reason.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
import stat
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core import config
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

logger = logging.getLogger("gpuforest")

KERNELS = Path(__file__).parent
DIGEST = hashlib.sha256().digest_size
HINT = "set NUMBA_CACHE_DIR to a folder that can be written to"

_logged: set[str] = set()


def folders(make: bool = False) -> Iterator[Path]:
    """The folders of compiled kernels; new files go to the first that can be written to.

    Parameters
    ----------
    make : whether to create the temporary folder, which comes last
    """
    # each installation has a subfolder of its own, because several may share a folder
    own = f"gpuforest_{hashlib.sha256(str(KERNELS).encode()).hexdigest()[:16]}"
    if config.CACHE_DIR:  # the environment's NUMBA_CACHE_DIR
        yield Path(config.CACHE_DIR) / own
    else:
        yield KERNELS / "__pycache__"
        users = Path(AppDirs(appname="gpuforest", appauthor=False).user_cache_dir)
        if users.is_absolute():  # a user without a home has "~/.cache"
            yield users / own
    if (temporary := _temporary(make)) is not None:
        yield temporary / own


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


class KernelCache(NullCache):
    """The cache from which a dispatcher of Numba loads a kernel's machine code, and to which it
    saves it.

    Parameters
    ----------
    function : the kernel
    stamp : bytes that change with any kernel's source
    """

    def __init__(self, function: Callable[..., Any], stamp: bytes) -> None:
        module = function.__module__.removeprefix("gpuforest.kernels.")
        self.name, self.stamp = f"{module}.{function.__name__}", stamp

    @property
    def cache_path(self) -> str:
        return str(next(folders()))

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Numba's compiled code for a signature; None if it must be compiled."""
        context.refresh()
        for folder in folders():
            path = folder / self._file(signature, context.codegen())
            try:
                code = self._read(path)
                if code is not None and code[0] == signature:
                    return CompileResult._rebuild(context, *code[1])
            except OSError:
                continue
            except Exception as error:  # pickle and Numba can raise anything
                _log_once(
                    "unread",
                    f"{path} is damaged ({error}); gpuforest compiles this kernel anew",
                )
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Save the code compiled for a signature to the first folder that can be written to."""
        failures = []
        try:
            if compiled.library.has_dynamic_globals:  # addresses of this process
                return
            rest = self.stamp + dumps((signature, compiled._reduce()))
            name = self._file(signature, compiled.codegen)
        except Exception as error:  # other releases of Numba can raise anything
            _log_once("unkept", f"gpuforest cannot keep its compiled kernels on disk: {error!r}")
            return
        content = hashlib.sha256(rest).digest() + rest
        for folder in folders(make=True):
            try:
                _write(folder / name, content)
            except OSError as error:
                failures.append(str(error))
                continue
            if folder.parent == _temporary(make=False):
                _log_once(
                    "unkept",
                    f"gpuforest keeps its compiled kernels in {folder.parent}, because no lasting "
                    f"folder can be written to ({failures[-1]}); {HINT}",
                )
            return
        _log_once(
            "unkept",
            "gpuforest cannot keep its compiled kernels on disk, so every process compiles them "
            f"({failures[-1]}); {HINT}",
        )

    def _file(self, signature: Any, codegen: Any) -> str:
        made_by = numba.__version__, sys.implementation.cache_tag, codegen.magic_tuple()
        key = hashlib.sha256(repr((str(signature), made_by)).encode()).hexdigest()
        return f"{self.name}-{key[:16]}.nbc"

    def _read(self, path: Path) -> tuple[Any, Any] | None:
        """The signature and code in a file; None if they come from other sources.

        Raises
        ------
        OSError : there is no such file, or it cannot be read
        ValueError : it is damaged
        """
        content = path.read_bytes()
        rest = content[DIGEST:]
        if hashlib.sha256(rest).digest() != content[:DIGEST]:
            raise ValueError("its digest is another")
        if not rest.startswith(self.stamp):
            return None
        code: tuple[Any, Any] = pickle.loads(rest[len(self.stamp) :])
        return code


def _write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, so that another process never reads a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex[:16]}")
    try:
        part.write_bytes(content)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _log_once(kind: str, message: str) -> None:
    """Log one record of each kind, because a dozen kernels meet the same problem."""
    if kind not in _logged:
        _logged.add(kind)
        logger.warning(message)
