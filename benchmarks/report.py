"""Seconds and bytes of a report: 100 trees on adult.  python -m benchmarks.report

The trees have no limit of depth, and 2 threads. `warm` is `report(X, y)` in this process, after
one that is not counted; `command` is `gpuforest report` from its start to its end. The least of
`--runs` runs of each, in turns.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from subprocess import DEVNULL

import numpy as np
import pandas as pd

from benchmarks.real import BESIDE
from benchmarks.record import Log, table
from gpuforest import RandomForestClassifier

TARGET = "class"


def measured(folder: Path, runs: int) -> dict[str, float]:
    """Least seconds of both ways, and the bytes of the file."""
    train, test = (pd.read_csv(folder / f"adult_{part}.csv.gz") for part in ("train", "test"))
    train, test = train.replace("?", np.nan), test.replace("?", np.nan)
    forest = RandomForestClassifier(100, oob_score=True, random_state=0, n_jobs=2)
    forest.fit(train.drop(columns=TARGET), train[TARGET])
    X, y = test.drop(columns=TARGET), test[TARGET]
    times: dict[str, list[float]] = {"warm_s": [], "command_s": []}
    with tempfile.TemporaryDirectory() as made:
        model, out = Path(made, "model"), Path(made, "report.html")
        forest.save(model)
        forest.report(X, y)
        data = ["--data", str(folder / "adult_test.csv.gz"), "--target", TARGET]
        command = [sys.executable, "-m", "gpuforest.cli", "report", str(model), *data]
        for _ in range(runs):
            start = time.perf_counter()
            forest.report(X, y, path=out)
            times["warm_s"].append(time.perf_counter() - start)
            start = time.perf_counter()
            subprocess.run(
                [*command, "--out", str(out), "--n-jobs", "2"], check=True, stdout=DEVNULL
            )
            times["command_s"].append(time.perf_counter() - start)
        return {name: min(found) for name, found in times.items()} | {"bytes": out.stat().st_size}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=BESIDE, help="the folder with adult")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    if not (arguments.data / "adult_train.csv.gz").exists():
        raise SystemExit(f"adult: skipped, it is not in {arguments.data} (--data DIR)")
    found = measured(arguments.data, arguments.runs)
    line = Log("report").add(set="adult", trees=100, threads=2, **found)
    rows = [[name, f"{line[name]:,.6g}"] for name in ("warm_s", "command_s", "bytes")]
    print(table(["100 trees on adult", ""], rows))


if __name__ == "__main__":
    main()
