"""SHAP values beside the package shap's TreeExplainer, which must be installed.

`python -m benchmarks.shap`: 100 trees on the data of A (see works.py), of depth 16 and of unlimited
depth; path-dependent values, those of pairs of features, and interventional values, whose
background is training rows. Ours explains a few hundred rows; shap, which has one thread, explains
a few of the same trees, through `to_sklearn`. Times are in milliseconds a row, runs alternate, and
the log has the largest differences. Processor time counts all threads, and other programs change it
little.

Beside a background shap 0.51 is not asked about trees of unlimited depth: it ends the process there
(a segmentation fault).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import shap

from benchmarks import data
from benchmarks.record import Log, table
from gpuforest import RandomForestClassifier

Array = np.ndarray
KINDS = ("ours", "interactions", "shap", "background", "shap_background")  # what is timed


def timed(explain: Callable[[Array], Array], X: Array) -> tuple[list[float], Array]:
    """Milliseconds a row, of the clock and of processors, and what was found."""
    begin = time.perf_counter(), time.process_time()
    found = explain(X)
    end = time.perf_counter(), time.process_time()
    return [(b - a) / len(X) * 1e3 for a, b in zip(begin, end, strict=True)], found


def compare(depth: int | None, options: argparse.Namespace) -> dict[str, Any]:
    made = data.make("A", options.train_rows, options.rows)
    model = RandomForestClassifier(
        options.trees, max_depth=depth, random_state=0, n_jobs=options.threads
    ).fit(made.X_train, made.y_train)
    X, background = made.X_test, made.X_train[: options.background]
    few, fewer = X[: options.shap_rows], X[: max(1, options.rows // 8)]
    twin = model.to_sklearn()
    theirs = shap.TreeExplainer(twin)
    beside = shap.TreeExplainer(twin, data=background, feature_perturbation="interventional")

    def beside_background(X: Array) -> Array:
        return np.asarray(model.shap_values(X, background=background))

    ways: dict[str, tuple[Callable[[Array], Array], Array]] = {
        "ours": (model.shap_values, X),
        "interactions": (model.shap_interaction_values, fewer),
        "shap": (lambda X: theirs.shap_values(X, check_additivity=False), few),
        "background": (beside_background, X),
    }
    if depth is not None:
        ways["shap_background"] = lambda X: beside.shap_values(X, check_additivity=False), few
    for name in ("ours", "interactions", "background"):
        ways[name][0](X[:1])  # the first use loads kernels
    times: dict[str, list[list[float]]] = {name: [] for name in KINDS}
    found: dict[str, Array] = {}
    for _ in range(options.runs):
        for name, (explain, rows) in ways.items():
            ms, found[name] = timed(explain, rows)
            times[name].append(ms)
    predicted = model.predict_proba(X)
    totals = (
        found["ours"].sum(axis=1) + model.expected_value_,
        found["background"].sum(axis=1) + model.expected_value(background),
    )
    expected = found.get("shap_background")
    return {
        "depth": depth,
        "trees": options.trees,
        "rows": len(X),
        "threads": options.threads,
        "background_rows": len(background),
        **times,
        "difference": largest(found["ours"][: len(few)], found["shap"]),
        # shap has weights of 32 bits with a background
        "difference_background": None
        if expected is None
        else largest(found["background"][: len(few)], expected),
        "sum_error": max(largest(total, predicted) for total in totals),
    }


def largest(found: Array, expected: Array) -> float:
    return float(np.abs(found - expected).max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--train-rows", type=int, default=200_000)
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--shap-rows", type=int, default=8)
    parser.add_argument("--background", type=int, default=100, help="rows of the background")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    log, rows = Log("shap"), []
    for depth in (16, None):
        found = compare(depth, options)
        log.add(**found)
        medians = np.array([np.median(found[name] or [[np.nan] * 2], axis=0) for name in KINDS])
        for clock, ms in zip(("clock", "processors"), medians.T, strict=True):
            ours, both, theirs, beside, theirs_beside = ms
            ratios = (theirs / ours, theirs / both, theirs_beside / beside)
            rows.append([f"{depth or 'unlimited'}, {clock}"] + [f"{x:.3g}" for x in (*ms, *ratios)])
    head = ["depth", "values, ms a row", "interactions", "shap's values"]
    head += ["with a background", "shap's", "shap's / ours", "shap's values / interactions"]
    print(table([*head, "shap's / ours, background"], rows))


if __name__ == "__main__":
    main()
