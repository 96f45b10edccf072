"""Links a kernel's object code into a shared library, where a C compiler is found.

The system loads a shared library; object code needs LLVM's loader, which takes 40 MB of memory.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# A kernel calls nothing but memcpy and memset, which every process has: no library is named, so
# that none of a certain release is needed. The last two make a small file.
OPTIONS = ["-shared", "-nostdlib", "-Wl,-z,text", "-Wl,-z,noseparate-code", "-Wl,--strip-all"]


def linker() -> list[str] | None:
    """The command of the C compiler, which calls the linker; None if there is none, and on
    systems other than Linux."""
    command = shlex.split(os.environ.get("CC", "")) or ["cc"]
    found = sys.platform == "linux" and shutil.which(command[0])
    return command if found else None


def linked(code: bytes) -> bytes | None:
    """A shared library of object code that runs at any address; None if it cannot be made."""
    command = linker()
    if command is None:
        return None
    try:
        with tempfile.TemporaryDirectory(prefix="gpuforest-") as folder:
            given, made = Path(folder, "kernel.o"), Path(folder, "kernel.so")
            given.write_bytes(code)
            subprocess.run(
                [*command, *OPTIONS, "-o", str(made), str(given)],
                check=True,
                stdin=subprocess.DEVNULL,
                capture_output=True,
            )
            return made.read_bytes()
    except (OSError, subprocess.CalledProcessError):
        return None
