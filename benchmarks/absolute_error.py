"""Trees by absolute error beside scikit-learn's: python -m benchmarks.absolute_error

20,000 rows of ten normal features, depth 8, two threads. The libraries take turns, and the least
time of several fits counts.
"""

from __future__ import annotations

import argparse
from time import perf_counter
from typing import Any

import numpy as np
import sklearn.ensemble
import sklearn.tree

import gpuforest
from benchmarks.record import Log, table


def data(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 10))
    return X, 3 * X[:, 0] + np.sin(3 * X[:, 1]) + rng.normal(size=n_rows)


def seconds(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    begin = perf_counter()
    model.fit(X, y)
    return perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()

    X, y = data(options.rows, 1)
    X_test, y_test = data(options.rows, 2)
    params = {"criterion": "absolute_error", "max_depth": 8, "random_state": 0}
    many = {**params, "n_estimators": 10, "max_features": 1.0, "n_jobs": 2}
    works: dict[str, tuple[Any, Any]] = {
        "one tree": (
            gpuforest.DecisionTreeRegressor(**params),
            sklearn.tree.DecisionTreeRegressor(**params),
        ),
        "ten trees": (
            gpuforest.RandomForestRegressor(**many),
            sklearn.ensemble.RandomForestRegressor(**many),
        ),
    }
    log, rows = Log("absolute_error"), []
    for name, models in works.items():
        models[0].fit(X[:100], y[:100])  # kernels are compiled
        times = [[seconds(model, X, y) for model in models] for _ in range(options.repeats)]
        ours, theirs = np.min(times, axis=0).tolist()
        errors = [float(np.abs(m.predict(X_test) - y_test).mean()) for m in models]
        log.add(work=name, rows=options.rows, seconds=ours, sklearn_seconds=theirs,
                error=errors[0], sklearn_error=errors[1])  # fmt: skip
        rows.append([name, f"{ours:.2f}", f"{theirs:.2f}", *(f"{e:.4f}" for e in errors)])
    print(table(["work", "s", "scikit-learn, s", "mean absolute error", "scikit-learn's"], rows))


if __name__ == "__main__":
    main()
