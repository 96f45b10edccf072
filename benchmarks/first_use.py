"""What does a first use cost, where the package has been installed?  python -m benchmarks.first_use

    python3 -m venv /tmp/fresh && /tmp/fresh/bin/pip install '.[files]'
    /tmp/fresh/bin/gpuforest warmup
    /tmp/fresh/bin/python -m benchmarks.first_use

Every kind of fit and prediction runs twice in a fresh process; the first run less the second is
what the first costs. Then, each in fresh processes in turn: iris from the start of Python to its
predictions, here and with scikit-learn, with the memory that stays resident; and the command line
on spambase.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from benchmarks.record import ROOT, Log, options_of, spread, table

KINDS = {
    "two classes": ("RandomForestClassifier", {}),
    "regression": ("RandomForestRegressor", {}),
    "max_bins=1000": ("RandomForestClassifier", {"max_bins": 1000}),
    "categories": ("RandomForestClassifier", {"categorical_features": [0]}),
    "300 categories": ("RandomForestClassifier", {"categorical_features": [1]}),
    "multiway": ("RandomForestClassifier",
                 {"categorical_features": [0], "categorical_split": "multiway"}),
    "regression, categories": ("RandomForestRegressor", {"categorical_features": [0]}),
    "extra trees": ("ExtraTreesClassifier", {}),
    "monotonic": ("RandomForestClassifier", {"monotonic_cst": [0, 0, 1, 0, 0, 0]}),
    "hard voting": ("RandomForestClassifier", {"voting": "hard"}),
    "absolute error": ("RandomForestRegressor", {"criterion": "absolute_error"}),
    "out of bag": ("RandomForestClassifier", {"oob_score": True}),
}  # fmt: skip
PROGRAM = """
import json, sys, time
import numpy, sklearn.ensemble
import gpuforest
name, parameters = json.loads(sys.argv[1])
rng = numpy.random.default_rng(0)
X = rng.normal(size=(3000, 6))
X[:, 0], X[:, 1] = rng.integers(0, 6, 3000), rng.integers(0, 300, 3000)
y = X[:, 2] > 0 if "Classifier" in name else X[:, 2]
times = []
for _ in range(2):
    begin = time.perf_counter()
    forest = getattr(gpuforest, name)(10, random_state=0, backend="numba", **parameters)
    forest.fit(X, y).predict(X)
    times.append(time.perf_counter() - begin)
print(times[0] - times[1])
"""
IRIS = """
from sklearn.datasets import load_iris
from {library} import RandomForestClassifier
X, y = load_iris(return_X_y=True)
RandomForestClassifier(random_state=0).fit(X, y).predict(X)
print(open("/proc/self/status").read().split("VmRSS:")[1].split()[0])
"""
PYTHON = (sys.executable, "-W", "ignore", "-c")
TRAIN = (
    *(str(Path(sys.executable).with_name("gpuforest")), "train"),
    *(str(ROOT / "data" / "spambase.csv.gz"), "--target", "class", "--test", "0.25"),
    *("--random-state", "1", "--out", "spam.gpuforest"),
)


def run(*command: str) -> tuple[str, float]:
    """What a command printed in a fresh process, and its milliseconds."""
    environment = {**os.environ, "PYTHONPATH": ""}
    with tempfile.TemporaryDirectory() as elsewhere:  # the installed package is to be used
        begin = time.perf_counter()
        said = subprocess.check_output(command, cwd=elsewhere, env=environment, text=True)
        return said, 1e3 * (time.perf_counter() - begin)


def main() -> None:
    found: dict[str, list[float]] = defaultdict(list)
    for _ in range(options_of(__doc__, repeat=5).repeat):
        for kind, task in KINDS.items():
            first = 1e3 * float(run(*PYTHON, PROGRAM, json.dumps(task))[0])
            found[f"{kind}: first less second run, ms"].append(first)
        for library in ("gpuforest", "sklearn.ensemble"):
            said, milliseconds = run(*PYTHON, IRIS.format(library=library))
            found[f"iris with {library}, ms"].append(milliseconds)
            found[f"iris with {library}: resident MB"].append(int(said) / 1024)
        found["gpuforest train on spambase, ms"].append(run(*TRAIN)[1])
    Log("first_use").add(figures={what: sorted(values) for what, values in found.items()})
    print(table(["", "median and range"], [[k, spread(v)] for k, v in found.items()]))


if __name__ == "__main__":
    main()
