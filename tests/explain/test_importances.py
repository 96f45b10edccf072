"""Impurity importances: against scikit-learn on equal trees, and against a slow implementation."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.tree import DecisionTreeClassifier as SklearnClassifier
from sklearn.tree import DecisionTreeRegressor as SklearnRegressor
from sklearn_trees import compare_trees

from gpuforest import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from gpuforest.engine.forest import tree_groups
from gpuforest.engine.nodes import unpack


def entropy(y):
    p = np.bincount(y)[np.bincount(y) > 0] / len(y)
    return -len(y) * (p * np.log(p)).sum()


def gini(y):
    return len(y) - (np.bincount(y) ** 2).sum() / len(y)


def squared_error(y):
    return ((y - y.mean()) ** 2).sum()


def slow_importances(model, X, y, impurity):
    """From the rows in each node, walked down one by one; trees without bags."""
    forest, each = model.forest_, []
    for t in range(forest.n_trees):
        nodes = forest.nodes[forest.tree_offsets[t] : forest.tree_offsets[t + 1]]
        feature, bin, _, child = unpack(np, nodes)
        threshold = forest.edges.threshold(np.maximum(feature, 0), bin)
        found, pending = np.zeros(X.shape[1]), [(0, np.arange(len(X)))]
        while pending:
            n, rows = pending.pop()
            if feature[n] < 0:
                continue
            left = X[rows, feature[n]] <= threshold[n]
            found[feature[n]] += impurity(y[rows])
            for i, side in ((child[n], rows[left]), (child[n] + 1, rows[~left])):
                found[feature[n]] -= impurity(y[side])
                pending.append((i, side))
        each.append(found / found.sum())
    mean = np.mean(each, axis=0)
    return mean / mean.sum()


@pytest.mark.parametrize(("criterion", "impurity"), [("gini", gini), ("entropy", entropy)])
def test_classes(backend, criterion, impurity):
    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(
        5, criterion=criterion, bootstrap=False, random_state=0, backend=backend
    ).fit(X, y)
    expected = slow_importances(model, X, y, impurity)
    assert np.allclose(model.feature_importances_, expected, rtol=1e-6, atol=1e-9)


def test_numbers(backend):
    X, y = load_diabetes(return_X_y=True)
    model = RandomForestRegressor(
        5, max_depth=6, bootstrap=False, random_state=0, backend=backend
    ).fit(X, y)
    expected = slow_importances(model, X, y, squared_error)
    assert np.allclose(model.feature_importances_, expected, rtol=1e-6, atol=1e-9)


def test_the_same_tree_has_scikit_learns_importances(backend):
    X, y = load_diabetes(return_X_y=True)
    X = X.astype(np.float32)
    ours = DecisionTreeRegressor(max_bins=1000, max_depth=3, backend=backend).fit(X, y)
    theirs = SklearnRegressor(max_depth=3, random_state=0).fit(X, y)
    assert compare_trees(ours, theirs, X, y.astype(int), is_classes=False)[1] == 0
    assert np.allclose(ours.feature_importances_, theirs.feature_importances_, rtol=1e-9)
    X, y = load_iris(return_X_y=True)
    X = X[:, :3].astype(np.float32)  # petal width ties with petal length
    ours = DecisionTreeClassifier(max_depth=4, backend=backend).fit(X, y)
    theirs = SklearnClassifier(max_depth=4, random_state=0).fit(X, y)
    assert compare_trees(ours, theirs, X, y, is_classes=True)[1] == 0
    assert np.allclose(ours.feature_importances_, theirs.feature_importances_, rtol=1e-9)


def test_groups_of_trees_change_nothing(backend, monkeypatch):
    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(20, random_state=0, backend=backend).fit(X, y)
    whole = model.feature_importances_
    monkeypatch.setattr("gpuforest.engine.forest.GROUP_VALUES", 100)
    assert len(tree_groups(model.forest_)) > 5
    del model.feature_importances_
    assert np.allclose(model.feature_importances_, whole, rtol=1e-14)
    assert whole.sum() == pytest.approx(1)
    assert (whole >= 0).all()


def test_without_a_split_all_are_zero(backend):
    model = RandomForestClassifier(3, random_state=0, backend=backend)
    model.fit(np.arange(8).reshape(4, 2), [1, 1, 1, 1])
    assert model.feature_importances_.tolist() == [0, 0]


def test_trees_without_a_split_do_not_count(backend):
    # one row of four is of the other class: some bags miss it
    X = np.array([[0.0, 5], [1, 5], [2, 5], [3, 5]])
    model = RandomForestClassifier(20, random_state=0, backend=backend).fit(X, [0, 0, 0, 1])
    assert (np.diff(model.forest_.tree_offsets) == 1).any()
    assert model.feature_importances_.tolist() == [1, 0]


def test_refit_forgets_the_old_ones(backend):
    X = np.random.default_rng(0).random((60, 2))
    model = DecisionTreeClassifier(max_depth=1, backend=backend)
    assert model.fit(X, X[:, 0] > 0.5).feature_importances_.tolist() == [1, 0]
    assert model.fit(X, X[:, 1] > 0.5).feature_importances_.tolist() == [0, 1]
