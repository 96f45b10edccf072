"""SHAP values: against their definition, on several threads, and for the package shap."""

import sys
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from shap_cases import NAMES, by_definition, fitted, numbers, raw_predictions

import gpuforest as gf
from gpuforest.backends.numba import NumbaBackend
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.core import nodes
from gpuforest.data.validation import check_table
from gpuforest.explain import shap
from gpuforest.growing.edges import bin_matrix


def known(model, X):
    """A function of known features S that gives the predictions f64[N, K]: splits by others go both
    ways. Node after node, in plain Python."""
    forest, backend = model.forest_, NumpyBackend()
    codes = bin_matrix(check_table(model, X, backend), forest.edges, backend).codes
    cover = forest.node_sums(0, forest.n_trees)
    cover = cover.sum(axis=1) if forest.coding.is_classes else cover[:, 0]
    feature, bin, missing_left, child = nodes.unpack(np, forest.nodes)

    def left(i, code):
        if code == forest.edges.missing_code:
            return bool(missing_left[i])
        if bin[i] == nodes.SET_BIN:
            return bool(int(forest.sets[forest.set_at[i] + (code >> 6)]) >> (code & 63) & 1)
        return code <= bin[i]

    def below(root, i, row, S):
        if feature[i] < 0:
            return forest.values[child[i]]
        sides = root + child[i], root + child[i] + 1
        if feature[i] in S:
            return below(root, sides[not left(i, int(row[feature[i]]))], row, S)
        return sum(below(root, j, row, S) * (cover[j] / cover[i]) for j in sides)

    def value(S):
        sums = [
            sum(below(root, root, row, S) for root in forest.tree_offsets[:-1]) for row in codes
        ]
        found = forest.combined(np.array(sums))
        return found if forest.baseline is None else found + forest.baseline

    F = codes.shape[1]
    return {S: value(S) for n in range(F + 1) for S in combinations(range(F), n)}


@pytest.mark.parametrize("name", NAMES)
def test_values_and_interactions_are_those_of_the_definition(name):
    model, X = fitted(name)
    X = X[:4]
    F, K = model.n_features_in_, model.forest_.coding.n_values
    of_sets = known(model, X)
    phi, both = by_definition(of_sets, F)
    shape = () if K == 1 else (K,)
    assert model.shap_values(X).shape == (4, F, *shape)
    assert np.shape(model.expected_value_) == shape
    np.testing.assert_allclose(np.ravel(model.expected_value_), of_sets[()][0], atol=1e-13)
    np.testing.assert_allclose(raw_predictions(model, X), of_sets[tuple(range(F))], atol=1e-13)
    # rounding: both are sums of products in different orders
    np.testing.assert_allclose(model.shap_values(X).reshape(-1, F, K), phi, atol=1e-13)
    found = model.shap_interaction_values(X).reshape(-1, F, F, K)
    np.testing.assert_allclose(found, both, atol=1e-13)
    rows, background = some(X, 3), some(fitted(name)[1], 20, 24)
    phi, _ = by_definition(known_beside(model, rows, background), F)
    found = model.shap_values(rows, background=background)
    np.testing.assert_allclose(found.reshape(-1, F, K), phi, rtol=0, atol=1e-13)
    mean = raw_predictions(model, background).mean(axis=0)
    np.testing.assert_allclose(np.ravel(model.expected_value(background)), mean, atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_threads_do_not_change_a_bit(name):
    model, X = fitted(name)
    X = pd.concat([X] * 6) if isinstance(X, pd.DataFrame) else np.vstack([X] * 6)
    one, several = NumbaBackend(1), NumbaBackend(3)
    table = check_table(model, X, one)
    forest = model.forest_
    for found, expected in zip(
        shap.path_covers(forest, 3), shap.path_covers(forest, 1), strict=True
    ):
        assert np.array_equal(found, expected)
    for values in (shap.shap_values, shap.shap_interactions):
        assert np.array_equal(values(forest, table, several), values(forest, table, one))
    beside, expected = (  # two blocks of the background
        shap.background_values(forest, table[:90], table, backend) for backend in (several, one)
    )
    assert np.array_equal(beside, expected)


def test_a_device_explains_on_the_cpu(cuda):
    model, X = fitted("categories")
    table, backend, cpu = check_table(model, X, NumbaBackend()), cuda.backend(), NumbaBackend()
    found, expected = (shap.shap_values(model.forest_, table, b) for b in (backend, cpu))
    assert np.array_equal(found, expected)


def test_paths_of_many_features():
    """A chain splits off one row after another, each by a feature of its own: 20 points."""
    X, y = np.eye(40), np.arange(40.0) ** 2
    tree = gf.DecisionTreeRegressor(random_state=0, backend="numba").fit(X, y)
    assert shap.path_covers(tree.forest_, 1)[1][0, 0] > 30
    values = tree.shap_values(X)
    np.testing.assert_allclose(values.sum(axis=1) + tree.expected_value_, y, atol=1e-9)
    assert np.array_equal(tree.set_params(backend="numpy").shap_values(X), values)
    values = tree.shap_values(X[:5], background=X)
    np.testing.assert_allclose(values.sum(axis=1) + y.mean(), y[:5], rtol=0, atol=1e-9)
    # the weights of 39 features take 12,800 bytes
    tree.set_params(memory_limit=13_000)
    assert np.array_equal(tree.shap_values(X[:5], background=X), values)
    with pytest.raises(ValueError, match=r"take 0\.0128 MB for paths of 39 .* raise memory_"):
        tree.set_params(memory_limit=12_000).shap_values(X[:5], background=X)
    assert tree.shap_values(X[:5]).shape == values.shape


def test_small_trees_and_the_expected_value_of_the_last_fit():
    X, y = np.arange(6.0)[:, None], np.array([0.0, 0, 0, 4, 4, 4])
    stump = gf.DecisionTreeRegressor(max_depth=1, backend="numba").fit(X, y)
    assert stump.expected_value_ == stump.expected_value(X[2:4]) == 2.0
    np.testing.assert_allclose(stump.shap_values(X)[:, 0], y - 2.0, rtol=1e-14)
    np.testing.assert_allclose(stump.shap_interaction_values(X)[:, 0, 0], y - 2.0, rtol=1e-14)
    assert stump.shap_values(X, background=X[2:4])[:, 0].tolist() == (y - 2).tolist()
    leaf = gf.DecisionTreeRegressor(backend="numba").fit(X, np.ones(6))
    assert leaf.expected_value_ == 1.0
    assert not leaf.shap_values(X).any()
    assert not leaf.shap_values(X, background=X).any()
    X, y = numbers()
    tree = gf.DecisionTreeRegressor(random_state=0, backend="numba").fit(X, y)
    assert tree.expected_value_ == pytest.approx(y.mean(), abs=1e-12)
    tree.fit(X, y + 1)
    assert tree.expected_value_ == pytest.approx(y.mean() + 1, abs=1e-12)
    tree.prune(*numbers(seed=1))
    assert tree.expected_value_ == pytest.approx(y.mean() + 1, abs=1e-12)


def test_an_explanation_for_the_package_shap(monkeypatch):
    model, X = fitted("several outputs")
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(ImportError, match=r"gpuforest\[shap\]"):
        model.to_shap(X)

    def explanation(values, base_values, data, feature_names):
        return values, base_values, data, feature_names

    monkeypatch.setitem(sys.modules, "shap", SimpleNamespace(Explanation=explanation))
    values, base, data, names = model.to_shap(X)
    assert np.array_equal(values, model.shap_values(X))
    assert np.array_equal(base, np.tile(model.expected_value_, (len(X), 1)))
    assert data is X
    assert names is None
    values, base, _, _ = model.to_shap(X[:4], background=X[10:])
    assert np.array_equal(values, model.shap_values(X[:4], background=X[10:]))
    assert np.array_equal(base, np.tile(model.expected_value(X[10:]), (4, 1)))


def some(X, *which):
    return X.iloc[slice(*which)] if isinstance(X, pd.DataFrame) else X[slice(*which)]


def known_beside(model, X, background):
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
