"""Gradient boosting beside other libraries.  python -m benchmarks.boosting

Works: real data sets where they are (a quarter is for testing); adult with its categories as they
are; A (made data like HIGGS); C (400,000 x 90, regression); and 500, 1000 and 2000 made rows of 20
features. 100 rounds, learning rate 0.1, 31 leaves, 20 rows a leaf, no early stopping; XGBoost has
no least number of rows. Splits are drawn by the number of the repetition, the same for all
libraries. These take turns, each in a process of its own that has fitted before. Processor time is
that of all threads; memory is the highest during a fit above that before it. Differences of scores
are to the better of scikit-learn and LightGBM.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pandas as pd
import sklearn.ensemble
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import gpuforest
from benchmarks import data, real
from benchmarks.categories import adult
from benchmarks.one_fit import Memory, median
from benchmarks.record import Log, spread, table

Array = Any
REAL = ("spambase", "letter", "adult", "covtype", "california", "bike")
SMALL = ("500", "1000", "2000")
NUMBERS = ("california", "bike", "C")  # works of regression
MOST_ROWS = 134_000  # of covtype: 100,000 to train on
ROWS_OF_C = 400_000
NAMES = {
    "ours": "gpuforest",
    "sklearn": "scikit-learn",
    "lightgbm": "LightGBM",
    "xgboost": "XGBoost",
    "catboost": "CatBoost",
}
LIKE_OURS = ("sklearn", "lightgbm")  # the same rules, so the same scores are expected
MODULES = {
    "sklearn": "sklearn",
    "lightgbm": "lightgbm",
    "xgboost": "xgboost",
    "catboost": "catboost",
}


@cache
def load(name: str, rows: int, folder: Path | None) -> tuple[Array, Array] | None:
    """X and y of a work."""
    if name in SMALL:
        return make_classification(int(name) * 4 // 3, 20, n_informative=8, random_state=0)
    if name in data.SETS:
        made = data.make(name, ROWS_OF_C if name == "C" else rows, 50_000)
        return (
            np.concatenate([made.X_train, made.X_test]),
            np.concatenate([made.y_train, made.y_test]),
        )
    if name == "adult":
        try:
            parts = adult(folder or real.BESIDE)
        except FileNotFoundError:
            return None
        X = pd.concat([X for X, _ in parts], ignore_index=True)
        strings = X.select_dtypes(exclude="number").columns
        return X.astype(dict.fromkeys(strings, "category")), np.unique(
            np.concatenate([y for _, y in parts]), return_inverse=True
        )[1]
    found = real.load(name, folder)
    if found is None:
        return None
    X, y = found
    if len(y) > MOST_ROWS:
        chosen = np.random.default_rng(0).permutation(len(y))[:MOST_ROWS]
        X, y = X[chosen], y[chosen]
    return X, np.unique(y, return_inverse=True)[1] if name not in NUMBERS else y


def model_of(name: str, task: str, threads: int) -> Any:
    """The estimator of a library."""
    if name == "ours":
        ours = getattr(gpuforest, f"HistGradientBoosting{task}")
        return ours(early_stopping=False, random_state=0, n_jobs=threads)
    if name == "sklearn":
        kind = getattr(sklearn.ensemble, f"HistGradientBoosting{task}")
        return kind(early_stopping=False, random_state=0, categorical_features="from_dtype")
    if name == "lightgbm":
        import lightgbm

        return getattr(lightgbm, f"LGBM{task}")(n_jobs=threads, verbose=-1)
    if name == "xgboost":
        import xgboost

        return getattr(xgboost, f"XGB{task}")(
            n_estimators=100, learning_rate=0.1, max_leaves=31, max_depth=0, n_jobs=threads,
            grow_policy="lossguide", tree_method="hist", max_bin=255, enable_categorical=True,
        )  # fmt: skip
    import catboost

    return getattr(catboost, f"CatBoost{task}")(
        n_estimators=100, learning_rate=0.1, max_leaves=31, grow_policy="Lossguide",
        min_data_in_leaf=20, thread_count=threads, verbose=False, allow_writing_files=False,
    )  # fmt: skip


def measured(model: Any, parts: list[Array]) -> dict[str, float]:
    """Scores on the test rows, seconds and processor seconds of the fit, its memory, and the time
    of predictions."""
    X, X_test, y, y_test = parts
    memory = Memory()
    before = memory.restart()
    start, cpu = perf_counter(), process_time()
    model.fit(X, y)
    found = {"seconds": perf_counter() - start, "cpu": process_time() - cpu}
    found["peak_mb"] = memory.peak() - before
    predict = getattr(model, "predict_proba", model.predict)
    found["predict"] = median(lambda: predict(X_test), 1, 3)
    row = X_test[:1]
    found["one_row_ms"] = 1e3 * median(lambda: predict(row), 3, 50, 0.5)
    found["score"] = float(model.score(X_test, y_test))
    if hasattr(model, "predict_proba"):
        found["log_loss"] = float(log_loss(y_test, model.predict_proba(X_test)))
    return found


def difference(ours: list[float], others: list[list[float]], sign: int) -> str:
    """The mean of our value less the better other's, and its standard error."""
    if not others:
        return ""
    best = max(others, key=lambda own: sign * np.mean(own))
    each = np.subtract(ours, best)
    error = each.std(ddof=1) / np.sqrt(len(each)) if len(each) > 1 else np.nan
    return f"{each.mean():+.4f} ± {error:.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--works", default=",".join((*REAL, "A", "C", *SMALL)))
    parser.add_argument("--rivals", default=",".join(list(NAMES)[1:]))
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--rows", type=int, default=200_000, help="training rows of A")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--data", type=Path, help="folder of the real data sets")
    options = parser.parse_args()
    log, tables = Log("boosting"), []
    names = [
        n for n in ("ours", *options.rivals.split(",")) if n == "ours" or find_spec(MODULES[n])
    ]
    spawn = get_context("spawn")
    # a process each: waiting threads of one library would slow the others
    processes = {name: ProcessPoolExecutor(1, spawn) for name in names}
    for work in options.works.split(","):
        found = results_of(work, options, processes)
        for name, each in found.items():
            values = {key: [one[key] for one in each] for key in each[0]}
            log.add(work=work, library=NAMES[name], threads=options.threads, **values)
        tables += rows_of(work, found)
        print(f"{work}: {'done' if found else 'skipped, its data are not here'}", flush=True)
    header = ["work", "library", "score", "difference", "log loss", "difference"]
    header += ["fit s", "CPU s", "peak MB", "predict s", "one row ms"]
    print(f"\n{table(header, tables)}")


def results_of(
    work: str, options: argparse.Namespace, processes: dict[str, ProcessPoolExecutor]
) -> dict[str, list[dict[str, float]]]:
    """What each library did with a work, repetition by repetition."""
    results: dict[str, list[dict[str, float]]] = {}
    for repetition in range(options.repetitions):
        for name, process in processes.items():
            found = process.submit(one_fit, work, name, repetition, options).result()
            if found is not None:
                results.setdefault(name, []).append(found)
    return results


def one_fit(
    work: str, name: str, repetition: int, options: argparse.Namespace
) -> dict[str, float] | None:
    """A fit of a library, whose first fit takes longer and is not measured; None without data."""
    made = load(work, options.rows, options.data)
    if made is None:
        return None
    X, y = made
    task = "Regressor" if work in NUMBERS else "Classifier"
    if repetition == 0:
        first = model_of(name, task, options.threads)
        rounds = "max_iter" if "max_iter" in first.get_params() else "n_estimators"
        first.set_params(**{rounds: 2}).fit(X[:5000], y[:5000])
    parts = train_test_split(X, y, test_size=0.25, random_state=repetition)
    return {"rows": len(y), **measured(model_of(name, task, options.threads), parts)}


def rows_of(work: str, results: dict[str, list[dict[str, float]]]) -> list[list[str]]:
    """A line of the table for each library."""
    lines = []
    for name, found in results.items():
        line = [work, NAMES[name]]
        for key, sign in (("score", 1), ("log_loss", -1)):
            if key not in found[0]:
                line += ["", ""]
                continue
            own = [one[key] for one in found]
            rest = [[one[key] for one in results[n]] for n in LIKE_OURS if n in results]
            line += [f"{np.mean(own):.4f}", difference(own, rest, sign) if name == "ours" else ""]
        for key, digits in (("seconds", 3), ("cpu", 3), ("peak_mb", 0), ("predict", 3),
                            ("one_row_ms", 2)):  # fmt: skip
            line.append(spread([one[key] for one in found], digits))
        lines.append(line)
    return lines


if __name__ == "__main__":
    main()
