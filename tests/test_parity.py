"""Every backend, phase, number of threads and memory budget grows the same forest: ==."""

import math

import numpy as np
import pytest
from engine import DeepFrom, Task, same_forest, table
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuforest.backends.base import Backend
from gpuforest.backends.numba import NumbaBackend
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.predict import apply, predict
from gpuforest.target import integer_weights

CLASSIFICATION = ["gini", "entropy", "misclassification"]
REGRESSION = ["squared_error", "poisson"]
SETTINGS = settings(derandomize=True, deadline=None, max_examples=120)
FEW = settings(derandomize=True, deadline=None, max_examples=30)


@st.composite
def tables(draw: st.DrawFn) -> np.ndarray:
    """X of up to 150 rows and 7 columns of all kinds, some rows twice."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_rows = draw(st.integers(1, 30) | st.integers(30, 150))
    kinds = draw(st.lists(st.sampled_from("ctbfm0nNAd"), min_size=1, max_size=7))
    X = table(rng, n_rows, kinds, draw(st.sampled_from([np.float32, np.float64])))
    if draw(st.booleans()):
        X = X[rng.integers(0, n_rows, n_rows)]
    return X


@st.composite
def targets(draw: st.DrawFn, X: np.ndarray, criterion: str) -> np.ndarray:
    """y, in part from X's columns."""
    n_rows = len(X)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    if criterion in CLASSIFICATION:
        n_classes = draw(st.sampled_from([1, 2, 2, 2, 3, 4, 7, 30]))
        if criterion != "misclassification" and draw(st.integers(0, 5)) == 0:
            return rng.integers(0, min(n_classes, 4), (n_rows, draw(st.sampled_from([2, 3]))))
        return rng.integers(0, n_classes, n_rows)
    signal = np.where(np.isnan(X[:, 0]), -1.0, X[:, 0])
    n_outputs = 1 if criterion == "poisson" else draw(st.sampled_from([1, 1, 2, 3]))
    unit = draw(st.sampled_from([1.0, 0.1, 1e-200, 1e200]))
    match draw(st.sampled_from(["noise", "signal", "counts"])):
        case "noise":
            y = rng.normal(size=(n_rows, n_outputs)) * unit
        case "signal":
            y = signal[:, None] + rng.normal(size=(n_rows, n_outputs))
        case _:
            y = rng.poisson(0.7, size=(n_rows, n_outputs)) * unit
    return np.abs(y) if criterion == "poisson" else y


@st.composite
def row_weights(draw: st.DrawFn, n_rows: int) -> np.ndarray | None:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    match draw(st.sampled_from(["none", "none", "whole", "real", "far apart"])):
        case "none":
            return None
        case "whole":
            weights = rng.integers(0, 4, n_rows).astype(float)
        case "real":
            weights = rng.random(n_rows)
        case _:
            weights = 10.0 ** rng.integers(-9, 9, n_rows)
    weights[rng.integers(n_rows)] = 1  # never all zero
    return integer_weights(weights)


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    X = draw(tables())
    n_rows, n_features = X.shape
    criterion = draw(st.sampled_from(CLASSIFICATION + REGRESSION))
    y = draw(targets(X, criterion))
    pairs = (y.ndim == 1 and y.max() == 1) if criterion in CLASSIFICATION else y.shape[1] == 1
    signs = draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=n_features, max_size=n_features))
    return Task(
        X,
        y,
        criterion,
        min_weight_leaf=draw(st.sampled_from([1, 1, 1, 4])),
        random=draw(st.sampled_from([False, False, True])),
        signs=tuple(signs) if pairs and draw(st.integers(0, 3)) == 0 else (),
        n_features_tree=draw(st.sampled_from([0, 0, 0, 1, max(1, n_features - 1)])),
        features_again=draw(st.booleans()),
        weights=draw(row_weights(n_rows)),
        n_draws=draw(st.sampled_from([0, 1, n_rows, n_rows, 2 * n_rows])),
        max_bins=draw(st.sampled_from([2, 7, 255, 255, 1000])),
        n_tried=draw(st.integers(1, n_features)),
        max_depth=draw(st.sampled_from([0, 1, 3, 10**9, 10**9])),
        min_rows_split=draw(st.sampled_from([2, 2, 10])),
        min_rows_leaf=draw(st.sampled_from([1, 1, 3])),
        min_gain=draw(st.sampled_from([-math.inf, -math.inf, 0.0, 1.0, 1e9])),
        n_trees=draw(st.integers(1, 4)),
        seed=draw(st.sampled_from([0, 1, 2**31 - 2])),
    )


def assert_same(task: Task, *backends: Backend) -> None:
    forest = task.grow(NumpyBackend())
    for backend in backends:
        assert same_forest(forest, task.grow(backend)), vars(backend)


@SETTINGS
@given(task=tasks(), rows=st.sampled_from([1, 4, 20, 60]))
def test_compiled_forests_are_the_reference(task, rows):
    assert_same(task, DeepFrom(0), DeepFrom(rows), NumbaBackend())


@SETTINGS
@given(task=tasks(), rows=st.sampled_from([0, 20, 2**14]), n_threads=st.sampled_from([2, 4]))
def test_threads_change_nothing(task, rows, n_threads):
    assert_same(task, DeepFrom(rows, n_threads))


@SETTINGS
@given(
    task=tasks(),
    rows=st.sampled_from([0, 20, 2**14]),
    n_threads=st.sampled_from([1, 2]),
    budget=st.sampled_from([1, 1000, 30_000]),
)
def test_memory_budgets_change_nothing(task, rows, n_threads, budget):
    # one byte: waves of one tree, chunks of one slot
    assert_same(task, NumpyBackend(1, budget), DeepFrom(rows, n_threads, budget))


@FEW
@given(task=tasks())
def test_the_same_task_gives_the_same_forest_again(task):
    backend = DeepFrom(20, 2)
    first = task.grow(backend)
    assert same_forest(first, task.grow(backend))
    assert same_forest(first, task.grow(DeepFrom(20, 2)))


@FEW
@given(task=tasks(), n_threads=st.sampled_from([1, 3]))
def test_predictions_are_the_same(task, n_threads):
    forest, rng = task.grow(NumpyBackend()), np.random.default_rng(0)
    X = np.concatenate([task.X, task.X * rng.normal(size=task.X.shape).astype(task.X.dtype)])
    X[rng.random(X.shape) < 0.1] = np.nan
    compiled = NumbaBackend(n_threads)
    assert np.array_equal(apply(forest, X, NumpyBackend()), apply(forest, X, compiled))
    assert np.array_equal(predict(forest, X, NumpyBackend()), predict(forest, X, compiled))


def large(name: str) -> Task:
    """Enough rows for wide levels above the deep phase, with missing values."""
    rng = np.random.default_rng(7)
    X = table(rng, 6000, list("ccnNfbtmd0cc"), np.float32)
    z = np.where(np.isnan(X[:, 2]), 0.5, X[:, 0] * X[:, 2]) + X[:, 4]
    noise = rng.normal(size=6000)
    common = {"n_draws": 6000, "n_tried": 3, "n_trees": 3, "seed": 5}
    match name:
        case "binary":
            return Task(X, (z + noise > 0.3).astype(int), **common)
        case "7 classes":
            return Task(X, np.digitize(z, np.linspace(-2, 2, 6)), "entropy", **common)
        case "60 classes":
            y = np.digitize(z + noise, np.linspace(-3, 3, 59))
            return Task(X, y, weights=rng.integers(0, 3, 6000).astype(np.int32), **common)
        case "regression":
            return Task(X, z + noise, "squared_error", **common)
        case "two outputs":
            return Task(X, np.stack([z, noise], axis=1), "squared_error", **common)
        case "counts":
            return Task(
                X, rng.poisson(np.exp(np.clip(z, -3, 3))).astype(float), "poisson", **common
            )
        case "16 bits":
            return Task(X, (z > 0).astype(int), max_bins=2000, **common)
    raise AssertionError(name)


@pytest.mark.parametrize(
    "name",
    ["binary", "7 classes", "60 classes", "regression", "two outputs", "counts", "16 bits"],
)
def test_thousands_of_rows(name):
    task = large(name)
    forest = task.grow(NumbaBackend())
    assert forest.depth > 8
    for backend in (DeepFrom(0, 2), DeepFrom(1500, 2), DeepFrom(30), NumbaBackend(2, 10**6)):
        assert same_forest(forest, task.grow(backend))
    few = task.but(n_trees=1, max_depth=9)
    assert_same(few, DeepFrom(0), DeepFrom(1500, 2), DeepFrom(200), NumbaBackend())


def test_the_default_deep_phase_follows_wide_levels():
    rng, backend = np.random.default_rng(3), NumbaBackend(2)
    few = Task(rng.normal(size=(300, 60)).astype(np.float32), np.zeros(300, int))
    n = 2 * backend.deep_rows(*few.prepared(backend), 300)
    X = rng.normal(size=(n, 60)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (np.nan_to_num(X[:, 0]) + X[:, 1] > rng.normal(size=n)).astype(int)
    task = Task(X, y, n_tried=7, max_depth=6)
    assert backend.deep_rows(*task.prepared(backend), n) < n
    assert_same(task, backend, NumbaBackend())


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
    assert NumbaBackend(2).workers(n_trees)[0] == 2
    assert_same(task, *(NumbaBackend(2, budget) for budget in (1, 2**14, 2**26)))


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
        matrix, _ = task.prepared(NumbaBackend())
        assert matrix.codes.dtype == np.uint16
        assert matrix.edges.missing_code == 65_535
        assert_same(task, DeepFrom(0), DeepFrom(20), NumbaBackend())
