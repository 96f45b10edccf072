"""Errors and warnings have scikit-learn's type and words where the condition is the same."""

import numpy as np
import pytest
import scipy.sparse
import sklearn.ensemble
import sklearn.tree

import gpuforest

X = np.random.default_rng(0).random((20, 2))
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
        model.fit(X, y, weights)
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
        forest = getattr(home, name)(3, warm_start=True).fit(X, Y)
        message = "Warm-start fitting without increasing n_estimators does not fit new trees."
        with pytest.warns(UserWarning, match=message):
            forest.fit(X, Y)
        with pytest.raises(ValueError, match=r"2 must be larger or equal to len\(estimators_\)=3"):
            forest.set_params(n_estimators=2).fit(X, Y)


def test_the_embedding_has_no_oob_score():
    for home in (sklearn.ensemble, gpuforest):
        with pytest.raises(NotImplementedError, match="OOB score not supported by tree embedding"):
            home.RandomTreesEmbedding()._set_oob_score_and_attributes(X, Y)
