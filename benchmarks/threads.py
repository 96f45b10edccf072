"""How does a fit scale to more threads than a machine has?  python -m benchmarks.threads

Two threads share a fit, and processor time is counted: what the calling thread takes is serial,
because it waits while others work. What trees take beside the operations, which release Python's
lock, is taken to hold it. Then the time with n threads is

    serial + binning / n + the larger of: the busiest thread's trees, all time with the lock

It leaves out memory bandwidth and clock rates, so it is a limit and no forecast.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gpuforest
from benchmarks import data
from benchmarks.record import Log, table
from benchmarks.stages import OPERATIONS
from gpuforest.backends.numba import NumbaBackend
from gpuforest.common import progress
from gpuforest.estimators import growing

MANY = (2, 16, 64)
SECONDS: defaultdict[str, float] = defaultdict(float)  # of processors
LOCK = threading.Lock()


def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with a clock on it, of its own thread."""

    def call(*arguments: Any, **options: Any) -> Any:
        start = time.thread_time()
        try:
            return function(*arguments, **options)
        finally:
            with LOCK:
                SECONDS[name] += time.thread_time() - start

    return call


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Counts a stage's time, of the calling thread and of all."""
    own, everyone = time.thread_time(), time.process_time()
    yield
    SECONDS[f"{name}, serial"] += time.thread_time() - own
    SECONDS[name] += time.process_time() - everyone


def model(n_trees: int) -> dict[str, float]:
    """The parts of a fit, and the seconds that it takes with many threads."""
    s = SECONDS
    trees = s["growing"] - s["growing, serial"]
    found = {
        "all": s["all"],
        "serial": s["all, serial"],
        "of binning": s["binning, serial"],
        "of joining": s["joining"],
        "binning": s["binning"] - s["binning, serial"],
        "trees": trees,
        "with the lock": max(0.0, trees - s["operations"]),
    }
    for n in MANY:
        busiest = max(trees * -(-n_trees // n) / n_trees, found["with the lock"])
        found[f"{n} threads"] = found["serial"] + found["binning"] / n + busiest
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--works", default="A:200000:16,B:400000:16,D:20000:16")
    parser.add_argument("--trees", type=int, default=128)
    options = parser.parse_args()
    growing.assembly.merged, progress.stage = counted("joining", growing.assembly.merged), stage
    methods = {
        name: counted("operations", getattr(NumbaBackend, name))
        for name in OPERATIONS
        if name != "encode"
    }
    gpuforest.register_backend("timed", type("Timed", (NumbaBackend,), methods))
    rows, log = [], Log("threads")
    for work in options.works.split(","):
        name, n_rows, depth = work.split(":")
        made = data.make(name, int(n_rows), 1)
        Forest = gpuforest.RandomForestClassifier if made.is_classes else (
            gpuforest.RandomForestRegressor
        )  # fmt: skip
        for n_trees in (2, options.trees):  # the first loads the kernels
            SECONDS.clear()
            forest = Forest(
                n_trees, max_depth=int(depth), random_state=1, n_jobs=2, backend="timed"
            )
            with stage("all"):
                forest.fit(made.X_train, made.y_train)
        found = model(options.trees)
        log.add(work=work, trees=options.trees, model=found)
        speed = [f"{found['all'] / found[f'{n} threads']:.1f}x" for n in MANY]
        parts = [f"{found[part]:.3f}" for part in list(found)[: -len(MANY)]]
        rows.append([f"{name}, {int(n_rows):,} rows", *parts, *speed])
    print(table(["processor seconds", *found], rows))


if __name__ == "__main__":
    main()
