"""Where does the time of a fit go?  python -m benchmarks.stages

Seconds by stage, and within them by kernel: a backend that times each operation
registers itself beside the others. Waves grow on threads of their own, so in growing the
seconds of the operations are those of all threads together.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import gpuforest
from benchmarks import data
from benchmarks.record import Log, table
from gpuforest.backends.numba import NumbaBackend
from gpuforest.common.progress import listening

OPERATIONS = ["encode", "totals", "level", "partition", "grow_subtrees"]


SECONDS: defaultdict[str, float] = defaultdict(float)
LOCK = threading.Lock()


def timed(operation: str) -> Callable[..., Any]:
    """The operation of Numba's backend, with a clock on it."""
    method = getattr(NumbaBackend, operation)

    def call(*arguments: Any, **options: Any) -> Any:
        start = time.perf_counter()
        try:
            return method(*arguments, **options)
        finally:
            with LOCK:
                SECONDS[operation] += time.perf_counter() - start

    return call


Timed = type("Timed", (NumbaBackend,), {name: timed(name) for name in OPERATIONS})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", default="A", choices=data.SETS)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()

    gpuforest.register_backend("timed", Timed)
    made = data.make(options.set, options.rows, 1)
    kind = "Classifier" if made.is_classes else "Regressor"
    Forest, log = getattr(gpuforest, f"RandomForest{kind}"), Log("stages")
    few = made.X_train[:40_000], made.y_train[:40_000]
    for n_trees in (1, 2 * options.threads):  # loads the kernels
        Forest(n_trees, n_jobs=options.threads, backend="timed").fit(*few)
    columns = {}
    for depth in (16, None):
        forest = Forest(
            options.trees, max_depth=depth, random_state=1, n_jobs=options.threads, backend="timed"
        )
        SECONDS.clear()
        with listening() as stages:
            forest.fit(made.X_train, made.y_train)
        columns[depth] = {**stages, **{f"- {name}": SECONDS[name] for name in OPERATIONS}}
        log.add(
            set=options.set,
            rows=options.rows,
            trees=options.trees,
            threads=options.threads,
            depth=depth,
            nodes=forest.forest_.n_nodes,
            stages=stages,
            operations=dict(SECONDS),
        )
    rows = [[name, *(f"{c[name]:.2f}" for c in columns.values())] for name in order(columns[16])]
    print(table(["seconds", "depth 16", "unlimited"], rows))


def order(names: dict[str, float]) -> list[str]:
    """Each stage, then its operations."""
    of_binning = ["- encode"]
    growing = [n for n in names if n.startswith("- ") and n not in of_binning]
    stages = [n for n in names if not n.startswith("- ")]
    below = {"binning": of_binning, "growing": growing}
    return [line for stage in stages for line in [stage, *below.get(stage, [])]]


if __name__ == "__main__":
    main()
