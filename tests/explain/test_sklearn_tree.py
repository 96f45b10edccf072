"""A tree as scikit-learn's own Tree."""

import pickle

import numpy as np
import pytest
import sklearn.ensemble
import sklearn.tree
from sklearn.datasets import load_diabetes, load_iris
from sklearn.inspection import partial_dependence

import gpuforest as gf

X, Y = load_iris(return_X_y=True)


DIABETES = load_diabetes(return_X_y=True)


ROWS = DIABETES[0].astype(np.float32), DIABETES[1]


def test_tree__is_scikit_learns():
    tree = gf.DecisionTreeRegressor(max_depth=4, backend="numpy").fit(*DIABETES)
    forest = gf.RandomForestRegressor(3, max_depth=4, backend="numpy").fit(*DIABETES)
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


@pytest.mark.parametrize("name", ["DecisionTreeRegressor", "RandomForestRegressor"])
def test_recursion_is_brute_force_where_every_combination_of_values_is_a_row(name):
    """Recursion weighs branches by the training rows in them, brute force by the rows it is given:
    the same if these are the rows of training and the features are independent among them."""
    rows = np.stack(np.meshgrid(np.arange(5.0), np.arange(4.0), np.arange(3.0)), axis=-1)
    rows = rows.reshape(-1, 3)
    y = np.sin(3 * rows[:, 0]) * rows[:, 1] + rows[:, 2]
    bags = {"bootstrap": False} if name.startswith("Random") else {}
    model = getattr(gf, name)(max_features=2, random_state=0, **bags).fit(rows, y)
    for features in ([0], [1, 2]):
        found, expected = (
            partial_dependence(model, rows, features, method=method)["average"]
            for method in ("recursion", "brute")
        )
        assert np.ptp(expected) > 0.5
        assert np.allclose(found, expected, rtol=0, atol=1e-12)  # sums in another order


def test_curves_of_single_rows_are_predicted_a_point_at_a_time(monkeypatch):
    model = gf.RandomForestRegressor(5, random_state=0).fit(*ROWS)
    sizes, predict = [], type(model).predict
    monkeypatch.setattr(
        type(model), "predict", lambda self, X: (sizes.append(len(X)), predict(self, X))[1]
    )
    found = partial_dependence(model, ROWS[0], [2], kind="both", grid_resolution=20)
    assert sizes == [len(ROWS[0])] * 20  # never all rows at all points
    assert found["individual"].shape == (1, len(ROWS[0]), 20)
    moved = ROWS[0].copy()
    moved[:, 2] = found["grid_values"][0][7]
    assert np.array_equal(found["individual"][0, :, 7], predict(model, moved))
    assert np.allclose(found["average"], found["individual"].mean(axis=1))  # as NumPy adds up
