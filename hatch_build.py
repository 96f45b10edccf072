"""Compiles the kernels when the package is installed or its wheel is built, and not in use.

GPUFOREST_TARGETS says for what: "native" (the default) is this machine's level of processors,
"levels" is for a wheel that others install, which has all levels of x86-64, and "none" leaves all
to the first use. GPUFOREST_TRIPLE chooses one of `OTHERS`, for a wheel that is built on another
machine; CC then is a compiler that links for it.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import sysconfig
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TARGETS, TRIPLE = "GPUFOREST_TARGETS", "GPUFOREST_TRIPLE"
LINUX = "manylinux2014_{0}.manylinux_2_17_{0}.musllinux_1_2_{0}"
# Who can install a wheel for others, by LLVM's name of their machines. The code asks for no release
# of Linux's C library; these are the oldest that NumPy has wheels for
OTHERS = {
    "x86_64-unknown-linux-gnu": LINUX.format("x86_64"),
    "aarch64-unknown-linux-gnu": LINUX.format("aarch64"),
    "arm64-apple-macosx11.0": "macosx_11_0_arm64",
    "x86_64-apple-macosx11.0": "macosx_11_0_x86_64",
    "x86_64-w64-windows-gnu": "win_amd64",
}


def this_machine() -> str:
    """LLVM's name of machines like this one."""
    machine = platform.machine().lower().replace("amd64", "x86_64")
    systems = {"darwin": "apple-macosx11.0", "win32": "w64-windows-gnu"}
    return f"{machine}-{systems.get(sys.platform, f'unknown-{sys.platform}-gnu')}"


class KernelsHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        wanted = os.environ.get(TARGETS, "native")
        if wanted not in ("native", "levels", "none"):
            raise ValueError(f"{TARGETS} must be native, levels or none, not {wanted!r}")
        if version == "editable" or wanted == "none":  # sources that may change
            return
        self.folder = tempfile.TemporaryDirectory()
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [self.root, *sys.path]))}
        tags = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        if wanted == "levels":
            triple = os.environ.get(TRIPLE) or this_machine()
            env[TRIPLE], tags = triple, OTHERS.get(triple, tags)
        done = subprocess.run(
            [sys.executable, "-m", "gpuforest.compiler.build", wanted, "--to", self.folder.name],
            cwd=self.root,
            env=env,
        )
        files = os.listdir(self.folder.name)
        if wanted == "levels" and not any(
            name.endswith((".so", ".dylib", ".dll")) for name in files
        ):
            raise RuntimeError("a wheel for others needs a C compiler, which CC names, and Numba")
        if done.returncode or not files:
            self.app.display_warning("gpuforest's kernels will be compiled at their first use")
            return
        build_data["force_include"][self.folder.name] = "gpuforest/compiler/compiled"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{tags}"  # the code needs no release of Python

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()
