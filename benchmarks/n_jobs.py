"""What do threads cost small fits, and nested cross-validation?  python -m benchmarks.n_jobs

The default `n_jobs=None` beside 1 and 2 threads in turns: seconds, and seconds of processors, which
other work on the machine changes less. Then `cross_val_score(n_jobs=2)` of forests of the default,
of one thread, and of as many threads as processors in each of the two processes.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.model_selection import cross_val_score

from benchmarks.record import Log, spread, table
from gpuforest import RandomForestClassifier

SIZES = ((100, 4, 100), (2_000, 10, 10), (2_000, 10, 100), (5_000, 10, 100))
N_JOBS = (None, 1, 2, -1)


def processor_seconds() -> float:
    """Of this process and of children that have ended."""
    kinds = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, kinds))


def in_turns(
    calls: dict[str, Callable[[], Any]], repeats: int
) -> dict[str, dict[str, list[float]]]:
    """Milliseconds of each call, and of processors."""
    found = {name: {"wall": [], "cpu": []} for name in calls}
    for call in calls.values():
        call()
    for _ in range(repeats):
        for name, call in calls.items():
            start, used = time.perf_counter(), processor_seconds()
            call()
            found[name]["wall"].append(1000 * (time.perf_counter() - start))
            found[name]["cpu"].append(1000 * (processor_seconds() - used))
    return found


def searches(n_jobs: int | None, X: np.ndarray, y: np.ndarray) -> None:
    """Cross-validation in two processes, which then end, so that their time counts."""
    from joblib.externals.loky import get_reusable_executor

    cross_val_score(
        RandomForestClassifier(100, random_state=0, n_jobs=n_jobs), X, y, cv=4, n_jobs=2
    )
    get_reusable_executor().shutdown(wait=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=11)
    options = parser.parse_args()
    log, rows, rng = Log("n_jobs"), [], np.random.default_rng(0)

    def measure(work: str, calls: dict[int | None, Callable[[], Any]], repeats: int) -> None:
        found = in_turns({str(n): call for n, call in calls.items()}, repeats)
        log.add(work=work, milliseconds=found)
        cells = [" / ".join(spread(t, 1) for t in found[str(n)].values()) for n in calls]
        rows.append([work, *cells, *[""] * (len(N_JOBS) - len(cells))])

    for n, F, T in SIZES:
        X = rng.normal(size=(n, F))
        y = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n) > 0
        models = {j: RandomForestClassifier(T, random_state=0, n_jobs=j) for j in N_JOBS[:3]}
        fits = {j: lambda m=m, X=X, y=y: m.fit(X, y) for j, m in models.items()}
        measure(f"fit {n:,} x {F}, {T} trees", fits, options.repeats)
        for part in (X[:1], X):
            asked = {j: lambda m=m, part=part: m.predict(part) for j, m in models.items()}
            measure(f"predict {len(part):,} rows", asked, options.repeats)
    validations = {j: lambda j=j, X=X, y=y: searches(j, X, y) for j in (None, 1, -1)}
    measure(f"cross-validation, {n:,} x {F}", validations, 3)
    print("Milliseconds / of processors: median (least-greatest)\n")
    print(table(["", *(f"`n_jobs={n}`" for n in N_JOBS)], rows))


if __name__ == "__main__":
    main()
