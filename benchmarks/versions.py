"""Has a change cost time? Fits of this checkout and of another one, in turns; and predictions.

    git worktree add ../before HEAD~1
    python -m benchmarks.versions ../before

Each checkout is a process that stays, with one thread. The table has ratios of processor seconds,
this checkout's to the other's: of the least of all fits, and the median of those of pairs. Compile
the kernels of both before (`gpuforest warmup`, and `PYTHONPATH=../before python -P -m
gpuforest.cli warmup`). Beside a copy of this checkout the ratios say how much is noise.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.record import ROOT, Log, table

SERVE = "--serve"
FOREST = {"n_jobs": 1, "random_state": 0}


def works() -> dict[str, Callable[[], Any]]:
    """Fits of fractions of a second, by what they grow."""
    import gpuforest as g

    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(60_000, 28)), rng.normal(size=60_000)
    signal = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + X[:, 3]
    y, numbers = (signal + noise > 0).astype(int), signal + noise
    seven = np.digitize(signal, [-2, -1, 0, 0.5, 1, 2])
    mixed = np.hstack([X[:, :10], rng.integers(0, 40, (len(X), 6))])
    of_mixed = (signal + mixed[:, 11] % 7 / 3 + noise > 1).astype(int)
    sets: dict[str, Any] = {"categorical_features": [*range(10, 16)]}

    def classes(X: Any, y: Any, kind: Any = g.RandomForestClassifier, **more: Any) -> Any:
        return lambda: kind(**{"n_estimators": 8, **FOREST, **more}).fit(X, y)

    def regression(n: int, **more: Any) -> Any:
        forest = g.RandomForestRegressor
        return classes(X[:n], numbers[:n], forest, max_features=9, n_estimators=4, **more)

    def one_row(n_trees: int) -> Callable[[], Any]:
        whole = g.RandomForestRegressor(n_trees, **FOREST).fit(X[:20_000], numbers[:20_000])
        return lambda: [whole.predict(X[i : i + 1]) for i in range(200)]

    boost = {"max_iter": 30, "early_stopping": False}
    boosting, extra = g.HistGradientBoostingClassifier, g.ExtraTreesClassifier
    return {
        "two classes": classes(X, y),
        "seven classes": classes(X, seven),
        "entropy": classes(X, y, criterion="entropy"),
        "depth 8": classes(X, y, max_depth=8),
        "150 rows, 200 trees": classes(X[:150, :4], y[:150], n_estimators=200),
        "regression": regression(30_000),
        "regression, leaves of 5": regression(30_000, min_samples_leaf=5),
        "regression, leaves of 5, no bootstrap": regression(
            30_000, min_samples_leaf=5, bootstrap=False
        ),
        "regression, a quarter of 60,000 rows": regression(
            60_000, min_samples_leaf=5, max_samples=0.25
        ),
        "extra trees": classes(X, y, extra),
        "extra trees, categories": classes(mixed, of_mixed, extra, **sets),
        "categories": classes(mixed, of_mixed, **sets),
        "categories, seven classes": classes(mixed, seven, **sets),
        "multiway": classes(mixed, of_mixed, categorical_split="multiway", **sets),
        "combinations": classes(X[:20_000], y[:20_000], feature_combinations=3),
        "combinations, seven classes": classes(X[:20_000], seven[:20_000], feature_combinations=3),
        "combinations, regression": regression(20_000, feature_combinations=3),
        "monotonic": regression(20_000, monotonic_cst=[1] + [0] * 27),
        "absolute error": regression(4_000, criterion="absolute_error"),
        "boosting": lambda: boosting(**FOREST, **boost).fit(X, y),
        "boosting, categories": lambda: boosting(**FOREST, **boost, **sets).fit(mixed, of_mixed),
        "200 times one row of 100 trees": one_row(100),
        "200 times one row of 1,000 trees": one_row(1000),
    }


def serve() -> None:
    """Fit what the lines of the input name, and print the processor seconds of each."""
    fits = works()
    for line in sys.stdin:
        begin = time.process_time()
        fits[line.strip()]()
        print(time.process_time() - begin, flush=True)


class Checkout:
    """A process that fits with the package of a checkout."""

    def __init__(self, path: Path) -> None:
        self.process: Any = subprocess.Popen(
            [sys.executable, "-P", __file__, SERVE], cwd="/", text=True,
            env={**os.environ, "PYTHONPATH": str(path.resolve())},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def seconds(self, work: str) -> float:
        print(work, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="the checkout to compare with")
    every = [*works()]
    parser.add_argument("--work", nargs="*", choices=every, default=every, help="only these")
    parser.add_argument("--repeats", type=int, default=11)
    options = parser.parse_args()
    other, this, rows = Checkout(options.other), Checkout(ROOT), []
    describe = ["git", "-C", str(options.other), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(describe, capture_output=True, text=True).stdout  # "" without git
    log = Log("versions", other=commit.strip())
    for work in options.work:
        for checkout in (other, this, other, this):
            checkout.seconds(work)  # the first may load or compile
        pairs = []
        for i in range(options.repeats):
            first, second = (other, this) if i % 2 else (this, other)
            a, b = first.seconds(work), second.seconds(work)
            pairs.append((a, b) if i % 2 else (b, a))
        before, now = zip(*pairs, strict=True)
        ratio = median(b / a for a, b in pairs)
        log.add(work=work, before=min(before), now=min(now), median_ratio=ratio)
        rows.append([work, f"{min(now):.3f}", f"{min(now) / min(before):.2f}", f"{ratio:.2f}"])
    for checkout in (other, this):
        checkout.process.communicate()  # which ends it
    print(table(["fit", "seconds", "ratio of the least", "median ratio"], rows))


if __name__ == "__main__":
    serve() if SERVE in sys.argv else main()
