"""`python -m gpuforest.cli` is `gpuforest`."""

import sys

from gpuforest.tools.cli.main import main

sys.exit(main())
