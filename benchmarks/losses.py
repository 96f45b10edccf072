"""What losses of boosting cost.  python -m benchmarks.losses

Functions beside the built-in losses that they compute, on made rows of 20 features; and on public
sets three quantiles of one model beside a model for each, by the mean of their pinball losses on a
quarter of the rows. 100 rounds, no early stopping. Methods take turns, each in a process of its
own.
"""

from __future__ import annotations

import argparse
import time
from itertools import product
from typing import Any

import numpy as np
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import train_test_split

from benchmarks import public_data
from benchmarks.record import Log, options_of, show
from benchmarks.turns import Found, take_turns

LEVELS = [0.05, 0.5, 0.95]
SETS = ("ames", "diamonds", "loans", "chemistry", "lecturers")
WORKS = ("squared_error", "log_loss", *SETS)


def squared_error(y: Any, raw: Any, weight: Any) -> tuple[Any, Any]:
    return raw - y, None


def log_loss(y: Any, raw: Any, weight: Any) -> tuple[Any, Any]:
    p = 1.0 / (1.0 + np.exp(-raw))
    return p - y, p * (1.0 - p)


FUNCTIONS = {"squared_error": squared_error, "log_loss": log_loss}
ONE_TREE = {"multi_strategy": "multi_output_tree"}
MODELS: dict[str, list[dict[str, Any]]] = {
    "a model for each": [{"quantile": level} for level in LEVELS],
    "together": [{"quantile": LEVELS}],
    "one tree": [{"quantile": LEVELS, **ONE_TREE}],
    "one tree (127 leaves)": [{"quantile": LEVELS, **ONE_TREE, "max_leaf_nodes": 127}],
}


def timed(models: Any, X: Any, y: Any) -> dict[str, float]:
    begin, cpu = time.perf_counter(), time.process_time()
    for model in models:
        model.fit(X, y)
    return {"fit_s": time.perf_counter() - begin, "fit_cpu_s": time.process_time() - cpu}


def fit(work: str, split: int, method: str, options: argparse.Namespace) -> Found:
    import gpuforest

    given = {"early_stopping": False, "random_state": split, "n_jobs": options.threads}
    if work in FUNCTIONS:
        kind = gpuforest.HistGradientBoostingRegressor
        kind = gpuforest.HistGradientBoostingClassifier if work == "log_loss" else kind
        rng = np.random.default_rng(split)
        X = rng.normal(size=(options.rows, 20))
        y: Any = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=options.rows)
        y = y > 0 if work == "log_loss" else y
        model = kind(loss=FUNCTIONS[work] if method == "function" else work, **given)
        return timed([model.fit(X[:1000], y[:1000])], X, y)
    if (found := public_data.numbers(work, options.data, public_data.MOST_ROWS)) is None:
        return None
    X, X_test, y, y_test = train_test_split(*found, test_size=0.25, random_state=split)
    kind = gpuforest.HistGradientBoostingRegressor
    models = [kind("quantile", **given, **more) for more in MODELS[method]]
    timed(models, X[:1000], y[:1000])
    figures = timed(models, X, y)
    guesses = np.column_stack([model.predict(X_test) for model in models])
    each = zip(LEVELS, guesses.T, strict=True)
    losses = [mean_pinball_loss(y_test, guess, alpha=level) for level, guess in each]
    return figures | {"pinball": float(np.mean(losses) / y_test.std())}


def main() -> None:
    numbers: dict[str, Any] = {"repetitions": 5, "rows": 1_000_000, "threads": 2}
    methods = ["built-in", "function", *MODELS]
    options = options_of(__doc__, sets=[*WORKS], methods=methods, **numbers)
    every = product(options.sets, range(options.repetitions), options.methods)
    jobs = [job for job in every if (job[0] in FUNCTIONS) == (job[2] not in MODELS)]
    lines = take_turns(Log("losses", threads=options.threads), jobs, fit, options)
    ways = {"fit_s": ("median", "ratio"), "fit_cpu_s": ("ratio",)}
    for part in (FUNCTIONS, SETS):
        some = [line for line in lines if line["set"] in part]
        show(some, ways | ({} if part is FUNCTIONS else {"pinball": ("mean", "difference")}))


if __name__ == "__main__":
    main()
