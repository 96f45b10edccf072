"""When is a forest better than boosting?  python -m benchmarks.forest_or_boosting

A forest of 100 trees and boosting of up to 100 rounds, all else the default, on the same splits of
real data, a quarter for testing: trained on all other rows; on 300 of them; and on rows of which a
fifth has the target of another row. The difference is boosting less forest, with its standard
error over the splits.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

import gpuforest
from benchmarks import real
from benchmarks.record import Log, scores, table

SETS = ["spambase", "letter", "digits", "cancer", "california", "bike", "diabetes"]
FEW, WRONG = 300, 0.2
PARTS = ("all rows", "300 rows", "a fifth wrong")


def training(part: str, X: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The training rows of a part."""
    rng = np.random.default_rng(seed)
    if part == "300 rows":
        some = rng.permutation(len(y))[:FEW]
        return X[some], y[some]
    if part == "a fifth wrong":
        moved = rng.permutation(len(y))[: int(WRONG * len(y))]
        y = y.copy()
        y[moved] = y[rng.permutation(len(y))[: len(moved)]]
    return X, y


def models(task: str, seed: int, threads: int) -> dict[str, Any]:
    """A forest and a boosted model for a task."""
    common = {"random_state": seed, "n_jobs": threads}
    return {
        "forest": getattr(gpuforest, f"RandomForest{task}")(100, **common),
        "boosting": getattr(gpuforest, f"HistGradientBoosting{task}")(**common),
    }


def difference(results: dict[str, list[dict[str, float]]], key: str) -> list[str]:
    """Both means of a score, and their difference."""
    both = [np.array([each[key] for each in found]) for found in results.values()]
    each = both[1] - both[0]
    error = each.std(ddof=1) / np.sqrt(len(each)) if len(each) > 1 else np.nan
    return [*(f"{own.mean():.4f}" for own in both), f"{each.mean():+.4f} ± {error:.4f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the real data sets")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    log, rows = Log("forest_or_boosting"), []
    for name in options.sets:
        loaded = real.load(name, options.data)
        if loaded is None:
            continue
        task = "Regressor" if name in real.REGRESSIONS else "Classifier"
        for model in models(task, 0, options.threads).values():  # a first fit takes longer
            model.fit(loaded[0][:500], loaded[1][:500])
        for part in PARTS:
            results: dict[str, list[dict[str, float]]] = {"forest": [], "boosting": []}
            for seed in range(options.seeds):
                X, X_test, y, y_test = train_test_split(*loaded, test_size=0.25, random_state=seed)
                X, y = training(part, X, y, seed)
                known = np.isin(y_test, y) | (task == "Regressor")
                for kind, model in models(task, seed, options.threads).items():
                    start = perf_counter()
                    model.fit(X, y)
                    found = {"seconds": perf_counter() - start}
                    found |= scores(model, X_test[known], y_test[known])
                    results[kind].append(found)
            key = "r2" if task == "Regressor" else "accuracy"
            second = ["", "", ""] if key == "r2" else difference(results, "log_loss")
            times = [f"{np.median([e['seconds'] for e in own]):.2f}" for own in results.values()]
            rows.append([f"{name}, {part}", *difference(results, key), *second, *times])
            for kind, measured in results.items():
                values = {k: [each[k] for each in measured] for k in measured[0]}
                log.add(set=name, part=part, model=kind, rows=len(y), **values)
        print(f"{name}: done", flush=True)
    header = ["work", "forest", "boosting", "difference", "log loss: forest", "boosting"]
    print(f"\n{table([*header, 'difference', 'forest: s', 'boosting: s'], rows)}")


if __name__ == "__main__":
    main()
