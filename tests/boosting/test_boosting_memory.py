"""What a fit of boosting takes: memory, estimated before it and within a limit, and its time."""

import time

import numpy as np
import pytest
from peaks import measured
from sklearn.base import clone
from sweeps import swept

from gpuforest import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    estimate_memory,
)
from gpuforest.backends import boosters, numpy
from gpuforest.estimators.boosting_fit import loss_of
from gpuforest.estimators.memory import expected_boosting, within

rng = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("name", "n_rows", "n_features", "n_classes", "parameters"),
    swept(1, [
        ("Regressor", 300_000, 20, 0, {}),  # with early stopping: rows are copied
        ("Regressor", 100_000, 60, 0, {
            "loss": "absolute_error", "max_leaf_nodes": None, "early_stopping": False,
        }),
        ("Classifier", 100_000, 20, 10, {"early_stopping": False}),
        ("Classifier", 100_000, 20, 10, {
            "early_stopping": False, "multi_strategy": "multi_output_tree",
        }),
        ("Regressor", 200_000, 20, 0, {
            "loss": "quantile", "quantile": [0.1, 0.5, 0.9], "early_stopping": False,
        }),
    ]),
)  # fmt: skip
def test_estimates_are_right_and_limits_kept(
    name, n_rows, n_features, n_classes, parameters, monkeypatch
):
    pytest.importorskip("numba", reason="no numba here")
    # threads share one pool of free memory: with a pool each, a busy machine adds up to a fifth
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")
    parameters = {"max_iter": 5, **parameters}
    name = "HistGradientBoosting" + name
    found, least, peak, limited = measured(
        name, "numba", n_rows, n_features, n_classes, parameters, True
    )
    assert 0.8 < found / peak < 1.5
    assert limited < 1.1 * least


@pytest.mark.parametrize("n_classes", [0, 2, 3])
@pytest.mark.parametrize("options", [{}, {"max_leaf_nodes": None}, {"early_stopping": True}])
def test_the_model_is_the_same_with_any_limit(backend, n_classes, options):
    # the reference keeps no histograms, and takes its time
    n, max_iter = (300, 4) if backend == "numba" else (100, 2)
    X = rng.normal(size=(n, 6))
    y = X[:, 0] + rng.normal(size=n)
    kind = HistGradientBoostingRegressor
    if n_classes:
        y, kind = y.argsort().argsort() * n_classes // n, HistGradientBoostingClassifier
    common = {"max_iter": max_iter, "min_samples_leaf": 3, "random_state": 0, "n_jobs": 3}
    model = kind(**common, backend=backend, **options)
    free = clone(model).fit(X, y)
    with pytest.raises(ValueError, match="memory_limit=1 bytes is too little") as refused:
        clone(model).set_params(memory_limit=1).fit(X, y)
    said = str(refused.value)
    assert "lower max_iter, max_leaf_nodes or max_bins, or raise the limit" in said
    least = int(said.split("takes about ")[1].split()[0])
    most = estimate_memory(model, *X.shape, n_classes=max(n_classes, 1), dtype=X.dtype).total
    assert least <= most
    for limit in (least, (least + most) // 2, most):
        found = clone(model).set_params(memory_limit=limit).fit(X, y)
        for name in ("nodes", "leaf_sums", "leaf_values"):
            assert np.array_equal(getattr(found.forest_, name), getattr(free.forest_, name))


def test_histograms_have_what_the_limit_leaves():
    X = np.empty((10_000, 50), np.float32)
    backend = numpy.NumpyBackend()
    backend.name = "like numba"  # the reference keeps no histograms
    model = HistGradientBoostingClassifier(max_leaf_nodes=200, max_iter=9)
    fit = expected_boosting(model, X, loss_of(model, 2))
    _, some = within([fit], backend, 60_000_000)
    _, more = within([fit], backend, 70_000_000)
    assert more == some + 10_000_000
    assert some > 2 * fit.histogram_bytes


def test_refit_counts_all_rows(monkeypatch):
    grown = []
    monkeypatch.setattr(boosters.NumpyBooster, "grow_trees", lambda *a: grown.append(1))
    X, y = rng.normal(size=(20_000, 3)), rng.normal(size=20_000)
    few, many = (
        HistGradientBoostingRegressor(
            max_iter=900, early_stopping=True, validation_fraction=18_000, refit=refit,
            backend="numpy", random_state=0, max_leaf_nodes=None,
        )
        for refit in (False, True)
    )  # fmt: skip
    plain = clone(few).set_params(early_stopping=False)
    search, refit, whole = (estimate_memory(m, *X.shape, dtype=X.dtype) for m in (few, many, plain))
    assert search.total < refit.total == whole.total
    # before a round is grown for nothing
    with pytest.raises(ValueError, match="is too little: this fit takes about"):
        many.set_params(memory_limit=search.total).fit(X, y)
    assert not grown
    few_rows_aside = {"validation_fraction": 0.1, "max_leaf_nodes": 31}
    search, refit = (
        estimate_memory(m.set_params(**few_rows_aside, memory_limit=None), *X.shape)
        for m in (few, many)
    )
    assert search.total == refit.total


def test_what_an_estimate_depends_on():
    def total(n_rows=1000, n_classes=2, **options):
        model = HistGradientBoostingClassifier(backend="numba", n_jobs=1, **options)
        return estimate_memory(model, n_rows, 8, n_classes=n_classes)

    assert total().codes == 8000
    for fewer in ({"max_bins": 100}, {"max_leaf_nodes": 4}, {"max_depth": 1}):
        assert total(**fewer).growing < total().growing
    assert total(n_classes=9).forest > 9 * total().forest
    assert total(max_iter=200).forest == 2 * total().forest
    assert total(20_000).binning > total(20_000, early_stopping=False).binning
    one, two = (
        estimate_memory(HistGradientBoostingRegressor(), 100, 3, n_outputs=n) for n in (1, 2)
    )
    assert two.forest > 2 * one.forest
    with pytest.raises(ValueError, match="n_outputs=2: boosting of classes has one output"):
        estimate_memory(HistGradientBoostingClassifier(), 100, 3, n_outputs=2)


def test_the_bytes_that_a_refusal_names_are_enough_for_all_rows():
    """With `refit`, all rows may need more than the search for the number of rounds."""
    X, y = rng.normal(size=(1153, 5)), np.arange(1153) % 3
    model = HistGradientBoostingClassifier(
        max_iter=3, early_stopping=True, refit=True, max_bins=61, max_leaf_nodes=8,
        backend="numpy", random_state=0,
    )  # fmt: skip
    with pytest.raises(ValueError, match="is too little") as refused:
        model.set_params(memory_limit=1).fit(X, y)
    model.set_params(memory_limit=int(str(refused.value).split("takes about ")[1].split()[0]))
    model.fit(X, y)


@pytest.mark.parametrize("n_rows", [1, 3])
def test_few_rows_of_many_columns_take_at_most_three_times_a_forest(n_rows):
    pytest.importorskip("numba", reason="no numba here")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n_rows, 30_000)).astype(np.float32), rng.normal(size=n_rows)
    seconds = []
    for model in (RandomForestRegressor(n_jobs=1), HistGradientBoostingRegressor(n_jobs=1)):
        model.fit(X, y)  # kernels are loaded
        times = []
        for _ in range(3):
            start = time.process_time()
            model.fit(X, y)
            times.append(time.process_time() - start)
        seconds.append(min(times))
    assert seconds[1] < 3 * seconds[0]
