"""Names of modules in pickles of 0.x; they go with the next release."""

import sys

from gpuforest.growing import boosted
from gpuforest.kernels.gradients import losses

sys.modules |= {f"{__name__}.model": boosted, f"{__name__}.losses": losses}
