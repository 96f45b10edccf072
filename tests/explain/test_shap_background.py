"""Interventional SHAP values: against their definition and the package shap, and on threads."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from shap_cases import NAMES, by_definition, fitted, hand_made, numbers, raw_predictions, terciles

from gpuforest import (
    AdaBoostRegressor,
    DecisionTreeRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from gpuforest.backends.numba import NumbaBackend
from gpuforest.data.validation import check_table
from gpuforest.explain import background_kernels
from gpuforest.explain.shap import background_values, weights_for


def some(X, *which):
    """Rows of an array or a frame."""
    return X.iloc[slice(*which)] if isinstance(X, pd.DataFrame) else X[slice(*which)]


def known(model, X, background):
    """The mean prediction f64[N, K] for each set S of known features: of all rows that have x's
    values of S, and those of a row of the background otherwise."""
    N, Z, F = len(X), len(background), X.shape[1]
    own, other = np.repeat(np.arange(N), Z), np.tile(np.arange(Z), N)

    def rows(S):
        if isinstance(X, pd.DataFrame):
            x, z = (t.iloc[i].reset_index(drop=True) for t, i in ((X, own), (background, other)))
            return pd.concat([(x if f in S else z).iloc[:, [f]] for f in range(F)], axis=1)
        return np.where(np.isin(np.arange(F), S), X[own], background[other])

    sets = [S for n in range(F + 1) for S in combinations(range(F), n)]
    mixed = [rows(S) for S in sets]
    mixed = pd.concat(mixed) if isinstance(X, pd.DataFrame) else np.vstack(mixed)
    values = raw_predictions(model, mixed).reshape(len(sets), N, Z, -1).mean(axis=2)
    return dict(zip(sets, values, strict=True))


def test_worked_example():
    """The row goes right twice; its prediction is 9. With the background's row whose prediction
    is 6, feature 1 gets 9 - 6 = 3. The other goes left by both features; its prediction is 0. With
    it feature 0 gets 6 / 2 on the path to 6 and 9 / 2 on that to 9, feature 1 -6 / 2 and 9 / 2."""
    trees, values = hand_made(), np.array([[0.0], [6.0], [9.0]])
    row, background = np.array([[1], [1]], np.uint16), np.array([[1, 0], [0, 0]], np.uint16)
    columns, weights = np.array([[0, 1]]), weights_for(2)
    assert weights.tolist() == [[0, 0, 0], [1, 1 / 2, 1 / 3], [1 / 2, 1 / 6, 1 / 12]]
    out, work = np.zeros((1, 2, 1)), background_kernels.new_work(2, 2, 5)
    background_kernels.background_values(
        trees, values, columns, weights, row, background, out, 0, 1, work
    )
    assert out[0, :, 0].tolist() == [15 / 2, 9 / 2]


@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_the_definition(name):
    model, X = fitted(name)
    rows, background = some(X, 3), some(X, 20, 24)
    F, K = model.n_features_in_, model.forest_.coding.n_values
    phi, _ = by_definition(known(model, rows, background), F)
    found = model.shap_values(rows, background=background)
    # rounding: both are sums of products in different orders
    np.testing.assert_allclose(found.reshape(-1, F, K), phi, rtol=0, atol=1e-13)


def test_many_features():
    X, y = numbers(n=150, F=9)
    model = RandomForestRegressor(3, random_state=0, backend="numba", n_jobs=1)
    model.fit(X, y + np.nan_to_num(X[:, 5] * X[:, 8]))
    phi, _ = by_definition(known(model, X[:2], X[50:55]), 9)
    found = model.shap_values(X[:2], background=X[50:55])
    np.testing.assert_allclose(found, phi[..., 0], rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_values_add_up_to_the_prediction(name):
    model, X = fitted(name)
    background = some(X, 10, 40)
    found, raw = model.shap_values(X, background=background), raw_predictions(model, X)
    K, mean = raw.shape[1], model.expected_value(background)
    assert found.shape == model.shap_values(X).shape
    assert isinstance(mean, float) if K == 1 else mean.shape == (K,)
    of_background = raw_predictions(model, background).mean(axis=0)
    np.testing.assert_allclose(np.ravel(mean), of_background, rtol=0, atol=1e-12)
    total = (found.sum(axis=1) + mean).reshape(len(X), K)
    np.testing.assert_allclose(total, raw, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_threads_do_not_change_a_bit(name):
    model, X = fitted(name)
    one, several = NumbaBackend(1), NumbaBackend(3)
    table = check_table(model, X, one)
    background = np.vstack([table, table[::-1]])  # two blocks of it
    found, expected = (
        background_values(model.forest_, background, table, backend) for backend in (several, one)
    )
    assert np.array_equal(found, expected)


def test_paths_of_many_features():
    """A chain splits off one row after another, each by a feature of its own."""
    X, y = np.eye(40), np.arange(40.0) ** 2
    tree = DecisionTreeRegressor(random_state=0, backend="numba").fit(X, y)
    values = tree.shap_values(X[:5], background=X)
    np.testing.assert_allclose(values.sum(axis=1) + y.mean(), y[:5], rtol=0, atol=1e-9)
    # the weights of 39 features take 12,800 bytes
    tree.set_params(memory_limit=13_000)
    assert np.array_equal(tree.shap_values(X[:5], background=X), values)
    with pytest.raises(ValueError, match=r"take 0\.0128 MB for paths of 39 .* raise memory_"):
        tree.set_params(memory_limit=12_000).shap_values(X[:5], background=X)
    assert tree.shap_values(X[:5]).shape == values.shape


def test_small_trees():
    """A leaf alone, and a single split."""
    X, y = np.arange(6.0)[:, None], np.array([0.0, 0, 0, 4, 4, 4])
    stump = DecisionTreeRegressor(max_depth=1, backend="numba").fit(X, y)
    assert stump.expected_value(X[2:4]) == 2.0
    assert stump.shap_values(X, background=X[2:4])[:, 0].tolist() == (y - 2).tolist()
    leaf = DecisionTreeRegressor(backend="numba").fit(X, np.ones(6))
    assert not leaf.shap_values(X, background=X).any()


def test_a_background_of_the_row_itself_explains_nothing():
    model, X = fitted("several outputs")
    assert not model.shap_values(X[:1], background=X[:1]).any()


def test_a_row_twice_in_the_background_weighs_twice():
    model, X = fitted("categories")
    once, twice = X.iloc[[5, 9, 12]], X.iloc[[5, 9, 12, 5, 9, 12]]
    rows = X.iloc[:5]
    found = model.shap_values(rows, background=twice)
    # rounding: sums of six and of three numbers
    expected = model.shap_values(rows, background=once)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)


def test_refusals():
    X, y = numbers()
    model = RandomForestRegressor(2, random_state=0, backend="numba", n_jobs=1).fit(X, y)
    for call in (lambda B: model.shap_values(X, background=B), model.expected_value):
        with pytest.raises(ValueError, match=r"background: Found array with 0 sample\(s\)"):
            call(X[:0])
        with pytest.raises(ValueError, match=r"background: X has 4 features, but Random.* 5 feat"):
            call(X[:, :4])
        with pytest.raises(ValueError, match=r"background: .*array"):
            call(X[0])
    medians = AdaBoostRegressor(n_estimators=2, random_state=0).fit(X, y)
    for call in (lambda B: medians.shap_values(X, background=B), medians.expected_value):
        with pytest.raises(ValueError, match="median of trees"):
            call(X)


def test_an_explanation_for_the_package_shap():
    pytest.importorskip("shap", reason="the package shap is not installed")
    model, X = fitted("several outputs")
    found = model.to_shap(X[:4], background=X[10:])
    assert np.array_equal(found.values, model.shap_values(X[:4], background=X[10:]))
    assert np.array_equal(found.base_values, np.tile(model.expected_value(X[10:]), (4, 1)))


def test_equal_to_the_package_shap():
    shap = pytest.importorskip("shap", reason="the package shap is not installed")
    X, y = numbers(200, seed=3)
    X = X.astype(np.float32)  # as scikit-learn's trees read them
    small = {"n_estimators": 5, "random_state": 0, "n_jobs": 1, "backend": "numpy"}
    forest = RandomForestClassifier(**small).fit(X, terciles(y))
    several = DecisionTreeRegressor(max_depth=6, backend="numba").fit(X, np.stack([y, -y * y], 1))
    boosted = HistGradientBoostingClassifier(max_iter=4, random_state=0, backend="numba")
    for model in (forest, several, boosted.fit(X, y > 0)):
        theirs = shap.TreeExplainer(
            model.to_sklearn(), data=X[:30], feature_perturbation="interventional"
        )
        found = model.shap_values(X[50:60], background=X[:30])
        # shap's own values add up to the prediction to about seven digits
        np.testing.assert_allclose(found, theirs.shap_values(X[50:60]), rtol=0, atol=1e-6)
        mean = model.expected_value(X[:30])
        np.testing.assert_allclose(mean, np.squeeze(theirs.expected_value), rtol=0, atol=1e-9)
