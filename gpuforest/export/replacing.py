"""Files that are replaced as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A file to write to, which takes the place of the one at `path` once it is whole.

    A link stays, and the file that it leads to is replaced. The new file has the mode, and where
    that is allowed the owner, of the old one. What is no file (a pipe, a device) is written into.

    Raises
    ------
    OSError : the file cannot be written; names `path`
    """
    target = Path(os.path.realpath(path))  # which links that lead to themselves pass
    stream = is_stream(path)
    written = path if stream else target.with_name(f".gpuforest-{secrets.token_hex(8)}")
    try:
        yield written
        if not stream:
            _put(written, target)
    except OSError as error:
        if error.errno is None or error.filename not in (None, os.fspath(written)):
            raise  # it is about another file
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    finally:
        if not stream:
            written.unlink(missing_ok=True)


def is_stream(path: Path) -> bool:
    """Whether a path is a device or a pipe: it is written to, not replaced."""
    return os.path.exists(path) and not os.path.isfile(path)


def _put(written: Path, target: Path) -> None:
    """Give a new file the mode, the owner and the name of the one that it replaces."""
    if target.exists():
        old = target.stat()
        with contextlib.suppress(OSError, AttributeError):  # not ours to give; Windows
            os.chown(written, old.st_uid, old.st_gid)
        shutil.copymode(target, written)
    os.replace(written, target)
