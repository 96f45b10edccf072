"""`python tests/support/cuda_on_cpu asan|tsan ...`: Python under a sanitizer."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # was this folder

from cuda_on_cpu.sanitizers import main  # noqa: E402

raise SystemExit(main(sys.argv[1:]))
