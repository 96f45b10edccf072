"""Unusual input of gradient boosting: rows of docs/robustness.md, on both CPU backends."""

import re

import numpy as np
import pandas as pd
import pytest
from robust import PAGE, refused
from scipy.sparse import csr_array

from gpuforest import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from gpuforest.backends import booster

rng = np.random.default_rng(0)
N = 200
X = rng.random((N, 4))
NOISE = rng.normal(size=N)
Y = 4 * X[:, 0] + 0.3 * np.abs(NOISE) + 0.1  # positive
LOSSES = ["squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma"]
FEW_HESSIANS = "the hessians of all rows add up to less than min_hessian=0.001, so no node is split"
each_loss = pytest.mark.parametrize("loss", LOSSES)


def regressor(backend, loss="squared_error", **params):
    params = {"max_iter": 12, "quantile": 0.7 if loss == "quantile" else None} | params
    return HistGradientBoostingRegressor(loss, backend=backend, random_state=0, **params)


def classifier(backend, **params):
    params = {"max_iter": 12} | params
    return HistGradientBoostingClassifier(backend=backend, random_state=0, **params)


def assert_ends_well(model, rows=X):
    """Finite in all that it says, on the fitted rows. Warnings are errors in tests."""
    assert np.isfinite(getattr(model, "decision_function", model.predict)(rows)).all()
    assert np.isfinite(model.feature_importances_).all()
    assert np.isfinite(model.forest_.leaf_values).all()
    if hasattr(model, "classes_"):
        assert np.isfinite(model.predict_proba(rows)).all()


def warned(words):
    assert words in PAGE
    return pytest.warns(UserWarning, match=re.escape(words))


@each_loss
def test_constant_targets(backend, loss):
    model = regressor(backend, loss).fit(X, np.full(N, 7.0))
    assert np.allclose(model.predict(X), 7.0, rtol=1e-12)
    assert_ends_well(model)
    model = classifier(backend).fit(X, ["only"] * N)
    assert model.predict(X).tolist() == ["only"] * N
    assert_ends_well(model)


@each_loss
@pytest.mark.parametrize("power", [990, -450])
def test_huge_and_tiny_targets(backend, loss, power):
    y = np.ldexp(Y, power)
    if loss == "poisson" and power < 0:  # hessians are means of the counts
        with warned(FEW_HESSIANS):
            model = regressor(backend, loss).fit(X, y)
        assert_ends_well(model)
        return
    model = regressor(backend, loss).fit(X, y)
    assert_ends_well(model)
    if loss in ("poisson", "gamma"):  # the logarithms of the targets are rounded
        assert np.corrcoef(np.ldexp(model.predict(X), -power), Y)[0, 1] > 0.9
        return
    same = regressor(backend, loss).fit(X, Y)
    assert np.array_equal(model.forest_.nodes, same.forest_.nodes)
    assert np.array_equal(model.predict(X), np.ldexp(same.predict(X), power))
    assert np.array_equal(model.feature_importances_, same.feature_importances_)


def test_losses_beyond_float64(backend):
    with warned("the loss lies beyond float64, so early stopping compares nothing"):
        model = regressor(backend, early_stopping=True, max_iter=40).fit(X, Y * 1e300)
    assert model.n_iter_ == model.n_iter_no_change
    assert_ends_well(model)


@pytest.mark.parametrize("loss", LOSSES[:4])
def test_targets_far_from_zero(backend, loss):
    near = regressor(backend, loss).fit(X, Y)
    far = regressor(backend, loss).fit(X, Y + 1e12)
    assert abs(far.score(X, Y + 1e12) - near.score(X, Y)) < 0.03
    with warned("subtract a constant from y"):
        lost = regressor(backend, loss).fit(X, Y + 1e16)
    assert_ends_well(lost)


def test_separable_classes(backend):
    y = (X[:, 0] > 0.5).astype(int)
    model = classifier(backend, learning_rate=1.0, max_iter=200, min_samples_leaf=1).fit(X, y)
    assert model.score(X, y) == 1.0
    assert_ends_well(model)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_class_of_one_row(backend, n_classes):
    y = np.arange(N) % (n_classes - 1)
    y[3] = n_classes - 1
    model = classifier(backend).fit(X, y)
    assert model.classes_.tolist() == list(range(n_classes))
    assert_ends_well(model)
    with refused("The least populated classes in y have only 1 member"):
        classifier(backend, early_stopping=True).fit(X, y)


def test_a_class_too_rare_for_the_bits_of_hessians(backend, monkeypatch):
    monkeypatch.setattr(booster, "SUM_BITS", 19)  # few are left for 200 rows
    y = np.zeros(N, int)
    y[:5] = 1
    with warned("that the hessians of most rows are rounded to zero"):
        model = classifier(backend).fit(X, y)
    assert_ends_well(model)


@each_loss
def test_weights_of_all_sizes(backend, loss):
    for params in ({}, {"min_hessian": 0}):
        model = regressor(backend, loss, **params)
        with warned("that the hessians of most rows are rounded to zero"):
            assert_ends_well(model.fit(X, Y, 10.0 ** rng.uniform(-300, 300, N)))
    same = regressor(backend, loss).fit(X, Y, np.ones(N))
    large = regressor(backend, loss).fit(X, Y, np.full(N, 2.0**990))
    assert np.array_equal(large.predict(X), same.predict(X))
    assert_ends_well(large)
    for tiny in (1e-300, 5e-324):
        with warned(FEW_HESSIANS):
            model = regressor(backend, loss).fit(X, Y, np.full(N, tiny))
        assert model.forest_.n_nodes == 12  # leaves alone
        assert_ends_well(model)
    tiny = regressor(backend, loss, min_hessian=0).fit(X, Y, np.full(N, 2.0**-900))
    assert tiny.forest_.n_nodes > 12
    if loss in ("squared_error", "poisson", "gamma"):  # quantiles have fewer digits
        assert np.array_equal(tiny.predict(X), same.predict(X))
    with warned("that the hessians of most rows are rounded to zero"):
        model = regressor(backend, loss, min_hessian=0).fit(X, Y, np.full(N, 5e-324))
    assert model.forest_.n_nodes == 12
    assert_ends_well(model)


@each_loss
def test_huge_learning_rates(backend, loss):
    with warned("predictions grow beyond what float64 holds: lower learning_rate"):
        model = regressor(backend, loss, learning_rate=1e300, max_iter=30).fit(X, Y)
    assert 1 <= model.n_iter_ < 30
    assert_ends_well(model)
    y = np.digitize(X[:, 0], [0.3, 0.6])
    assert_ends_well(classifier(backend, learning_rate=1e300).fit(X, y))


def test_few_rows_and_columns(backend):
    one = regressor(backend).fit(X[:1], [1.5])
    assert one.predict(X).tolist() == [1.5] * N
    assert classifier(backend).fit(X[:1], ["a"]).predict(X).tolist() == ["a"] * N
    assert_ends_well(regressor(backend).fit(X[:, :1], Y), X[:, :1])


def test_columns_of_missing_values(backend):
    holes = X.copy()
    holes[:, 1] = np.nan
    model = regressor(backend).fit(holes, Y)
    fewer = regressor(backend).fit(holes[:, [0, 2, 3]], Y)
    assert np.array_equal(model.predict(holes), fewer.predict(holes[:, [0, 2, 3]]))
    assert model.feature_importances_[1] == 0
    nothing = regressor(backend).fit(np.full((N, 2), np.nan), Y)
    assert np.allclose(nothing.predict(np.full((3, 2), np.nan)), Y.mean())


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_infinities_in_x(backend, dtype):
    wild = X.astype(dtype)
    wild[:40, 1], wild[40:80, 1], wild[80:85, 1] = np.inf, -np.inf, np.nan
    most = np.finfo(dtype).max
    model, other = regressor(backend).fit(wild, Y), regressor(backend)
    other.fit(np.clip(wild, -most, most), Y)
    assert np.array_equal(model.forest_.nodes, other.forest_.nodes)
    expected = other.predict(np.clip(wild, -most, most))
    for rows in (wild, pd.DataFrame(wild), csr_array(wild.astype(np.float64))):
        assert np.array_equal(model.predict(rows), expected)
    assert np.isinf(wild[0, 1])  # the user's stays as it is
    alone = regressor(backend, min_samples_leaf=1).fit(wild[:80, 1:2], np.repeat([0.0, 1.0], 40))
    assert len(np.unique(alone.predict(wild[:80, 1:2]))) == 2


def text():
    rows = X.astype(object)
    rows[0, 1] = "red"
    return rows


HOLES = np.where(np.arange(N) == 3, np.nan, 1.0)
RATE = "The 'learning_rate' parameter of HistGradientBoostingRegressor must be a float in the"
NO_ROWS = "leaves no rows to train on: there are 1; set early_stopping=False, or pass X_val and"
STOPS = {"early_stopping": True, "validation_fraction": 0.1}
POISSON = "loss='poisson' requires non-negative y and sum(y) > 0."
REFUSED = [
    ({"loss": "poisson"}, X, (-Y,), POISSON),
    ({"loss": "poisson"}, X, (0 * Y,), POISSON),
    ({"loss": "gamma"}, X, (Y - Y.min(),), "loss='gamma' requires strictly positive y."),
    ({"loss": "quantile", "quantile": None}, X, (Y,),
     "loss='quantile' needs quantile: a number between 0 and 1"),
    ({"loss": "huber"}, X, (np.stack([Y, Y], axis=1),), "y should be a 1d array"),
    ({}, X, (Y, np.zeros(N)), "Sample weights must contain at least one non-zero number."),
    ({}, X, (Y, -Y), "Negative values in data passed to `sample_weight`."),
    ({}, X, (Y * 1e300, np.full(N, 1e10)),
     "weights times targets lie beyond 1e304, whose sums overflow"),
    ({}, X, (np.where(X[:, 0] > 0.5, 1.7e308, 0.0),),
     "y has values beyond 1e304, whose sums overflow: divide y by a constant"),
    ({}, X, (HOLES,), "Input y contains NaN."),
    ({"learning_rate": 0.0}, X, (Y,), RATE),
    ({"learning_rate": -1.0}, X, (Y,), RATE),
    ({"interaction_cst": [{0, 9}]}, X, (Y,), "got invalid indices: {0, 9}"),
    ({"interaction_cst": [{"age"}]}, X, (Y,), "got invalid indices: {'age'}"),
    (STOPS, X[:1], (Y[:1],), f"validation_fraction=0.1 {NO_ROWS}"),
    ({}, text(), (Y,), "column 1 of X holds no numbers: 'red' is a str"),
]  # fmt: skip


@pytest.mark.parametrize(("params", "rows", "target", "words"), REFUSED, ids=range(len(REFUSED)))
def test_refused_boosting(backend, params, rows, target, words):
    with refused(words):
        regressor(backend, **params).fit(rows, *target)


def test_labels_and_columns_that_are_refused(backend):
    with refused("Input y contains NaN."):
        classifier(backend).fit(X, HOLES)
    with pytest.raises(ValueError, match=r"a minimum of 1 is required by HistGradientBoostingRe"):
        regressor(backend).fit(X[:0], Y[:0])
    with pytest.raises(ValueError, match="X has 3 features, but HistGradientBoostingRegressor"):
        regressor(backend).fit(X, Y).predict(X[:, :3])
