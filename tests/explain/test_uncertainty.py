"""Intervals and sets by their definition and how often they hold; standard errors row by row."""

import json

import numpy as np
import pytest

import gpuforest as gf
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.estimators import memory
from gpuforest.explain.paths import leaf_blocks
from gpuforest.explain.uncertainty import Calibration, node_predictions
from gpuforest.export import container
from gpuforest.export.model_file import ARRAYS
from gpuforest.growing.bags import draw_bags

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1200, 4))
Y = 2 * X[:, 0] + np.abs(X[:, 1]) * RNG.normal(size=1200)  # the noise is not the same everywhere
HALF = 600


def test_limits_are_order_statistics():
    known = Calibration(np.arange(9.0)[None, :], np.zeros(1))
    assert known.limit(0.9)[0] == 8  # the ninth of nine
    assert known.limit(0.8)[0] == 7
    assert known.limit(0.75)[0] == 7
    assert known.limit(0.91)[0] == np.inf
    few = gf.RandomForestRegressor(30, oob_score=True, random_state=0).fit(X[:50], Y[:50])
    assert np.isinf(few.predict_interval(X[:2], 0.99)).all()


def test_intervals_are_what_the_docstring_says(backend):
    n, T = 150, 30
    model = gf.RandomForestRegressor(T, oob_score=True, random_state=0, backend=backend)
    model.fit(X[:n], Y[:n])
    forest, numpy = model.forest_, NumpyBackend()
    train, test = (
        node_predictions(forest)[next(leaf_blocks(forest, rows, numpy))[1]][:, :, 0]
        for rows in (X[:n], X[n : n + 50])
    )
    out = draw_bags(model._sampling_, model.seed_, 0, T, numpy).T == 0
    mean = np.array([row[own].mean() for row, own in zip(train, out, strict=True)])
    spread = np.array([row[own].std() for row, own in zip(train, out, strict=True)])
    scores = np.sort(np.abs(Y[:n] - mean) / (spread + spread.mean() / 2))
    half = scores[int(np.ceil(0.9 * 151)) - 1] * (test.std(axis=1) + spread.mean() / 2)
    found = model.predict_interval(X[n : n + 50])
    # sums of squares in another order
    assert np.allclose(found[:, 0], test.mean(axis=1) - half, rtol=1e-9, atol=1e-9)
    assert np.allclose(found[:, 1], test.mean(axis=1) + half, rtol=1e-9, atol=1e-9)


def test_several_outputs_have_an_interval_each():
    y = np.stack([Y, 10 * X[:, 2]], axis=1)
    model = gf.RandomForestRegressor(40, oob_score=True, random_state=0).fit(X[:HALF], y[:HALF])
    found = model.predict_interval(X[HALF:])
    assert found.shape == (HALF, 2, 2)
    inside = (found[..., 0] <= y[HALF:]) & (y[HALF:] <= found[..., 1])
    assert (np.abs(inside.mean(axis=0) - 0.9) < 0.06).all()


@pytest.mark.parametrize("kind", [gf.RandomForestClassifier, gf.ExtraTreesClassifier])
def test_sets_hold_the_class_as_often_as_asked(kind):
    labels = np.array(["low", "middle", "high"])[np.digitize(Y, [-1, 1])]
    model = kind(60, oob_score=True, bootstrap=True, random_state=0).fit(X[:HALF], labels[:HALF])
    found = model.predict_set(X[HALF:], 0.9)
    assert found.shape == (HALF, 3)
    assert found.dtype == bool
    at = np.searchsorted(model.classes_, labels[HALF:])
    assert 0.86 < found[np.arange(HALF), at].mean() < 0.95
    assert found[np.arange(HALF), model.predict_proba(X[HALF:]).argmax(axis=1)].all()
    assert 1 < found.sum(axis=1).mean() < 2
    several = np.stack([labels, labels == "low"], axis=1).astype(object)
    parts = kind(20, oob_score=True, bootstrap=True, random_state=0).fit(X, several).predict_set(X)
    assert [part.shape for part in parts] == [(1200, 3), (1200, 2)]


FEW = RNG.normal(size=(120, 3))
NOISY = FEW[:, 0] + RNG.normal(size=120)


def by_rows(model, X_test, weights=None):
    """Wager, Hastie and Efron 2014, equations 5 and 7: a covariance for each training row."""
    n, T = len(FEW), model.n_estimators_
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
    model = gf.RandomForestRegressor(50, max_samples=draws, random_state=0, backend=backend)
    model.fit(FEW, NOISY, weights)
    mean, found = model.predict(FEW, return_std=True)
    assert np.array_equal(mean, model.predict(FEW))
    # the sum over rows is taken last, not first
    assert np.allclose(found, by_rows(model, FEW, weights), rtol=1e-9, atol=1e-7)
    assert found.max() > 0.1


def test_more_memory_than_there_is(tmp_path, monkeypatch):
    """A file of few bytes may have been trained on many rows, whose draws take memory."""
    path = tmp_path / "model"
    model = gf.RandomForestRegressor(3, random_state=0, backend="numpy").fit(FEW, NOISY)
    model.save(path)
    text, arrays = container.read(path, ARRAYS)
    header = json.loads(text)
    header["draws"]["n_rows"] = 2**31 - 1
    container.write(path, json.dumps(header), arrays)
    loaded = gf.load(path)
    monkeypatch.setattr(memory, "available_bytes", lambda: 8 * 10**9)
    words = "3 times 2147483647, which takes 2577. MB, and there are "
    with pytest.raises(ValueError, match=words + "8000 MB"):
        loaded.predict(FEW, return_std=True)
    with pytest.raises(ValueError, match=words + "90 MB"):
        loaded.set_params(memory_limit=90 * 10**6).predict(FEW, return_std=True)
    assert np.array_equal(loaded.predict(FEW), model.predict(FEW))
    model.set_params(memory_limit=90 * 10**6).predict(FEW, return_std=True)


def test_forests_that_do_not_draw_are_refused():
    for model in (
        gf.ExtraTreesRegressor(3),
        gf.BaggingRegressor(gf.DecisionTreeRegressor(), 3, bootstrap=False, max_samples=0.5),
    ):
        model.fit(FEW, NOISY)
        with pytest.raises(ValueError, match="with replacement: fit with bootstrap=True"):
            model.predict(FEW, return_std=True)
    with pytest.raises(ValueError, match="fit with bootstrap=True and oob_score=True"):
        gf.ExtraTreesClassifier(3).fit(FEW, NOISY > 0).predict_set(FEW)
