"""`python -m gpuforest.cli` is `gpuforest`."""

import sys

from gpuforest.cli.main import main

sys.exit(main())
