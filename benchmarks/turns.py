"""Methods take turns on splits of sets: each fit is measured, in a process of its method.

Peak memory is the highest resident memory during a fit above that just before it; the model counts.
"""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from itertools import cycle
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.record import LEAST, Log, scores

ROWS = 100  # are predicted one by one
Found = dict[str, Any] | None


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


def wait_until_calm(limit: float) -> None:
    """Wait until less than a tenth of a core is busy for two seconds, or until the limit."""
    calm, end = 0, time.monotonic() + limit
    while calm < 2 and time.monotonic() < end:
        before = busy_seconds()
        time.sleep(1)
        calm = calm + 1 if busy_seconds() - before < 0.1 else 0


def measured(
    model: Any, parts: Any, limit: float = 0, fits: int = 1, least: float = LEAST
) -> dict[str, Any]:
    """The figures of a fit and of predictions, and scores on the test rows.

    parts : X, X_test, y, y_test, as `train_test_split` gives them; classes are codes
    limit : seconds, after which the process ends; 0: none
    fits : how many count, by their median
    """
    X, X_test, y, y_test = parts
    memory, fit = Memory(), partial(model.fit, X, y)
    before, busy, cpu = memory.restart(), busy_seconds(), time.process_time()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends a process in native code, too
    signal.setitimer(signal.ITIMER_REAL, limit)
    times = [seconds(fit)]
    found: dict[str, Any] = {"peak_mb": memory.peak() - before}
    times += [seconds(fit) for _ in range(fits - 1)]
    signal.setitimer(signal.ITIMER_REAL, 0)
    cpu, busy = time.process_time() - cpu, busy_seconds() - busy
    found |= {"fit_s": float(np.median(times)), "fit_cpu_s": cpu / fits}
    found["other_cpu_s"] = (busy - cpu) / fits
    predict = getattr(model, "predict_proba", None) or model.predict
    predict(X_test[:1000])
    found["predict_s"] = median(lambda: predict(X_test), 3, 25)
    found["one_row_ms"] = one_row(predict, X_test)
    found |= {"rows": len(y), "test_rows": len(y_test), "features": X.shape[1]}
    return found | scores(np.asarray(predict(X_test)), np.asarray(y_test), least)


def one_row(predict: Callable[[Any], Any], X: Any) -> float:
    """Milliseconds of the prediction of a row."""
    rows = cycle([X[i : i + 1] for i in range(min(ROWS, len(X)))])
    return 1e3 * median(lambda: predict(next(rows)), 5, ROWS)


class Worker:
    """A process that calls functions."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self.here, there = context.Pipe()
        self.process = context.Process(target=serve, args=(there,))
        self.process.start()
        there.close()

    def ask(self, function: Callable[..., Found], *arguments: Any) -> Found:
        """What the function returns, or why it returns nothing."""
        module = function.__module__
        if module == "__main__":  # whose name another process does not know
            module = sys.modules[module].__spec__.name  # type: ignore[union-attr]
        self.here.send((module, function.__name__, arguments))
        try:
            return self.here.recv()
        except EOFError:
            self.process.join()
        status = self.process.exitcode
        return {"over": True} if status == -signal.SIGALRM else {"error": f"ended with {status}"}

    def end(self) -> None:
        self.process.kill()
        self.process.join()


def serve(connection: Any) -> None:
    while True:
        module, name, arguments = connection.recv()
        try:
            found = getattr(import_module(module), name)(*arguments)
        except ModuleNotFoundError as error:
            found = {"absent": str(error)}
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {error}"[:300]}
        connection.send(found)


def take_turns(
    log: Log, jobs: Iterable[tuple[str, Any, str]], fit: Callable[..., Found], options: Namespace,
    names: tuple[str, str, str] = ("set", "split", "method"), fresh: bool = False,
    facts: Callable[..., dict[str, Any]] = lambda *_: {},
) -> list[dict[str, Any]]:  # fmt: skip
    """The lines of results of all jobs.

    jobs : sets, splits and methods, in the order of the fits
    fit : measures a job with the options; None where the data are absent
    fresh : each fit has a new process; otherwise each method has one that stays
    facts : what is known of a job before its fit
    """
    workers: dict[str, Worker] = {}
    given_up: set[Any] = set()
    lines = []
    try:
        for job in jobs:
            name, _, method = job
            if {name, method, (name, method)} & given_up:
                continue
            wait_until_calm(getattr(options, "calm", 0))
            worker = workers.pop(method, None) or Worker()
            found = worker.ask(fit, *job, options)
            if fresh or not worker.process.is_alive():
                worker.end()
            else:
                workers[method] = worker
            if found is None:
                given_up.add(name)
            elif "absent" in found:
                given_up.add(method)
                print(f"{method}: skipped, {found['absent']}", flush=True)
            else:
                if "over" in found:
                    found = {"over": options.limit}
                if {"over", "error"} & found.keys():
                    given_up.add((name, method))
                known = dict(zip(names, job, strict=True)) | facts(*job, options)
                lines.append(log.add(**known | found))
                print(*job, found.get("error") or f"fit {found.get('fit_s', 0):.3g} s", flush=True)
    finally:
        for worker in workers.values():
            worker.end()
    return lines
