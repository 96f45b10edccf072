"""Partial dependence beside scikit-learn's forest.  python -m benchmarks.dependence

`sklearn.inspection.partial_dependence` of one feature on a grid of 50, by recursion and by brute
force, and the curves of single rows (kind="individual"), of RandomForestRegressor with 100 trees
and a third of the features at a split, on the first `--rows` of California housing (missing values
replaced by the median); both libraries use two threads and take turns. The first recursion shows
the trees to scikit-learn, which later ones find done, so both are timed.

The memory of single curves is the peak of what Python and NumPy allocate (tracemalloc), beside
what the table of all rows at all points of the grid would take.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor as Theirs
from sklearn.inspection import partial_dependence

from benchmarks import real
from benchmarks.record import Log, table
from gpuforest import RandomForestRegressor

Array = np.ndarray

GRID = 50
WAYS: dict[str, dict[str, Any]] = {
    "recursion": {"method": "recursion"},
    "brute": {"method": "brute", "kind": "average"},
    "individual": {"method": "brute", "kind": "individual"},
}


def seconds(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def peak_mb(work: Callable[[], Any]) -> float:
    """The most that was allocated at a time, in MB."""
    tracemalloc.start()
    work()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found / 1e6


def curves(model: Any, X: Array, way: str) -> Any:
    return partial_dependence(model, X, [0], grid_resolution=GRID, **WAYS[way])


def measured(models: dict[str, Any], X: Array, runs: int) -> list[dict[str, Any]]:
    """Times of each model and way: the first, and the least of the others."""
    rows = []
    for way in WAYS:
        times: dict[str, list[float]] = {name: [] for name in models}
        for _ in range(runs):
            for name, model in models.items():
                times[name].append(seconds(lambda model=model: curves(model, X, way)))  # noqa: B023
        for name, model in models.items():
            row = {"model": name, "way": way, "rows": len(X), "first_s": times[name][0]}
            row["later_s"] = min(times[name][1:])
            if way == "individual":
                row["peak_mb"] = peak_mb(lambda model=model: curves(model, X, way))  # noqa: B023
                row["all_at_once_mb"] = X.nbytes * GRID / 1e6
            rows.append(row)
    return rows


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=real.BESIDE)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--results", type=Path, help="a file of JSON lines to append to")
    options = parser.parse_args(arguments)
    if (found := real.load("california", options.data)) is None:
        return
    X, y = (each[: options.rows] for each in found)
    X = np.where(np.isnan(X), np.nanmedian(X, axis=0), X).astype(np.float32)
    given: dict[str, Any] = {"max_features": 1 / 3, "random_state": 0, "n_jobs": 2}
    models = {
        "gpuforest": RandomForestRegressor(options.trees, **given).fit(X, y),
        "scikit-learn": Theirs(options.trees, **given).fit(X, y),
    }
    log, rows = Log("dependence", options.results), []
    for row in measured(models, X, options.runs):
        log.add(trees=options.trees, grid=GRID, **row)
        memory = f"{row['peak_mb']:.0f} of {row['all_at_once_mb']:.0f}" if "peak_mb" in row else ""
        times = [f"{row[name]:.2f}" for name in ("first_s", "later_s")]
        rows.append([f"{row['way']}, {row['model']}", *times, memory])
    print(table(["", "first, s", "later, s", "peak, MB"], rows))


if __name__ == "__main__":
    main()
