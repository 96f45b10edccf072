"""What does the package cost before the first fit?  python -m benchmarks.import_time

Each step in a fresh process, after numpy and scikit-learn have been imported: the import,
the name of an estimator (whose module is loaded then), and a first small fit and prediction
beyond a second one, with the compiled kernels on disk and with an empty cache.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile

from benchmarks.record import ROOT, Log, spread, table

PROGRAM = """
import sys, time
import numpy, sklearn.ensemble
clock = time.perf_counter
a = clock()
import gpuforest
b = clock()
forest = getattr(gpuforest, sys.argv[1])(10)
c = clock()
X = numpy.random.default_rng(0).normal(size=(300, 5))
y = X[:, 0] > 0 if "Classifier" in sys.argv[1] else X[:, 0]
forest.fit(X, y).predict(X)
d = clock()
forest.fit(X, y).predict(X)
print(b - a, c - b, (d - c) - (clock() - d))
"""
STEPS = ["import gpuforest", "the name of an estimator", "first fit and predict"]
ESTIMATORS = ["RandomForestClassifier", "RandomForestRegressor"]


def once(estimator: str, cache: str) -> list[float]:
    """Milliseconds of each step in a fresh process that compiles into `cache`."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, estimator],
        cwd=ROOT,
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # the warning about compilation
        check=True,
    )
    return [1e3 * float(x) for x in done.stdout.split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--repeat-empty", type=int, default=3, help="with an empty cache")
    options = parser.parse_args()
    found: dict[str, list[float]] = {}
    for estimator in ESTIMATORS:
        for _ in range(options.repeat_empty):
            with tempfile.TemporaryDirectory() as cache:
                last = once(estimator, cache)[-1]
                found.setdefault(f"{estimator}: {STEPS[-1]}, empty cache", []).append(last)
        with tempfile.TemporaryDirectory() as cache:
            once(estimator, cache)
            for _ in range(options.repeat):
                for step, time in zip(STEPS, once(estimator, cache), strict=True):
                    found.setdefault(f"{estimator}: {step}", []).append(time)
    log = Log("import_time")
    log.add(milliseconds={step: sorted(times) for step, times in found.items()})
    print(table(["", "ms"], [[step, spread(times, 0)] for step, times in found.items()]))


if __name__ == "__main__":
    main()
