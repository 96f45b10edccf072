"""Our trees with scikit-learn's attributes: equal to its own trees'; boosted trees as arrays; what
nodes hold: clipped leaves, impurities and path lengths, also in files."""

import pickle

import numpy as np
import pytest
from boosted_models import SUM, X, leaves, number_model
from engine import same_forest, table
from saved import reloaded
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble._iforest import _average_path_length
from sklearn.inspection import partial_dependence
from sklearn.tree import DecisionTreeClassifier as SklearnClassifier
from sklearn.tree import DecisionTreeRegressor as SklearnRegressor
from sklearn.tree._tree import Tree

import gpuforest as gf
from gpuforest.core.criteria import CRITERIA
from gpuforest.core.nodes import unpack
from gpuforest.explain.paths import average_path_length, with_path_lengths
from gpuforest.export.walker import opened

IRIS = load_iris(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
STRUCTURE = ["feature", "missing_go_to_left", "n_node_samples", "weighted_n_node_samples", "value"]
COUNTS = ["node_count", "max_depth", "n_leaves", "n_features", "n_outputs", "max_n_classes"]


def tie_free(n_rows=120, seed=0):
    """Whole numbers, each once in a column, in which no two splits of a small tree tie."""
    rng = np.random.default_rng(seed)
    X = np.stack([rng.permutation(n_rows) for _ in range(4)], axis=1).astype(np.float32)
    return X, X[:, 0] * 3 + X[:, 1] + rng.integers(0, 50, n_rows)


def order(view, other):
    """Our node of each of scikit-learn's, found by a walk down both."""
    found, pending = np.full(other.node_count, -1), [(0, 0)]
    while pending:
        a, b = pending.pop()
        found[b] = a
        assert (view.children_left[a] < 0) == (other.children_left[b] < 0)
        if view.children_left[a] >= 0:
            pending.append((view.children_left[a], other.children_left[b]))
            pending.append((view.children_right[a], other.children_right[b]))
    return found


def check_equal(view, other):
    """Assert that the view shows scikit-learn's tree, whose nodes are numbered otherwise."""
    at = order(view, other)
    assert np.array_equal(np.sort(at), np.arange(view.node_count))
    for name in COUNTS:
        assert getattr(view, name) == getattr(other, name)
    assert view.n_classes.tolist() == other.n_classes.tolist()
    # deeper ones lie elsewhere in their gap: ours in its middle as bins count
    assert view.threshold[0] == other.threshold[0]
    assert np.array_equal(view.threshold[at] == -2.0, other.threshold == -2.0)
    for name in STRUCTURE:
        ours, theirs = getattr(view, name)[at], getattr(other, name)
        assert ours.shape == theirs.shape
        assert ours.dtype == theirs.dtype
        # of means and shares scikit-learn's last bit depends on the order of its rows
        close = name == "value"
        assert np.allclose(ours, theirs, 1e-13) if close else np.array_equal(ours, theirs)
    # it finds a spread as a difference of squares, which rounds
    assert np.allclose(view.impurity[at], other.impurity, 1e-9, 1e-9 * other.impurity.max())
    assert np.allclose(
        view.compute_feature_importances(), other.compute_feature_importances(), 1e-9, 1e-9
    )


@pytest.mark.parametrize("criterion", ["gini", "entropy", "log_loss"])
def test_a_classifiers_tree_is_scikit_learns(backend, criterion):
    X, y = tie_free()
    given = {"criterion": criterion, "max_depth": 2, "random_state": 0}
    ours = gf.DecisionTreeClassifier(backend=backend, **given).fit(X, y > np.median(y))
    theirs = SklearnClassifier(**given).fit(X, y > np.median(y))
    check_equal(ours.tree_, theirs.tree_)


@pytest.mark.parametrize("criterion", ["squared_error", "poisson"])
@pytest.mark.parametrize("weighed", [False, True])
def test_a_regressors_tree_is_scikit_learns(backend, criterion, weighed):
    X, y = tie_free()
    weights = np.random.default_rng(1).integers(1, 4, len(y)) if weighed else None
    given = {"criterion": criterion, "max_depth": 4, "random_state": 0}
    ours = gf.DecisionTreeRegressor(backend=backend, **given).fit(X, y, weights).tree_
    rows = np.repeat(np.arange(len(y)), 1 if weights is None else weights)
    # rows as often as they weigh, because a weight is the count of rows here
    check_equal(ours, SklearnRegressor(**given).fit(X[rows], y[rows]).tree_)


def test_splits_from_missing_values_and_trees_of_one_leaf(backend):
    X, y = np.array([[1.0], [np.nan], [2.0], [np.nan]]), [0, 1, 0, 1]
    ours = gf.DecisionTreeClassifier(backend=backend).fit(X, y)
    check_equal(ours.tree_, SklearnClassifier().fit(X, y).tree_)
    assert ours.tree_.threshold.tolist() == [np.inf, -2.0, -2.0]
    ours = gf.DecisionTreeRegressor(backend=backend).fit([[1.0], [1.0]], [3.0, 5.0]).tree_
    check_equal(ours, SklearnRegressor().fit([[1.0], [1.0]], [3.0, 5.0]).tree_)
    assert ours.impurity.tolist() == [1.0]
    assert ours.compute_feature_importances().tolist() == [0.0]


def test_rows_walk_to_the_nodes_that_the_arrays_describe(backend):
    X = table(np.random.default_rng(0), 200, list("cnNf"))
    y = np.random.default_rng(1).normal(size=200)
    tree = gf.DecisionTreeRegressor(max_depth=6, backend=backend).fit(X, y)
    view = tree.tree_
    at = np.zeros(len(X), np.int64)
    while (split := view.feature[at] >= 0).any():
        x = X[np.arange(len(X)), np.maximum(view.feature[at], 0)]
        left = np.where(np.isnan(x), view.missing_go_to_left[at] == 1, x <= view.threshold[at])
        at = np.where(split, np.where(left, view.children_left[at], view.children_right[at]), at)
    assert np.array_equal(view.apply(X), at)
    assert np.array_equal(tree.apply(X), at)
    assert np.array_equal(view.predict(X)[:, 0], tree.predict(X))
    assert (view.decision_path(X) != tree.decision_path(X)).nnz == 0
    with pytest.raises(ValueError, match="4 features"):
        view.apply(X[:, :3])


@pytest.mark.parametrize("kind", [gf.RandomForestClassifier, gf.RandomForestRegressor])
def test_the_mean_of_a_forests_trees_is_the_forests_prediction(backend, kind):
    X, y = IRIS
    forest = kind(7, random_state=3, backend=backend, max_depth=4).fit(X, y)
    method = "predict_proba" if hasattr(forest, "classes_") else "predict"
    total = 0.0
    for t, tree in enumerate(forest.estimators_):
        total = total + getattr(tree, method)(X)  # in the forest's order
        assert np.array_equal(tree.apply(X), forest.apply(X)[:, t])
        assert np.array_equal(tree.tree_.value, opened(forest, t).columns["value"])
    assert np.array_equal(total / 7, getattr(forest, method)(X))
    assert tree.get_params()["max_depth"] == 4
    assert (tree.n_features_in_, tree.backend_) == (4, forest.backend_)


def test_a_forests_trees_are_a_list_that_is_not_pickled():
    forest = gf.RandomForestClassifier(5, random_state=0, class_weight="balanced_subsample")
    assert not hasattr(forest, "estimators_")
    trees = forest.fit(*IRIS).estimators_
    plain = len(pickle.dumps(forest))
    assert (len(trees), type(trees)) == (5, list)
    assert trees is forest.estimators_
    assert trees[1] is trees[1] is trees[1:3][0] is trees[-4]
    assert [t is trees[i] for i, t in enumerate(trees)] == [True] * 5
    with pytest.raises(IndexError):
        trees[5]
    assert trees[0].forest_.leaf_sums is forest.forest_.leaf_sums
    assert len(pickle.dumps(forest)) == plain
    assert len(forest.set_params(n_estimators=3).fit(*IRIS).estimators_) == 3


def test_a_regression_forests_impurity_is_what_the_splits_explain():
    X, y = tie_free()
    forest = gf.RandomForestRegressor(2, random_state=0, backend="numpy", max_depth=4).fit(X, y)
    for tree in forest.estimators_:
        view = tree.tree_
        leaf, weight = view.feature < 0, view.weighted_n_node_samples
        assert (view.impurity[leaf] == 0).all()
        assert (view.impurity[~leaf] > 0).all()
        # of the root: the variance of the leaves' means
        value = view.value[leaf, 0, 0]
        spread = np.cov(value, aweights=weight[leaf], ddof=0)
        assert np.isclose(view.impurity[0], spread, rtol=1e-12)
    assert CRITERIA[forest.criterion_].name == "squared_error"


def trees(model):
    found = [opened(model, t).columns for t in range(model.forest_.n_trees)]
    return [columns | {"value": columns["value"].reshape(-1)} for columns in found]


@pytest.mark.parametrize("l2", [0.0, 3.0])
def test_sums_gains_and_values_are_those_of_the_formulas(l2):
    rate = 0.1
    model = number_model(l2_regularization=l2)
    y = SUM
    raw = np.full(len(y), model.forest_.baseline[0])
    for t, (tree, leaf) in enumerate(zip(trees(model), leaves(model, X).T, strict=True)):
        gradient = raw - y
        begin, end = model.forest_.tree_offsets[t : t + 2]
        feature, _, _, child = unpack(np, model.forest_.nodes[begin:end])
        # from the leaves up: which rows pass a node
        passes = np.zeros((end - begin, len(y)), bool)
        for node in range(end - begin - 1, -1, -1):
            if feature[node] < 0:
                passes[node] = leaf == node
            else:
                passes[node] = passes[child[node]] | passes[child[node] + 1]
        G, H = passes @ gradient, passes.sum(axis=1)
        np.testing.assert_allclose(tree["gradients"], G, atol=1e-8)
        assert np.array_equal(tree["hessians"], H)
        at_leaf = feature < 0
        np.testing.assert_allclose(
            tree["value"][at_leaf], (-rate * G / (H + l2))[at_leaf], atol=1e-12
        )
        if not l2:  # above leaves too, as LightGBM shows it
            np.testing.assert_allclose(tree["value"], -rate * G / H, atol=1e-10)
        score = G**2 / (H + l2)
        split = np.flatnonzero(~at_leaf)
        gains = score[child[split]] + score[child[split] + 1] - score[split]
        np.testing.assert_allclose(tree["gain"][split], gains, rtol=1e-9, atol=1e-7)
        raw = raw + tree["value"][leaf]


ROWS = DIABETES[0].astype(np.float32), DIABETES[1]


def test_tree__is_scikit_learns():
    tree = gf.DecisionTreeRegressor(max_depth=4, backend="numpy").fit(*DIABETES)
    forest = gf.RandomForestRegressor(3, max_depth=4, backend="numpy").fit(*DIABETES)
    for model in (tree, *forest.estimators_):
        there = model.to_sklearn().tree_
        assert isinstance(model.tree_, Tree)
        for name in ("children_left", "feature", "threshold", "value", "impurity", "n_leaves"):
            assert np.array_equal(getattr(model.tree_, name), getattr(there, name))
        assert np.array_equal(model.tree_.compute_node_depths(), there.compute_node_depths())
        # rows of any numbers, as ever
        assert np.array_equal(model.tree_.predict(DIABETES[0])[:, 0], model.predict(DIABETES[0]))
        assert np.array_equal(model.tree_.apply(DIABETES[0]), model.apply(DIABETES[0]))
    plain = pickle.loads(pickle.dumps(tree.tree_))
    assert type(plain) is Tree
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


@pytest.mark.parametrize("kind", [gf.RandomForestClassifier, gf.RandomForestRegressor])
def test_clipped_leaves_stay_with_the_model(tmp_path, kind):
    X, y = DIABETES
    y = y > 120 if kind is gf.RandomForestClassifier else y
    signs = [0, 0, 1, 1, 0, 0, 0, 0, 0, 0]
    model = kind(5, monotonic_cst=signs, random_state=0).fit(X, y)
    assert model.forest_.leaf_values is not None
    ask = "predict_proba" if kind is gf.RandomForestClassifier else "predict"
    found = getattr(model, ask)(X)
    for other in (reloaded(model, tmp_path), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(getattr(other, ask)(X), found)
    mean = sum(getattr(tree, ask)(X) for tree in model.estimators_) / 5
    assert np.array_equal(mean, found)
    small = X.astype(np.float32)
    assert np.array_equal(getattr(model.to_sklearn(), ask)(small), getattr(model, ask)(small))
    model.set_params(warm_start=True, n_estimators=8).fit(X, y)
    whole = kind(8, monotonic_cst=signs, random_state=0).fit(X, y)
    assert same_forest(model.forest_, whole.forest_)
    assert np.array_equal(model.forest_.leaf_values, whole.forest_.leaf_values)


def test_leaf_impurity_is_the_same_on_every_backend_and_in_files(backend, tmp_path):
    tree = gf.DecisionTreeRegressor(max_depth=4, backend=backend).fit(*DIABETES)
    reference = gf.DecisionTreeRegressor(max_depth=4, backend="numpy").fit(*DIABETES)
    found = tree.forest_.leaf_impurity
    assert np.array_equal(found, reference.forest_.leaf_impurity)
    assert np.array_equal(reloaded(tree, tmp_path).tree_.impurity, tree.tree_.impurity)
    assert np.array_equal(pickle.loads(pickle.dumps(tree)).tree_.impurity, tree.tree_.impurity)


@pytest.mark.parametrize("damage", [np.nan, -1.0, None])
def test_damaged_leaf_impurity_is_refused(damage):
    tree = gf.DecisionTreeRegressor(max_depth=2, backend="numpy").fit(*DIABETES)
    found = tree.forest_.leaf_impurity
    vars(tree.forest_)["leaf_impurity"] = found[1:] if damage is None else found * damage
    with pytest.raises(gf.ModelFormatError, match=r"impurit(y|ies) of leaves"):
        pickle.loads(pickle.dumps(tree))


def test_numbers_whose_squares_are_none_have_infinite_spreads(backend, tmp_path):
    huge = number_model(y=SUM * 1e300)
    for tree in trees(huge):
        assert np.isfinite(tree["value"]).all()
        assert (tree["gain"] >= 0).all()
    assert np.isfinite(huge.feature_importances_).all()
    X, y = [[0.0], [0.0], [1.0]], [1e300, -1e300, 0.0]
    tree = gf.DecisionTreeRegressor(backend=backend).fit(X, y)
    assert tree.tree_.impurity.tolist() == [np.inf, np.inf, 0.0]
    assert reloaded(tree, tmp_path).tree_.impurity.tolist() == [np.inf, np.inf, 0.0]
    # nor do rows without weight count
    assert tree.fit(X, y, [0, 0, 1]).tree_.impurity.tolist() == [0.0]


def test_path_lengths_are_scikit_learns_and_equal_leaves_share_a_row():
    n = np.arange(300)
    assert np.isclose(average_path_length(256), 10.244770920)
    assert np.array_equal(average_path_length(n), _average_path_length(n))
    X = np.random.default_rng(0).normal(size=(64, 2))
    tree = gf.RandomForestRegressor(3, bootstrap=False, random_state=0).fit(X, X[:, 0]).forest_
    found = with_path_lengths(tree)
    assert len(found.leaf_sums) < len(tree.leaf_sums)
    assert (found.leaf_sums[:, 0] == 1).all()  # each row is by itself
    assert found.node_sums(1, 2)[0, 0] == 64
