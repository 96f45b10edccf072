"""What does it cost to find the number of trees?  python -m benchmarks.oob

A forest of n_estimators="auto" beside one of the number of trees that it ended with, in turn
in one process, so that both meet the same noise: the ratio of each pair is what counts. The
forests must be equal before their seconds are.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

import gpuforest
from benchmarks import data, real
from benchmarks.record import Log, spread, table

SETS = ["A", "spambase", "california"]
COLUMNS = ["trees", "auto_s", "fixed_s", "ratio", "cpu_ratio"]


def load(name: str, rows: int, folder: Path | None) -> tuple[bool, Any, Any] | None:
    """Whether it is of classes, X and y, of a real set or of a made one of so many rows."""
    if name in data.SETS:
        made = data.make(name, rows, 1)
        return made.is_classes, made.X_train, made.y_train
    found = real.load(name, folder)
    return None if found is None else (name not in real.REGRESSIONS, *found)


def fitted(forest: Any, X: Any, y: Any) -> tuple[Any, dict[str, float]]:
    """The forest, its seconds, and those of all threads together."""
    wall, cpu = time.perf_counter(), time.process_time()
    forest.fit(X, y)
    return forest, {"s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}


def pair(forest: Any, X: Any, y: Any, seed: int) -> dict[str, Any]:
    """Both forests of a seed; of every other seed the fixed one is the first."""
    forest.set_params(random_state=seed)
    auto, auto_took = fitted(clone(forest), X, y)
    fixed, took = fitted(clone(forest).set_params(n_estimators=auto.n_estimators_), X, y)
    if seed % 2:
        auto, auto_took = fitted(clone(forest), X, y)
    assert np.array_equal(auto.forest_.nodes, fixed.forest_.nodes)
    assert np.array_equal(auto.forest_.leaf_sums, fixed.forest_.leaf_sums)
    return {
        "trees": auto.n_estimators_,
        "error": float(auto.oob_curve_.error[-1]),
        **{f"auto_{name}": value for name, value in auto_took.items()},
        **{f"fixed_{name}": value for name, value in took.items()},
        "ratio": auto_took["s"] / took["s"],
        "cpu_ratio": auto_took["cpu_s"] / took["cpu_s"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the real data sets")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--rows", type=int, default=200_000, help="of made sets")
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--depth", type=int)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()

    log, rows = Log("oob"), []
    for name in options.sets:
        loaded = load(name, options.rows, options.data)
        if loaded is None:
            continue
        is_classes, X, y = loaded
        kind = gpuforest.RandomForestClassifier if is_classes else gpuforest.RandomForestRegressor
        more = {"max_depth": options.depth, "n_jobs": options.threads}
        forest = kind("auto", **more)
        clone(forest).set_params(n_estimators=2).fit(X, y)  # compiles, and warms the caches
        about = {"set": name, "rows": len(X), "features": X.shape[1], **more}
        found = [log.add(**about, seed=s, **pair(forest, X, y, s)) for s in range(options.pairs)]
        rows.append([name, *(spread([line[c] for line in found]) for c in COLUMNS)])
        print(f"{name}: done", flush=True)
    print(table(["set", *COLUMNS], rows))


if __name__ == "__main__":
    main()
