"""What only a GPU can show: its real order of threads, its memory, its size.

test_cuda.py and test_device_arrays.py run there too. All is compared with the CPU's forests.
"""

import gc
import os

import numpy as np
import pytest
from devices import DEVICES
from engine import Task, compare_out_of_bag, same_forest
from tasks import large

from gpuforest import RandomForestClassifier, RandomForestRegressor
from gpuforest.backends.numba import NumbaBackend

GPU = DEVICES["GPU"]
CORES = os.cpu_count() or 1


@pytest.fixture(autouse=True, scope="module")
def cupy():
    """The module, where there is a GPU; elsewhere no test runs."""
    if (reason := GPU.why_not()) is not None:
        pytest.skip(reason)
    return pytest.importorskip("cupy", reason="needs pip install 'gpuforest[test-cuda]'")


def wide(max_bins=255):
    """So many features that few rows of codes fit a block."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4000, 400)).astype(np.float32)
    X[rng.random(X.shape) < 0.05] = np.nan
    y = (np.nan_to_num(X[:, 0]) + X[:, 1] * rng.normal(size=4000) > 0).astype(int)
    return Task(X, y, n_draws=4000, n_tried=20, n_trees=2, max_bins=max_bins)


# tasks and limits of shared memory that need every kind of deep phase, and none
PLANNED = {name: lambda name=name: large(name) for name in ("binary", "60 classes", "two outputs")}
PLANNED |= {"wide": wide, "wide, few bins": lambda: wide(7)}
LIMITS = [6 << 10, 8 << 10, 20 << 10, 64 << 10, 163 << 10, None]


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("name", PLANNED)
def test_every_kind_of_deep_phase_grows_the_same(name, limit):
    task = PLANNED[name]()
    assert same_forest(task.grow(NumbaBackend(CORES)), task.grow(GPU.backend(shared_limit=limit)))


@pytest.mark.parametrize("name", ["binary", "60 classes", "regression", "16 bits"])
def test_a_wave_of_many_trees(name):
    # thousands of blocks, whose real order differs from run to run
    task = large(name).but(n_trees=60)
    expected = task.grow(NumbaBackend(CORES))
    for _ in range(3):
        assert same_forest(expected, task.grow(GPU.backend()))


@pytest.mark.parametrize("is_classes", [True, False])
def test_hundreds_of_thousands_of_rows(is_classes):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300_000, 20)).astype(np.float32)
    X[rng.random(X.shape) < 0.02] = np.nan
    z = np.nan_to_num(X[:, 0] * X[:, 1]) + rng.normal(size=len(X))
    y, criterion = (z > 0.3).astype(int), "gini"
    if not is_classes:
        y, criterion = z, "squared_error"
    task = Task(X, y, criterion, n_draws=len(X), n_tried=5, n_trees=4)
    forest, backend = task.grow(NumbaBackend(CORES)), GPU.backend()
    assert same_forest(forest, task.grow(backend))
    compare_out_of_bag(forest, task, backend)


@pytest.mark.parametrize("name", ["binary", "regression"])
def test_the_pool_of_memory_is_left_clean(cupy, name):
    task, pool = large(name), cupy.get_default_memory_pool()
    kind = RandomForestRegressor if name == "regression" else RandomForestClassifier
    X, y = cupy.asarray(task.X), cupy.asarray(task.y)
    kind(3, backend="cupy", random_state=0).fit(X, y).predict(X)  # what is made once
    gc.collect()
    before = pool.used_bytes()
    model = kind(20, backend="cupy", random_state=0).fit(X, y)
    gc.collect()
    assert pool.used_bytes() == before
    model.predict(X)  # leaves a copy of the forest there, while the forest lives
    del model
    gc.collect()
    assert pool.used_bytes() == before


def test_a_matrix_of_more_cells_than_32_bits_count(cupy):
    # only the last rows count: the forest is that of these rows alone
    n, F, last = 40_000_000, 64, 20_000
    free, _ = cupy.cuda.runtime.memGetInfo()
    if free < 24 * 2**30:
        pytest.skip(f"needs 24 GiB of free device memory, and {free / 2**30:.0f} are free")
    X = cupy.arange(n, dtype=cupy.uint32)[:, None] * cupy.arange(1, 2 * F, 2, dtype=cupy.uint32)
    X = (X >> 7).astype(cupy.uint8) & 15
    few = cupy.asnumpy(X[-last:])
    y = (few[:, 3] + few[:, 60] > 15 + np.arange(last) % 5).astype(np.int32)
    y_all, weights = cupy.zeros(n, cupy.int32), np.zeros(n)
    y_all[-last:], weights[-last:] = cupy.asarray(y), 1
    params = {"n_estimators": 3, "max_depth": 8, "random_state": 0, "max_samples": last}
    model = RandomForestClassifier(**params, backend="cupy").fit(X, y_all, weights)
    reference = RandomForestClassifier(**params, backend="numba").fit(few, y, np.ones(last))
    assert same_forest(model.forest_, reference.forest_)
    found = model.predict_proba(X)
    assert np.array_equal(cupy.asnumpy(found[-last:]), reference.predict_proba(few))
