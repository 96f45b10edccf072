"""Pictures of trees and forests; see gpuforest.tools.plot."""

from gpuforest.tools.plot import *  # noqa: F403 its public names are these
from gpuforest.tools.plot import __all__ as __all__
