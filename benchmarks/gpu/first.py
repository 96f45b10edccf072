"""The first calls of a fresh process: python -m benchmarks.gpu.first TASK, JSON in and out.

TASK: {"device", "work", "rows", "parameters"}: of a forest, or of boosting if "max_iter" is one.
The rows are made on the host, so that nothing runs on the device before its start is timed.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

START = time.perf_counter()

import numpy as np  # noqa: E402

from benchmarks.gpu.boosting import boosted  # noqa: E402
from benchmarks.gpu.device import open_device, timed  # noqa: E402
from benchmarks.gpu.run import model_of  # noqa: E402
from benchmarks.gpu.work import WORKS, make  # noqa: E402


def measure(task: dict[str, Any]) -> dict[str, float]:
    work = next(w for w in WORKS if w.name == task["work"])
    imported = time.perf_counter()
    X_host, y_host = make(work, np, task["rows"])
    start = time.perf_counter()
    device = open_device(task["device"])
    X, y = device.put(X_host), device.put(y_host)
    device.synchronize()
    make_model = boosted if "max_iter" in task["parameters"] else model_of
    model = make_model(work, device.name, **task["parameters"])
    found = {
        "import_seconds": imported - START,
        "start_seconds": time.perf_counter() - start,  # of CUDA, and the rows' way
    }
    for call in ("first", "second"):
        found[f"{call}_fit_seconds"] = timed(device, lambda: model.fit(X, y))[0]
        found[f"{call}_predict_seconds"] = timed(device, lambda: model.predict(X[:1000]))[0]
    return found


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
