"""Where things lie in a checkout and on this machine, and what is installed."""

import os
import tempfile
from importlib.util import find_spec
from pathlib import Path

SUPPORT = Path(__file__).parent
TESTS = SUPPORT.parent
ROOT = TESTS.parent
SHARED = ROOT.parent / "shared"  # larger data sets, where they lie beside the checkout

MOST_LINES = 600  # of a module


def kept(name: str) -> Path:
    """This user's folder of what tests have built, which later runs find by its content."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    folder = home / "gpuforest" / "tests" / name
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        mine = not folder.is_symlink() and folder.stat().st_uid == os.getuid()
        if mine and os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix=f"gpuforest-{name}-"))


has_numba = find_spec("numba") is not None and find_spec("gpuforest.backends.numba") is not None
