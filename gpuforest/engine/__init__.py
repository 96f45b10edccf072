"""Names of modules in pickles of 0.x; they go with the next release."""

import sys

from gpuforest.core import bins, forest, rules, target

renamed = {"binning": bins, "forest": forest, "records": rules, "target": target}
sys.modules |= {f"{__name__}.{name}": module for name, module in renamed.items()}
