"""Standard errors by the infinitesimal jackknife, beside its formula row by row."""

import json

import numpy as np
import pytest

import gpuforest
from gpuforest import (
    BaggingRegressor,
    DecisionTreeRegressor,
    ExtraTreesRegressor,
    RandomForestRegressor,
)
from gpuforest.estimators import memory
from gpuforest.export import container
from gpuforest.export.model_file import ARRAYS

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = X[:, 0] + RNG.normal(size=120)


def by_rows(model, X_test, weights=None):
    """Wager, Hastie and Efron 2014, equations 5 and 7: a covariance for each training row."""
    n, T = len(X), model.n_estimators_
    counts = np.stack([np.bincount(rows, minlength=n) for rows in model.estimators_samples_])
    trees = np.stack([tree.predict(X_test) for tree in model.estimators_])
    centred = trees - trees.mean(axis=0)
    covariance = counts.T @ centred / T
    share = np.full(n, 1 / n) if weights is None else weights / weights.sum()
    variance_of_draws = counts[0].sum() * (share * (1 - share)).sum()
    bias = variance_of_draws / T**2 * (centred**2).sum(axis=0)
    return np.sqrt(np.maximum((covariance**2).sum(axis=0) - bias, 0))


@pytest.mark.parametrize("weights", [None, RNG.integers(0, 4, 120)])
@pytest.mark.parametrize("draws", [None, 60])
def test_standard_errors_are_the_formulas(backend, draws, weights):
    model = RandomForestRegressor(50, max_samples=draws, random_state=0, backend=backend)
    model.fit(X, Y, weights)
    mean, found = model.predict(X, return_std=True)
    assert np.array_equal(mean, model.predict(X))
    # the sum over rows is taken last, not first
    assert np.allclose(found, by_rows(model, X, weights), rtol=1e-9, atol=1e-7)
    assert found.max() > 0.1


def test_they_say_how_predictions_vary_between_samples():
    at, rng = np.zeros((1, 2)), np.random.default_rng(1)
    predicted, errors = [], []
    for seed in range(15):
        rows = rng.normal(size=(100, 2))
        model = RandomForestRegressor(200, min_samples_leaf=5, random_state=seed)
        mean, error = model.fit(rows, rows.sum(axis=1) + rng.normal(size=100)).predict(at, True)
        predicted.append(mean[0])
        errors.append(error[0])
    assert 0.6 < np.sqrt(np.mean(np.square(errors))) / np.std(predicted, ddof=1) < 1.6


def test_several_outputs():
    both = np.stack([Y, X[:, 1]], axis=1)
    model = RandomForestRegressor(30, random_state=0).fit(X, both)
    mean, found = model.predict(X[:7], return_std=True)
    assert mean.shape == found.shape == (7, 2)
    assert (found >= 0).all()
    assert found.any()


def test_more_memory_than_there_is(tmp_path, monkeypatch):
    """A file of few bytes may have been trained on many rows, whose draws take memory."""
    path = tmp_path / "model"
    model = RandomForestRegressor(3, random_state=0, backend="numpy").fit(X, Y)
    model.save(path)
    text, arrays = container.read(path, ARRAYS)
    header = json.loads(text)
    header["draws"]["n_rows"] = 2**31 - 1
    container.write(path, json.dumps(header), arrays)
    loaded = gpuforest.load(path)
    monkeypatch.setattr(memory, "available_bytes", lambda: 8 * 10**9)
    words = "3 times 2147483647, which takes 2577. MB, and there are "
    with pytest.raises(ValueError, match=words + "8000 MB"):
        loaded.predict(X, return_std=True)
    with pytest.raises(ValueError, match=words + "90 MB"):
        loaded.set_params(memory_limit=90 * 10**6).predict(X, return_std=True)
    assert np.array_equal(loaded.predict(X), model.predict(X))
    model.set_params(memory_limit=90 * 10**6).predict(X, return_std=True)


def test_forests_that_do_not_draw_are_refused():
    for model in (
        ExtraTreesRegressor(3),
        BaggingRegressor(DecisionTreeRegressor(), 3, bootstrap=False, max_samples=0.5),
    ):
        model.fit(X, Y)
        with pytest.raises(ValueError, match="with replacement: fit with bootstrap=True"):
            model.predict(X, return_std=True)
