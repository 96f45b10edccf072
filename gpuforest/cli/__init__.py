"""The command line: `gpuforest train`, `gpuforest predict` and `gpuforest inspect`."""

from gpuforest.cli.main import main

__all__ = ["main"]
