"""Boosting of survival beside XGBoost's and forests.  python -m benchmarks.survival_boosting

Sets of the package SurvSet: `--folder` has its files NAME.pickle, which a process of its own reads.
Five splits of 70 % of the rows, stratified by event; the concordance is that of gpuforest for all.
Categories are ordinal codes and missing numbers medians, as in `benchmarks.survival`. Boosting has
100 rounds, learning rate 0.1 and 31 leaves, or 4 leaves (small); all else are the defaults of the
libraries. `--times` compares the seconds of fits by "coxph" and by "poisson" instead, to rows made
of random numbers with 20 features, on two threads.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import time
from functools import cache
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from benchmarks.record import RESULTS, Log, options_of, show
from benchmarks.survival import numbers, target
from benchmarks.turns import Found, take_turns

SETS = (
    "GBSG2", "whas500", "LeukSurv", "zinc", "actg", "vlbw", "grace", "TRACE", "dataDIVAT2",
    "nwtco", "uis", "colon", "follic", "Aids2", "prostate", "pbc", "Pbc3", "scania", "rott2",
    "UnempDur", "Framingham", "divorce", "rdata", "phpl04K8a",
)  # fmt: skip
METHODS = (
    "coxph", "xgboost", "forest", "coxph small", "xgboost small", "aft_logistic small",
    "aft_extreme small",
)  # fmt: skip
READ = "import pickle, sys; pickle.load(open(sys.argv[1], 'rb')).to_csv(sys.stdout, index=False)"


@cache
def load(folder: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """X and y."""
    command = [sys.executable, "-c", READ, str(Path(folder) / f"{name}.pickle")]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    frame = pd.read_csv(io.StringIO(text)).sort_values("pid", kind="stable")
    y = target(frame.event == 1, frame.time.astype(float))
    return numbers(frame.drop(columns=["pid", "event", "time"])), y


def risks_of(method: str, seed: int, X: Any, y: Any, X_test: Any) -> tuple[float, np.ndarray]:
    """Processor seconds of a fit, and risks of test rows."""
    begin, leaves = time.process_time(), 4 if method.endswith("small") else 31
    method = method.removesuffix(" small")
    if method == "xgboost":
        xgboost = import_module("xgboost")
        params = {
            "objective": "survival:cox", "eta": 0.1, "max_depth": 0, "max_leaves": leaves,
            "grow_policy": "lossguide", "tree_method": "hist", "nthread": 1, "seed": seed,
        }  # fmt: skip
        label = np.where(y["event"], y["time"], -y["time"])
        booster = xgboost.train(params, xgboost.DMatrix(X, label), 100)
        seconds = time.process_time() - begin
        return seconds, booster.predict(xgboost.DMatrix(X_test), output_margin=True)
    gpuforest = import_module("gpuforest")
    how: dict[str, Any] = {"random_state": seed, "n_jobs": 1}
    if method == "forest":
        model = gpuforest.RandomSurvivalForest(**how).fit(X, y)
    else:
        how |= {"loss": method, "early_stopping": False, "max_leaf_nodes": leaves}
        model = gpuforest.HistGradientBoostingSurvival(**how).fit(X, y)
    seconds, found = time.process_time() - begin, model.predict(X_test)
    return seconds, -found if method.startswith("aft") else found


def fit(name: str, split: int, method: str, options: argparse.Namespace) -> Found:
    """The concordance of a method on a split."""
    X, y = load(options.folder, name)
    y["time"] += 1e-3 * (y["time"] == 0).any()  # logarithms of times
    train, test = train_test_split(
        np.arange(len(X)), test_size=0.3, random_state=split, stratify=y["event"]
    )
    seconds, risks = risks_of(method, split, X[train], y[train], X[test])
    concordance = import_module("gpuforest.explain.survival").concordance
    score = concordance(y["event"][test], y["time"][test], np.asarray(risks, np.float64))
    return {"rows": len(train), "fit_cpu_s": seconds, "concordance": float(score)}


def timed(name: str, turn: int, method: str, options: argparse.Namespace) -> Found:
    """Seconds of a fit after a small one, which loads kernels."""
    gpuforest, rng = import_module("gpuforest"), np.random.default_rng(turn)
    X, n = rng.normal(size=(options.rows, 20)), options.rows
    risk = X[:, 0] + X[:, 1] * X[:, 2] / 2
    event, censored = rng.exponential(np.exp(-risk)), rng.exponential(2.0, n)
    y: Any = target(event <= censored, np.minimum(event, censored))
    kind = gpuforest.HistGradientBoostingSurvival
    if method == "poisson":
        y, kind = rng.poisson(np.exp(risk / 2)), gpuforest.HistGradientBoostingRegressor
    model = kind(loss=method, early_stopping=False, backend="numba", n_jobs=2, random_state=turn)
    model.fit(X[:1000], y[:1000])
    begin, cpu = time.perf_counter(), time.process_time()
    model.fit(X, y)
    return {"fit_s": time.perf_counter() - begin, "fit_cpu_s": time.process_time() - cpu}


def times(options: argparse.Namespace) -> None:
    """Both losses take turns."""
    jobs = product([f"{options.rows} made"], range(options.splits), ("poisson", "coxph"))
    lines = take_turns(Log("survival_boosting", options.results), jobs, timed, options)
    show(lines, {"fit_s": ("median", "ratio"), "fit_cpu_s": ("median", "ratio")})


def main() -> None:
    paths = {"results": RESULTS / "survival_boosting.jsonl", "folder": Path("SurvSet")}
    more = {"splits": 5, "times": False, "rows": 1_000_000, **paths}
    options = options_of(__doc__, sets=[*SETS], methods=[*METHODS], **more)
    if options.times:
        times(options)
        return
    jobs = product(options.sets, range(options.splits), options.methods)
    lines = take_turns(Log("survival_boosting", options.results), jobs, fit, options)
    show(lines, {"concordance": ("mean", "difference"), "fit_cpu_s": ("median", "ratio")})


if __name__ == "__main__":
    main()
