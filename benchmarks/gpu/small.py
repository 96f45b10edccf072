"""Small fits through every kernel, for a sanitizer: python -m benchmarks.gpu.small [DEVICE]

Each is compared with the reference. CuPy's pool is off, so that every array is an allocation of its
own, and a sanitizer sees accesses beyond its end.
"""

from __future__ import annotations

import sys
import warnings

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


def main(name: str = "cupy", rows: int = ROWS) -> None:
    warnings.filterwarnings("ignore", "Some inputs do not have OOB scores", UserWarning)
    device = open_device(name)
    if name == "cupy":
        device.cupy.cuda.set_allocator(None)
    for n_classes, columns, parameters in CASES:
        rng = np.random.default_rng(columns)
        X = rng.normal(size=(rows, columns)).astype(np.float32)
        z = X[:, 0] * X[:, 1] + rng.normal(size=rows)
        X[rng.random(X.shape) < 0.1] = np.nan
        kind, y = gpuforest.RandomForestRegressor, np.exp(z)
        if n_classes:
            kind = gpuforest.RandomForestClassifier
            y = np.digitize(z, np.linspace(-2, 2, n_classes - 1))
        for f in parameters.get("categorical_features", ()):
            X[:, f] = np.round(X[:, f] * 3) + 9  # some twenty categories, and missing ones
        weights = rng.integers(0, 3, rows)
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


if __name__ == "__main__":
    main(*sys.argv[1:])
