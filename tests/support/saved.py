"""Small fitted models of the four kinds that most are, to be saved."""

import numpy as np
from sklearn.datasets import load_iris

from gpuforest import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

KINDS = [
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
]


def fitted(kind=RandomForestClassifier, backend="numpy", labels=None, **params):
    X, y = load_iris(return_X_y=True)
    if kind in KINDS[2:]:
        params["n_estimators"] = 4
    model = kind(random_state=0, backend=backend, **params)
    return model.fit(X, y if labels is None else np.asarray(labels)[y]), X
