"""Fits, each method in a process of its own, and their lines in the file of results."""

from __future__ import annotations

import argparse
import json
import os
import warnings
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import train_test_split

from benchmarks import record
from benchmarks.presets.methods import ALL, Searched, ours_is
from benchmarks.presets.sets import data_of, task_of

PACKAGES = {"sklearn": "scikit-learn", "gpuforest": "gpuforest"}


@cache
def warm(method: str, task: str) -> str:
    """A first fit, which takes longer; why there can be none."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"f0": rng.random(200), "f1": pd.Series(["a", "b"] * 100, dtype="str")})
    try:
        model = ALL[method](task, 0)
        if not isinstance(model, Searched):
            model.fit(X, rng.integers(2, size=200)).predict(X)
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return ""


def one_fit(name: str, method: str, split: int, folder: Path | None) -> dict[str, Any]:
    """Scores on the test rows, seconds of fit and predict; or why there are none."""
    warnings.simplefilter("ignore")
    task = task_of(name)
    if absent := warm(method, task):
        return {"absent": absent}
    X, y = data_of(name, folder)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, random_state=split, stratify=None if task == "Regressor" else y
    )
    try:
        model = ALL[method](task, split)
        start, cpu = perf_counter(), process_time()
        model.fit(X_train, y_train)
        found = {"fit_s": perf_counter() - start, "fit_cpu_s": process_time() - cpu}
        start = perf_counter()
        predicted = model.predict(X_test)
        found["predict_s"] = perf_counter() - start
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:500]}
    found |= {"rows": len(y_train), "features": X.shape[1], "load": os.getloadavg()[0]}
    if task == "Regressor":
        return found | {"r2": float(r2_score(y_test, predicted))}
    predicted = np.asarray(predicted, dtype=np.float64)
    predicted /= predicted.sum(axis=1, keepdims=True)  # float32 sums to nearly 1
    found["log_loss"] = float(log_loss(y_test, predicted, labels=np.arange(y.max() + 1)))
    return found | {"accuracy": record.accuracy(predicted, y_test)}


def label_of(method: str, own: str) -> str:
    """What a result holds for: our commit, or the version of a library."""
    library = method.partition("-")[0]
    if library == "gpuforest":
        return own
    try:
        return version(PACKAGES.get(library, library))
    except PackageNotFoundError:
        return ""


def run(options: argparse.Namespace, log: record.Log) -> None:
    own = options.label or record.commit()
    done = {(x["set"], x["split"], x["method"], x["label"] if ours_is(x["method"]) else "")
            for x in lines_of(log.path)}  # fmt: skip
    processes: dict[str, ProcessPoolExecutor] = {}
    absent: set[tuple[str, str]] = set()
    here = [name for name in options.sets if data_of(name, options.data) is not None]
    for split, name, method in product(range(options.splits), here, options.methods):
        key = (name, split, method, own if ours_is(method) else "")
        task = task_of(name)
        if (method, task) in absent or (key in done and not options.again):
            continue
        if method not in processes:
            processes[method] = ProcessPoolExecutor(1, get_context("spawn"))
        try:
            fit = processes[method].submit(one_fit, name, method, split, options.data)
            found = fit.result(options.limit)
        except (BrokenProcessPool, TimeoutError) as error:
            slow = isinstance(error, TimeoutError)
            found = {"error": f"more than {options.limit} s" if slow else "its process ended"}
            for process in processes.pop(method)._processes.values():
                process.kill()
        if "absent" in found:
            absent.add((method, task))
            print(f"{method} ({task}): skipped, {found['absent']}", flush=True)
            continue
        log.add(set=name, split=split, method=method, label=label_of(method, own), **found)
        print(f"{split} {name} {method}: {text_of(found)}", flush=True)


def text_of(found: dict[str, Any]) -> str:
    return ", ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}"
                     for k, v in found.items())  # fmt: skip


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
