"""How fast, how large, how good, beside other libraries?  python -m benchmarks.rivals

Each fit runs in a fresh process, the libraries in turn, so that all meet the same noise. Only
ratios within one run mean something on another machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import works
from benchmarks.libraries import LIBRARIES
from benchmarks.libraries.forest import Wanted
from benchmarks.record import RESULTS, Log, options_of, scores, show
from benchmarks.turns import Found, measured, one_row, take_turns

OURS = "gpuforest"
RIVALS = ("sklearn", "sklearnex", "lightgbm", "xgboost", "ydf", "ranger")
WARM_ROWS = 40_000  # enough for every kernel, of large nodes and of small
POOLS = ("OMP", "MKL", "OPENBLAS", "NUMBA")
# names of figures in older lines, and in those of R
OLD = {"fit_seconds": "fit_s", "predict_seconds": "predict_s", "fit_cpu_seconds": "fit_cpu_s",
       "other_cpu_seconds": "other_cpu_s"}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    if options.table:
        lines = written(options)
    else:
        os.environ |= {f"{name}_NUM_THREADS": str(options.threads) for name in POOLS}
        libraries = installed([OURS, *options.rivals])
        jobs = product(options.works, range(1, options.repeat + 1), libraries)
        names, log = ("work", "seed", "library"), Log("rivals", options.results)
        lines = take_turns(log, jobs, fit, options, names, fresh=True, facts=facts)
    lines = [{**x, "set": x["work"], "method": x["library"], "split": x["seed"]} for x in lines]
    print("", *dict.fromkeys(about(line) for line in lines if "rows" in line), sep="\n")
    times, scores = ("median", "ratio"), ("mean", "difference")
    keys = "fit_s", "fit_cpu_s", "predict_s", "one_row_one_thread_ms", "peak_mb", "model_mb"
    show(lines, dict.fromkeys(keys, times) | dict.fromkeys(("accuracy", "log_loss", "r2"), scores))
    for line in lines:
        if failed := line.get("error") or ("over" in line and f"more than {line['over']:g} s"):
            print(f"{line['work']}, {line['library']}: {failed}")
    notes = {LIBRARIES[x["library"]] for x in lines if x["library"] in LIBRARIES}
    print("", *sorted(f"- {x.title}: {x.note}" for x in notes if x.note), sep="\n")


def about(line: dict[str, Any]) -> str:
    kind = f"{line['classes']} classes" if line["classes"] else "regression"
    depth = "unlimited depth" if line["depth"] is None else f"depth {line['depth']}"
    return f"{line['work']}: {line['rows']:,} x {line['features']}, {kind}, {depth}"


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    return options_of(
        __doc__, arguments, {"rivals": LIBRARIES}, works=list(works.WORKS), rivals=[*RIVALS],
        repeat=3, trees=100, threads=2, limit=0.0, calm=60.0, part=1.0, table=False, commit="",
        date="", results=RESULTS / "rivals.jsonl",
    )  # fmt: skip


def installed(names: Sequence[str]) -> list[str]:
    """The libraries that are there."""
    found = []
    for name in dict.fromkeys(names):
        if LIBRARIES[name].version() is None:
            print(f"{LIBRARIES[name].title}: skipped, it is not installed", file=sys.stderr)
        else:
            found.append(name)
    return found


def facts(name: str, _: int, library: str, options: argparse.Namespace) -> dict[str, Any]:
    work = works.WORKS[name]
    own = {"set": work.set, "depth": work.depth, "fits": work.fits, "part": options.part}
    asked = {"trees": options.trees, "threads": options.threads}
    return {**own, **asked, "version": LIBRARIES[library].version()}


def fit(name: str, seed: int, library: str, options: argparse.Namespace) -> Found:
    work, Library = works.WORKS[name], LIBRARIES[library]
    made = works.load(work, options.part, options.data)
    if made is None:
        return None
    X, y = made.X_train, made.y_train
    classes, n_features = int(y.max()) + 1 if made.is_classes else 0, X.shape[1]
    tried = max(1, int(n_features**0.5) if classes else n_features // 3)
    wanted = Wanted(options.trees, work.depth, tried, n_features, classes, options.threads, seed)
    about = {"tried": tried, "classes": classes}
    if Library.script:
        return about | by_script(Library.script, made, wanted, work.fits, options.limit)
    for trees in (1, 2 * options.threads):  # fewer and more nodes than threads to share them
        small = Library(replace(wanted, trees=trees))
        small.fit(X[:WARM_ROWS], y[:WARM_ROWS])
        small.predict(X[:9])
    del small
    forest = Library(wanted)
    parts = X, made.X_test, y, made.y_test
    found = measured(forest, parts, options.limit, work.fits)
    forest.use_threads(1)
    found["one_row_one_thread_ms"] = one_row(forest.predict, made.X_test)
    return about | found | {"model_mb": forest.size() / 1e6} | forest.remarks()


def by_script(script: Path, made: Any, wanted: Wanted, fits: int, limit: float) -> dict[str, Any]:
    """Measured in R, which leaves its predictions in a file of f64, class by class."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("X_train", "y_train", "X_test"):
            np.save(f"{folder}/{name}.npy", getattr(made, name))
        task = vars(wanted) | {"data": folder, "fits": fits, "out": f"{folder}/predictions"}
        command = ["Rscript", script, json.dumps(task)]
        said = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, text=True, timeout=limit or None
        ).stdout
        found = np.fromfile(task["out"])
    found = found.reshape(wanted.classes, -1).T if wanted.classes else found
    figures = renamed(json.loads(said.splitlines()[-1]))
    about = {"rows": len(made.X_train), "features": wanted.features}
    return about | figures | scores(found, made.y_test)


def renamed(line: dict[str, Any]) -> dict[str, Any]:
    return {OLD.get(key, key): value for key, value in line.items()}


def written(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Lines of the results, of one commit or date."""
    lines = [renamed(json.loads(text)) for text in options.results.read_text().splitlines()]
    same = {name: getattr(options, name) for name in ("trees", "threads", "part")}
    lines = [x for x in lines if x["work"] in options.works and same.items() <= x.items()]
    lines = [x for x in lines if x["date"].startswith(options.date)]
    commit = options.commit or (lines[-1]["commit"] if lines and not options.date else "")
    return [x for x in lines if commit.startswith(x["commit"]) or not commit]


if __name__ == "__main__":
    main()
