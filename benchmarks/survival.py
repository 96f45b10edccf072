"""Survival forests beside scikit-survival's.  python -m benchmarks.survival

--part sets: data that come with scikit-survival and lifelines, ten splits of 70 % of the rows,
stratified by event. Harrell's concordance (high is good) and the integrated Brier score (low is
good; between the 10th and 90th percentile of test events, weighted by the censoring of the training
rows) are paired by split. Categories are ordinal codes for all, missing numbers are medians: what
scikit-survival takes. Defaults of the libraries, 100 trees, one thread each.

--part criteria: the same, with our criterion "logrank" in our place and "exponential" in theirs.

--part size: processor time of a fit and of 1,000 risks, and bytes of a pickle, on flchain and on
simulated rows. scikit-survival grows a few trees (`--trees`), whose time and bytes are scaled up to
100; on the simulated rows with low_memory=True, which keeps no curves.
"""

from __future__ import annotations

import argparse
import pickle
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from lifelines import datasets as lifelines
from sklearn.model_selection import train_test_split
from sksurv import datasets
from sksurv.ensemble import ExtraSurvivalTrees, RandomSurvivalForest
from sksurv.metrics import integrated_brier_score

import gpuforest
from benchmarks.record import Log, table

SPLITS = 10
DTYPE = [("event", bool), ("time", float)]
METHODS: dict[str, Callable[..., Any]] = {
    "gpuforest forest": gpuforest.RandomSurvivalForest,
    "gpuforest extra": gpuforest.ExtraSurvivalTrees,
    "sksurv forest": RandomSurvivalForest,
    "sksurv extra": ExtraSurvivalTrees,
}
PAIRS = [("gpuforest forest", "sksurv forest"), ("gpuforest extra", "sksurv extra")]
CRITERIA = {
    f"{criterion} {kind}": partial(METHODS[f"gpuforest {kind}"], criterion=criterion)
    for criterion in ("logrank", "exponential")
    for kind in ("forest", "extra")
}


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
    yield (
        "rossi",
        numbers(rossi.drop(columns=["week", "arrest"])),
        target(rossi.arrest == 1, rossi.week),
    )
    lung = lung.dropna(subset=["time", "status"])
    yield (
        "lung",
        numbers(lung.drop(columns=["time", "status"])),
        target(lung.status == 1, lung.time),
    )


def simulated(n: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose hazard depends on five of the features; about half are censored."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_features))
    risk = X[:, 0] + 0.5 * X[:, 1] * X[:, 2] + (X[:, 3] > 0.5) - 0.5 * X[:, 4] ** 2
    time, censored = rng.exponential(np.exp(-risk)), rng.exponential(1.0, n)
    return X, target(time <= censored, np.round(np.minimum(time, censored), 3) + 0.001)


def one_split(name: str, X: np.ndarray, y: np.ndarray, split: int, log: Log) -> list[Line]:
    """The scores of all methods on one split."""
    rows = np.arange(len(X))
    train, test = train_test_split(rows, test_size=0.3, random_state=split, stratify=y["event"])
    inside = test[y["time"][test] < y["time"][train].max()]
    events = y["time"][inside][y["event"][inside]]
    low, high = np.quantile(events, [0.1, 0.9])
    times = np.linspace(low, min(high, y["time"][inside].max() * 0.999), 50)
    lines = []
    for method, kind in METHODS.items():
        begin = time.process_time()
        model = kind(random_state=split, n_jobs=1).fit(X[train], y[train])
        seconds = time.process_time() - begin
        curves = np.array([curve(times) for curve in model.predict_survival_function(X[inside])])
        line = log.add(
            set=name, split=split, method=method, rows=len(train), fit_cpu_s=seconds,
            concordance=float(model.score(X[test], y[test])),
            brier=float(integrated_brier_score(y[train], y[inside], curves, times)),
        )  # fmt: skip
        lines.append(line)
    return lines


def summary(lines: list[Line]) -> str:
    """Means by set, and differences of pairs with their standard errors."""
    rows = []
    for name in dict.fromkeys(line["set"] for line in lines):
        here = [line for line in lines if line["set"] == name]
        for ours, theirs in PAIRS:
            row = [name, ours]
            for score in ("concordance", "brier", "fit_cpu_s"):
                a, b = (
                    np.array([line[score] for line in here if line["method"] == m])
                    for m in (ours, theirs)
                )
                error = np.std(a - b, ddof=1) / np.sqrt(len(a))
                row += [
                    f"{a.mean():.4f}",
                    f"{b.mean():.4f}",
                    f"{(a - b).mean():+.4f} ± {error:.4f}",
                ]
            rows.append([*row[:-1], f"{float(row[-2]) / float(row[-3]):.0f} times"])
    head = ["set", "ours", "C", "sksurv", "difference", "Brier", "sksurv", "difference"]
    return table([*head, "fit, s", "sksurv", "slower"], rows)


def sizes(log: Log, trees: int) -> str:
    """Time and bytes of a forest of 100 trees."""
    flchain = next((X, y) for name, X, y in sets() if name == "flchain")
    rows = []
    for name, (X, y) in {"flchain": flchain, "10,000 x 58": simulated(10_000, 58)}.items():
        found = []
        for method in PAIRS[0]:
            # of curves at all times, scikit-survival's leaves would not fit the memory
            is_ours, curves = method.startswith("gpuforest"), name == "flchain"
            n, options = (100, {}) if is_ours else (trees, {"low_memory": not curves})
            begin = time.process_time()
            model = METHODS[method](n, random_state=0, n_jobs=1, **options).fit(X, y)
            fitted = time.process_time()
            model.predict(X[:1000])
            risks = time.process_time() - fitted
            line = log.add(
                task=name, method=method, trees=n, curves=curves or is_ours,
                fit_cpu_s=(fitted - begin) * 100 / n, predict_cpu_s=risks * 100 / n,
                size=len(pickle.dumps(model)) * 100 / n,
            )  # fmt: skip
            found.append([line["fit_cpu_s"], line["predict_cpu_s"], line["size"] / 1e6])
        rows.append([name, *(f"{a:.3g} | {b:.3g}" for a, b in zip(*found, strict=True))])
    head = ["task", "fit, s | sksurv", "1,000 risks, s | sksurv", "MB | sksurv"]
    return table(head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=["sets", "criteria", "size"], default="sets")
    parser.add_argument("--sets", help="names, with commas")
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--trees", type=int, default=2, help="of scikit-survival on many rows")
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    log = Log("survival", options.results)
    if options.part == "size":
        print(sizes(log, options.trees))
        return
    if options.part == "criteria":
        METHODS.clear()
        METHODS.update(CRITERIA)
        PAIRS[:] = [(f"logrank {kind}", f"exponential {kind}") for kind in ("forest", "extra")]
    lines = []
    for name, X, y in sets():
        if options.sets is None or name in options.sets.split(","):
            for split in range(options.splits):
                lines += one_split(name, X, y, split, log)
            print(name, flush=True)
    print(summary(lines))


if __name__ == "__main__":
    main()
