"""How fast, how large, how good, beside other libraries?  python -m benchmarks.speed

Each fit runs in a fresh process (one_fit.py), the libraries in turn, so that all meet the
same noise. Only ratios within one run mean something on another machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.one_fit import busy_seconds
from benchmarks.record import ROOT, Log, spread, table

Runs = list[dict[str, Any]]

SHOWN = {"sklearn": "scikit-learn", "sklearnex": "scikit-learn-intelex"}
# column of the table, measure, digits
COLUMNS = [
    ("fit s", "fit_seconds", 2),
    ("fit cpu s", "fit_cpu_seconds", 1),
    ("predict s", "predict_seconds", 3),
    ("one row ms", "one_row_one_thread_ms", 2),
    ("peak MB", "peak_mb", 0),
    ("model MB", "model_mb", 0),
    ("accuracy", "accuracy", 4),
    ("log loss", "log_loss", 4),
    ("R2", "r2", 4),
]
RATIOS = COLUMNS[:6]


def main() -> None:
    options = parse()
    is_classes = options.set != "C"
    log = Log("speed")
    with tempfile.TemporaryDirectory() as folder:
        write_data(options, Path(folder))
        for depth in options.depth or [16, None]:
            parameters = {
                "n_estimators": options.trees,
                "max_depth": depth,
                "max_features": "sqrt" if is_classes else 1 / 3,
                "n_jobs": options.threads,
            }
            what = {"set": options.set, "rows": options.rows, "threads": options.threads}
            found: dict[str, Runs] = {x: [] for x in ["gpuforest", *options.rivals]}
            for repeat in range(options.repeat):
                for library, runs in found.items():
                    seed = repeat + 1
                    wait_until_calm(options.calm)
                    run = in_fresh_process(
                        {
                            "library": library,
                            "data": folder,
                            "threads": options.threads,
                            "parameters": {**parameters, "random_state": seed},
                        }
                    )
                    log.add(
                        **what, trees=options.trees, depth=depth, library=library, seed=seed, **run
                    )
                    runs.append({**run, "model_mb": run.get("file_mb", run["pickle_mb"])})
            print(f"\n**Set {options.set}, {options.rows:,} rows, {options.trees} trees, ", end="")
            print("unlimited depth**" if depth is None else f"depth {depth}**", end="\n\n")
            print(comparison(found), flush=True)


def parse() -> argparse.Namespace:
    def depth(text: str) -> int | None:
        return None if text == "none" else int(text)

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", default="A", choices=data.SETS, help="see data.py")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--test-rows", type=int, default=100_000)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--depth", type=depth, action="append", help="or none; may be repeated")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument(
        "--calm",
        type=float,
        default=60,
        help="seconds to wait for an idle machine, before each fit",
    )
    parser.add_argument(
        "--rivals",
        default=["sklearn"],
        type=lambda text: text.split(",") if text else [],
        help="of sklearn,sklearnex",
    )
    return parser.parse_args()


def write_data(options: argparse.Namespace, folder: Path) -> None:
    made = data.make(options.set, options.rows, options.test_rows)
    for name in ("X_train", "y_train", "X_test", "y_test"):
        np.save(folder / f"{name}.npy", getattr(made, name))


def wait_until_calm(limit: float) -> None:
    """Until two seconds in a row have less than a tenth of a core at work, or the limit."""
    calm, end = 0, time.monotonic() + limit
    while calm < 2 and time.monotonic() < end:
        before = busy_seconds()
        time.sleep(1)
        calm = calm + 1 if busy_seconds() - before < 0.1 else 0


def in_fresh_process(task: dict[str, Any]) -> dict[str, Any]:
    threads = ("OMP", "MKL", "OPENBLAS", "NUMBA")
    limits = {f"{name}_NUM_THREADS": str(task["threads"]) for name in threads}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.one_fit", json.dumps(task)],
        cwd=ROOT,
        env={**os.environ, **limits},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def comparison(found: dict[str, Runs]) -> str:
    """A line for each library, and one for ours against each rival."""
    columns = [c for c in COLUMNS if c[1] in {**found["gpuforest"][0], "model_mb": 0}]
    rows = []
    for library, runs in found.items():
        cells = [spread([run[key] for run in runs], digits) for _, key, digits in columns]
        rows.append([SHOWN.get(library, library), *cells])
    for rival in list(found)[1:]:
        cells = [
            spread(ratios(found, rival, key), 1) if (title, key, digits) in RATIOS else ""
            for title, key, digits in columns
        ]
        rows.append([f"ratio to {SHOWN[rival]}", *cells])
    return table(["", *(title for title, _, _ in columns)], rows)


def ratios(found: dict[str, Runs], rival: str, key: str) -> list[float]:
    """How many times more the rival needs, in each pair of neighbouring runs."""
    pairs = zip(found[rival], found["gpuforest"], strict=True)
    return [theirs[key] / ours[key] for theirs, ours in pairs]


if __name__ == "__main__":
    main()
