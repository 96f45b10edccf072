"""Compiles the kernels when the package is installed or its wheel is built, and not in use.

GPUFOREST_TARGETS says for what: "native" (the default) is this machine's level of processors,
"levels" are all levels of x86-64, for a wheel that others install, and "none" leaves all to the
first use.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TARGETS = "GPUFOREST_TARGETS"


class KernelsHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        wanted = os.environ.get(TARGETS, "native")
        if wanted not in ("native", "levels", "none"):
            raise ValueError(f"{TARGETS} must be native, levels or none, not {wanted!r}")
        if version == "editable" or wanted == "none":  # sources that may change
            return
        self.folder = tempfile.TemporaryDirectory()
        done = subprocess.run(
            [sys.executable, "-m", "gpuforest.compiler.build", wanted, "--to", self.folder.name],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [self.root, *sys.path]))},
        )
        if done.returncode or not os.listdir(self.folder.name):
            self.app.display_warning("gpuforest's kernels will be compiled at their first use")
            return
        build_data["force_include"][self.folder.name] = "gpuforest/compiler/compiled"
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"  # the code needs no release of Python

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()
