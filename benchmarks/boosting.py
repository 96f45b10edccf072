"""Gradient boosting beside scikit-learn's and LightGBM's.  python -m benchmarks.boosting

Works: real data sets where they are (a quarter is for testing), A (made data like HIGGS) and, for
time alone, C (regression, 90 features). 100 rounds, learning rate 0.1, 31 leaves, 20 rows a leaf,
no early stopping. Splits are drawn by the number of the repetition, the same for all libraries,
which take turns; all have fitted once before. Processor time is that of all threads.
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import sklearn.ensemble
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import gpuforest
from benchmarks import data, real
from benchmarks.record import Log, spread, table

Array = np.ndarray
REAL = ("spambase", "letter", "covtype", "california", "bike")
NUMBERS = ("california", "bike", "C")  # works of regression
MOST_ROWS = 134_000  # of covtype: 100,000 to train on
NAMES = {"ours": "gpuforest", "sklearn": "scikit-learn", "lightgbm": "LightGBM"}


def load(name: str, rows: int, folder: Path | None) -> tuple[Array, Array] | None:
    """X and y of a set."""
    if name in data.SETS:
        made = data.make(name, rows, 50_000)
        return (
            np.concatenate([made.X_train, made.X_test]),
            np.concatenate([made.y_train, made.y_test]),
        )
    found = real.load(name, folder)
    if found is None:
        return None
    X, y = found
    if len(y) > MOST_ROWS:
        chosen = np.random.default_rng(0).permutation(len(y))[:MOST_ROWS]
        X, y = X[chosen], y[chosen]
    return X, y


def models(task: str, threads: int) -> dict[str, Any]:
    """The estimator of each library that is there."""
    found = {
        "ours": getattr(gpuforest, f"HistGradientBoosting{task}")(
            early_stopping=False, random_state=0, n_jobs=threads
        ),
        "sklearn": getattr(sklearn.ensemble, f"HistGradientBoosting{task}")(
            early_stopping=False, random_state=0
        ),
    }
    if find_spec("lightgbm"):
        import lightgbm

        kind = lightgbm.LGBMClassifier if task == "Classifier" else lightgbm.LGBMRegressor
        found["lightgbm"] = kind(n_jobs=threads, verbose=-1)
    return found


def measured(model: Any, parts: list[Array]) -> dict[str, float]:
    """Scores on the test rows, seconds and processor seconds of the fit, seconds of predictions."""
    X, X_test, y, y_test = parts
    start, cpu = perf_counter(), process_time()
    model.fit(X, y)
    found = {"seconds": perf_counter() - start, "cpu": process_time() - cpu}
    start = perf_counter()
    score = model.score(X_test, y_test)
    found |= {"predict": perf_counter() - start, "score": float(score)}
    if hasattr(model, "predict_proba"):
        found["log_loss"] = float(log_loss(y_test, model.predict_proba(X_test)))
    return found


def difference(ours: list[float], others: list[list[float]], sign: int) -> str:
    """The mean of our value less the better other's, and its standard error."""
    best = max(others, key=lambda own: sign * np.mean(own))
    each = np.subtract(ours, best)
    error = each.std(ddof=1) / np.sqrt(len(each)) if len(each) > 1 else np.nan
    return f"{each.mean():+.4f} ± {error:.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--works", default=",".join((*REAL, "A", "C")))
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--rows", type=int, default=200_000, help="training rows of made sets")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--data", type=Path, help="folder of the real data sets")
    options = parser.parse_args()
    log, rows = Log("boosting"), []
    for work in options.works.split(","):
        made = load(work, options.rows, options.data)
        if made is None:
            print(f"{work}: skipped, its data are not here")
            continue
        X, y = made
        task = "Regressor" if work in NUMBERS else "Classifier"
        for model in models(task, options.threads).values():  # the first fit takes longer
            first = model.get_params()
            rounds = "max_iter" if "max_iter" in first else "n_estimators"
            model.set_params(**{rounds: 2}).fit(X[:5000], y[:5000])
        results: dict[str, list[dict[str, float]]] = {}
        for repetition in range(options.repetitions):
            parts = train_test_split(X, y, test_size=0.25, random_state=repetition)
            for name, model in models(task, options.threads).items():
                results.setdefault(name, []).append(measured(model, parts))
        rows.append(row_of(work, results))
        for name, found in results.items():
            values = {key: [each[key] for each in found] for key in found[0]}
            log.add(work=work, rows=len(y), library=NAMES[name], threads=options.threads, **values)
        print(f"{work}: done", flush=True)
    header = ["work", "score", "less the better's", "log loss", "less the better's"]
    header += [f"{NAMES[name]}: {what}" for name in results for what in ("s", "CPU s", "predict s")]
    print(f"\n{table(header, rows)}")


def row_of(work: str, results: dict[str, list[dict[str, float]]]) -> list[str]:
    """A line of the table."""

    def values(name: str, key: str) -> list[float]:
        return [each[key] for each in results[name]]

    others = [name for name in results if name != "ours"]
    row = [work]
    for key, sign in (("score", 1), ("log_loss", -1)):
        if key not in results["ours"][0]:
            row += ["", ""]
            continue
        ours = values("ours", key)
        rest = [values(name, key) for name in others]
        row += [f"{np.mean(ours):.4f}", difference(ours, rest, sign)]
    for name in results:
        row += [spread(values(name, key)) for key in ("seconds", "cpu", "predict")]
    return row


if __name__ == "__main__":
    main()
