"""One target that lies far out, beside scikit-learn's forests.  python -m benchmarks.outliers

Rows of five normal features, of which the last is the target but for noise of a tenth, and one row
whose target is huge. The error is the median over other rows, so it shows whether the forest has
still learned from all but that one. With 65,535 bins no row shares a bin with it.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor as Rival

import gpuforest
from benchmarks.record import RESULTS, Log, table

FAR = (0.0, 1e3, 1e6, 1e9, 1e12, 1e15, 1e18)  # 0: no such target
NOISE = 0.1


def errors(far: float, n: int, n_trees: int, seed: int, bins: tuple[Any, ...]) -> dict[str, float]:
    """The median absolute error of each library."""
    rng = np.random.default_rng(seed)
    X, other = rng.normal(size=(2, n, 5))
    y = X[:, 4] + NOISE * rng.normal(size=n)
    y[0] = far or y[0]
    params = {"n_estimators": n_trees, "max_features": 1.0, "random_state": seed}
    models = {
        f"gpuforest, max_bins={b}": gpuforest.RandomForestRegressor(max_bins=b, **params)
        for b in bins
    }
    models["scikit-learn"] = Rival(**params)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "y has the value", UserWarning)
        return {
            name: float(np.median(np.abs(model.fit(X, y).predict(other) - other[:, 4])))
            for name, model in models.items()
        }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--results", type=Path, default=RESULTS / "outliers.jsonl")
    given = parser.parse_args(arguments)
    log, rows, names = Log("outliers", given.results), [], ["target"]
    for far in FAR:
        each = [
            errors(far, given.rows, given.trees, s, ("auto", 65_535)) for s in range(given.seeds)
        ]
        names = ["target", *each[0]]
        cells = []
        for name in each[0]:
            found = [e[name] for e in each]
            mean, error = np.mean(found), np.std(found) / np.sqrt(max(len(found) - 1, 1))
            log.add(far=far, rows=given.rows, model=name, seeds=given.seeds, median_error=mean,
                    error=error)  # fmt: skip
            cells.append(f"{mean:.4f} ± {error:.4f}")
        rows.append([f"{far:g}" if far else "none", *cells])
        print(*rows[-1], flush=True)
    print(table(names, rows))


if __name__ == "__main__":
    main()
