"""Where things lie in a checkout, and what is installed."""

from importlib.util import find_spec
from pathlib import Path

SUPPORT = Path(__file__).parent
TESTS = SUPPORT.parent
ROOT = TESTS.parent
SHARED = ROOT.parent / "shared"  # larger data sets, where they lie beside the checkout

MOST_LINES = 400  # of a module
has_numba = find_spec("numba") is not None and find_spec("gpuforest.backends.numba") is not None
