"""Methods, parameters, errors and warnings that scikit-learn's forests have: the same here."""

import numpy as np
import pytest
import scipy.sparse
import sklearn
import sklearn.ensemble
import sklearn.tree
from engine import same_forest
from scipy.sparse import csc_array, csr_array
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gpuforest
import gpuforest as gf

X, y = load_wine(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)


def test_metadata_routing_takes_weights_through_a_pipeline(backend):
    weights = np.arange(len(y)) % 4
    with sklearn.config_context(enable_metadata_routing=True):
        forest = gf.RandomForestClassifier(3, random_state=0, backend=backend, bootstrap=False)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        forest.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        model = make_pipeline(scaler, forest)
        model.fit(X, y, sample_weight=weights)
        scores = cross_val_score(model, X, y, params={"sample_weight": weights}, cv=3)
    plain = clone(forest).fit(StandardScaler().fit_transform(X), y, weights)
    assert same_forest(model[-1].forest_, plain.forest_)
    assert scores.min() > 0.8


@pytest.mark.parametrize("kind", [gf.RandomForestClassifier, gf.RandomTreesEmbedding])
def test_a_forest_is_a_sequence_of_its_trees(kind):
    forest = kind(5, random_state=0, backend="numpy")
    with pytest.raises(NotFittedError):
        len(forest)
    forest.fit(X, y)
    assert len(forest) == len(forest.estimators_) == 5
    assert isinstance(forest.estimators_, list)
    assert forest[0] is forest.estimators_[0]
    assert forest[1:3] == forest.estimators_[1:3]
    assert list(forest) == forest.estimators_


@pytest.mark.parametrize("Forest", [gf.RandomForestClassifier, gf.RandomForestRegressor])
def test_a_forests_tree_grows_again_from_its_bag(backend, Forest):
    forest = Forest(4, random_state=2**32 - 1, backend=backend, max_depth=4).fit(X, y)
    assert len({tree.random_state for tree in forest}) == 4
    for tree, rows in zip(forest, forest.estimators_samples_, strict=True):
        assert rows.dtype == np.int32
        again = clone(tree).fit(X[rows], y[rows])
        assert np.array_equal(again.tree_.feature, tree.tree_.feature)
        assert np.array_equal(again.tree_.value, tree.tree_.value)


@pytest.mark.filterwarnings("ignore:Warm-start fitting without")
def test_an_oob_score_can_be_asked_for_later(backend):
    params = {"random_state": 0, "backend": backend, "ccp_alpha": 0.01}
    whole = gf.RandomForestClassifier(25, oob_score=True, **params).fit(X, y)
    later = gf.RandomForestClassifier(25, warm_start=True, **params).fit(X, y)
    assert not hasattr(later, "oob_score_")
    later.set_params(oob_score=True).fit(X, y)
    assert later.oob_score_ == whole.oob_score_
    assert same_forest(later.forest_, whole.forest_)
    later.fit(X * 2, y)  # nothing is computed twice, so nothing is looked at
    assert later.oob_score_ == whole.oob_score_


def test_a_tree_takes_sparse_rows():
    values = np.where(X.mean(axis=0) < X, X, 0)
    tree = gf.DecisionTreeClassifier(backend="numpy").fit(values, y)
    for rows in (csr_array(values), csc_array(values)):
        assert np.array_equal(tree.tree_.apply(rows), tree.apply(values))
        assert np.array_equal(tree.tree_.predict(rows), tree.predict_proba(values))
        path = tree.tree_.decision_path(rows)
        assert (path != tree.decision_path(values)).nnz == 0
    assert tree.tree_.capacity >= tree.tree_.node_count


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("max_leaf_nodes", [None, 40])
def test_inner_nodes_of_a_monotonic_tree_keep_their_bounds(sign, max_leaf_nodes):
    rng = np.random.default_rng(0)
    values, noise = rng.random((300, 2)), rng.random(300)
    params = {"monotonic_cst": [sign, 0], "max_leaf_nodes": max_leaf_nodes, "backend": "numpy"}
    forest = gf.RandomForestRegressor(2, max_features=1.0, random_state=0, **params)
    for model in (
        gf.DecisionTreeRegressor(**params).fit(values, noise),
        forest.fit(values, noise)[1],
    ):
        tree, value = model.tree_, model.tree_.value[:, 0, 0]
        leaves = model.apply(values)
        assert np.array_equal(value[leaves], model.predict(values))
        low, high = np.full(tree.node_count, -np.inf), np.full(tree.node_count, np.inf)
        for node in np.flatnonzero(tree.feature >= 0):
            left, right = tree.children_left[node], tree.children_right[node]
            low[[left, right]], high[[left, right]] = low[node], high[node]
            if tree.feature[node] == 0:
                below, above = (left, right) if sign > 0 else (right, left)
                assert value[below] <= value[above]
                high[below] = low[above] = (value[left] + value[right]) / 2
        # means are rounded once before they are clipped to bounds and once after
        assert (value >= low - 1e-12).all()
        assert (value <= high + 1e-12).all()


FEW = np.random.default_rng(0).random((20, 2))
Y = np.arange(20) % 2
TWO = np.stack([Y, Y[::-1]], axis=1)
FOREST, TREE, NUMBERS = "RandomForestClassifier", "DecisionTreeClassifier", "RandomForestRegressor"

REFUSED = {
    "oob_score without bags": (FOREST, {"oob_score": True, "bootstrap": False}, Y, None),
    "max_samples without bags": (NUMBERS, {"max_samples": 0.5, "bootstrap": False}, Y, None),
    "sparse y of a forest": (FOREST, {}, scipy.sparse.csr_array(TWO), None),
    "sparse y of a tree": (TREE, {}, scipy.sparse.csr_array(TWO), None),
    "a negative y": (NUMBERS, {"criterion": "poisson"}, Y - 1.0, None),
    "y without a positive number": (NUMBERS, {"criterion": "poisson"}, Y * 0.0, None),
    "one class weight for two outputs": (FOREST, {"class_weight": {0: 1, 1: 2}}, TWO, None),
    "too few class weights": (TREE, {"class_weight": [{0: 1, 1: 2}]}, TWO, None),
    "monotonic outputs": (TREE, {"monotonic_cst": [1, 0]}, TWO, None),
    "monotonic classes": (FOREST, {"monotonic_cst": [1, 0]}, np.arange(20) % 3, None),
    "too many signs": (TREE, {"monotonic_cst": [1, 0, 1]}, Y, None),
    "signs that are none": (TREE, {"monotonic_cst": [2, 0]}, Y, None),
    "no weight at all": (FOREST, {}, Y, np.zeros(20)),
    "too few weights": (FOREST, {}, Y, np.ones(19)),
    "weights in a matrix": (TREE, {}, Y, np.ones((20, 2))),
    "a weight in an array": (TREE, {}, Y, np.array(0.0)),
}


def error_of(module, name, params, y, weights):
    few = {"n_estimators": 3} if "Forest" in name else {}
    model = getattr(module, name)(**few, **params)
    with pytest.raises((ValueError, TypeError)) as found:
        model.fit(FEW, y, weights)
    return found


@pytest.mark.parametrize("case", REFUSED)
def test_the_same_error(case):
    name, *rest = REFUSED[case]
    home = sklearn.tree if name == TREE else sklearn.ensemble
    theirs, ours = error_of(home, name, *rest), error_of(gpuforest, name, *rest)
    assert ours.type is theirs.type
    assert str(ours.value).startswith(str(theirs.value).rstrip(". "))


def test_a_tree_and_a_forest_say_that_y_is_not_positive():
    for tree in (sklearn.tree.DecisionTreeRegressor, gpuforest.DecisionTreeRegressor):
        with pytest.raises(ValueError, match=r"y is not positive.*Poisson"):
            tree(criterion="poisson").fit([[0, 1, 2]], [0, 0, 0])


@pytest.mark.parametrize("name", ["RandomForestClassifier", "ExtraTreesRegressor"])
def test_warm_start_without_more_trees(name):
    for home in (sklearn.ensemble, gpuforest):
        forest = getattr(home, name)(3, warm_start=True).fit(FEW, Y)
        message = "Warm-start fitting without increasing n_estimators does not fit new trees."
        with pytest.warns(UserWarning, match=message):
            forest.fit(FEW, Y)
        with pytest.raises(ValueError, match=r"2 must be larger or equal to len\(estimators_\)=3"):
            forest.set_params(n_estimators=2).fit(FEW, Y)


def test_the_embedding_has_no_oob_score():
    for home in (sklearn.ensemble, gpuforest):
        with pytest.raises(NotImplementedError, match="OOB score not supported by tree embedding"):
            home.RandomTreesEmbedding()._set_oob_score_and_attributes(FEW, Y)
