"""What an ensemble changes, in figures.  python -m benchmarks.understanding

- Bias and variance (`gpuforest.bias_variance`) of a small tree, a full tree, 100 bagged trees, a
  forest, and rounds of boosting by trees of four leaves. Friedman 1: 200 rows with noise, 2,000
  test rows without. Threenorm: 300 and 3,000 rows. Spambase: 3,065 and 1,536 rows.
- Soft and hard voting: the same trees, of leaves of at least 1, 5 and 20 rows; a quarter of the
  rows held out, split at random by each seed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split

import gpuforest
from benchmarks import real
from benchmarks.record import Log, scores, table
from benchmarks.synthetic import threenorm

Array = np.ndarray
Parts = tuple[Array, Array, Array, Array]  # X, y, X_test, y_test

SEED = 1
LEAST_ROWS = (1, 5, 20)  # of a leaf
BOOSTING_ROUNDS = (20, 200)
VOTING_SETS = ("spambase", "letter", "digits")


def models(is_classes: bool) -> dict[str, Any]:
    kind = "Classifier" if is_classes else "Regressor"
    tree, bags, forest, boosting = (
        getattr(gpuforest, name + kind)
        for name in ("DecisionTree", "Bagging", "RandomForest", "HistGradientBoosting")
    )
    return {
        "tree of depth 2": tree(max_depth=2),
        "tree": tree(),
        "100 bagged trees": bags(n_estimators=100),
        "forest of 100 trees": forest(n_estimators=100),
        **{
            f"{n} rounds of boosting": boosting(max_iter=n, max_leaf_nodes=4)
            for n in BOOSTING_ROUNDS
        },
    }


def learning_sets() -> Iterator[tuple[str, bool, Parts]]:
    """Name, whether of classes, and rows for training and for testing."""
    X, y = make_friedman1(200, noise=1.0, random_state=SEED)
    yield "Friedman 1", False, (X, y, *make_friedman1(2000, random_state=SEED + 1))
    rng = np.random.default_rng(SEED)
    yield "threenorm", True, (*threenorm(rng, 300), *threenorm(rng, 3000))
    if (mails := real.load("spambase")) is not None:
        X, X_test, y, y_test = train_test_split(*mails, test_size=1536, random_state=SEED)
        yield "spambase", True, (X, y, X_test, y_test)


def decompose(log: Log, n_rounds: int) -> str:
    """A table of bias and variance; of classes in percent."""
    rows = []
    for name, is_classes, parts in learning_sets():
        unit = 100 if is_classes else 1
        for title, model in models(is_classes).items():
            found = gpuforest.bias_variance(model, *parts, n_rounds=n_rounds, random_state=SEED)
            measured = {
                key: unit * getattr(found, key)
                for key in ("error", "bias", "variance", "unbiased_variance", "biased_variance")
            }
            log.add(part="bias and variance", set=name, model=title, rounds=n_rounds, **measured)
            rows.append([f"{name}: {title}", *(f"{value:.2f}" for value in measured.values())])
            print(f"{rows[-1][0]}: done", flush=True)
    return table(["", "error", "bias", "variance", "that adds", "that takes off"], rows)


def compare_voting(log: Log, folder: Path | None, n_seeds: int) -> str:
    """A table of soft and hard voting: accuracy in percent, and log loss."""
    rows = []
    for name in VOTING_SETS:
        if (loaded := real.load(name, folder)) is None:
            continue
        for least in LEAST_ROWS:
            found: dict[str, list[dict[str, float]]] = {"soft": [], "hard": []}
            for seed in range(1, n_seeds + 1):
                for voting, score in both_votings(loaded, least, seed).items():
                    found[voting].append(score)
                    log.add(
                        part="voting", set=name, least_rows=least, seed=seed, voting=voting, **score
                    )
            rows.append([f"{name}, leaves of {least} or more", *compared(found)])
            print(f"{rows[-1][0]}: done", flush=True)
    header = ["", "soft %", "hard %", "difference ± its error", "log loss, soft", "hard"]
    return table(header, rows)


def both_votings(data: tuple[Array, Array], least: int, seed: int) -> dict[str, dict[str, float]]:
    """Scores of the same trees, voting softly and hard."""
    X, X_test, y, y_test = train_test_split(*data, random_state=seed)
    forest = gpuforest.RandomForestClassifier(min_samples_leaf=least, random_state=seed)
    return {
        voting: scores(forest.set_params(voting=voting).fit(X, y), X_test, y_test)
        for voting in ("soft", "hard")
    }


def compared(found: dict[str, list[dict[str, float]]]) -> list[str]:
    """The cells of a row: mean accuracies, their paired difference, mean log losses."""
    percent, loss = (
        {voting: scale * np.array([run[score] for run in runs]) for voting, runs in found.items()}
        for score, scale in (("accuracy", 100), ("log_loss", 1))
    )
    gain = percent["soft"] - percent["hard"]
    return [
        *(f"{values.mean():.2f}" for values in percent.values()),
        f"{gain.mean():+.2f} ± {gain.std(ddof=1) / np.sqrt(len(gain)):.2f}",
        *(f"{values.mean():.3f}" for values in loss.values()),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the real data sets")
    parser.add_argument("--rounds", type=int, default=200, help="bootstrap samples")
    parser.add_argument("--seeds", type=int, default=10, help="splits of the voting sets")
    options = parser.parse_args()
    log = Log("understanding")
    decomposed = decompose(log, options.rounds)
    voting = compare_voting(log, options.data, options.seeds)
    print(f"\n{decomposed}\n\n{voting}")


if __name__ == "__main__":
    main()
