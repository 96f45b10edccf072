"""The command line: `gpuforest` is `python -m gpuforest.cli`."""

import sys

from gpuforest.tools.cli.main import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
