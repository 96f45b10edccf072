"""AdaBoost: files, copies, single trees, parameters, bad input, other estimators."""

import pickle
import warnings

import numpy as np
import pytest
import sklearn.ensemble
import sklearn.tree
from engine import same_forest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression, LogisticRegression

import gpuforest
from gpuforest import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
)

IRIS, DIABETES = load_iris(return_X_y=True), load_diabetes(return_X_y=True)
CANCER, WINE = load_breast_cancer(return_X_y=True), load_wine(return_X_y=True)
LOSSES = ["linear", "square", "exponential"]


def classes(backend="numpy", **params):
    return AdaBoostClassifier(**{"n_estimators": 8, "random_state": 0, **params}, backend=backend)


def numbers(backend="numpy", **params):
    return AdaBoostRegressor(**{"n_estimators": 8, "random_state": 0, **params}, backend=backend)


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (classes(), (IRIS[0], np.array(["a", "b", "c"])[IRIS[1]])),
        (classes(estimator=DecisionTreeClassifier(max_depth=3, monotonic_cst=[1] * 30)), CANCER),
        (classes(estimator=DecisionTreeClassifier(ccp_alpha=0.01, max_leaf_nodes=3)), CANCER),
        (numbers(), DIABETES),
        (
            numbers(estimator=DecisionTreeRegressor(criterion="absolute_error")),
            (DIABETES[0][:150], DIABETES[1][:150]),
        ),
    ],
)
def test_files_and_copies(model, data, tmp_path):
    X, y = data
    model.fit(X, y).save(tmp_path / "model")
    for same in (gpuforest.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert type(same) is type(model)
        assert np.array_equal(same.predict(X), model.predict(X))
        assert np.array_equal(same.estimator_weights_, model.estimator_weights_)
        assert np.array_equal(same.estimator_errors_, model.estimator_errors_)
        assert np.array_equal(same.feature_importances_, model.feature_importances_)
        assert len(same.estimators_) == len(model)
        again = clone(same).set_params(backend="numpy").fit(X, y)
        assert same_forest(again.forest_, model.forest_)


def test_each_tree_by_itself():
    X, y = IRIS
    model = classes(estimator=DecisionTreeClassifier(max_depth=2)).fit(X, y)
    assert len({tree.random_state for tree in model}) == 8
    for tree in model:
        assert tree.max_depth == 2
        assert np.allclose(tree.predict_proba(X).sum(axis=1), 1)
        assert tree.forest_.tree_weights is None
    assert "class: 0" in gpuforest.export_text(model, 1)
    assert model.apply(X).shape == (150, 8)
    weighted = np.average([t.feature_importances_ for t in model], 0, model.estimator_weights_)
    assert np.allclose(model.feature_importances_, weighted)
    assert permutation_importance(model, X, y, n_repeats=2).importances.shape == (4, 2)


@pytest.mark.parametrize("kind", [AdaBoostClassifier, AdaBoostRegressor])
def test_parameters_of_the_tree_and_of_the_ensemble(kind):
    X, y = IRIS
    tree = kind().estimator_.set_params(max_bins=7, backend="numpy")
    model = kind(tree, n_estimators=2).fit(X, y)
    assert model.backend_ == "numpy"
    assert model.forest_.edges.n_bins.max() <= 7
    model = kind(tree, n_estimators=2, max_bins=5).fit(X, y)
    assert model.forest_.edges.n_bins.max() <= 5
    assert kind().estimator_.max_depth == (1 if kind is AdaBoostClassifier else 3)


def test_bad_input():
    X, y = IRIS
    many = np.stack([y, y], axis=1)
    for model in (classes(), numbers()):
        with pytest.raises(ValueError, match=r"y should be a 1d array, got .* \(150, 2\) instead"):
            model.fit(X, many)
        for rate in (0, -1.0, np.inf, "fast"):
            with pytest.raises(ValueError, match="The 'learning_rate' parameter of AdaBoost"):
                clone(model).set_params(learning_rate=rate).fit(X, y)
        for rate in (1e-9, 1e9):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                extreme = clone(model).set_params(learning_rate=rate).fit(X, y)
            assert np.isfinite(extreme.predict(X)).all()
        with pytest.raises(NotFittedError):
            next(clone(model).staged_predict(X))
    with pytest.raises(ValueError, match=r"estimator must be a gpuforest\.DecisionTreeClassifier"):
        classes(estimator=DecisionTreeRegressor()).fit(X, y)
    with pytest.raises(ValueError, match="for a tree fitted by itself: give the trees of an ens"):
        classes(estimator=DecisionTreeClassifier(ccp_alpha="cv")).fit(X, y)
    with pytest.raises(ValueError, match="'loss' parameter of AdaBoostRegressor must be"):
        numbers(loss="absolute").fit(X, y)


def test_other_estimators_are_boosted_by_scikit_learn():
    for kind, estimator, (X, y), methods in (
        ("AdaBoostClassifier", LogisticRegression(), CANCER, ("decision_function",)),
        ("AdaBoostRegressor", LinearRegression(), DIABETES, ("predict",)),
    ):
        X = X / np.abs(X).max(axis=0)
        ours, theirs = (
            getattr(package, kind)(estimator, n_estimators=3, random_state=0).fit(X, y)
            for package in (gpuforest, sklearn.ensemble)
        )
        for method in (*methods, "predict"):
            assert np.array_equal(getattr(ours, method)(X), getattr(theirs, method)(X))
            stages = zip(
                getattr(ours, f"staged_{method}")(X),
                getattr(theirs, f"staged_{method}")(X),
                strict=True,
            )
            assert all(np.array_equal(*pair) for pair in stages)
        assert np.array_equal(ours.estimator_errors_, theirs.estimator_errors_)
        assert len(ours) == len(theirs) > 1
        assert len(pickle.loads(pickle.dumps(ours)).estimators_) == len(ours)
        assert not hasattr(ours, "feature_importances_")
        with pytest.raises(ValueError, match="is no forest, and not saved"):
            ours.save("never")
        ours.set_params(estimator=None, backend="numpy").fit(X, y)
        assert ours.forest_.n_trees == len(ours)
    tree = sklearn.tree.DecisionTreeClassifier(max_depth=1)
    assert AdaBoostClassifier(tree, n_estimators=4).fit(*IRIS).feature_importances_.sum() > 0.99
