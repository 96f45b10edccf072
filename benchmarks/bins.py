"""What do more bins give and cost?  python -m benchmarks.bins

Forests with 255, 1,023 and 65,535 bins and with max_bins="auto" grow on the same rows and seeds, in
turn in one process: differences of scores and ratios of CPU time are those of pairs.

The sets are those of real.py; A1000, C20000 and so on (so many rows of the sets of data.py, with
about as many values in each column); and diamonds (53,940 rows, numeric columns of 127 to 554
values), if the package plotnine, which contains it, is installed.
"""

from __future__ import annotations

import argparse
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

import gpuforest
from benchmarks import data, real
from benchmarks.record import Log, scores, table

BINS: tuple[int | str, ...] = (255, 1023, 65_535, "auto")
SETS = ["diamonds", "spambase", "california", "bike", "cancer", "diabetes", "covtype"]
SETS += [f"{name}{rows}" for name in "AC" for rows in (1_000, 5_000, 20_000, 50_000)]
MOST_ROWS = 60_000  # of real sets
TEST_ROWS = 20_000  # of made sets


def diamonds() -> tuple[np.ndarray, np.ndarray] | None:
    """Prices and measurements of diamonds, without their grades; None if they are not installed."""
    found = find_spec("plotnine")
    if found is None or found.origin is None:
        print("diamonds: skipped, it comes with the package plotnine")
        return None
    frame = pd.read_csv(Path(found.origin).parent / "data" / "diamonds.csv")
    y = frame.pop("price").to_numpy(np.float64)
    return frame.select_dtypes("number").to_numpy(np.float32), y


def load(name: str, seed: int, folder: Path | None) -> list[np.ndarray] | None:
    """X_train, X_test, y_train and y_test."""
    if name[1:].isdigit():
        made = data.make(name[0], int(name[1:]), TEST_ROWS, seed)
        return [made.X_train, made.X_test, made.y_train, made.y_test]
    found = diamonds() if name == "diamonds" else real.load(name, folder)
    if found is None:
        return None
    some = np.random.default_rng(seed).permutation(len(found[1]))[:MOST_ROWS]
    parts: list[np.ndarray] = train_test_split(*(a[some] for a in found), random_state=seed)
    return parts


def is_regression(name: str) -> bool:
    return name in (*real.REGRESSIONS, "diamonds") or name.startswith("C")


def measured(name: str, bins: int | str, parts: list[np.ndarray], seed: int, trees: int) -> Any:
    """Scores and CPU seconds of a forest, and the most bins of a feature."""
    X_train, X_test, y_train, y_test = parts
    regression = is_regression(name)
    kind = gpuforest.RandomForestRegressor if regression else gpuforest.RandomForestClassifier
    features = 1 / 3 if regression else "sqrt"
    model = kind(trees, max_bins=bins, max_features=features, random_state=seed)
    began = time.process_time()
    model.fit(X_train, y_train)
    seconds = time.process_time() - began
    most = int(model.forest_.edges.n_bins.max())
    return {**scores(model, X_test, y_test), "fit_cpu_seconds": seconds, "most_bins": most}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the real data sets")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--trees", type=int, default=50)
    options = parser.parse_args()

    log, rows = Log("bins"), []
    for name in options.sets:
        runs: dict[int | str, list[dict[str, float]]] = {bins: [] for bins in BINS}
        for seed in range(1, options.seeds + 1):
            parts = load(name, seed, options.data)
            if parts is None:
                break
            if seed == 1:  # compiles, and warms the caches
                for bins in (255, 65_535):
                    measured(name, bins, parts, 0, 2)
            for bins in BINS:
                found = measured(name, bins, parts, seed, options.trees)
                runs[bins].append(found)
                log.add(set=name, bins=bins, seed=seed, rows=len(parts[0]), **found)
        if runs[255]:
            rows += table_rows(name, runs)
            print(f"{name}: done", flush=True)
    more = [f"{bins}: difference" for bins in BINS[1:]] + [f"{bins}: CPU" for bins in BINS[1:]]
    print(table(["set", "score", "255 bins", "auto's bins", *more], rows))


def table_rows(name: str, runs: dict[int | str, list[dict[str, float]]]) -> list[list[str]]:
    """A line for each score: its mean at 255 bins, and for more bins the mean difference with its
    standard error, and the median ratio of CPU time."""

    def of(bins: int | str, key: str) -> np.ndarray:
        return np.array([run[key] for run in runs[bins]])

    rows, n = [], len(runs[255])
    for score in ("accuracy", "log_loss", "r2"):
        if score not in runs[255][0]:
            continue
        row = [name, score, f"{of(255, score).mean():.4f}", f"{of('auto', 'most_bins').max():.0f}"]
        for bins in BINS[1:]:
            change = of(bins, score) - of(255, score)
            error = change.std(ddof=1) / np.sqrt(n) if n > 1 else 0.0
            row.append(f"{change.mean():+.4f} ± {error:.4f}")
        seconds = of(255, "fit_cpu_seconds")
        row += [f"{np.median(of(b, 'fit_cpu_seconds') / seconds):.2f}" for b in BINS[1:]]
        rows.append(row)
    return rows


if __name__ == "__main__":
    main()
