"""Forests on a dask cluster: the same forest, bit for bit, however rows and workers are shared out.

Examples
--------
>>> import dask.array as da
>>> from dask.distributed import Client
>>> from gpuforest.dask import RandomForestClassifier
>>> with Client(processes=False, dashboard_address=":0") as client:
...     X = da.random.default_rng(0).normal(size=(1000, 4), chunks=(300, 4))
...     forest = RandomForestClassifier(random_state=0).fit(X, X[:, 0] > 0)
...     forest.predict(X)[:2].compute().shape
(2,)
"""

from importlib.util import find_spec

import gpuforest

for _name in ("dask", "distributed"):
    if find_spec(_name) is None:
        raise ImportError(f"gpuforest.dask needs {_name}: pip install 'gpuforest[dask]'")

from gpuforest.tools.dask.effects import Effects  # noqa: E402 what is absent is said first
from gpuforest.tools.dask.estimators import on_dask  # noqa: E402

__all__ = [
    "CausalForest",
    "ExtraSurvivalTrees",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "HistGradientBoostingClassifier",
    "HistGradientBoostingRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "RandomSurvivalForest",
]

RandomForestClassifier = on_dask(gpuforest.RandomForestClassifier)
RandomForestRegressor = on_dask(gpuforest.RandomForestRegressor)
ExtraTreesClassifier = on_dask(gpuforest.ExtraTreesClassifier)
ExtraTreesRegressor = on_dask(gpuforest.ExtraTreesRegressor)
RandomSurvivalForest = on_dask(gpuforest.RandomSurvivalForest)
ExtraSurvivalTrees = on_dask(gpuforest.ExtraSurvivalTrees)
HistGradientBoostingClassifier = on_dask(gpuforest.HistGradientBoostingClassifier)
HistGradientBoostingRegressor = on_dask(gpuforest.HistGradientBoostingRegressor)
CausalForest = on_dask(gpuforest.CausalForest, Effects)
