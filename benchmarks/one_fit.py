"""One fit in a fresh process, measured: python -m benchmarks.one_fit TASK, JSON in and out.

TASK: {"library", "data" (folder of *.npy), "trees", "depth", "tried", "classes", "threads",
"seed", "fits"}. What was loaded and compiled before stays out of the measurement: the training
rows are read and small forests are grown first. Peak memory is the highest resident memory
during the fit above the resident memory just before it; the model itself counts. BEGIN and END
are printed around the fit, for who wants to stop it.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.libraries import LIBRARIES
from benchmarks.libraries.forest import Forest, Wanted
from benchmarks.record import accuracy, log_loss, r2

BEGIN, END = "fit begins", "fit ends"
WARM_ROWS = 40_000  # enough for every kernel, of large nodes and of small
ONE_ROW_CALLS = 100


def seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def median(call: Callable[[], Any], least: int, most: int, limit: float = 2) -> float:
    """Of the times of `least` calls, of up to `most` while they take less than `limit` s."""
    times: list[float] = []
    while len(times) < least or (len(times) < most and sum(times) < limit):
        times.append(seconds(call))
    return float(np.median(times))


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


def busy_seconds() -> float:
    """Processor seconds of the whole machine, for the share of other work."""
    try:
        ticks = [int(x) for x in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    except OSError:
        return float("nan")
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def measure(task: dict[str, Any]) -> dict[str, Any]:
    folder, Library = Path(task["data"]), LIBRARIES[task["library"]]
    if Library.script:
        return by_script(Library.script, task)
    out: dict[str, Any] = {}
    out["import_seconds"] = seconds(lambda: importlib.import_module(Library.module))
    X, y = np.load(folder / "X_train.npy"), np.load(folder / "y_train.npy")
    names = ("trees", "depth", "tried", "classes", "threads", "seed")
    wanted = Wanted(features=X.shape[1], **{name: task[name] for name in names})
    first = second = 0.0
    for n_trees in (1, 2 * wanted.threads):  # fewer and more nodes than threads to share them
        small = Library(replace(wanted, trees=n_trees))
        first += seconds(lambda small=small: try_out(small, X, y))
        second += seconds(lambda small=small: try_out(small, X, y))
    del small

    out["first_call_seconds"] = first - second

    forest, memory = Library(wanted), Memory()
    before, busy, cpu = memory.restart(), busy_seconds(), time.process_time()
    print(BEGIN, flush=True)
    times = [seconds(lambda: forest.fit(X, y))]
    out["peak_mb"], out["peak_exact"] = memory.peak() - before, memory.exact
    times += [seconds(lambda: forest.fit(X, y)) for _ in range(task["fits"] - 1)]
    print(END, flush=True)
    out["fit_seconds"] = float(np.median(times))
    cpu, busy = time.process_time() - cpu, busy_seconds() - busy
    out["fit_cpu_seconds"] = cpu / len(times)
    out["other_cpu_seconds"] = (busy - cpu) / len(times)

    X, y = np.load(folder / "X_test.npy"), np.load(folder / "y_test.npy")
    forest.predict(X[:1000])
    before = memory.restart()
    out["predict_seconds"] = median(lambda: forest.predict(X), 3, 25)
    out["predict_peak_mb"] = memory.peak() - before
    out |= scores(forest.predict(X), y)
    calls = iter(range(10**9))

    def one_row() -> None:
        i = next(calls) % len(X)
        forest.predict(X[i : i + 1])

    out["one_row_ms"] = 1e3 * median(one_row, 5, ONE_ROW_CALLS, 10)
    forest.use_threads(1)
    out["one_row_one_thread_ms"] = 1e3 * median(one_row, 5, ONE_ROW_CALLS, 10)
    out["model_mb"] = forest.size() / 1e6
    return {**out, **forest.remarks()}


def try_out(forest: Forest, X: np.ndarray, y: np.ndarray) -> None:
    forest.fit(X[:WARM_ROWS], y[:WARM_ROWS])
    forest.predict(X[:9])


def scores(found: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Of probabilities or numbers."""
    if found.ndim == 1:
        return {"r2": r2(found.astype(np.float64), y)}
    return {"accuracy": accuracy(found, y), "log_loss": log_loss(found, y)}


def by_script(script: Path, task: dict[str, Any]) -> dict[str, Any]:
    """Measured in R; it leaves its predictions in a file of f64, class by class."""
    file = Path(task["data"]) / "predictions"
    command = ["Rscript", script, json.dumps({**task, "out": str(file)})]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
    if process.returncode:
        raise RuntimeError(f"{script.name} ended with status {process.returncode}")
    found = np.fromfile(file)
    file.unlink()
    found = found.reshape(task["classes"], -1).T if task["classes"] else found
    return {**json.loads(line), **scores(found, np.load(Path(task["data"]) / "y_test.npy"))}


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
