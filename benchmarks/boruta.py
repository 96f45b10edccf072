"""Which features BorutaSelector finds, beside the package Boruta.  python -m benchmarks.boruta

Data like Madelon (Guyon 2003): the corners of a cube of 5 dimensions are two classes at random;
5 features are the dimensions, 15 are sums of these, and 480 of the 500 are noise. A share of 1 %
of the labels is flipped. A selector should find the 20 that say something and none of the others.

The package (`BorutaPy`) runs on scikit-learn's forest. Both have 100 trees of any depth, at most
100 rounds, alpha = 0.05 and two threads, and take turns.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier as TheirForest

from benchmarks.record import Log, spread, table
from gpuforest import BorutaSelector, RandomForestClassifier

Array = np.ndarray

INFORMATIVE, REDUNDANT = 5, 15
RELEVANT = INFORMATIVE + REDUNDANT
IMPORTANCES = ["oob_impurity", "impurity"]


def like_madelon(rows: int, features: int, seed: int) -> tuple[Array, Array]:
    """X f32[rows, features], of which the first RELEVANT say something, and y."""
    X, y = make_classification(
        rows,
        features,
        n_informative=INFORMATIVE,
        n_redundant=REDUNDANT,
        n_clusters_per_class=2 ** (INFORMATIVE - 1),
        flip_y=0.01,
        shuffle=False,
        random_state=seed,
    )
    return X.astype(np.float32), y


def selectors(options: argparse.Namespace, seed: int) -> dict[str, Callable[[], Any]]:
    """What is compared, by name."""
    trees, rounds = options.trees, options.rounds
    found: dict[str, Callable[[], Any]] = {
        f"gpuforest, {importance}": lambda importance=importance: BorutaSelector(
            RandomForestClassifier(trees, n_jobs=2),
            importance=importance,
            max_iter=rounds,
            random_state=seed,
        )
        for importance in options.importances
    }
    if seed < options.rivals:
        try:
            from boruta import BorutaPy
        except ImportError:
            print("Boruta: skipped, it is not installed")
        else:
            found["Boruta on scikit-learn"] = lambda: BorutaPy(
                TheirForest(n_jobs=2), n_estimators=trees, max_iter=rounds, random_state=seed
            )
    return found


def one(name: str, selector: Any, X: Array, y: Array) -> dict[str, Any]:
    """The features that a selector finds, and its seconds."""
    begin = time.perf_counter()
    selector.fit(X, y)
    seconds = time.perf_counter() - begin
    return {
        "selector": name,
        "relevant": int(selector.support_[:RELEVANT].sum()),
        "others": int(selector.support_[RELEVANT:].sum()),
        "tentative": int(selector.support_weak_.sum()),
        "rounds": getattr(selector, "n_iter_", None),
        "seconds": seconds,
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--features", type=int, default=500)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rivals", type=int, default=3, help="seeds on which Boruta runs")
    parser.add_argument("--importances", nargs="*", default=IMPORTANCES)
    parser.add_argument("--results", type=Path, help="a file of JSON lines to append to")
    options = parser.parse_args(arguments)
    log = Log("boruta", options.results, rows=options.rows, features=options.features)
    found: dict[str, list[dict[str, Any]]] = {}
    for seed in range(options.seeds):
        X, y = like_madelon(options.rows, options.features, seed)
        for name, make in selectors(options, seed).items():
            row = one(name, make(), X, y)
            log.add(seed=seed, trees=options.trees, **row)
            print(seed, row, flush=True)
            found.setdefault(name, []).append(row)
    columns = ("relevant", "others", "tentative", "seconds")
    rows = [
        [name, str(len(each)), *(spread([row[c] for row in each], 0) for c in columns)]
        for name, each in found.items()
    ]
    print(table(["", "seeds", *columns], rows))


if __name__ == "__main__":
    main()
