"""Wide levels of thousands of rows on a device, where all features are tried."""

import numpy as np
import pytest
from cuda_on_cpu.module import available
from emulated import EmulatedBackend
from engine import same_forest
from tasks import large

from gpuforest.backends.cuda.launch import slot_bytes
from gpuforest.backends.numba import NumbaBackend
from gpuforest.backends.numpy import NumpyBackend

CHANGES = [
    {},
    {"n_draws": 0},
    {"random": True},
    {"min_rows_leaf": 3, "min_rows_split": 20},
    {"min_weight_leaf": 6},
    {"max_bins": 255},
    {"weights": np.arange(6000, dtype=np.int32) % 3},
    {"n_features_tree": 7},
    {"min_gain": 0.5},
]


@pytest.mark.parametrize("name", ["binary", "60 classes", "regression", "two outputs", "counts"])
@pytest.mark.parametrize("changes", CHANGES, ids=lambda changes: ", ".join(changes) or "default")
def test_thousands_of_rows(cuda, name, changes):
    task = large(name).but(n_tried=None, max_bins=15, n_trees=2, max_depth=7).but(**changes)
    forest = task.grow(NumbaBackend())
    for seed, deep in enumerate([0, 300]):
        with cuda.order(seed):
            assert same_forest(forest, task.grow(cuda.backend(deep=deep)))


@pytest.mark.parametrize("name", ["binary", "regression"])
def test_limits_of_means(cuda, name):
    task = large(name).but(n_tried=None, max_bins=15, n_trees=2, max_depth=7)
    task = task.but(signs=(1, 0, -1, *[0] * (task.X.shape[1] - 3)))
    with cuda.order(1):
        assert same_forest(task.grow(NumbaBackend()), task.grow(cuda.backend()))


@pytest.mark.skipif(available() is not None, reason=str(available()))
@pytest.mark.parametrize("n_slots", [1, 5, 23])
def test_histograms_keep_within_the_budget(n_slots, monkeypatch):
    task = large("regression").but(n_tried=None, max_bins=15, n_trees=2, max_depth=7)
    backend, made, empty = EmulatedBackend(deep=20), [], EmulatedBackend.empty
    backend.memory_budget = n_slots * slot_bytes(task.training(NumpyBackend()))

    def noting(self, shape, dtype):
        array = empty(self, shape, dtype)
        made.append(len(array) if array.ndim == 4 else 0)
        return array

    monkeypatch.setattr(EmulatedBackend, "empty", noting)
    assert same_forest(task.grow(NumbaBackend()), task.grow(backend))
    assert 0 < max(made) <= n_slots
