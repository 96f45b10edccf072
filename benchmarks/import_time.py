"""What does the package cost before the first fit?  python -m benchmarks.import_time

Each step in a fresh process, after numpy and scikit-learn have been imported: the import,
the name of an estimator (whose module is loaded then), a first small fit (which loads the
compiled kernels from disk) beyond a second one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from benchmarks.record import ROOT, Log, spread, table

PROGRAM = """
import time
import numpy, sklearn.ensemble
clock = time.perf_counter
a = clock()
import gpuforest
b = clock()
forest = gpuforest.RandomForestClassifier(10)
c = clock()
X = numpy.random.default_rng(0).normal(size=(300, 5))
y = X[:, 0] > 0
forest.fit(X, y).predict(X)
d = clock()
forest.fit(X, y).predict(X)
print(b - a, c - b, (d - c) - (clock() - d))
"""
STEPS = ["import gpuforest", "gpuforest.RandomForestClassifier", "first fit and predict"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=10)
    options = parser.parse_args()

    def once() -> list[float]:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], cwd=ROOT, stdout=subprocess.PIPE, check=True
        )
        return [1e3 * float(x) for x in done.stdout.split()]

    once()  # compiles what is not on disk yet
    found = dict(
        zip(STEPS, zip(*(once() for _ in range(options.repeat)), strict=True), strict=True)
    )
    log = Log("import_time")
    log.add(milliseconds={step: sorted(times) for step, times in found.items()})
    print(table(["", "ms"], [[step, spread(times, 0)] for step, times in found.items()]))


if __name__ == "__main__":
    main()
