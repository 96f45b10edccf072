"""Compiles all kernels when a wheel for others is built; asks for Numba where nothing is compiled.

GPUFOREST_TARGETS says what a wheel holds: "levels" is all kernels for all levels of x86-64, or for
this other family of processors; "none" (the default) leaves all to the first use, for which the
package then needs Numba. GPUFOREST_TRIPLE chooses one of `OTHERS`, for a wheel that is built on
another machine; CC then is a compiler that links for it.
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


def has_kernels() -> bool:
    """Whether the wheel holds compiled kernels."""
    wanted = os.environ.get(TARGETS, "none")
    if wanted not in ("levels", "none"):
        raise ValueError(f"{TARGETS} must be levels or none, not {wanted!r}")
    return wanted == "levels"


class KernelsHook(BuildHookInterface):
    def dependencies(self) -> list[str]:
        """What building needs besides Hatchling."""
        return [*self.metadata.core.dependencies, *self.compiler()] if has_kernels() else []

    def compiler(self) -> list[str]:
        """What compiles kernels."""
        return self.metadata.core.optional_dependencies["compile"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or not has_kernels():
            build_data["dependencies"] += self.compiler()
            return
        self.folder = tempfile.TemporaryDirectory()
        triple = os.environ.get(TRIPLE) or this_machine()
        path = os.pathsep.join(filter(None, [self.root, *sys.path]))
        env = {**os.environ, "PYTHONPATH": path, TRIPLE: triple}
        subprocess.run(
            [sys.executable, "-m", "gpuforest.compiler.build", "levels", "--to", self.folder.name],
            cwd=self.root,
            env=env,
            check=True,
        )
        files = os.listdir(self.folder.name)
        if not any(name.endswith((".so", ".dylib", ".dll")) for name in files):
            raise RuntimeError("a wheel for others needs a C compiler, which CC names")
        build_data["force_include"][self.folder.name] = "gpuforest/compiler/compiled"
        build_data["pure_python"] = False
        tags = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{OTHERS.get(triple, tags)}"  # it needs no release of Python

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()
