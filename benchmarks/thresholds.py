"""Does it matter where in a gap a threshold lies?  python -m benchmarks.thresholds

Our threshold lies in the middle of the empty bins between both sides of a node, scikit-learn's at
the mean of the two nearest values that the node holds. A forest is grown once and scored with both,
on rows held out: the trees are the same but for their thresholds.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

import gpuforest
from benchmarks import real
from benchmarks.record import Log, scores, table

SETS = ["spambase", "letter", "digits", "cancer", "california", "bike", "diabetes"]


def move_thresholds(tree: Any, X: np.ndarray) -> None:
    """Put each threshold of a scikit-learn tree at the mean of the two values nearest to it, among
    the rows X f32[n, F] that it was grown from."""
    nodes = tree.tree_
    path = tree.decision_path(X).tocsc()
    for node in np.flatnonzero(nodes.children_left >= 0):
        rows = path.indices[path.indptr[node] : path.indptr[node + 1]]
        values = X[rows, nodes.feature[node]].astype(np.float64)
        left, right = values <= nodes.threshold[node], values > nodes.threshold[node]
        if left.any() and right.any():  # elsewhere missing values alone go one way
            nodes.threshold[node] = (values[left].max() + values[right].min()) / 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the real data sets")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--trees", type=int, default=50)
    options = parser.parse_args()

    log, rows = Log("thresholds"), []
    for name in options.sets:
        loaded = real.load(name, options.data)
        if loaded is None:
            continue
        regression = name in real.REGRESSIONS
        kind = gpuforest.RandomForestRegressor if regression else gpuforest.RandomForestClassifier
        changes: dict[str, list[float]] = {}
        for seed in range(1, options.seeds + 1):
            X_train, X_test, y_train, y_test = train_test_split(*loaded, random_state=seed)
            ours = kind(options.trees, max_bins=65_535, random_state=seed, n_jobs=2)
            bags = ours.fit(X_train, y_train).estimators_samples_
            theirs = ours.to_sklearn()
            before = scores(theirs, X_test, y_test)
            for tree, bag in zip(theirs.estimators_, bags, strict=True):
                move_thresholds(tree, X_train[bag])
            after = scores(theirs, X_test, y_test)
            for score, value in before.items():
                changes.setdefault(score, []).append(value - after[score])
                log.add(set=name, score=score, seed=seed, middle=value, mean=after[score])
        for score, found in changes.items():
            error = np.std(found, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else 0.0
            rows.append([name, score, f"{np.mean(found):+.4f} ± {error:.4f}"])
    print(table(["set", "score", "middle of the gap less mean of the nearest values"], rows))


if __name__ == "__main__":
    main()
