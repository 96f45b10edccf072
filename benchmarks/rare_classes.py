"""What a limit of what a leaf adds does to boosting.  python -m benchmarks.rare_classes

100 rounds of real data, five splits with a quarter for testing, with several limits of a leaf's
value before the learning rate, and without one. "covtype, one class" tells the rarest class from
the rest. "The same" counts the splits in which the limit changes no tree.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from unittest.mock import patch

import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import gpuforest
from benchmarks.boosting import load
from benchmarks.record import Log, table
from gpuforest.boosting import losses

SETS = ["spambase", "adult", "letter", "covtype", "covtype, one class"]
LIMITS = (10.0, losses.MOST_VALUE_OF_CLASSES, 60.0, float("inf"))


def data_of(name: str, folder: Path | None) -> tuple[np.ndarray, np.ndarray] | None:
    """X and y of a set."""
    loaded = load(name.split(",")[0], 0, folder)
    if loaded is None or "," not in name:
        return loaded
    return loaded[0], (loaded[1] == np.bincount(loaded[1]).argmin()).astype(int)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the real data sets")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args()
    log, rows = Log("rare_classes"), []
    for name in options.sets:
        loaded = data_of(name, options.data)
        if loaded is None:
            continue
        leaves = {}
        for limit in reversed(LIMITS):
            found: dict[str, list[float]] = {"accuracy": [], "log_loss": []}
            for seed in range(options.seeds):
                X, X_test, y, y_test = train_test_split(*loaded, test_size=0.25, random_state=seed)
                model = gpuforest.HistGradientBoostingClassifier(
                    max_iter=options.rounds, early_stopping=False, random_state=0
                )
                with patch.object(losses, "MOST_VALUE_OF_CLASSES", limit):
                    model.fit(X, y)
                found["accuracy"].append(float(model.score(X_test, y_test)))
                found["log_loss"].append(float(log_loss(y_test, model.predict_proba(X_test))))
                leaves[limit, seed] = model.forest_.leaf_values
            same = sum(
                np.array_equal(leaves[limit, seed], leaves[LIMITS[-1], seed])
                for seed in range(options.seeds)
            )
            finite = limit if np.isfinite(limit) else None
            log.add(set=name, limit=finite, same=same, rows=len(loaded[1]), **found)
            means = [f"{np.mean(each):.4f}" for each in found.values()]
            rows.append(
                [
                    name,
                    f"{finite:g}" if finite else "none",
                    *means,
                    f"{max(found['log_loss']):.4f}",
                    str(same),
                ]
            )
        print(f"{name}: done", flush=True)
    print(f"\n{table(['set', 'limit', 'accuracy', 'log loss', 'worst', 'the same'], rows)}")


if __name__ == "__main__":
    main()
