"""The command line: `gpuforest train`, `predict`, `explain`, `evaluate`, `inspect`, `verify` and
`plot`."""

from gpuforest.tools.cli.main import main

__all__ = ["main"]
