"""Pictures of trees and forests; see gpuforest.tools.plot."""

import sys

from gpuforest.tools.plot import *  # noqa: F403 its public names are these
from gpuforest.tools.plot import __all__ as __all__
from gpuforest.tools.plot import style

sys.modules[f"{__name__}.style"] = style  # so that gpuforest.plot.style can be imported too
