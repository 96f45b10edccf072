"""Where bins are the values, the trees are scikit-learn's, node for node."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.tree import DecisionTreeClassifier as SklearnClassifier
from sklearn.tree import DecisionTreeRegressor as SklearnRegressor
from sklearn_trees import compare_trees

from gpuforest import DecisionTreeClassifier, DecisionTreeRegressor

# data set, parameters, and how many splits must be found the same before ties part the trees
CASES = [
    (load_iris, {}, 4), (load_wine, {}, 6), (load_digits, {}, 60),
    (load_breast_cancer, {"max_bins": 65535}, 10), (load_digits, {"max_depth": 3}, 7),
    (load_digits, {"min_samples_leaf": 7}, 7),
    (load_digits, {"min_samples_leaf": 0.03, "min_samples_split": 0.1}, 7),
    (load_digits, {"min_samples_split": 30}, 7), (load_digits, {"min_impurity_decrease": 0.01}, 7),
    (load_digits, {"min_weight_fraction_leaf": 0.01}, 8),
    (load_digits, {"min_weight_fraction_leaf": 0.05}, 8),
]  # fmt: skip


@pytest.mark.parametrize(("loader", "params", "least"), CASES)
def test_classifier(backend, loader, params, least):
    X, y = loader(return_X_y=True)
    X = X.astype(np.float32)
    ours = DecisionTreeClassifier(backend=backend, **params).fit(X, y)
    theirs = SklearnClassifier(
        random_state=0, **{n: v for n, v in params.items() if n != "max_bins"}
    )
    same, ties = compare_trees(ours, theirs.fit(X, y), X, y, is_classes=True)
    assert same >= least
    assert ties < same


def test_regressor(backend):
    X, y = load_diabetes(return_X_y=True)
    X = X.astype(np.float32)
    ours = DecisionTreeRegressor(max_bins=1000, max_depth=6, backend=backend).fit(X, y)
    theirs = SklearnRegressor(random_state=0, max_depth=6).fit(X, y)
    same, ties = compare_trees(ours, theirs, X, y.astype(int), is_classes=False)
    assert same >= 40
    assert ties < same
    if not ties:
        assert np.allclose(ours.predict(X), theirs.predict(X), rtol=1e-12)


@pytest.mark.parametrize("least", [2.0, 50.0])
def test_impurity_decrease_of_a_regression(backend, least):
    X, y = load_diabetes(return_X_y=True)
    X = X.astype(np.float32)
    ours = DecisionTreeRegressor(max_bins=1000, min_impurity_decrease=least, backend=backend)
    theirs = SklearnRegressor(min_impurity_decrease=least, random_state=0).fit(X, y)
    same, _ = compare_trees(ours.fit(X, y), theirs, X, y.astype(int), is_classes=False)
    assert same > 5


def test_poisson_with_weights(backend):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 60, (400, 5)).astype(np.float32)
    y = rng.poisson(np.exp(X[:, 0] / 20)).astype(float)
    w = rng.integers(0, 4, 400)
    ours = DecisionTreeRegressor(criterion="poisson", max_depth=4, backend=backend).fit(X, y, w)
    theirs = SklearnRegressor(criterion="poisson", max_depth=4, random_state=0)
    theirs.fit(X, y, sample_weight=w)
    assert ours.forest_.n_nodes == theirs.tree_.node_count
    seen = w > 0
    assert np.allclose(ours.predict(X[seen]), theirs.predict(X[seen]), rtol=1e-9)
