"""Data in partitions, and forests that a dask cluster fits on them."""

from contextlib import contextmanager

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from engine import same_forest

import gpuforest.dask as on_dask

N = 800
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 5)).astype(np.float32)
X[RNG.random(X.shape) < 0.05] = np.nan
Y = np.where(np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) > 0, "yes", "no")
Z = np.nan_to_num(X[:, 0] * 3 + X[:, 2])
WEIGHTS = RNG.integers(0, 4, N) * 0.3
CUTS = {
    "even": (200, 200, 200, 200),
    "uneven": (500, 0, 1, 299),
    "one": (N,),
    "many": (7,) * 114 + (2,),
}


@contextmanager
def cluster_of(n_workers, **options):
    """The client of a cluster: of threads, if the options do not say otherwise."""
    local = {"processes": False, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(n_workers=n_workers, **local | options) as cluster, Client(cluster) as client:
        yield client


def cut(values, sizes):
    return da.from_array(values, chunks=(sizes, *values.shape[1:]))


def fitted(model, X, y, weight=None, sizes=CUTS["uneven"], strategy="auto", **others):
    """The model for dask of the same name, fitted on partitions."""
    kind = getattr(on_dask, type(model).__name__)
    parts = [None if a is None else cut(a, sizes) for a in (X, y, weight)]
    others = {name: cut(values, sizes) for name, values in others.items()}
    return kind(**model.get_params(), strategy=strategy).fit(*parts, **others)


def assert_same(found, whole):
    assert same_forest(found.forest_, whole.forest_)
    assert found.forest_.edges.categories == whole.forest_.edges.categories
    assert found.forest_.seed == whole.forest_.seed
    assert found.n_features_in_ == whole.n_features_in_
    if hasattr(whole, "classes_"):
        assert found.classes_.tolist() == whole.classes_.tolist()
        assert found.classes_.dtype == whole.classes_.dtype
