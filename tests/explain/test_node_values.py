"""What nodes hold: clipped leaves, impurities and path lengths, with each backend and in files."""

import pickle

import numpy as np
import pytest
from engine import same_forest
from sklearn.datasets import load_diabetes
from sklearn.ensemble._iforest import _average_path_length

import gpuforest as gf
from gpuforest.explain.paths import average_path_length, with_path_lengths


@pytest.mark.parametrize("kind", [gf.RandomForestClassifier, gf.RandomForestRegressor])
def test_clipped_leaves_stay_with_the_model(tmp_path, kind):
    X, y = load_diabetes(return_X_y=True)
    y = y > 120 if kind is gf.RandomForestClassifier else y
    signs = [0, 0, 1, 1, 0, 0, 0, 0, 0, 0]
    model = kind(5, monotonic_cst=signs, random_state=0).fit(X, y)
    assert model.forest_.leaf_values is not None
    model.save(tmp_path / "model")
    ask = "predict_proba" if kind is gf.RandomForestClassifier else "predict"
    found = getattr(model, ask)(X)
    for other in (gf.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(getattr(other, ask)(X), found)
    mean = sum(getattr(tree, ask)(X) for tree in model.estimators_) / 5
    assert np.array_equal(mean, found)
    X = X.astype(np.float32)
    assert np.array_equal(getattr(model.to_sklearn(), ask)(X), getattr(model, ask)(X))
    model.set_params(warm_start=True, n_estimators=8).fit(load_diabetes().data, y)
    whole = kind(8, monotonic_cst=signs, random_state=0).fit(load_diabetes().data, y)
    assert same_forest(model.forest_, whole.forest_)
    assert np.array_equal(model.forest_.leaf_values, whole.forest_.leaf_values)


DIABETES = load_diabetes(return_X_y=True)


def test_leaf_impurity_is_the_same_on_every_backend_and_in_files(backend, tmp_path):
    tree = gf.DecisionTreeRegressor(max_depth=4, backend=backend).fit(*DIABETES)
    reference = gf.DecisionTreeRegressor(max_depth=4, backend="numpy").fit(*DIABETES)
    found = tree.forest_.leaf_impurity
    assert np.array_equal(found, reference.forest_.leaf_impurity)
    leaves = tree.apply(DIABETES[0])
    for leaf in np.unique(leaves):
        spread = np.var(DIABETES[1][leaves == leaf])
        assert np.isclose(tree.tree_.impurity[leaf], spread, rtol=1e-12)  # sums round
    tree.save(tmp_path / "model")
    assert np.array_equal(gf.load(tmp_path / "model").tree_.impurity, tree.tree_.impurity)
    assert np.array_equal(pickle.loads(pickle.dumps(tree)).tree_.impurity, tree.tree_.impurity)


@pytest.mark.parametrize("damage", [np.nan, -1.0, None])
def test_damaged_leaf_impurity_is_refused(damage):
    tree = gf.DecisionTreeRegressor(max_depth=2, backend="numpy").fit(*DIABETES)
    found = tree.forest_.leaf_impurity
    vars(tree.forest_)["leaf_impurity"] = found[1:] if damage is None else found * damage
    with pytest.raises(gf.ModelFormatError, match=r"impurit(y|ies) of leaves"):
        pickle.loads(pickle.dumps(tree))


def test_spreads_beyond_all_numbers_are_infinite(backend, tmp_path):
    X, y = [[0.0], [0.0], [1.0]], [1e300, -1e300, 0.0]
    tree = gf.DecisionTreeRegressor(backend=backend).fit(X, y)
    assert tree.tree_.impurity.tolist() == [np.inf, np.inf, 0.0]
    tree.save(tmp_path / "model")
    assert gf.load(tmp_path / "model").tree_.impurity.tolist() == [np.inf, np.inf, 0.0]
    # nor do rows without weight count
    assert tree.fit(X, y, [0, 0, 1]).tree_.impurity.tolist() == [0.0]


def test_path_lengths_are_scikit_learns():
    n = np.arange(300)
    assert np.isclose(average_path_length(256), 10.244770920)
    assert np.array_equal(average_path_length(n), _average_path_length(n))


def test_leaves_of_the_same_depth_and_size_share_a_row():
    X = np.random.default_rng(0).normal(size=(64, 2))
    tree = gf.RandomForestRegressor(3, bootstrap=False, random_state=0).fit(X, X[:, 0]).forest_
    found = with_path_lengths(tree)
    assert len(found.leaf_sums) < len(tree.leaf_sums)
    assert (found.leaf_sums[:, 0] == 1).all()  # each row is by itself
    assert found.node_sums(1, 2)[0, 0] == 64
