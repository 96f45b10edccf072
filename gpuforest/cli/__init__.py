"""The command line: `gpuforest train` and `gpuforest predict`."""

from gpuforest.cli.main import main

__all__ = ["main"]
