"""Survival forests beside those of other libraries.  python -m benchmarks.survival

Data that come with scikit-survival and lifelines, ten splits of 70 % of the rows, stratified by
event. Harrell's concordance (high is good) and the integrated Brier score (low is good; between the
10th and 90th percentile of test events, weighted by the censoring of the training rows) are paired
by split. Categories are ordinal codes for all, missing numbers are medians: what scikit-survival
takes. Defaults of the libraries, 100 trees, one thread each. ranger runs in R (Debian:
`r-cran-ranger`); its risk is the sum of its cumulative hazards, and it is spared its out-of-bag
error. `logrank` is gpuforest by the log-rank statistic.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
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
from benchmarks.turns import Found, take_turns

SETS = ("gbsg2", "whas500", "veteran", "actg320", "rossi", "lung", "flchain")
DTYPE = [("event", bool), ("time", float)]
# the module and the estimator
KINDS = {"": "RandomSurvivalForest", " extra": "ExtraSurvivalTrees"}
LIBRARIES = {"gpuforest": "gpuforest", "logrank": "gpuforest", "sksurv": "sksurv.ensemble"}
FORESTS = {
    library + kind: (module, name)
    for kind, name in KINDS.items()
    for library, module in LIBRARIES.items()
} | {"comprisk": ("comprisk", "CompetingRiskForest"), "ranger": ("", "")}


def target(event: Any, time: Any) -> np.ndarray:
    return np.array(list(zip(event, time, strict=True)), DTYPE)


def numbers(frame: pd.DataFrame) -> np.ndarray:
    """The columns as numbers: codes of categories, and medians where a number is missing."""
    columns = {}
    for name in frame:
        column = frame[name]
        if column.dtype.kind not in "if":
            column = pd.Series(pd.factorize(column.astype(str), sort=True)[0])
        columns[name] = column.fillna(column.median()).to_numpy(float)
    return np.column_stack(list(columns.values()))


@cache
def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """X and y."""
    datasets, lifelines = import_module("sksurv.datasets"), import_module("lifelines.datasets")
    if name == "rossi":
        rossi = lifelines.load_rossi()
        y = target(rossi.arrest == 1, rossi.week)
        return numbers(rossi.drop(columns=["week", "arrest"])), y
    if name == "lung":
        lung = lifelines.load_lung().dropna(subset=["time", "status"])
        y = target(lung.status == 1, lung.time)
        return numbers(lung.drop(columns=["time", "status"])), y
    file = {"veteran": "veterans_lung_cancer", "actg320": "aids"}.get(name, name)
    X, y = getattr(datasets, f"load_{file}")()
    event, time = (y[field] for field in y.dtype.names)
    return numbers(X.drop(columns="chapter", errors="ignore")), target(event, time)


def forest(method: str, seed: int, X: np.ndarray, y: np.ndarray, trees: int = 100) -> Any:
    """A fitted forest of a library of Python."""
    module, name = FORESTS[method]
    more = {"criterion": "logrank"} if method.startswith("logrank") else {}
    kind = getattr(import_module(module), name)
    model = kind(n_estimators=trees, random_state=seed, n_jobs=1, **more)
    return model.fit(X, *((y["time"], y["event"].astype(int)) if method == "comprisk" else (y,)))


def ranger(X: Any, y: Any, seed: int, X_test: Any, times: Any) -> tuple[float, Any, Any]:
    """Processor seconds of a fit in R, risks and curves."""
    script = Path(__file__).parent / "libraries" / "ranger_survival.R"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        known = {"X": X.T, "X_test": X_test.T, "times": times, "y": [y["time"], y["event"]]}
        for key, values in known.items():
            np.ascontiguousarray(values, np.float64).tofile(folder / key)
        command = ["Rscript", script, name, "100", str(seed + 1), "0"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        curves = np.fromfile(folder / "curves").reshape(len(times), -1).T
        return float(done.stdout.split()[0]), np.fromfile(folder / "risks"), curves


def fit(name: str, split: int, method: str, _: argparse.Namespace) -> Found:
    """The scores of a method on a split."""
    metrics, (X, y) = import_module("sksurv.metrics"), load(name)
    train, test = train_test_split(
        np.arange(len(X)), test_size=0.3, random_state=split, stratify=y["event"]
    )
    before_end = y["time"][test] < y["time"][train].max()
    inside = test[before_end]
    low, high = np.quantile(y["time"][inside][y["event"][inside]], [0.1, 0.9])
    times = np.linspace(low, min(high, y["time"][inside].max() * 0.999), 50)
    found: dict[str, Any] = {"rows": len(train)}
    if method == "ranger":
        seconds, risks, curves = ranger(X[train], y[train], split, X[test], times)
        found["fit_cpu_s"], curves = seconds, curves[before_end]
    else:
        if split == 0:  # which may compile
            forest(method, 0, X[train], y[train], trees=1)
        begin = time.process_time()
        model = forest(method, split, X[train], y[train])
        found["fit_cpu_s"] = time.process_time() - begin
        risks = np.asarray((getattr(model, "predict_risk", None) or model.predict)(X[test]))
        curves = None
        if hasattr(model, "predict_survival_function"):  # comprisk has other curves
            curves = np.array([own(times) for own in model.predict_survival_function(X[inside])])
    if curves is not None:
        brier = metrics.integrated_brier_score(y[train], y[inside], curves, times)
        found["brier"] = float(brier)
    event, at = y["event"][test], y["time"][test]
    found["concordance"] = float(metrics.concordance_index_censored(event, at, risks)[0])
    return found


def main() -> None:
    paths = {"results": RESULTS / "survival.jsonl"}
    options = options_of(__doc__, sets=[*SETS], methods=[*FORESTS], splits=10, **paths)
    methods = options.methods
    if shutil.which("Rscript") is None:
        methods = [method for method in methods if method != "ranger"]
    jobs = product(options.sets, range(options.splits), methods)
    lines = take_turns(Log("survival", options.results), jobs, fit, options)
    ways = {**dict.fromkeys(("concordance", "brier"), ("mean", "difference")),
            "fit_cpu_s": ("median", "ratio")}  # fmt: skip
    for extra in (False, True):
        show([line for line in lines if line["method"].endswith("extra") == extra], ways)


if __name__ == "__main__":
    main()
