"""Are the forests as good as scikit-learn's?  python -m benchmarks.accuracy

Real data and several seeds. For a seed, both libraries get the same split and the same
parameters: unlimited depth, bootstrap, sqrt(F) features for classes, F/3 for numbers.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import ensemble
from sklearn.model_selection import train_test_split

import gpuforest
from benchmarks import real
from benchmarks.record import Log, scores, table

COVTYPE_ROWS = 100_000  # for training, and as many for testing
MORE_BINS = 65_535


def forest(library: str, is_classes: bool, **parameters: Any) -> Any:
    """An untrained forest of one of the libraries compared."""
    if library == "scikit-learn":
        kinds = ensemble.RandomForestRegressor, ensemble.RandomForestClassifier
        return kinds[is_classes](**parameters)
    if library != "gpuforest":
        parameters["max_bins"] = MORE_BINS
    kinds = gpuforest.RandomForestRegressor, gpuforest.RandomForestClassifier
    return kinds[is_classes](**parameters)


def split(name: str, X: np.ndarray, y: np.ndarray, seed: int) -> list[np.ndarray]:
    rows = {"train_size": COVTYPE_ROWS, "test_size": COVTYPE_ROWS} if name == "covtype" else {}
    stratify = None if name in real.REGRESSIONS else y
    return train_test_split(X, y, random_state=seed, stratify=stratify, **rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the real data sets")
    parser.add_argument("--sets", nargs="+", default=list(real.REAL), choices=real.REAL)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()

    log, rows = Log("accuracy"), []
    for name in options.sets:
        loaded = real.load(name, options.data)
        if loaded is None:
            continue
        libraries = ["gpuforest", "scikit-learn"]
        if name != "covtype":
            libraries.append(f"gpuforest, {MORE_BINS} bins")
        found: dict[str, list[dict[str, float]]] = {library: [] for library in libraries}
        is_classes = name not in real.REGRESSIONS
        for seed in range(1, options.seeds + 1):
            X_train, X_test, y_train, y_test = split(name, *loaded, seed)
            for library in libraries:
                model = forest(
                    library,
                    is_classes,
                    n_estimators=options.trees,
                    max_features="sqrt" if is_classes else 1 / 3,
                    random_state=seed,
                    n_jobs=options.threads,
                )
                score = scores(model.fit(X_train, y_train), X_test, y_test)
                found[library].append(score)
                log.add(
                    set=name,
                    library=library,
                    seed=seed,
                    rows=len(X_train),
                    features=X_train.shape[1],
                    trees=options.trees,
                    **score,
                )
        rows += table_rows(name, found)
        print(f"{name}: done", flush=True)
    header = ["set", "score", "scikit-learn", "gpuforest", "difference", f"{MORE_BINS} bins"]
    print("\nMeans over the seeds; of a difference also its standard error.\n")
    print(table(header, rows))


def table_rows(name: str, found: dict[str, list[dict[str, float]]]) -> list[list[str]]:
    """A line for each score."""
    rows = []
    for score in found["gpuforest"][0]:
        of = {library: np.array([run[score] for run in runs]) for library, runs in found.items()}
        ours, theirs, *more = of["gpuforest"], of["scikit-learn"], *list(of.values())[2:]
        difference = ours - theirs
        error = difference.std(ddof=1) / np.sqrt(len(difference)) if len(difference) > 1 else 0.0
        rows.append(
            [
                name,
                score.replace("_", " ").replace("r2", "R2"),
                f"{theirs.mean():.4f}",
                f"{ours.mean():.4f}",
                f"{difference.mean():+.4f} ± {error:.4f}",
                f"{more[0].mean():.4f}" if more else "",
            ]
        )
    return rows


if __name__ == "__main__":
    main()
