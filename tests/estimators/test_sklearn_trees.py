"""Where bins are the values, the trees are scikit-learn's, node for node; and those of survival are
those of rpart's method "exp", by golden/rpart.R, which made golden/rpart.json."""

import json

import numpy as np
import pytest
from golden.make import HERE
from outputs import DIABETES, PAIR
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.tree import DecisionTreeClassifier as SklearnClassifier
from sklearn.tree import DecisionTreeRegressor as SklearnRegressor
from sklearn_trees import compare_trees

from gpuforest import DecisionTreeClassifier, DecisionTreeRegressor, RandomSurvivalForest

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


@pytest.mark.parametrize(
    ("params", "least"),
    [({"max_depth": 6}, 40), *(({"min_impurity_decrease": d}, 6) for d in (2.0, 50.0))],
)
def test_regressor(backend, params, least):
    X, y = load_diabetes(return_X_y=True)
    X = X.astype(np.float32)
    ours = DecisionTreeRegressor(max_bins=1000, **params, backend=backend).fit(X, y)
    theirs = SklearnRegressor(random_state=0, **params).fit(X, y)
    same, ties = compare_trees(ours, theirs, X, y.astype(int), is_classes=False)
    assert same >= least
    if "max_depth" in params:
        assert ties < same
        assert ties or np.allclose(ours.predict(X), theirs.predict(X), rtol=1e-12)


def data_of(name):
    """X, y and weights by which no cuts tie."""
    rng = np.random.default_rng(1)
    if name == "outputs":
        return DIABETES.astype(np.float32), PAIR, None
    if name == "counts":
        X = rng.integers(0, 60, (400, 5)).astype(np.float32)
        return X, rng.poisson(np.exp(X[:, 0] / 20)).astype(float), rng.integers(0, 4, 400)
    if name == "noise":
        X = rng.integers(0, 30, (400, 4)).astype(np.float32)
        return X, rng.normal(size=400), rng.integers(1, 9, 400)
    X = rng.integers(0, 12, (500, 4)).astype(np.float32)
    y = X[:, 0] - X[:, 1] + 4 * np.sin(X[:, 2]) + rng.normal(size=500)
    return X, np.exp(y / 8) if name == "positive" else y, None


SIGNS = [[1, -1, 1, -1], [1, -1, 0, 0], [0, 0, 0, 1], [1, 1, 1, 1]]
POISSON = {"criterion": "poisson"}
WHOLE = [
    ("counts", POISSON | {"max_depth": 4}, 0),
    *(("noise", {"min_weight_fraction_leaf": share}, 3) for share in (0.004, 0.03, 0.2)),
    *(("waves", {"monotonic_cst": signs, "min_samples_leaf": 3}, 20) for signs in SIGNS),
    *(("positive", POISSON | {"monotonic_cst": s, "min_samples_leaf": 3}, 20) for s in SIGNS),
    ("outputs", {"max_depth": 5}, 20), ("outputs", {"min_impurity_decrease": 30.0}, 20),
    ("outputs", {"ccp_alpha": 30.0}, 20),
]  # fmt: skip


@pytest.mark.parametrize(("name", "params", "least"), WHOLE)
def test_whole_regressions(backend, name, params, least):
    X, y, w = data_of(name)
    ours = DecisionTreeRegressor(max_bins=1000, **params, backend=backend).fit(X, y, w)
    theirs = SklearnRegressor(**params, random_state=0).fit(X, y, sample_weight=w)
    assert ours.forest_.n_nodes == theirs.tree_.node_count > least
    seen = X if w is None else X[w > 0]
    # our means lie on the grid of the fixed point
    assert np.allclose(ours.predict(seen), theirs.predict(seen), rtol=1e-9)


SETS = json.loads((HERE / "rpart.json").read_text())
# rpart lets a side have no event, and ours does not
WITHOUT_EVENTS = {("gbsg", 7): 6}


def compared(tree, theirs, X, event):
    """The nodes of rpart whose splits of rows are ours, and those that have a side without
    events, below which nothing is compared."""
    at = {node: i for i, node in enumerate(theirs["node"])}
    same, other, open_nodes = 0, 0, [(0, 1, np.arange(len(X)))]
    while open_nodes:
        ours, node, rows = open_nodes.pop()
        feature, cut, below = (theirs[key][at[node]] for key in ("feature", "cut", "below"))
        is_leaf = tree.children_left[ours] < 0
        if feature < 0:
            assert is_leaf
            same += 1
            continue
        low = X[rows, feature] < cut
        if not (event[rows[low]].any() and event[rows[~low]].any()):
            other += 1
            continue
        assert not is_leaf
        left = X[rows, tree.feature[ours]] <= tree.threshold[ours]
        if not np.array_equal(left, low):  # another feature may part the same rows
            assert np.array_equal(~left, low)
            below ^= 1
        same += 1
        children = (tree.children_left[ours], below), (tree.children_right[ours], below ^ 1)
        open_nodes += [
            (*pair, rows[side]) for pair, side in zip(children, (left, ~left), strict=True)
        ]
    return same, other


@pytest.mark.parametrize("least", [7, 20])
@pytest.mark.parametrize("name", SETS)
def test_trees_are_those_of_rpart(name, least):
    *X, time, event = np.array(SETS[name]["columns"], float)
    X, event = np.stack(X, axis=1), event > 0
    y = np.rec.fromarrays([event, time])
    [theirs] = [tree for tree in SETS[name]["trees"] if tree["rows"] == least]
    options = {"min_samples_leaf": least, "min_samples_split": 2 * least, "max_features": None}
    options |= {"bootstrap": False, "max_bins": 1000, "backend": "numpy"}
    forest = RandomSurvivalForest(1, **options).fit(X, y)
    same, other = compared(forest.estimators_[0].tree_, theirs, X, event)
    assert other == WITHOUT_EVENTS.get((name, least), 0)
    if not other:
        assert same == len(theirs["node"]) == forest.forest_.n_nodes
    else:
        assert same > 90
