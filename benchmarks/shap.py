"""SHAP values beside the package shap's TreeExplainer, which must be installed.

`python -m benchmarks.shap`: 100 trees on the data of A (see works.py), of depth 16 and of unlimited
depth. Ours explains a few hundred rows; shap, which has one thread, explains a few of the same
trees, through `to_sklearn`. Times are in milliseconds a row, runs alternate, and the log has the
largest difference. Processor time counts all threads, and other programs change it little.
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
    theirs, X = shap.TreeExplainer(model.to_sklearn()), made.X_test
    few, interacting = X[: options.shap_rows], X[: max(1, options.rows // 8)]
    model.shap_values(X[:1])  # the first use loads kernels
    model.shap_interaction_values(X[:1])
    ours, shaps, both = [], [], []
    for _ in range(options.runs):
        ms, found = timed(model.shap_values, X)
        ours.append(ms)
        both.append(timed(model.shap_interaction_values, interacting)[0])
        ms, expected = timed(lambda X: theirs.shap_values(X, check_additivity=False), few)
        shaps.append(ms)
    total = found.sum(axis=1) + model.expected_value_
    return {
        "depth": depth,
        "trees": options.trees,
        "rows": len(X),
        "threads": options.threads,
        "ours": ours,
        "interactions": both,
        "shap": shaps,
        "difference": float(np.abs(found[: len(few)] - expected).max()),
        "sum_error": float(np.abs(total - model.predict_proba(X)).max()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--train-rows", type=int, default=200_000)
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--shap-rows", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    log, rows = Log("shap"), []
    for depth in (16, None):
        found = compare(depth, options)
        log.add(**found)
        times = [np.median(found[name], axis=0) for name in ("ours", "interactions", "shap")]
        for clock, (ours, both, theirs) in zip(
            ("clock", "processors"), np.transpose(times), strict=True
        ):
            name = f"{depth or 'unlimited'}, {clock}"
            rows.append(
                [name, f"{ours:.2f}", f"{both:.1f}", f"{theirs:.1f}", f"{theirs / ours:.0f}"]
            )
    print(table(["depth", "values, ms a row", "interactions", "shap's values", "times"], rows))


if __name__ == "__main__":
    main()
