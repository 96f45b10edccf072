"""
On a cluster
============

The estimators of ``gpuforest.dask`` take dask's collections and train on all workers. The forest
is the one that a single machine grows from the same rows, however they are cut. The cluster of
this example lives in one process.
"""

import dask.array as da
import numpy as np
from dask.distributed import Client
from matplotlib import pyplot as plt

import gpuforest
from gpuforest.dask import RandomForestClassifier
from gpuforest.plot import plot_boundaries

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 2))
y = (np.hypot(*X.T) + rng.normal(0, 0.2, 3000) > 1.2).astype(int)
settings = {"n_estimators": 20, "min_samples_leaf": 5, "random_state": 0}

with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None):
    rows = da.from_array(X, chunks=(700, 2))
    shared = RandomForestClassifier(**settings).fit(rows, da.from_array(y, chunks=700))
    print("predictions:", type(shared.predict(rows)).__name__, "in", rows.numblocks[0], "blocks")

local = gpuforest.RandomForestClassifier(**settings).fit(X, y)
grown = shared.to_local()
print("the same forest:", np.array_equal(grown.forest_.nodes, local.forest_.nodes))

fig, ax = plt.subplots(figsize=(6, 4.4), layout="constrained")
plot_boundaries(grown, X[:400], y[:400], feature_names=["a", "b"], ax=ax)
