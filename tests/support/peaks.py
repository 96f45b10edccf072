"""The memory that a fit takes in a fresh process, beside its estimate."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from paths import ROOT

SCRIPT = """
import json, sys
import numpy as np
from benchmarks.turns import Memory
import gpuforest
name, backend, N, F, C, parameters, limited = json.loads(sys.argv[1])
rng = np.random.default_rng(0)
X = rng.normal(size=(N, F)).astype(np.float32)
y = X[:, 0] + X[:, 1] + rng.normal(size=N)
outputs = {"n_classes": max(C, 1)}
if "Survival" in name:
    came, causes = rng.random(N) < 0.6, 1 + np.arange(N) % C
    times = np.exp(y / 2)
    y = np.empty(N, [("event", int if C > 1 else bool), ("time", float)])
    y["event"], y["time"] = came * causes, times
    outputs = {"n_outputs": C}
elif C:
    y = y.argsort().argsort() * C // N
forest = getattr(gpuforest, name)(backend=backend, random_state=0, n_jobs=2, **parameters)
rows = rng.permutation(N)[:2000]  # as many bins, so that no kernel is left to compile
forest.fit(X[rows], y[rows])
found = gpuforest.estimate_memory(forest, N, F, **outputs)
least = 0
if limited:
    try:
        forest.set_params(memory_limit=1).fit(X, y)
    except ValueError as error:
        least = int(str(error).split("takes about ")[1].split()[0])
peaks = []
for limit in [None, least] if limited else [None]:
    forest.set_params(memory_limit=limit)
    memory = Memory()
    before = memory.restart()
    forest.fit(X, y)
    peaks.append(memory.peak() - before)
    del forest.forest_
print(json.dumps([memory.exact, found.total / 1e6, least / 1e6, *peaks]))
"""


def measured(
    name: str, backend: str, N: int, F: int, C: int, parameters: dict[str, Any], limited: bool
) -> list[float]:
    """Megabytes: the estimate, the least limit (0 unless limited), the peak without a limit and, if
    limited, that with the least one. C : classes or causes, 0 for numbers"""
    fit = name, backend, N, F, C, parameters, limited
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(fit)],
        cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    exact, *found = json.loads(done.stdout)
    if not exact:
        pytest.skip("this system does not report the peak of a process's memory")
    return [float(size) for size in found]
