"""Every backend, phase, number of threads and memory budget grows the same forest: ==."""

import numpy as np
import pytest
from engine import DeepFrom, Task, compare_answers, later_rows, same_forest
from hypothesis import given
from hypothesis import strategies as st
from tasks import large, tasks

from gpuforest.backends import base, numba, numpy


def assert_same(task: Task, *backends: base.Backend) -> None:
    forest = task.grow(numpy.NumpyBackend())
    for backend in backends:
        assert same_forest(forest, task.grow(backend)), vars(backend)


@given(task=tasks(), rows=st.sampled_from([1, 4, 20, 60]))
def test_compiled_forests_are_the_reference(task, rows):
    assert_same(task, DeepFrom(0), DeepFrom(rows), numba.NumbaBackend())
    forest, X = task.grow(numpy.NumpyBackend()), later_rows(task)
    for n_threads in (1, 3):
        compare_answers(forest, X, numba.NumbaBackend(n_threads))


@given(
    task=tasks(),
    rows=st.sampled_from([0, 20, 2**14]),
    n_threads=st.sampled_from([1, 2, 4]),
    budget=st.sampled_from([1, 1000, 30_000, 2**28]),
)
def test_threads_and_memory_change_nothing(task, rows, n_threads, budget):
    # one byte: waves of one tree, chunks of one slot
    backend = DeepFrom(rows, n_threads, budget)
    assert_same(task, numpy.NumpyBackend(1, budget), backend, backend)


@pytest.mark.parametrize(
    "name", ["binary", "7 classes", "60 classes", "regression", "two outputs", "counts", "16 bits"]
)
def test_thousands_of_rows(name):
    task = large(name)
    forest = task.grow(numba.NumbaBackend())
    assert forest.depth > 8
    for backend in (DeepFrom(0, 2), DeepFrom(1500, 2), DeepFrom(30), numba.NumbaBackend(2, 10**6)):
        assert same_forest(forest, task.grow(backend))
    few = task.but(n_trees=1, max_depth=9)
    assert_same(few, DeepFrom(0), DeepFrom(1500, 2), DeepFrom(200), numba.NumbaBackend())


def test_the_default_deep_phase_follows_wide_levels():
    rng, backend = np.random.default_rng(3), numba.NumbaBackend(2)
    few = Task(rng.normal(size=(300, 60)).astype(np.float32), np.zeros(300, int))
    n = 2 * backend.deep_rows(few.training(backend), 300)
    X = rng.normal(size=(n, 60)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (np.nan_to_num(X[:, 0]) + X[:, 1] > rng.normal(size=n)).astype(int)
    task = Task(X, y, n_tried=7, max_depth=6)
    assert backend.deep_rows(task.training(backend), n) < n
    assert_same(task, backend, numba.NumbaBackend())


@pytest.mark.parametrize("n_features", [3, 300, 3000])
def test_wide_nodes_hold_a_quarter_as_many_rows_as_bins(n_features):
    X = np.random.default_rng(0).normal(size=(2000, n_features)).astype(np.float32)
    backend = numba.NumbaBackend()
    training = Task(X, np.zeros(2000, int), max_bins=2000).training(backend)
    assert backend.deep_rows(training, 2000) >= training.n_codes // 4 >= 400


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_small_nodes_of_a_large_block_have_blocks_of_their_own(criterion):
    # 400 columns: the last block takes 1,310 rows, so there are two from 2,621 on, and three
    # from 10,481 on
    rng = np.random.default_rng(6)
    X = rng.normal(size=(11_000, 400)).astype(np.float32)
    X[:, ::3] = rng.integers(0, 2, (11_000, 134))  # constant in many nodes
    y = X[:, 0] + X[:, 1] + rng.normal(size=11_000) > 0
    task = Task(X, y.astype(int), criterion, n_tried=9)
    forest = task.grow(DeepFrom(900))
    for rows in (11_000, 4000):
        assert same_forest(forest, task.grow(DeepFrom(rows)))


@pytest.mark.parametrize("n_trees", [8, 13])
def test_waves_on_threads_of_their_own_change_nothing(n_trees):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(300, 4))
    task = Task(X, rng.integers(0, 3, 300), n_draws=300, n_tried=2, n_trees=n_trees)
    assert numba.NumbaBackend(2).waves(task.sampling, 3, n_trees)[0] == 2
    assert_same(task, *(numba.NumbaBackend(2, budget) for budget in (1, 2**14, 2**26)))


def test_as_many_bins_as_a_code_can_tell_apart():
    # 65,535 bins and missing values: every one of the 65,536 codes is in use
    rng = np.random.default_rng(4)
    X = np.arange(66_000, dtype=np.float32)[:, None]
    X[65_535:] = np.nan
    y = rng.integers(0, 3, 66_000)
    y[65_535:] = rng.random(465) < 0.9
    weights = np.where(np.isnan(X[:, 0]), 100, 1).astype(np.int32)
    for criterion, target in (("gini", y % 2), ("gini", y), ("squared_error", y)):
        task = Task(X, target, criterion, weights, n_draws=100, max_bins=65_535, max_depth=4)
        matrix, _ = task.prepared(numba.NumbaBackend())
        assert matrix.codes.dtype == np.uint16
        assert matrix.edges.missing_code == 65_535
        assert_same(task, DeepFrom(0), DeepFrom(20), numba.NumbaBackend())
