"""Gradient boosting of ours as scikit-learn's, and back: the same trees and predictions."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn.ensemble
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.utils.validation import check_is_fitted

import gpuforest as gf
from gpuforest import HistGradientBoostingClassifier, HistGradientBoostingRegressor, from_sklearn

rng = np.random.default_rng(0)


def holes(X):
    return np.where(rng.random(X.shape) < 0.1, np.nan, X)


CANCER, IRIS, DIABETES = (
    (holes(X), y)
    for X, y in (load(return_X_y=True) for load in (load_breast_cancer, load_iris, load_diabetes))
)
CASES = [
    ("Classifier", CANCER, {}),
    ("Classifier", IRIS, {"early_stopping": True, "max_features": 0.5}),
    ("Regressor", DIABETES, {}),
    ("Regressor", DIABETES, {"loss": "poisson", "max_leaf_nodes": None}),
    ("Regressor", DIABETES, {"loss": "gamma", "max_depth": 2}),
    ("Regressor", DIABETES, {"loss": "quantile", "quantile": 0.8}),
    ("Regressor", DIABETES, {"loss": "absolute_error", "l2_regularization": 1.0}),
]
cases = pytest.mark.parametrize(("name", "data", "options"), CASES)


def assert_same(model, other, X):
    """Raw predictions are equal; what follows from them is, but for rounded exponentials."""
    if hasattr(model, "classes_"):
        assert np.array_equal(model.decision_function(X), other.decision_function(X))
        assert np.array_equal(model.predict(X), other.predict(X))
        assert np.allclose(model.predict_proba(X), other.predict_proba(X), rtol=1e-12, atol=0)
        stages = zip(
            model.staged_decision_function(X), other.staged_decision_function(X), strict=True
        )
    else:
        rounded = 1e-12 if model.loss in ("poisson", "gamma") else 0.0
        assert np.allclose(model.predict(X), other.predict(X), rtol=rounded, atol=0)
        stages = zip(model.staged_predict(X), other.staged_predict(X), strict=True)
    assert all(np.allclose(a, b, rtol=1e-12, atol=0) for a, b in stages)
    assert model.n_iter_ == other.n_iter_
    assert np.array_equal(model.train_score_, other.train_score_)
    assert np.array_equal(model.validation_score_, other.validation_score_)


@cases
def test_ours_as_theirs(name, data, options):
    X, y = data
    y = np.array(["x", "y", "z"])[y] if name == "Classifier" else y
    kind = getattr(gf, "HistGradientBoosting" + name)
    model = kind(max_iter=12, random_state=2**40, subsample=0.9, **options).fit(X, y)
    theirs = model.to_sklearn()
    assert type(theirs) is getattr(sklearn.ensemble, "HistGradientBoosting" + name)
    check_is_fitted(theirs)
    far = np.concatenate([X, holes(X * rng.normal(size=X.shape))])
    for one in (theirs, pickle.loads(pickle.dumps(theirs))):
        assert_same(model, one, far)
    assert_same(model, from_sklearn(theirs), far)
    nodes = theirs._predictors[0][0].nodes
    assert nodes["count"][0] == model.forest_.node_sums(0, 1)[0, 0]
    assert (nodes["gain"][nodes["is_leaf"] == 0] > 0).all()
    assert nodes["depth"].max() == theirs._predictors[0][0].get_max_depth() > 0
    theirs.fit(X, y)  # its parameters are such as it takes


@cases
def test_theirs_as_ours(name, data, options, tmp_path, backend):
    X, y = data
    y = np.array(["x", "y", "z"])[y] if name == "Classifier" else y
    kind = getattr(sklearn.ensemble, "HistGradientBoosting" + name)
    theirs = kind(max_iter=9, random_state=0, **options).fit(X, y)
    model = from_sklearn(theirs).set_params(backend=backend)
    assert type(model) is getattr(gf, "HistGradientBoosting" + name)
    far = np.concatenate([X, holes(X * rng.normal(size=X.shape))])
    assert_same(model, theirs, far)
    assert_same(model.to_sklearn(), theirs, far)
    assert model.get_params()["max_iter"] == 9
    model.save(tmp_path / "model")
    assert_same(gf.load(tmp_path / "model"), theirs, far)
    assert np.isclose(model.feature_importances_.sum(), 1)
    model.fit(X[::3], y[::3])  # its parameters are such as it takes


def test_importances_are_those_of_the_gains_there():
    X, y = DIABETES
    theirs = sklearn.ensemble.HistGradientBoostingRegressor(max_iter=5).fit(X, y)
    total = np.zeros(X.shape[1])
    for (tree,) in theirs._predictors:
        inner = tree.nodes[tree.nodes["is_leaf"] == 0]
        np.add.at(total, inner["feature_idx"], inner["gain"])
    found = from_sklearn(theirs).feature_importances_
    assert np.allclose(found, total / total.sum(), rtol=1e-4)


def test_a_loss_that_is_not_there_and_names():
    X, y = pd.DataFrame(DIABETES[0]).add_prefix("x"), DIABETES[1]
    model = HistGradientBoostingRegressor("huber", quantile=0.7, max_iter=4).fit(X, y)
    theirs = model.to_sklearn()
    assert theirs.loss == "squared_error"
    for one in (theirs, from_sklearn(theirs)):
        assert one.feature_names_in_.tolist() == list(X.columns)
        assert np.array_equal(one.predict(X), model.predict(X))


def test_what_is_refused():
    X = pd.DataFrame({"a": pd.Categorical(["x", "y"] * 30), "b": np.arange(60.0)})
    y = np.arange(60) % 2
    for model in (
        HistGradientBoostingClassifier(max_iter=2).fit(X, y).to_sklearn,
        lambda: from_sklearn(sklearn.ensemble.HistGradientBoostingClassifier(max_iter=2).fit(X, y)),
    ):
        with pytest.raises(ValueError, match="models with categorical features are not converted"):
            model()
    infinite = np.where(np.arange(60) < 30, -np.inf, 1.0)[:, None]
    theirs = sklearn.ensemble.HistGradientBoostingRegressor(max_iter=2).fit(
        infinite, infinite[:, 0] > 0
    )
    with pytest.raises(ValueError, match="the model tells -inf from numbers"):
        from_sklearn(theirs)
