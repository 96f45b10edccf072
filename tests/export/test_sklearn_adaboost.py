"""AdaBoost of ours as scikit-learn's: the same trees, weights and predictions."""

import pickle

import numpy as np
import pytest
import sklearn.ensemble
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from gpuforest import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
)

IRIS, DIABETES = load_iris(return_X_y=True), load_diabetes(return_X_y=True)


@pytest.mark.parametrize(
    "model",
    [
        AdaBoostClassifier(n_estimators=6, random_state=2**63),
        AdaBoostClassifier(DecisionTreeClassifier(criterion="misclassification", max_depth=2)),
        AdaBoostRegressor(n_estimators=6, loss="square", random_state=0),
        AdaBoostRegressor(DecisionTreeRegressor(criterion="absolute_error", max_depth=2)),
    ],
)
def test_predictions_are_the_same(model):
    X, y = IRIS if isinstance(model, AdaBoostClassifier) else DIABETES
    X = X.astype(np.float32)
    theirs = model.set_params(backend="numpy").fit(X, y).to_sklearn()
    assert type(theirs) is getattr(sklearn.ensemble, type(model).__name__)
    check_is_fitted(theirs)
    for one in (theirs, pickle.loads(pickle.dumps(theirs))):
        assert np.allclose(one.predict(X), model.predict(X), rtol=1e-12)
    assert np.array_equal(theirs.estimator_errors_, model.estimator_errors_)
    if model.criterion_ != "misclassification":  # which scikit-learn does not have
        assert np.allclose(theirs.feature_importances_, model.feature_importances_)
    stages = zip(theirs.staged_predict(X), model.staged_predict(X), strict=True)
    assert all(np.allclose(one, other, rtol=1e-12) for one, other in stages)
    theirs.fit(X, y)  # its parameters are such as it takes


def test_other_estimators_are_there_already():
    model = AdaBoostClassifier(LogisticRegression(), n_estimators=2).fit(*IRIS)
    with pytest.raises(ValueError, match="an ensemble of LogisticRegression was fitted by scikit"):
        model.to_sklearn()
