"""AdaBoost beside scikit-learn's: accuracy and time of a fit.  python -m benchmarks.adaboost

Works, each with splits drawn by the number of the repetition, the same for both libraries:

- sphere: the example 10.2 of Hastie, Tibshirani and Friedman 2009. 2,000 rows of ten standard
  normals, y = 1 where their sum of squares exceeds its median, 9.34; 10,000 test rows; 400 stumps.
- spambase, 200 trees of depth 1 and of depth 4; letter, 100 trees of depth 10; a quarter is for
  testing.
- california and bike, regression: 50 trees of depth 3, and of depth 10; a quarter is for testing.

Both libraries fit on one thread (scikit-learn's AdaBoost has no other way). The two take turns, and
both have fitted once before.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import sklearn.ensemble
import sklearn.tree
from sklearn.model_selection import train_test_split

import gpuforest
from benchmarks import real
from benchmarks.record import Log, spread, table

Array = np.ndarray
Split = tuple[Array, Array, Array, Array]  # X, X_test, y, y_test
SEED = 7
MEDIAN = 9.34  # of the chi-squared distribution with ten degrees of freedom


@dataclass(frozen=True)
class Work:
    """A data set, and what is grown on it."""

    name: str
    split: Callable[[int], Split]
    task: str  # the end of an estimator's name
    n_estimators: int
    max_depth: int


def sphere(repetition: int) -> Split:
    """2,000 rows and 10,000 test rows of example 10.2."""
    X = np.random.default_rng([SEED, repetition]).standard_normal((12_000, 10))
    y = ((X**2).sum(axis=1) > MEDIAN).astype(np.int64)
    return X[:2000], X[2000:], y[:2000], y[2000:]


def works() -> list[Work]:
    """All works whose data are here."""
    found = [Work("sphere", sphere, "Classifier", 400, 1)]
    for name, task, n_estimators, depths in (
        ("spambase", "Classifier", 200, (1, 4)),
        ("letter", "Classifier", 100, (10,)),
        ("california", "Regressor", 50, (3, 10)),
        ("bike", "Regressor", 50, (3, 10)),
    ):
        if (data := real.load(name)) is not None:
            X, y = np.nan_to_num(data[0]), data[1]  # scikit-learn's AdaBoost refuses NaN

            def split(repetition: int, X: Array = X, y: Array = y) -> Split:
                return tuple(train_test_split(X, y, test_size=0.25, random_state=repetition))

            found += [Work(name, split, task, n_estimators, depth) for depth in depths]
    return found


def models(work: Work, repetition: int) -> dict[str, Any]:
    """The estimator of each library."""
    found = {}
    for name, ensemble, trees in (
        ("gpuforest", gpuforest, gpuforest),
        ("scikit-learn", sklearn.ensemble, sklearn.tree),
    ):
        tree = getattr(trees, f"DecisionTree{work.task}")(max_depth=work.max_depth)
        kind = getattr(ensemble, f"AdaBoost{work.task}")
        found[name] = kind(tree, n_estimators=work.n_estimators, random_state=repetition)
    return found


def measured(model: Any, split: Split) -> dict[str, float]:
    """Score on the test rows, and seconds of the fit."""
    X, X_test, y, y_test = split
    start = perf_counter()
    model.fit(X, y)
    seconds = perf_counter() - start
    return {"seconds": seconds, "score": float(model.score(X_test, y_test))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    log, rows = Log("adaboost"), []
    for work in works():
        for model in models(work, 0).values():  # the first fit of a process takes longer
            X, _, y, _ = work.split(0)
            model.set_params(n_estimators=2).fit(X, y)
        results: dict[str, list[dict[str, float]]] = {}
        for repetition in range(options.repetitions):
            split = work.split(repetition)
            for name, model in models(work, repetition).items():
                results.setdefault(name, []).append(measured(model, split))
        row = [f"{work.name}, {work.n_estimators} trees of depth {work.max_depth}"]
        for name, found in results.items():
            score, seconds = ([each[key] for each in found] for key in ("score", "seconds"))
            log.add(
                work=work.name,
                n_estimators=work.n_estimators,
                max_depth=work.max_depth,
                library=name,
                scores=score,
                seconds=seconds,
            )
            row += [f"{np.mean(score):.4f}", spread(seconds)]
        rows.append(row)
        print(f"{row[0]}: done", flush=True)
    header = ["work", "score", "seconds", "scikit-learn: score", "seconds"]
    print(f"\n{table(header, rows)}")


if __name__ == "__main__":
    main()
