"""Monotonic predictions: leaves are clipped to the bounds of the splits above them."""

import pickle

import numpy as np
import pytest
from engine import same_forest
from sklearn.datasets import load_diabetes

import gpuforest
from gpuforest import (
    RandomForestClassifier,
    RandomForestRegressor,
)


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
def test_clipped_leaves_stay_with_the_model(tmp_path, kind):
    X, y = load_diabetes(return_X_y=True)
    y = y > 120 if kind is RandomForestClassifier else y
    signs = [0, 0, 1, 1, 0, 0, 0, 0, 0, 0]
    model = kind(5, monotonic_cst=signs, random_state=0).fit(X, y)
    assert model.forest_.leaf_values is not None
    model.save(tmp_path / "model")
    ask = "predict_proba" if kind is RandomForestClassifier else "predict"
    found = getattr(model, ask)(X)
    for other in (gpuforest.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(getattr(other, ask)(X), found)
    mean = sum(getattr(tree, ask)(X) for tree in model.estimators_) / 5
    assert np.array_equal(mean, found)
    X = X.astype(np.float32)
    assert np.array_equal(getattr(model.to_sklearn(), ask)(X), getattr(model, ask)(X))
    model.set_params(warm_start=True, n_estimators=8).fit(load_diabetes().data, y)
    whole = kind(8, monotonic_cst=signs, random_state=0).fit(load_diabetes().data, y)
    assert same_forest(model.forest_, whole.forest_)
    assert np.array_equal(model.forest_.leaf_values, whole.forest_.leaf_values)
