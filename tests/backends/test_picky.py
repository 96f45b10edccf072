"""Everything that runs on CuPy's arrays keeps CuPy's rules; picky.py reports violations."""

import numpy as np
import pytest
from cuda_on_cpu.module import available
from engine import compare_answers, compare_out_of_bag, same_forest
from hypothesis import given
from hypothesis import strategies as st
from picky import Array, Namespace, PickyBackend, operations, waits
from tasks import category_tasks, few_builds, tasks

import gpuforest as gf
from gpuforest.backends import numba, numpy, registry
from gpuforest.growing.edges import bin_matrix, fit_edges
from gpuforest.growing.predict import predict, predict_classes
from gpuforest.growing.targets import encode_moments

emulated = pytest.mark.skipif(available() is not None, reason=str(available()))
xp = Namespace()


def array(*values, dtype=np.int64):
    return Array(np.array(values, dtype))


@emulated
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@given(task=(tasks() | category_tasks()).map(few_builds), deep=st.sampled_from([None, 0, 5, 40]))
def test_forests_and_what_follows_them(task, deep):
    backend, forest = PickyBackend(deep=deep), task.grow(numpy.NumpyBackend())
    assert same_forest(forest, task.grow(backend))
    compare_out_of_bag(forest, task, backend)
    compare_answers(forest, task.X, backend, *[predict_classes] * forest.coding.is_classes)


HIST = {"max_iter": 4, "min_samples_leaf": 5, "max_leaf_nodes": 8, "categorical_features": [3]}


@emulated
@pytest.mark.parametrize(
    ("kind", "n_classes", "options"),
    [
        (gf.AdaBoostClassifier, 3, {}),
        (gf.AdaBoostRegressor, 0, {}),
        (gf.HistGradientBoostingRegressor, 0, {"early_stopping": True, "scoring": "r2"}),
        (gf.HistGradientBoostingRegressor, 0, {"loss": "huber", "subsample": 0.5}),
        (gf.HistGradientBoostingClassifier, 2, {"early_stopping": True, "max_features": 0.5}),
        (gf.HistGradientBoostingClassifier, 3, {"interaction_cst": "no_interactions"}),
        pytest.param(gf.HistGradientBoostingClassifier, 12, {}, marks=pytest.mark.deep),
    ],
    ids=str,
)
def test_boosting(kind, n_classes, options, monkeypatch):
    monkeypatch.setitem(registry._factories, "picky", lambda *_: PickyBackend())
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random((300, 3)), rng.integers(0, 5, 300)])
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X[:, 0]) * 3 + rng.random(300)
    y = np.floor(y * n_classes / 4) if n_classes else y
    is_hist = kind.__name__.startswith("Hist")
    options = HIST | options | {"warm_start": True} if is_hist else {"n_estimators": 4}
    expected, found = (
        kind(random_state=0, backend=name, **options).fit(X, y) for name in ("numpy", "picky")
    )
    assert found.backend_ == "picky"
    if is_hist:
        for model in (expected, found):
            model.set_params(max_iter=6).fit(X, y)
        assert found.n_iter_ == 6
    assert same_forest(expected.forest_, found.forest_)
    for name in ("estimator_weights_", "train_score_", "validation_score_"):
        if hasattr(expected, name):
            assert np.array_equal(getattr(expected, name), getattr(found, name))
    assert np.array_equal(expected.predict(X), found.predict(X))
    stages = zip(expected.staged_predict(X), found.staged_predict(X), strict=True)
    assert all(np.array_equal(*pair) for pair in stages)
    backend, sums = PickyBackend(), predict(expected.forest_, X, numpy.NumpyBackend())
    there = predict(found.forest_, backend.asarray(X), backend)
    assert np.array_equal(sums, backend.asnumpy(there))
    assert np.array_equal(sums, predict(found.forest_, X, numba.NumbaBackend(2)))


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
        codes = bin_matrix(X, edges, numpy.NumpyBackend()).codes
        assert np.array_equal(codes, backend.asnumpy(there.codes)[:, : codes.shape[1]])
    _, moments = encode_moments(y, 300)
    _, there = encode_moments(backend.asarray(y), 300, backend=backend)
    assert np.array_equal(moments, backend.asnumpy(there))


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
