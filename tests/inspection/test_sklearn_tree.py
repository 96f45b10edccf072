"""A tree as scikit-learn's own Tree."""

import pickle

import numpy as np
import pytest
import sklearn.ensemble
import sklearn.tree
from sklearn.datasets import load_diabetes, load_iris
from sklearn.inspection import partial_dependence

import gpuforest

X, Y = load_iris(return_X_y=True)


DIABETES = load_diabetes(return_X_y=True)


ROWS = DIABETES[0].astype(np.float32), DIABETES[1]


def test_tree__is_scikit_learns():
    tree = gpuforest.DecisionTreeRegressor(max_depth=4, backend="numpy").fit(*DIABETES)
    forest = gpuforest.RandomForestRegressor(3, max_depth=4, backend="numpy").fit(*DIABETES)
    for model in (tree, *forest.estimators_):
        there = model.to_sklearn().tree_
        assert isinstance(model.tree_, sklearn.tree._tree.Tree)
        for name in ("children_left", "feature", "threshold", "value", "impurity", "n_leaves"):
            assert np.array_equal(getattr(model.tree_, name), getattr(there, name))
        assert np.array_equal(model.tree_.compute_node_depths(), there.compute_node_depths())
        # rows of any numbers, as ever
        assert np.array_equal(model.tree_.predict(DIABETES[0])[:, 0], model.predict(DIABETES[0]))
        assert np.array_equal(model.tree_.apply(DIABETES[0]), model.apply(DIABETES[0]))
    plain = pickle.loads(pickle.dumps(tree.tree_))
    assert type(plain) is sklearn.tree._tree.Tree
    assert isinstance(pickle.loads(pickle.dumps(tree)).tree_, type(tree.tree_))


def test_scikit_learns_exports():
    tree = gpuforest.DecisionTreeClassifier(max_depth=2, backend="numpy").fit(X, Y)
    for export in (sklearn.tree.export_text, sklearn.tree.export_graphviz):
        assert export(tree) == export(tree.to_sklearn())


@pytest.mark.parametrize("name", ["DecisionTreeRegressor", "RandomForestRegressor"])
def test_partial_dependence_by_recursion(name):
    params = {"max_depth": 4, "random_state": 0, "backend": "numpy"}
    model = getattr(gpuforest, name)(**params).fit(*ROWS)
    for features in ([2], [2, 8]):
        found, expected = (
            partial_dependence(m, ROWS[0], features, method="recursion", grid_resolution=6)
            for m in (model, model.to_sklearn())
        )
        assert np.array_equal(found["average"], expected["average"])
