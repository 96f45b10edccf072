"""Quantiles and intervals beside the quantile-forest package.  python -m benchmarks.quantiles

California housing and bike sharing, three quarters for training, missing values replaced by the
median (the package takes none), 100 trees with a third of the features at a split.

- Pinball losses at 0.05, 0.5 and 0.95, and CPU time of a prediction of these three quantiles on
  one thread, of both libraries on the first `--rivals` splits. All draws of leaves are kept.
- Coverage and mean width of the range from 0.05 to 0.95 of the quantile forests, and of
  `predict_interval(coverage=0.9)` of RandomForestRegressor, on all splits.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from benchmarks import real
from benchmarks.record import Log, table
from gpuforest import RandomForestQuantileRegressor, RandomForestRegressor

Array = np.ndarray
LEVELS = [0.05, 0.5, 0.95]
UNITS = {"california": 1e5, "bike": 1.0}
COMMON: dict[str, Any] = {"n_estimators": 100, "max_features": 1 / 3}


def split(name: str, seed: int) -> tuple[Array, Array, Array, Array] | None:
    """X and y for training, X and y for tests."""
    if (loaded := real.load(name)) is None:
        return None
    X, y = loaded[0], loaded[1] / UNITS[name]
    X = np.where(np.isnan(X), np.nanmedian(X, axis=0), X).astype(np.float32)
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = np.split(order, [3 * len(y) // 4])
    return X[train], y[train], X[test], y[test]


def pinball(y: Array, found: Array) -> list[float]:
    """Mean losses of quantiles f64[n, 3]."""
    below = y[:, None] - found
    return (
        np.maximum(np.array(LEVELS) * below, (np.array(LEVELS) - 1) * below).mean(axis=0).tolist()
    )


def covered(y: Array, low: Array, high: Array) -> tuple[float, float]:
    """The share of targets inside, and the mean width."""
    return float(np.mean((low <= y) & (y <= high))), float(np.mean(high - low))


def cpu_of(model: Any, X: Array, runs: int = 3) -> float:
    """The least CPU time of a prediction, in microseconds a row."""
    times = []
    for _ in range(runs):
        start = time.process_time()
        model.predict(X, quantiles=LEVELS)
        times.append(time.process_time() - start)
    return 1e6 * min(times) / len(X)


def one_split(name: str, seed: int, rival: Any) -> dict[str, Any] | None:
    if (data := split(name, seed)) is None:
        return None
    X, y, X_test, y_test = data
    ours = RandomForestQuantileRegressor(**COMMON, random_state=seed, n_jobs=2).fit(X, y)
    found = ours.predict(X_test, LEVELS)
    plain = RandomForestRegressor(**COMMON, random_state=seed, n_jobs=2, oob_score=True).fit(X, y)
    ends = plain.predict_interval(X_test, coverage=0.9)
    row: dict[str, Any] = {
        "data": name,
        "split": seed,
        "pinball": pinball(y_test, found),
        "range": covered(y_test, found[:, 0], found[:, 2]),
        "interval": covered(y_test, ends[:, 0], ends[:, 1]),
    }
    if rival is not None:
        theirs = rival.RandomForestQuantileRegressor(
            **COMMON, max_samples_leaf=None, random_state=seed, n_jobs=2
        ).fit(X, y)
        theirs_found = theirs.predict(X_test, LEVELS)
        row["their pinball"] = pinball(y_test, theirs_found)
        row["their range"] = covered(y_test, theirs_found[:, 0], theirs_found[:, 2])
        ours.n_jobs = theirs.n_jobs = 1
        row["cpu"] = [cpu_of(model, X_test) for model in (ours, theirs)]
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--rivals", type=int, default=3, help="splits on which the package runs")
    options = parser.parse_args()
    try:
        import quantile_forest
    except ImportError:
        quantile_forest = None
        print("quantile-forest: skipped, it is not installed")
    log, rows = Log("quantiles"), []
    for name in UNITS:
        found = []
        for seed in range(options.splits):
            rival = quantile_forest if seed < options.rivals else None
            if (row := one_split(name, seed, rival)) is None:
                break
            log.add(**row)
            print(row, flush=True)
            found.append(row)
        if not found:
            continue
        both = [row for row in found if "cpu" in row]
        for key in ("pinball", "their pinball", "cpu") if both else ():
            means = np.mean([row[key] for row in both], axis=0)
            rows.append([name, key, *(f"{x:.4f}" for x in means)])
        for key in ("range", "interval", "their range"):
            some = [row[key] for row in found if key in row]
            if some:
                shares = [share for share, _ in some]
                spread = f"{min(shares):.3f} to {max(shares):.3f}"
                rows.append([name, key, *(f"{x:.3f}" for x in np.mean(some, axis=0)), spread])
    print(table(["data", "what", "", "", ""], [row + [""] * (5 - len(row)) for row in rows]))


if __name__ == "__main__":
    main()
