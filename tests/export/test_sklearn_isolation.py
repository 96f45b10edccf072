"""Isolation forests of ours as scikit-learn's: the same trees, lengths of paths and scores."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn.ensemble
from sklearn.utils.validation import check_is_fitted

from gpuforest import IsolationForest

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 5)).astype(np.float32)
X[:8] *= 6
GAPS = np.where(RNG.random(X.shape) < 0.1, np.float32(np.nan), X)


@pytest.mark.parametrize("rows", [X, GAPS, X[:1], np.zeros((9, 2), np.float32)])
@pytest.mark.parametrize(
    "params", [{}, {"max_features": 2, "bootstrap": True}, {"contamination": 0.03}]
)
def test_scores_are_the_same(rows, params):
    if "max_features" in params and rows.shape[1] < 3:
        params = {"bootstrap": True}
    model = IsolationForest(n_estimators=20, random_state=2**63, backend="numpy", **params)
    model.fit(rows)
    theirs = model.to_sklearn()
    assert type(theirs) is sklearn.ensemble.IsolationForest
    check_is_fitted(theirs)
    for one in (theirs, pickle.loads(pickle.dumps(theirs))):
        # sums of twenty lengths that are put together otherwise
        assert np.allclose(one.score_samples(rows), model.score_samples(rows), rtol=1e-14, atol=0)
        assert np.allclose(one.decision_function(rows), model.decision_function(rows), atol=1e-14)
        clear = np.abs(model.decision_function(rows)) > 1e-14
        assert np.array_equal(one.predict(rows)[clear], model.predict(rows)[clear])
    assert theirs.max_samples_ == model.max_samples_
    assert [t.tree_.node_count for t in theirs.estimators_] == [
        t.tree_.node_count for t in model.estimators_
    ]
    with pytest.raises(ValueError, match="they are not kept in files"):
        theirs.estimators_samples_  # noqa: B018


def test_names_come_along():
    frame = pd.DataFrame(X, columns=list("abcde"))
    theirs = IsolationForest(n_estimators=2, backend="numpy").fit(frame).to_sklearn()
    assert theirs.feature_names_in_.tolist() == list("abcde")
    assert theirs.fit(frame).n_features_in_ == 5  # it is an estimator like any other


def test_what_is_refused():
    frame = pd.DataFrame({"a": pd.Categorical(["x", "y"] * 30), "b": np.arange(60.0)})
    with pytest.raises(ValueError, match="no categorical features: train with numbers"):
        IsolationForest(n_estimators=2, backend="numpy").fit(frame).to_sklearn()
    with pytest.raises(ValueError, match="not fitted"):
        IsolationForest().to_sklearn()
