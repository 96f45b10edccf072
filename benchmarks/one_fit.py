"""One fit in a fresh process, measured: python -m benchmarks.one_fit TASK, JSON in and out.

TASK: {"library", "data" (folder of *.npy), "parameters", "threads"}. What was loaded and
compiled before stays out of the measurement: the training rows are read and a small forest
is grown first. Peak memory is the highest resident memory during the fit above the resident
memory just before it; the model itself counts.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import logging
import os
import pickle
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.record import scores

MODULES = {
    "gpuforest": "gpuforest",
    "sklearn": "sklearn.ensemble",
    "sklearnex": "sklearnex.ensemble",
}
WARM_ROWS = 40_000  # enough for every kernel, of large nodes and of small
ONE_ROW_CALLS = 100


def seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def median(call: Callable[[], Any], times: int) -> float:
    return float(np.median([seconds(call) for _ in range(times)]))


class Memory:
    """Resident memory in MB: now, and the highest since `restart`."""

    def __init__(self) -> None:
        self.exact = False
        self.restart()

    def restart(self) -> float:
        """Forget the highest, where Linux lets us; returns the resident memory."""
        gc.collect()
        try:
            ctypes.CDLL(None).malloc_trim(0)  # what was freed is not held back for the fit
            Path("/proc/self/clear_refs").write_text("5")
            self.exact = True
            return self._status("VmRSS")
        except (OSError, AttributeError):
            return self.peak()

    def peak(self) -> float:
        if self.exact:
            return self._status("VmHWM")
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6

    @staticmethod
    def _status(name: str) -> float:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(x.split()[1]) for x in lines if x.startswith(name)) * 1024 / 1e6


class Fallbacks(logging.Handler):
    """Whether scikit-learn-intelex says that it left the work to scikit-learn."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = False
        logger = logging.getLogger("sklearnex")
        logger.setLevel(logging.INFO)
        logger.propagate = False
        logger.handlers = [self]

    def emit(self, record: logging.LogRecord) -> None:
        self.seen |= "fallback" in record.getMessage()


def busy_seconds() -> float:
    """Processor seconds of the whole machine, for the share of other work."""
    try:
        ticks = [int(x) for x in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    except OSError:
        return float("nan")
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def model_bytes(model: Any) -> tuple[int, int | None]:
    """Of the pickle, and of the library's own file."""

    class Counter:
        n = 0

        def write(self, part: Any) -> int:
            self.n += (size := memoryview(part).nbytes)
            return size

    counter = Counter()
    pickle.dump(model, counter, protocol=5)
    if not hasattr(model, "save"):
        return counter.n, None
    with tempfile.TemporaryDirectory() as folder:
        model.save(path := Path(folder) / "model")
        return counter.n, path.stat().st_size


def measure(task: dict[str, Any]) -> dict[str, Any]:
    folder = Path(task["data"])
    start = time.perf_counter()
    module = importlib.import_module(MODULES[task["library"]])
    fallbacks = Fallbacks()
    X, y = np.load(folder / "X_train.npy"), np.load(folder / "y_train.npy")
    kind = "Regressor" if y.dtype.kind == "f" else "Classifier"
    Forest = getattr(module, f"RandomForest{kind}")
    out: dict[str, Any] = {"import_seconds": time.perf_counter() - start}

    def predict(rows: np.ndarray) -> np.ndarray:
        return model.predict(rows) if kind == "Regressor" else model.predict_proba(rows)

    def small() -> None:
        model.fit(X[:WARM_ROWS], y[:WARM_ROWS])
        predict(X[:9])

    first = second = 0.0
    for n_trees in (1, 2 * task["threads"]):  # fewer and more nodes than threads to share them
        model = Forest(**{**task["parameters"], "n_estimators": n_trees})
        first += seconds(small)
        second += seconds(small)
    out["first_call_seconds"] = first - second

    model = Forest(**task["parameters"])
    memory = Memory()
    before, busy, cpu = memory.restart(), busy_seconds(), time.process_time()
    out["fit_seconds"] = seconds(lambda: model.fit(X, y))
    out["fit_cpu_seconds"] = time.process_time() - cpu
    out["other_cpu_seconds"] = busy_seconds() - busy - out["fit_cpu_seconds"]
    out["peak_mb"], out["peak_exact"] = memory.peak() - before, memory.exact

    X, y = np.load(folder / "X_test.npy"), np.load(folder / "y_test.npy")
    predict(X[:1000])
    before = memory.restart()
    out["predict_seconds"] = median(lambda: predict(X), 3)
    out["predict_peak_mb"] = memory.peak() - before
    out |= scores(model, X, y)
    rows = iter([X[i : i + 1] for i in range(2 * ONE_ROW_CALLS)])
    out["one_row_ms"] = 1e3 * median(lambda: predict(next(rows)), ONE_ROW_CALLS)
    model.set_params(n_jobs=1)
    out["one_row_one_thread_ms"] = 1e3 * median(lambda: predict(next(rows)), ONE_ROW_CALLS)
    pickled, saved = model_bytes(model)
    out["pickle_mb"] = pickled / 1e6
    if saved is not None:
        out["file_mb"] = saved / 1e6
    out["fell_back"] = fallbacks.seen
    return out


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
