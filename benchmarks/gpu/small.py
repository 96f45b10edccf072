"""Small fits through every kernel, for a sanitizer: python -m benchmarks.gpu.small [DEVICE]

Each is compared with the reference. CuPy's pool is off, so that every array is an allocation of its
own, and a sanitizer sees accesses beyond its end.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

import gpuforest
from benchmarks.gpu.device import open_device
from benchmarks.gpu.run import same_forest

ROWS = 1500

CASES = [  # (classes; 0: regression, columns, parameters)
    (2, 6, {}),
    (7, 40, {"criterion": "entropy", "min_samples_leaf": 3}),
    (60, 6, {"bootstrap": False, "max_depth": 6}),
    (3, 6, {"max_bins": 1000, "max_depth": 4}),
    (2, 300, {"max_depth": 3}),
    (0, 6, {"min_samples_leaf": 2}),
    (0, 6, {"criterion": "poisson", "max_depth": 8}),
    (3, 6, {"categorical_features": [0, 1]}),
    (0, 6, {"categorical_features": [0, 1], "categorical_split": "multiway", "max_depth": 4}),
]
BOOSTED = [  # (classes; 0: regression, columns, parameters)
    (0, 6, {"loss": "poisson", "subsample": 0.5}),
    (0, 40, {"loss": "huber", "monotonic_cst": [1] * 40}),
    (3, 6, {"categorical_features": [0, 1], "max_features": 0.5}),
    (2, 300, {"max_leaf_nodes": None, "interaction_cst": "no_interactions"}),
]


def made(rows: int, columns: int, n_classes: int, categories: list[int]) -> tuple[Any, ...]:
    """X with missing values, y and weights."""
    rng = np.random.default_rng(columns)
    X = rng.normal(size=(rows, columns)).astype(np.float32)
    z = X[:, 0] * X[:, 1] + rng.normal(size=rows)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.digitize(z, np.linspace(-2, 2, n_classes - 1)) if n_classes else np.exp(z)
    for f in categories:
        X[:, f] = np.round(X[:, f] * 3) + 9  # some twenty categories, and missing ones
    return X, y, rng.integers(0, 3, rows)


def main(name: str = "cupy", rows: int = ROWS) -> None:
    warnings.filterwarnings("ignore", "Some inputs do not have OOB scores", UserWarning)
    device = open_device(name)
    if name == "cupy":
        device.cupy.cuda.set_allocator(None)
    for n_classes, columns, parameters in CASES:
        kind = gpuforest.RandomForestRegressor
        if n_classes:
            kind = gpuforest.RandomForestClassifier
        categories = parameters.get("categorical_features", [])
        X, y, weights = made(rows, columns, n_classes, categories)
        parameters = {"n_estimators": 2, "random_state": 1, "oob_score": True, **parameters}
        parameters["oob_score"] = parameters.get("bootstrap", True)
        found, expected = (
            kind(**parameters, backend=backend).fit(X, y, weights) for backend in (name, "numpy")
        )
        assert same_forest(found, expected), (n_classes, columns, parameters)
        assert np.array_equal(found.predict(X), expected.predict(X))
        assert np.array_equal(found.apply(X), expected.apply(X))
        there = kind(**parameters, backend=name).fit(device.put(X), device.put(y), weights)
        assert same_forest(there, expected)
        assert np.array_equal(device.get(there.predict(device.put(X))), expected.predict(X))
    print(f"{len(CASES)} small forests are the reference's")
    for n_classes, columns, parameters in BOOSTED:
        kind = getattr(
            gpuforest, f"HistGradientBoosting{'Classifier' if n_classes else 'Regressor'}"
        )
        categories = parameters.get("categorical_features", [])
        X, y, weights = made(rows, columns, n_classes, categories)
        found, expected = (
            kind(max_iter=2, random_state=1, backend=backend, **parameters).fit(*data, weights)
            for backend, data in ((name, (device.put(X), device.put(y))), ("numpy", (X, y)))
        )
        assert found.backend_ == name
        assert same_forest(found, expected), (n_classes, columns, parameters)
        assert np.array_equal(found.forest_.leaf_values, expected.forest_.leaf_values)
    print(f"{len(BOOSTED)} small boosted models are, too")


if __name__ == "__main__":
    main(*sys.argv[1:])
