"""What do choices by out-of-bag errors cost, and give?  python -m benchmarks.oob

--part trees: what does it cost to find the number of trees?
A forest of n_estimators="auto" beside one of the number of trees that it ended with, in turn
in one process, so that both meet the same noise: the ratio of each pair is what counts. The
forests must be equal before their seconds are.

--part choice: how much of what a search gains do max_features="oob" and min_samples_leaf="oob"
gain, and in what part of its time? All 25 pairs of numbers are tried, each with a forest: the best
of them on the test rows, which no search can be sure to find, and the best by their out-of-bag
loss are beside the choice. Gains are over the default, of R^2 or of minus the log loss, for which
a share is at least 0.001: forests of 300 trees know of none that is smaller.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

import gpuforest
from benchmarks import data, real
from benchmarks.record import Log, spread, table
from gpuforest.estimators.growing import LEAVES, SHARES
from gpuforest.estimators.settings import features_tried

SETS = ["A", "spambase", "california"]
CHOICES = ["digits", "cancer", "diabetes", "spambase", "letter", "adult", "bike", "california"]
GAINS = ["default", "best_gain", "search_gain", "gain", "chosen_tried", "time_share", "fits"]
COLUMNS = ["trees", "auto_s", "fixed_s", "ratio", "cpu_ratio"]


def load(name: str, rows: int, folder: Path | None) -> tuple[bool, Any, Any] | None:
    """Whether it is of classes, X and y, of a real set or of a made one of so many rows."""
    if name in data.SETS:
        made = data.make(name, rows, 1)
        return made.is_classes, made.X_train, made.y_train
    found = real.load(name, folder)
    return None if found is None else (name not in real.REGRESSIONS, *found)


def fitted(forest: Any, X: Any, y: Any) -> tuple[Any, dict[str, float]]:
    """The forest, its seconds, and those of all threads together."""
    wall, cpu = time.perf_counter(), time.process_time()
    forest.fit(X, y)
    return forest, {"s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}


def pair(forest: Any, X: Any, y: Any, seed: int) -> dict[str, Any]:
    """Both forests of a seed; of every other seed the fixed one is the first."""
    forest.set_params(random_state=seed)
    auto, auto_took = fitted(clone(forest), X, y)
    fixed, took = fitted(clone(forest).set_params(n_estimators=auto.n_estimators_), X, y)
    if seed % 2:
        auto, auto_took = fitted(clone(forest), X, y)
    assert np.array_equal(auto.forest_.nodes, fixed.forest_.nodes)
    assert np.array_equal(auto.forest_.leaf_sums, fixed.forest_.leaf_sums)
    return {
        "trees": auto.n_estimators_,
        "error": float(auto.oob_curve_.error[-1]),
        **{f"auto_{name}": value for name, value in auto_took.items()},
        **{f"fixed_{name}": value for name, value in took.items()},
        "ratio": auto_took["s"] / took["s"],
        "cpu_ratio": auto_took["cpu_s"] / took["cpu_s"],
    }


def score(y: Any, values: Any, is_classes: bool) -> float:
    """R^2, or minus the log loss of codes y; of rows out of every bag."""
    if not is_classes:
        return float(r2_score(y, values))
    return float(np.log(np.maximum(values[np.arange(len(y)), y], 0.001)).mean())


def choice(name: str, options: argparse.Namespace, seed: int) -> dict[str, Any] | None:
    """The default, the best of all pairs of numbers and the choice, on the rows of a seed."""
    if (loaded := load(name, options.rows, options.data)) is None:
        return None
    is_classes, X, y = loaded
    y = np.unique(y, return_inverse=True)[1] if is_classes else y
    sizes = {"train_size": 4000, "test_size": 4000} if len(y) > 8000 else {"test_size": 0.3}
    stratify = y if is_classes else None
    X, X_test, y, y_test = train_test_split(X, y, **sizes, random_state=seed, stratify=stratify)
    kind = gpuforest.RandomForestClassifier if is_classes else gpuforest.RandomForestRegressor

    def trial(oob_score: bool = False, **params: Any) -> dict[str, Any]:
        given = {"random_state": seed, "n_jobs": options.threads, "oob_score": oob_score}
        forest, took = fitted(kind(300, **given, **params), X, y)
        values = forest.predict_proba(X_test) if is_classes else forest.predict(X_test)
        found = {**took, "score": score(y_test, values, is_classes), **params}
        if oob_score:
            of_rows = forest.oob_decision_function_ if is_classes else forest.oob_prediction_
            found["oob"] = score(y, of_rows, is_classes)
        else:
            names = ("max_features", "min_samples_leaf")
            found |= {name: getattr(forest, f"{name}_") for name in names}
        tried = getattr(forest, "oob_parameters_", None)
        return found | ({} if tried is None else {"tried": len(tried.error)})

    trial(max_features=1)  # warms the caches
    default = trial()
    chosen = trial(max_features="oob", min_samples_leaf="oob")
    numbers = sorted({features_tried(share, X.shape[1]) for share in SHARES})
    grid = [trial(True, max_features=n, min_samples_leaf=m) for n in numbers for m in LEAVES]
    return {
        "default": default["score"],
        **{f"chosen_{key}": value for key, value in chosen.items()},
        "gain": chosen["score"] - default["score"],
        "best_gain": max(t["score"] for t in grid) - default["score"],
        "search_gain": max(grid, key=lambda t: t["oob"])["score"] - default["score"],
        "time_share": chosen["s"] / (50 * np.mean([t["s"] for t in grid])),
        "fits": chosen["s"] / default["s"],
    }


def print_choices(options: argparse.Namespace) -> None:
    log, rows = Log("oob"), []
    for name in options.sets or CHOICES:
        found = [choice(name, options, seed) for seed in range(options.pairs)]
        lines = [log.add(part="choice", set=name, seed=s, **f) for s, f in enumerate(found) if f]
        if lines:
            rows.append([name, *(spread([line[c] for line in lines], 4) for c in GAINS)])
            print(f"{name}: done", flush=True)
    print(table(["set", *GAINS], rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the real data sets")
    parser.add_argument("--part", choices=["trees", "choice"], default="trees")
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--rows", type=int, default=200_000, help="of made sets")
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--depth", type=int)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    if options.part == "choice":
        return print_choices(options)

    log, rows = Log("oob"), []
    for name in options.sets or SETS:
        loaded = load(name, options.rows, options.data)
        if loaded is None:
            continue
        is_classes, X, y = loaded
        kind = gpuforest.RandomForestClassifier if is_classes else gpuforest.RandomForestRegressor
        more = {"max_depth": options.depth, "n_jobs": options.threads}
        forest = kind("auto", **more)
        clone(forest).set_params(n_estimators=2).fit(X, y)  # compiles, and warms the caches
        about = {"set": name, "rows": len(X), "features": X.shape[1], **more}
        found = [log.add(**about, seed=s, **pair(forest, X, y, s)) for s in range(options.pairs)]
        rows.append([name, *(spread([line[c] for line in found]) for c in COLUMNS)])
        print(f"{name}: done", flush=True)
    print(table(["set", *COLUMNS], rows))


if __name__ == "__main__":
    main()
