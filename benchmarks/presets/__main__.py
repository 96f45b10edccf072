"""Presets beside defaults and other libraries.  python -m benchmarks.presets

Sets of public_data.py, five splits: three quarters of the rows to train on, stratified by class.
All methods get the same splits, one after another with two threads, or OMP_NUM_THREADS; each has a
process that has fitted before, and split 0 of all sets comes before split 1 of any. Compare seconds
only if the machine was idle otherwise (`load` is its load average). Log loss keeps probabilities
2e-16 from 0 and 1, as scikit-learn's does. Encoding of categories is a part of fit and of predict:
gpuforest gets strings, CatBoost strings and "missing"; LightGBM gets pandas' `category`, as does
scikit-learn's boosting up to 255 values; beyond, and for its forest, they are ordinal codes: -1 for
a value that is not in the training rows, NaN where it is missing. `lightgbm-tuned` has the tuned
defaults of arXiv 2407.04491, as pytabkit's LGBM_TD: of the training rows, 20 % decide by their log
loss (in pytabkit by default by their accuracy) when to stop.

Each result is a line of results/presets.jsonl as soon as it is known. What is there is skipped:
methods of gpuforest if --label (by default the commit) is the same, others in any case. A method
that is not installed is skipped with a message.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import defaultdict
from collections.abc import Iterable
from fnmatch import fnmatch
from functools import cache, lru_cache
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from benchmarks import public_data, record
from benchmarks.presets.methods import METHODS, THREADS
from benchmarks.turns import Found, measured, take_turns

PAIRS = """
gpuforest-forest-accurate:sklearn-forest gpuforest-forest-fast:sklearn-forest
gpuforest-boosting-accurate:lightgbm gpuforest-boosting-accurate:lightgbm-tuned
gpuforest-boosting-accurate:catboost gpuforest-boosting-fast:lightgbm
"""
FIGURES = ("log_loss", "r2", "accuracy", "fit_s", "fit_cpu_s", "predict_s")
Results = dict[tuple[str, str], dict[int, dict[str, Any]]]  # of set and method, by split


def ours_is(method: str) -> bool:
    return method.startswith("gpuforest")


@cache
def warm(method: str, task: str) -> None:
    """A first fit, which takes longer."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"f0": rng.random(200), "f1": pd.Series(["a", "b"] * 100, dtype="str")})
    METHODS[method](task, 0).fit(X, rng.integers(2, size=200)).predict(X)


@lru_cache(2)
def data_of(name: str, folder: Path | None) -> Any:
    """Plain names of columns, since some libraries refuse others."""
    found = public_data.load(name, folder)
    return found and (found[0].set_axis([f"f{i}" for i in range(found[0].shape[1])], axis=1),
                      found[1])  # fmt: skip


def fit(name: str, split: int, method: str, options: argparse.Namespace) -> Found:
    task = "Regressor" if public_data.BY_NAME[name].numbers else "Classifier"
    warm(method, task)
    if (found := data_of(name, options.data)) is None:
        return None
    X, y = found
    stratify = None if task == "Regressor" else y
    parts = train_test_split(X, y, random_state=split, stratify=stratify)
    # what a result holds for: our commit, or the version of a library
    package = method.partition("-")[0].replace("sklearn", "scikit-learn")
    label = options.label if ours_is(method) else version(package)
    least = float(np.finfo(float).eps)
    figures = measured(METHODS[method](task, split), parts, options.limit, least=least)
    return {"label": label, "load": os.getloadavg()[0], **figures}


def summary(lines: Iterable[dict[str, Any]], options: argparse.Namespace) -> str:
    """Tables of the last results of each method; those of gpuforest of --label, if it is given."""
    of: Results = defaultdict(dict)
    failed = set()
    for line in lines:
        wanted = not ours_is(line["method"]) or options.label in ("", line.get("label"))
        if not wanted or line["set"] not in options.sets:
            continue
        if "error" in line or "over" in line:
            failed.add(f"{line['method']} on {line['set']}: {line.get('error', 'too slow')[:100]}")
        else:
            of[line["set"], line["method"]][line["split"]] = line
    sets = [name for name in options.sets if any(name == key[0] for key in of)]
    shown = [of.get((name, m), {}).values() for name in sets for m in options.methods]
    parts = [record.by_method([x for each in shown for x in each], key) for key in FIGURES]
    rows = [row for pair in options.pairs if (row := row_of_pair(of, sets, *pair.split(":")))]
    header = ["A beside B", "sets", "A better", "level", "B better", "fit A/B", "CPU A/B",
              "predict A/B"]  # fmt: skip
    return "\n\n".join([*filter(None, parts), record.table(header, rows), *sorted(failed)])


def loss(line: dict[str, Any]) -> float:
    return line["log_loss"] if "log_loss" in line else 1 - line["r2"]


def row_of_pair(of: Results, sets: list[str], a: str, b: str) -> list[str] | None:
    """Sets on which a method is better by more than a standard error of the differences."""
    counts, ratios = [0, 0, 0], []
    for name in sets:
        first, second = of.get((name, a), {}), of.get((name, b), {})
        splits = sorted(first.keys() & second.keys())
        if not splits:
            continue
        each = np.array([loss(first[s]) - loss(second[s]) for s in splits])
        error = each.std(ddof=1) / np.sqrt(len(each)) if len(each) > 1 else 0.0
        counts[1 if abs(each.mean()) <= error else 0 if each.mean() < 0 else 2] += 1
        ratios.append([np.mean([first[s][key] for s in splits])
                       / np.mean([second[s][key] for s in splits])
                       for key in ("fit_s", "fit_cpu_s", "predict_s")])  # fmt: skip
    if not ratios:
        return None
    shares = [f"{100 * n / len(ratios):.0f} %" for n in counts]
    times = [f"{r:.2f}" for r in np.exp(np.log(ratios).mean(axis=0))]
    return [f"{a} beside {b}", str(len(ratios)), *shares, *times]


def chosen(text: str, names: Iterable[str]) -> list[str]:
    """Of the names, those that one of the patterns fits; "rivals" are all but gpuforest's."""
    patterns = text.split(",")
    names = list(names)
    unknown = [p for p in patterns if p != "rivals" and not any(fnmatch(n, p) for n in names)]
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; there are {', '.join(names)}")
    return [n for n in names if any(fnmatch(n, p) or (p == "rivals" and not ours_is(n))
                                    for p in patterns)]  # fmt: skip


def main() -> None:
    # limit: seconds of a fit; label: of results of gpuforest, by default the commit
    options = record.options_of(
        __doc__, sets="*", methods="*", splits=5, limit=300.0, sealed=False, label="",
        again=False, summary=False, results=record.RESULTS / "presets.jsonl", pairs=PAIRS,
    )  # fmt: skip
    options.pairs, options.methods = options.pairs.split(), chosen(options.methods, METHODS)
    names = [n for n in public_data.NAMES if (n in public_data.SEALED) == options.sealed]
    options.sets, path = chosen(options.sets, names), options.results
    there = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    if options.summary:
        print(summary(there, options))
        return
    # of the processes to come; threads that spin as they wait would count as work
    os.environ |= {"OMP_NUM_THREADS": str(THREADS), "OMP_WAIT_POLICY": "passive"}
    options.label = options.label or record.commit()
    held = [x for x in there if not ours_is(x["method"]) or x.get("label") == options.label]
    done = {(x["set"], x["split"], x["method"]) for x in held if not options.again}
    every = product(range(options.splits), options.sets, options.methods)
    jobs = [(name, split, method) for split, name, method in every]
    jobs = [job for job in jobs if job not in done]
    take_turns(record.Log("presets", path), jobs, fit, options)


if __name__ == "__main__":
    main()
