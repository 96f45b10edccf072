"""Everything that runs on CuPy's arrays keeps CuPy's rules; picky.py reports violations."""

import numpy as np
import pytest
from cuda_on_cpu.module import available
from cuda_tiny import tasks as tasks_of_all_kinds
from engine import out_of_bag_means, same_forest
from hypothesis import given
from hypothesis import strategies as st
from picky import Array, Namespace, PickyBackend, operations, waits
from sklearn.datasets import load_iris
from tasks import category_tasks, few_builds, tasks

from gpuforest import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    register_backend,
)
from gpuforest.backends import registry
from gpuforest.backends.numba import NumbaBackend
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.engine.binning import bin_matrix, fit_edges
from gpuforest.engine.predict import apply, predict, predict_classes
from gpuforest.engine.target import encode_moments

emulated = pytest.mark.skipif(available() is not None, reason=str(available()))
xp = Namespace()


def array(*values, dtype=np.int64):
    return Array(np.array(values, dtype))


# the package


@emulated
@given(task=(tasks() | category_tasks()).map(few_builds), deep=st.sampled_from([None, 0, 5, 40]))
def test_forests(task, deep):
    assert same_forest(task.grow(NumpyBackend()), task.grow(PickyBackend(deep=deep)))


@emulated
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.parametrize("task", tasks_of_all_kinds(), ids=lambda t: f"{t.criterion} {t.max_bins}")
def test_what_follows_a_forest(task):
    backend, forest = PickyBackend(), task.grow(NumpyBackend())
    expected, found = (
        out_of_bag_means(forest, task.prepared(b)[0], task.sampling, b)
        for b in (NumpyBackend(), backend)
    )
    assert np.array_equal(expected, found, equal_nan=True)
    stages = [apply, predict]
    if forest.coding.is_classes:
        stages.append(predict_classes)
    for stage in stages:
        expected = stage(forest, task.X, NumpyBackend())
        assert np.array_equal(expected, stage(forest, task.X, backend))
        there = stage(forest, backend.asarray(task.X), backend)
        assert np.array_equal(expected, backend.asnumpy(there))


@emulated
@pytest.mark.parametrize("kind", [AdaBoostClassifier, AdaBoostRegressor])
def test_boosted_trees(kind, monkeypatch):
    monkeypatch.setattr(registry, "_factories", dict(registry._factories))
    register_backend("picky", lambda *_: PickyBackend())
    X, y = load_iris(return_X_y=True)
    expected, found = (
        kind(n_estimators=4, random_state=0, backend=name).fit(X, y) for name in ("numpy", "picky")
    )
    assert same_forest(expected.forest_, found.forest_)
    assert np.array_equal(expected.estimator_weights_, found.estimator_weights_)
    assert np.array_equal(expected.predict(X), found.predict(X))
    stages = zip(expected.staged_predict(X), found.staged_predict(X), strict=True)
    assert all(np.array_equal(*pair) for pair in stages)
    backend = PickyBackend()
    there = predict(found.forest_, backend.asarray(X), backend)
    assert np.array_equal(predict(found.forest_, X, NumpyBackend()), backend.asnumpy(there))


@emulated
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (HistGradientBoostingRegressor, {"early_stopping": True, "scoring": "r2"}),
        (HistGradientBoostingRegressor, {"loss": "huber", "subsample": 0.5}),
        (HistGradientBoostingClassifier, {"early_stopping": True, "max_features": 0.5}),
        (HistGradientBoostingClassifier, {"interaction_cst": "no_interactions"}),
    ],
    ids=str,
)
def test_gradient_boosting(kind, options, monkeypatch):
    monkeypatch.setattr(registry, "_factories", dict(registry._factories))
    register_backend("picky", lambda *_: PickyBackend())
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random((300, 3)), rng.integers(0, 5, 300)])
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (np.nan_to_num(X[:, 0]) * 3 + rng.random(300)).astype(int) * 1.0
    models = []
    for backend in ("numpy", "picky"):
        model = kind(
            max_iter=4, min_samples_leaf=5, max_leaf_nodes=8, categorical_features=[3],
            random_state=0, warm_start=True, backend=backend, **options,
        ).fit(X, y)  # fmt: skip
        models.append(model.set_params(max_iter=6).fit(X, y))
    expected, found = models
    assert found.backend_ == "picky"
    assert found.n_iter_ == 6
    assert same_forest(expected.forest_, found.forest_)
    assert np.array_equal(expected.train_score_, found.train_score_)
    assert np.array_equal(expected.validation_score_, found.validation_score_)
    assert np.array_equal(expected.predict(X), found.predict(X))
    stages = zip(expected.staged_predict(X), found.staged_predict(X), strict=True)
    assert all(np.array_equal(*pair) for pair in stages)


@emulated
@pytest.mark.parametrize("n_classes", [0, 2, 3, 12])
def test_predictions_of_gradient_boosting(n_classes):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random((300, 3)), rng.integers(0, 5, 300)])
    X[rng.random(X.shape) < 0.1] = np.nan
    y = rng.integers(0, n_classes, 300) if n_classes else rng.random(300)
    kind = HistGradientBoostingClassifier if n_classes else HistGradientBoostingRegressor
    options = {"max_iter": 3, "min_samples_leaf": 5, "categorical_features": [3]}
    forest = kind(random_state=0, backend="numpy", **options).fit(X, y).forest_
    backend, table = PickyBackend(), np.where(np.isnan(X), np.nan, X)
    there = predict(forest, backend.asarray(table), backend)
    expected = predict(forest, table, NumpyBackend())
    assert expected.shape == (300, n_classes if n_classes > 2 else 1)
    assert np.array_equal(expected, backend.asnumpy(there))
    assert np.array_equal(expected, predict(forest, table, NumbaBackend(2)))


@emulated
def test_data_that_lie_on_the_device():
    backend, rng = PickyBackend(), np.random.default_rng(0)
    X = rng.normal(size=(300, 4)).astype(np.float32)
    y = rng.normal(size=(300, 1))
    for seed, max_bins, sample_rows in ((0, 255, 1000), (1, 7, 50)):
        options = {"max_bins": max_bins, "sample_rows": sample_rows, "seed": seed}
        edges = fit_edges(X, **options)
        found = fit_edges(backend.asarray(X), backend=backend, **options)
        assert np.array_equal(edges.values, found.values)
        there = bin_matrix(backend.asarray(X), found, backend)
        codes = bin_matrix(X, edges, NumpyBackend()).codes
        assert np.array_equal(codes, backend.asnumpy(there.codes)[:, : codes.shape[1]])
    _, moments = encode_moments(y, 300)
    _, there = encode_moments(backend.asarray(y), 300, backend=backend)
    assert np.array_equal(moments, backend.asnumpy(there))


# the rules


@pytest.mark.parametrize(
    "mistake",
    {
        "host operand": lambda a: a + np.arange(3),
        "host on the left": lambda a: np.arange(3) + a,
        "host argument": lambda a: xp.take(np.arange(3), a),
        "NumPy's function": lambda a: np.cumsum(a),
        "NumPy's array": lambda a: np.asarray(a),
        "iteration": lambda a: list(a),
        "index": lambda a: a[np.arange(2)],
        "mixed search": lambda a: xp.searchsorted(a, array(1, dtype=np.uint64)),
        "out of range": lambda a: xp.take(a, array(3)),
        "nothing to take": lambda a: xp.take(a[:0], array(0)),
        "65 bits": lambda a: a + 2**64,
        "negative": lambda a: array(1, dtype=np.uint64) + -1,
        "no such function": lambda a: xp.frobnicate(a),
        "another device": lambda a: xp.zeros(1, device="cpu"),
    }.items(),
    ids=lambda mistake: mistake[0],
)
def test_refused(mistake):
    with pytest.raises((TypeError, IndexError, OverflowError, AttributeError, ValueError)):
        mistake[1](array(0, 1, 2))


def test_arguments_that_only_numpy_takes_are_refused():
    pytest.importorskip("cupy")
    with pytest.raises(TypeError, match="mode"):
        xp.take(array(0, 1), array(0), mode="clip")
    assert not hasattr(xp, "busday_count")


def test_allowed():
    big = array(2**63, 2**64 - 1, dtype=np.uint64)
    assert (big >= 2**63).host.all()
    assert ((big ^ (2**64 - 1)) & 0xFF).host.tolist() == [255, 0]
    assert xp.where(array(1, 0) > 0, array(5, 6), -1).host.tolist() == [5, -1]
    assert xp.zeros((2,), dtype=xp.int8, device=big.device).dtype == np.int8
    a = array(1, 2, 3)
    a[1:] = 0
    a += 1
    assert a.host.tolist() == [2, 1, 1]


def test_counted():
    a = array(3, 0, 2)
    for work, n_operations, n_waits in (
        (lambda: a[1:] + 1, 1, 0),
        (lambda: xp.reshape(a, (3, 1)), 0, 0),
        (lambda: a[a > 0], 2, 1),
        (lambda: xp.nonzero(a), 1, 1),
        (lambda: xp.repeat(a, a), 1, 2),
        (lambda: xp.repeat(a, 2), 1, 0),
        (lambda: xp.unique_all(a), 1, 3),
        (lambda: int(a[-1]), 0, 1),
        (lambda: bool(xp.any(a > 0)), 2, 1),
    ):
        before = operations.total(), waits.total()
        work()
        found = operations.total() - before[0], waits.total() - before[1]
        assert found == (n_operations, n_waits)


def test_memory_that_nobody_has_written_is_no_zero():
    assert xp.empty((3, 2), dtype=xp.int64).host.all()
