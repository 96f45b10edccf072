"""Survival forests beside those of other libraries.  python -m benchmarks.survival

--part sets: data that come with scikit-survival and lifelines, ten splits of 70 % of the rows,
stratified by event. Harrell's concordance (high is good) and the integrated Brier score (low is
good; between the 10th and 90th percentile of test events, weighted by the censoring of the training
rows) are paired by split. Categories are ordinal codes for all, missing numbers are medians: what
scikit-survival takes. Defaults of the libraries, 100 trees, one thread each. ranger runs in R
(Debian: `r-cran-ranger`); its risk is the sum of its cumulative hazards, and it is spared its
out-of-bag error.

--part criteria: ours by the log-rank statistic, in the place of another library.

--part size: processor time of a fit and of 1,000 risks, and bytes of a pickle (of an RDS file), on
flchain and on simulated rows. Those who take long grow fewer trees (`TREES`), whose time and bytes
are scaled up to 100. On simulated rows scikit-survival has low_memory=True, which keeps no curves.
From 50,000 rows on its trees and ranger's stop at a depth of 2 (`SHALLOW`): what they need is at
least that. ranger is not asked for 200,000 rows: a tree of 50,000 takes it minutes and 1.8 GB.
"""

from __future__ import annotations

import argparse
import pickle
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from lifelines import datasets as lifelines
from sklearn.model_selection import train_test_split
from sksurv import datasets
from sksurv.ensemble import ExtraSurvivalTrees, RandomSurvivalForest
from sksurv.metrics import concordance_index_censored, integrated_brier_score

import gpuforest
from benchmarks.record import Log, table

SPLITS = 10
DTYPE = [("event", bool), ("time", float)]
METHODS = (
    *("gpuforest forest", "gpuforest extra", "sksurv forest", "sksurv extra"),
    *("ranger forest", "comprisk forest"),
)
CRITERIA = "gpuforest forest", "gpuforest extra", "logrank forest", "logrank extra"
OURS = {"forest": gpuforest.RandomSurvivalForest, "extra": gpuforest.ExtraSurvivalTrees}
# of --part size, the rows and features that are simulated, and the trees that others grow there
SIZES = {"flchain": None, "10,000 x 58": (10_000, 58), "50,000 x 58": (50_000, 58)}
SIZES["200,000 x 30"] = (200_000, 30)
TREES = {
    ("sksurv", "flchain"): 2, ("sksurv", "10,000 x 58"): 2,
    ("sksurv", "50,000 x 58"): 1, ("sksurv", "200,000 x 30"): 1,
    ("ranger", "flchain"): 20, ("ranger", "10,000 x 58"): 1, ("ranger", "50,000 x 58"): 1,
    ("comprisk", "50,000 x 58"): 4, ("comprisk", "200,000 x 30"): 2,
}  # fmt: skip
SHALLOW = {("sksurv", "50,000 x 58"), ("sksurv", "200,000 x 30"), ("ranger", "50,000 x 58")}
DEPTH = 2
TOO_LARGE = {("ranger", "200,000 x 30")}

Line = dict[str, Any]


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


def sets() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Names, X and y."""
    for name, load in (
        ("gbsg2", datasets.load_gbsg2),
        ("whas500", datasets.load_whas500),
        ("veteran", datasets.load_veterans_lung_cancer),
        ("actg320", datasets.load_aids),
        ("flchain", datasets.load_flchain),
    ):
        X, y = load()
        event, time = (y[field] for field in y.dtype.names)
        yield name, numbers(X.drop(columns="chapter", errors="ignore")), target(event, time)
    rossi, lung = lifelines.load_rossi(), lifelines.load_lung()
    y = target(rossi.arrest == 1, rossi.week)
    yield "rossi", numbers(rossi.drop(columns=["week", "arrest"])), y
    lung = lung.dropna(subset=["time", "status"])
    y = target(lung.status == 1, lung.time)
    yield "lung", numbers(lung.drop(columns=["time", "status"])), y


def simulated(n: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose hazard depends on five of the features; about half are censored."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_features))
    risk = X[:, 0] + 0.5 * X[:, 1] * X[:, 2] + (X[:, 3] > 0.5) - 0.5 * X[:, 4] ** 2
    time, censored = rng.exponential(np.exp(-risk)), rng.exponential(1.0, n)
    return X, target(time <= censored, np.round(np.minimum(time, censored), 3) + 0.001)


class Forest:
    """A fitted forest of a library of Python, and what it predicts."""

    def __init__(self, method: str, X: np.ndarray, y: np.ndarray, seed: int, **options: Any):
        library, kind = method.split()
        options |= {"random_state": seed, "n_jobs": 1}
        begin = time.process_time()
        if library == "comprisk":
            from comprisk import CompetingRiskForest

            self.model = CompetingRiskForest(**options).fit(X, y["time"], y["event"].astype(int))
        elif library in ("gpuforest", "logrank"):
            options |= {"criterion": library} if library == "logrank" else {}
            self.model = OURS[kind](**options).fit(X, y)
        else:
            kinds = {"forest": RandomSurvivalForest, "extra": ExtraSurvivalTrees}
            self.model = kinds[kind](**options).fit(X, y)
        self.seconds = time.process_time() - begin

    def risks(self, X: np.ndarray) -> np.ndarray:
        ask = getattr(self.model, "predict_risk", None) or self.model.predict
        begin = time.process_time()
        found = np.asarray(ask(X))
        self.risk_seconds = time.process_time() - begin
        return found

    def curves(self, X: np.ndarray, times: np.ndarray) -> np.ndarray | None:
        """Survival f64[n, times]; None of comprisk, which has other curves."""
        if not hasattr(self.model, "predict_survival_function"):
            return None
        return np.array([curve(times) for curve in self.model.predict_survival_function(X)])

    def size(self) -> int:
        return len(pickle.dumps(self.model))


class Ranger:
    """As `Forest`, of ranger in R, which predicts the rows that are named at once."""

    def __init__(
        self, X: np.ndarray, y: np.ndarray, seed: int, X_test: np.ndarray, times: np.ndarray,
        n_estimators: int = 100, max_depth: int = 0,
    ) -> None:  # fmt: skip
        script = Path(__file__).parent / "libraries" / "ranger_survival.R"
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            known = {"X": X.T, "X_test": X_test.T, "times": times}
            known["y"] = np.stack([y["time"], y["event"]])
            for key, values in known.items():
                np.ascontiguousarray(values, np.float64).tofile(folder / key)
            command = ["Rscript", script, name, *map(str, (n_estimators, seed + 1, max_depth))]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            self.seconds, self.risk_seconds, self.bytes = map(float, done.stdout.split())
            self.found = np.fromfile(folder / "risks")
            self.survival = np.fromfile(folder / "curves").reshape(len(times), -1).T


def one_split(
    name: str, X: np.ndarray, y: np.ndarray, split: int, methods: list[str], log: Log
) -> list[Line]:
    """The scores of all methods on one split."""
    rows = np.arange(len(X))
    train, test = train_test_split(rows, test_size=0.3, random_state=split, stratify=y["event"])
    before_end = y["time"][test] < y["time"][train].max()
    inside = test[before_end]
    low, high = np.quantile(y["time"][inside][y["event"][inside]], [0.1, 0.9])
    times = np.linspace(low, min(high, y["time"][inside].max() * 0.999), 50)
    lines = []
    for method in methods:
        if method == "ranger forest":
            fitted: Any = Ranger(X[train], y[train], split, X[test], times)
            risks, curves = fitted.found, fitted.survival[before_end]
        else:
            fitted = Forest(method, X[train], y[train], split)
            risks, curves = fitted.risks(X[test]), fitted.curves(X[inside], times)
        scores = {}
        if curves is not None:
            scores["brier"] = float(integrated_brier_score(y[train], y[inside], curves, times))
        found = concordance_index_censored(y["event"][test], y["time"][test], risks)[0]
        scores["concordance"] = float(found)
        facts = {"set": name, "split": split, "method": method, "rows": len(train)}
        lines.append(log.add(**facts, fit_cpu_s=fitted.seconds, **scores))
        del fitted  # some take gigabytes
    return lines


def summary(lines: list[Line]) -> str:
    """Means by set of ours and another forest of its kind, and their differences with the standard
    errors."""
    rows = []
    for name in dict.fromkeys(line["set"] for line in lines):
        here = [line for line in lines if line["set"] == name]
        found = dict.fromkeys(line["method"] for line in here)
        for other in found:
            ours = f"gpuforest {other.split()[1]}"
            if other == ours or ours not in found:
                continue
            row = [name, ours.split()[1], other.split()[0]]
            for score in ("concordance", "brier", "fit_cpu_s"):
                a, b = (
                    np.array([line.get(score, np.nan) for line in here if line["method"] == m])
                    for m in (ours, other)
                )
                error = np.std(a - b, ddof=1) / np.sqrt(len(a))
                difference = f"{(a - b).mean():+.4f} ± {error:.4f}"
                row += [f"{a.mean():.4f}", f"{b.mean():.4f}", difference]
            rows.append([*row[:-1], f"{float(row[-2]) / float(row[-3]):.1f} times"])
    head = ["set", "kind", "other", "C", "other", "difference", "Brier", "other", "difference"]
    return table([*head, "fit, s", "other", "slower"], rows)


def measured(method: str, task: str, X: np.ndarray, y: np.ndarray) -> Line:
    """Processor time and bytes of a forest of 100 trees."""
    library = method.split()[0]
    trees, shallow = TREES.get((library, task), 100), (library, task) in SHALLOW
    if library == "ranger":
        fitted: Any = Ranger(X, y, 0, X[:1000], y["time"][:1], trees, DEPTH * shallow)
        size = fitted.bytes
    else:
        options: dict[str, Any] = {"n_estimators": trees}
        if library == "sksurv":  # of curves at all times, its leaves would not fit the memory
            options["low_memory"] = task != "flchain"
            options["max_depth"] = DEPTH if shallow else None
        fitted = Forest(method, X, y, 0, **options)
        fitted.risks(X[:1000])
        size = fitted.size()
    scale = 100 / trees
    return {
        "task": task, "method": method, "trees": trees, "shallow": shallow,
        "fit_cpu_s": fitted.seconds * scale, "predict_cpu_s": fitted.risk_seconds * scale,
        "size": size * scale,
    }  # fmt: skip


def sizes(log: Log, methods: list[str], tasks: list[str]) -> str:
    """Time and bytes of forests of 100 trees."""
    rows = []
    for task in tasks:
        shape = SIZES[task]
        X, y = (
            simulated(*shape) if shape else next(found[1:] for found in sets() if found[0] == task)
        )
        for method in methods:
            if (method.split()[0], task) in TOO_LARGE:
                continue
            line = log.add(**measured(method, task, X, y))
            found = line["fit_cpu_s"], line["predict_cpu_s"], line["size"] / 1e6
            row = [task, method, str(line["trees"]), *(f"{value:.3g}" for value in found)]
            print(*row, flush=True)
            rows.append(row)
    return table(["task", "forest", "trees grown", "fit, s", "1,000 risks, s", "MB"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=["sets", "criteria", "size"], default="sets")
    parser.add_argument("--sets", help="names of sets, or of tasks of --part size; with semicolons")
    parser.add_argument("--methods", help="libraries, with commas (default: all that are there)")
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    log = Log("survival", options.results)
    libraries = ["gpuforest", "sksurv"]
    libraries += ["ranger"] * bool(shutil.which("Rscript"))
    libraries += ["comprisk"] * bool(find_spec("comprisk"))
    if options.methods:
        libraries = options.methods.split(",")
    methods = [method for method in METHODS if method.split()[0] in libraries]
    if "comprisk" in libraries:  # which compiles at first
        Forest("comprisk forest", *simulated(500, 5), 0, n_estimators=1).risks(np.zeros((9, 5)))
    wanted = options.sets.split(";") if options.sets else None
    if options.part == "size":
        forests = [method for method in methods if method.endswith("forest")]
        print(sizes(log, forests, wanted or [*SIZES]))
        return
    if options.part == "criteria":
        methods = [*CRITERIA]
    lines = []
    for name, X, y in sets():
        if wanted is None or name in wanted:
            for split in range(options.splits):
                lines += one_split(name, X, y, split, methods, log)
            print(name, flush=True)
    print(summary(lines))


if __name__ == "__main__":
    main()
