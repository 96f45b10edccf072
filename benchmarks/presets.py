"""Presets beside defaults, a search and other libraries.  python -m benchmarks.presets

Sets of public_data.py, five splits: three quarters of the rows to train on, stratified by class.
All methods get the same splits, one after another with two threads, or OMP_NUM_THREADS; each has a
process that has fitted before, and split 0 of all sets comes before split 1 of any. Threads of
OpenMP do not spin. Compare seconds only if the machine was idle otherwise (`load` is its load
average). Log loss keeps probabilities 2e-16 from 0 and 1, as scikit-learn's does. Encoding of
categories is a part of fit and of predict: gpuforest and YDF get strings, CatBoost strings and
"missing"; LightGBM gets pandas' `category`, as does scikit-learn's boosting up to 255 values;
beyond, and for its forest, they are ordinal codes: -1 for a value that is not in the training
rows, NaN where it is missing. `lightgbm-tuned` has the tuned defaults of arXiv 2407.04491, as
pytabkit's LGBM_TD: of the training
rows, 20 % decide by their log loss (in pytabkit by default by their accuracy) when to stop.

Each result is a line of results/presets.jsonl as soon as it is known. What is there is skipped:
methods of gpuforest if --label (by default the commit) is the same, others in any case. A method
that is not there yet or not installed is skipped with a message.

`gpuforest-forest-search` is the best of 50 forests of 300 trees by their out-of-bag rows.
`--part many_values` runs simulated columns of thousands of categories instead.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from fnmatch import fnmatch
from functools import cache, lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pandas as pd
from sklearn import ensemble
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import train_test_split

import gpuforest
from benchmarks import public_data, record
from benchmarks.libraries.forest import two_columns
from benchmarks.public_data import categories

Array = Any
THREADS = int(os.environ.get("OMP_NUM_THREADS", 2))
KINDS = {"forest": "RandomForest", "extra": "ExtraTrees", "boosting": "HistGradientBoosting"}
PRESETS = ("scikit-learn", "accurate", "fast")
SPLITTERS = ("subset", "ordered_target", "auto")
# LGBM_TD of pytabkit 1.7.3 (models/sklearn/default_params.py), arXiv 2407.04491
TUNED = {
    "Classifier": {"learning_rate": 0.04, "num_leaves": 50, "subsample": 0.75,
                   "min_child_samples": 40},
    "Regressor": {"learning_rate": 0.05, "num_leaves": 100, "subsample": 0.7,
                  "min_child_samples": 3},
}  # fmt: skip
TUNED_BOTH = {"n_estimators": 1000, "subsample_freq": 1, "colsample_bytree": 1.0,
              "min_child_weight": 1e-7, "max_bin": 255}  # fmt: skip
TUNED_ROUNDS, TUNED_SHARE = 300, 0.2  # rounds without progress; rows that tell, without a refit
# 50 forests of each task
SEARCHED = {
    "Classifier": {"max_features": ("sqrt", 1 / 3, 0.5, 0.75, 1.0), "criterion":
                   ("gini", "entropy"), "min_samples_leaf": (1, 2, 5, 10, 20)},
    "Regressor": {"max_features": ("sqrt", 1 / 3, 0.5, 0.75, 1.0),
                  "min_samples_leaf": (1, 2, 3, 5, 7, 10, 15, 20, 30, 50)},
}  # fmt: skip
PAIRS = (
    ("gpuforest-forest-accurate", "sklearn-forest"),
    ("gpuforest-forest-accurate", "ydf-forest"),
    ("gpuforest-forest-accurate", "gpuforest-forest-search"),
    ("gpuforest-forest-fast", "sklearn-forest"),
    ("gpuforest-boosting-accurate", "lightgbm"),
    ("gpuforest-boosting-accurate", "lightgbm-tuned"),
    ("gpuforest-boosting-accurate", "catboost"),
    ("gpuforest-boosting-accurate", "ydf-boosting"),
    ("gpuforest-boosting-fast", "lightgbm"),
)


class Encoded:
    """A model of columns of numbers and of pandas' `category`; those of more values are codes."""

    def __init__(self, model: Any, most_values: float) -> None:
        self.model, self.most_values = model, most_values

    def fit(self, X: pd.DataFrame, y: Array) -> Encoded:
        self.values = {c: pd.Index(np.sort(X[c].dropna().unique())) for c in categories(X)}
        self.train(self.encoded(X), y)
        return self

    def train(self, X: pd.DataFrame, y: Array) -> None:
        self.model.fit(X, y)

    def encoded(self, X: pd.DataFrame) -> pd.DataFrame:
        columns: dict[str, Any] = {}
        for name, values in self.values.items():
            codes = values.get_indexer(X[name])
            if len(values) <= self.most_values:
                columns[name] = pd.Categorical.from_codes(codes, values)
            else:
                columns[name] = np.where(X[name].isna(), np.nan, codes)
        return X.assign(**columns)

    def predict(self, X: pd.DataFrame) -> Array:
        X = self.encoded(X)
        return getattr(self.model, "predict_proba", self.model.predict)(X)


class AsItIs(Encoded):
    """A model that takes the frame with its strings."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: pd.DataFrame, y: Array) -> Encoded:
        self.train(self.encoded(X), y)
        return self

    def encoded(self, X: pd.DataFrame) -> pd.DataFrame:
        return X


class Tuned(Encoded):
    """LightGBM that stops early, by rows drawn from the training rows (of each class)."""

    def train(self, X: pd.DataFrame, y: Array) -> None:
        import lightgbm

        classes = isinstance(self.model, lightgbm.LGBMClassifier)
        X, X_told, y, y_told = train_test_split(
            X, y, test_size=TUNED_SHARE, random_state=self.model.random_state,
            stratify=y if classes else None,
        )  # fmt: skip
        stop = lightgbm.early_stopping(TUNED_ROUNDS, verbose=False)
        self.model.fit(X, y, eval_set=[(X_told, y_told)], callbacks=[stop])


class Searched(AsItIs):
    """The best forest of a grid by its out-of-bag rows; it needs no refit."""

    def __init__(self, task: str, seed: int) -> None:
        self.task, self.seed = task, seed

    def train(self, X: pd.DataFrame, y: Array) -> None:
        grid, best = SEARCHED[self.task], np.inf
        for values in product(*grid.values()):
            forest = ours("forest", self.task)(
                300, oob_score=True, random_state=self.seed, n_jobs=THREADS,
                **dict(zip(grid, values, strict=True)),
            ).fit(X, y)  # fmt: skip
            if self.task == "Regressor":
                loss = -r2_score(y, forest.oob_prediction_)
            else:
                loss = log_loss(y, forest.oob_decision_function_)
            if loss < best:
                best, self.model = loss, forest


class CatBoost(AsItIs):
    missing = "missing"

    def train(self, X: pd.DataFrame, y: Array) -> None:
        self.model.fit(X, y, cat_features=categories(X))

    def encoded(self, X: pd.DataFrame) -> pd.DataFrame:
        return X.assign(**{c: X[c].astype(object).fillna(self.missing) for c in categories(X)})


class YDF(CatBoost):
    """A learner with one of YDF's templates."""

    missing = ""  # to YDF, too

    def __init__(self, learner: str, template: str, task: str, seed: int) -> None:
        import ydf

        ydf.verbose(0)
        kind = getattr(ydf, f"{learner}Learner")
        self.learner = kind(
            label="y", num_threads=THREADS, random_seed=seed,
            task=ydf.Task.REGRESSION if task == "Regressor" else ydf.Task.CLASSIFICATION,
            **kind.hyperparameter_templates()[template],
        )  # fmt: skip
        self.classes = task != "Regressor"

    def train(self, X: pd.DataFrame, y: Array) -> None:
        self.model = self.learner.train(X.assign(y=y))

    def predict(self, X: pd.DataFrame) -> Array:
        found = self.model.predict(self.encoded(X), num_threads=THREADS)
        if not self.classes:
            return found
        order = np.argsort([int(name) for name in self.model.label_classes()])
        return two_columns(found)[:, order]


def ours(kind: str, task: str) -> Any:
    return getattr(gpuforest, KINDS[kind] + task)


def plain(kind: str, task: str, seed: int, **parameters: Any) -> Encoded:
    return AsItIs(ours(kind, task)(random_state=seed, n_jobs=THREADS, **parameters))


def preset(kind: str, name: str, task: str, seed: int) -> Encoded:
    return AsItIs(ours(kind, task).preset(name, random_state=seed, n_jobs=THREADS))


def sklearn_forest(task: str, seed: int) -> Encoded:
    kind = getattr(ensemble, f"RandomForest{task}")
    return Encoded(kind(random_state=seed, n_jobs=THREADS), 0)


def sklearn_boosting(task: str, seed: int) -> Encoded:
    kind = getattr(ensemble, f"HistGradientBoosting{task}")
    return Encoded(kind(random_state=seed, categorical_features="from_dtype"), 255)


def lightgbm(task: str, seed: int, tuned: bool = False) -> Encoded:
    import lightgbm

    more = {**TUNED_BOTH, **TUNED[task]} if tuned else {}
    kind = getattr(lightgbm, f"LGBM{task}")
    model = kind(n_jobs=THREADS, random_state=seed, verbose=-1, **more)
    return (Tuned if tuned else Encoded)(model, np.inf)


def catboost(task: str, seed: int) -> Encoded:
    import catboost

    kind = getattr(catboost, f"CatBoost{task}")
    model = kind(thread_count=THREADS, random_seed=seed, verbose=0, allow_writing_files=False)
    return CatBoost(model)


# of a task ("Classifier" or "Regressor") and the number of the split
METHODS: dict[str, Callable[[str, int], Encoded]] = {
    **{f"gpuforest-{kind}-{name}": partial(preset, kind, name)
       for kind in KINDS for name in PRESETS},
    "gpuforest-forest-default": partial(plain, "forest"),
    "gpuforest-boosting-default": partial(plain, "boosting"),
    "gpuforest-forest-search": Searched,
    "sklearn-forest": sklearn_forest,
    "sklearn-hgb": sklearn_boosting,
    "lightgbm": lightgbm,
    "lightgbm-tuned": partial(lightgbm, tuned=True),
    "catboost": catboost,
    "ydf-forest": partial(YDF, "RandomForest", "benchmark_rank1v1"),
    "ydf-boosting": partial(YDF, "GradientBoostedTrees", "benchmark_rank1v1"),
}  # fmt: skip
OF_MANY_VALUES: dict[str, Callable[[str, int], Encoded]] = {
    **{f"gpuforest-{kind}-{way}": partial(plain, kind, categorical_split=way)
       for kind in ("forest", "boosting") for way in SPLITTERS},
    "catboost": catboost,
    "lightgbm": lightgbm,
}  # fmt: skip
ALL = {**METHODS, **OF_MANY_VALUES}
PACKAGES = {"sklearn": "scikit-learn", "gpuforest": "gpuforest"}


def simulated(name: str, n_rows: int = 20_000) -> tuple[pd.DataFrame, Array]:
    """Numbers and a column of many values: what it adds to the target is random (ids), smooth in
    the plane but for noise (zips, of Zipf's frequencies), or nothing (noise)."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(n_rows, 5))
    signal = numbers[:, 0] + 0.5 * numbers[:, 1] * numbers[:, 2]
    X = pd.DataFrame(numbers).add_prefix("x")
    if "zips" in name:
        share = 1 / np.arange(1, 5001)
        codes = rng.choice(5000, n_rows, p=share / share.sum())
        place = 2 * np.pi * rng.random((5000, 2))
        added = np.sin(place[:, 0]) + np.cos(place[:, 1]) + rng.normal(0, 0.5, 5000)
        signal = signal + added[codes]
    elif "unique" in name:
        codes = rng.permutation(n_rows)
    else:
        codes = rng.integers(2000, size=n_rows)
    if "-ids-" in name:
        signal = signal + rng.normal(size=2000)[codes]
    rng = np.random.default_rng(1)
    y = signal + rng.normal(size=n_rows)
    if not name.endswith("numbers"):
        y = (rng.random(n_rows) < 1 / (1 + np.exp(-signal))).astype(int)
    names = rng.permutation(100_000)[codes].astype(str)
    return (X if name == "sim-honest" else X.assign(name=pd.Series(names, dtype="str"))), y


SIMULATED = ("sim-ids-classes", "sim-ids-numbers", "sim-zips-classes", "sim-zips-numbers",
             "sim-honest", "sim-noise-values", "sim-noise-unique")  # fmt: skip


@lru_cache(2)
def data_of(name: str, folder: Path | None) -> tuple[pd.DataFrame, Array] | None:
    """Plain names of columns, since some libraries refuse others."""
    found = simulated(name) if name in SIMULATED else public_data.load(name, folder)
    return found and (found[0].set_axis([f"f{i}" for i in range(found[0].shape[1])], axis=1),
                      found[1])  # fmt: skip


def task_of(name: str) -> str:
    numbers = name.endswith("-numbers") if name in SIMULATED else public_data.BY_NAME[name].numbers
    return "Regressor" if numbers else "Classifier"


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


def ours_is(method: str) -> bool:
    return method.startswith("gpuforest")


def text_of(found: dict[str, Any]) -> str:
    return ", ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}"
                     for k, v in found.items())  # fmt: skip


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


Results = dict[tuple[str, str], dict[int, dict[str, Any]]]  # of set and method, by split


def summary(lines: Iterable[dict[str, Any]], options: argparse.Namespace) -> str:
    """Tables of the last results of each method, ours of --label only if it is given."""
    of: Results = defaultdict(dict)
    failed = set()
    for line in lines:
        wanted = not ours_is(line["method"]) or options.label in (None, line["label"])
        if not wanted or line["set"] not in options.sets:
            continue
        if "error" in line:
            failed.add(f"{line['method']} on {line['set']}: {line['error'][:100]}")
        else:
            of[line["set"], line["method"]][line["split"]] = line
    sets = [name for name in options.sets if any(name == key[0] for key in of)]
    methods = [name for name in options.methods if any(name == key[1] for key in of)]
    parts = []
    for title, keys in {"Log loss, or R2": None, "Accuracy": ["accuracy"],
                        "Seconds of fit": ["fit_s"], "CPU seconds of fit": ["fit_cpu_s"],
                        "Seconds of predict": ["predict_s"]}.items():  # fmt: skip
        rows = []
        for name in sets:
            cells = [mean_of(of.get((name, m)), keys or ["log_loss", "r2"]) for m in methods]
            rows.append([name, *cells])
        parts.append(f"{title}\n\n{record.table(['set', *methods], rows)}")
    rows = [row for pair in options.pairs if (row := row_of_pair(of, sets, *pair))]
    header = ["A beside B", "sets", "A better", "level", "B better", "fit A/B", "CPU A/B",
              "predict A/B"]  # fmt: skip
    parts += [record.table(header, rows), *gains(of, sets, methods), *sorted(failed)]
    return "\n\n".join(parts)


def mean_of(runs: dict[int, dict[str, Any]] | None, keys: list[str]) -> str:
    found = [run[key] for run in (runs or {}).values() for key in keys if key in run]
    return f"{np.mean(found):.4f}" if found else ""


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


def gains(of: Results, sets: list[str], methods: list[str]) -> list[str]:
    """What share of the search's gain a forest has: of log(loss of defaults / loss), over sets."""
    default, search, lines = "gpuforest-forest-default", "gpuforest-forest-search", []
    for method in methods:
        each = []
        for name in sets:
            three = [of.get((name, m), {}) for m in (default, search, method)]
            splits = sorted(set.intersection(*map(set, three)))
            if splits:
                losses = [np.mean([loss(runs[s]) for s in splits]) for runs in three]
                times = [np.mean([runs[s]["fit_s"] for s in splits]) for runs in three[1:]]
                each.append([np.log(losses[0] / losses[1]), np.log(losses[0] / losses[2]),
                             np.log(times[1] / times[0])])  # fmt: skip
        if each and method.startswith("gpuforest-forest-") and method not in (default, search):
            searched, own, time = np.mean(each, axis=0)
            lines.append(f"{method}: {100 * own / searched:.0f} % of the search's gain in "
                         f"{100 * np.exp(time):.1f} % of its time ({len(each)} sets)")  # fmt: skip
    return lines


def chosen(text: str | None, names: Iterable[str]) -> list[str]:
    """Of the names, those that one of the patterns fits; "rivals" are all but ours."""
    patterns = (text or "*").split(",")
    names = list(names)
    unknown = [p for p in patterns if p != "rivals" and not any(fnmatch(n, p) for n in names)]
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; there are {', '.join(names)}")
    return [n for n in names if any(fnmatch(n, p) or (p == "rivals" and not ours_is(n))
                                    for p in patterns)]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=("public", "many_values"), default="public")
    parser.add_argument("--sets", help="names or patterns (a,b*); by default those not sealed")
    parser.add_argument("--methods", help='names or patterns, or "rivals"; by default all')
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--limit", type=float, default=300, help="seconds of a fit, at most")
    parser.add_argument("--data", type=Path, help="folder of the real data sets")
    parser.add_argument("--sealed", action="store_true", help="the sealed sets, and only these")
    parser.add_argument("--label", help="of results of gpuforest; by default the commit")
    parser.add_argument("--again", action="store_true", help="also what is there")
    parser.add_argument("--summary", action="store_true", help="print tables, measure nothing")
    parser.add_argument("--results", type=Path, default=record.RESULTS / "presets.jsonl")
    parser.add_argument("--pairs", help="of methods, for the summary: a:b,c:d")
    options = parser.parse_args()
    options.pairs = [p.split(":") for p in options.pairs.split(",")] if options.pairs else PAIRS
    simulation = options.part == "many_values"
    options.methods = chosen(options.methods, OF_MANY_VALUES if simulation else METHODS)
    names = [n for n in public_data.BY_NAME if (n in public_data.SEALED) == options.sealed]
    options.sets = chosen(options.sets, SIMULATED if simulation else names)
    # of the processes to come; threads that spin as they wait would count as work
    os.environ |= {"OMP_NUM_THREADS": str(THREADS), "OMP_WAIT_POLICY": "passive"}
    if options.summary:
        print(summary(lines_of(options.results), options))
    else:
        run(options, record.Log("presets", options.results))


if __name__ == "__main__":
    main()
