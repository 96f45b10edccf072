"""Estimators that train on a dask cluster; see gpuforest.tools.dask."""

from gpuforest.tools.dask import *  # noqa: F403 its public names are these
from gpuforest.tools.dask import __all__ as __all__
