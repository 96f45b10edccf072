"""Data and parameters of fits on a GPU, or on what stands in for one."""

import numpy as np
from engine import table


def data(kind, n_rows=120, dtype=np.float32):
    """X with missing values, and y for the estimator `kind`."""
    rng = np.random.default_rng(5)
    X = table(rng, n_rows, list("cfnNd"), dtype)
    y = 3 * (X[:, 0] > 0) + X[:, 1]
    return X, np.round(y).astype(int) if "Classifier" in kind.__name__ else y.astype(float)


def params_of(kind, **more):
    common = {"random_state": 3, "max_features": 2}
    return common | ({"n_estimators": 3} if "Forest" in kind.__name__ else {}) | more
