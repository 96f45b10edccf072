"""Isolation forests beside scikit-learn's.  python -m benchmarks.isolation

Data of known classes become tasks: rows of a rare class are hidden among those of others, and
the scores should find them. The ROC AUC is the mean over seeds, with its standard error. Fit and
score are timed in turns, as ratios within one run; both libraries use one thread, with float32
input of 100 trees and 256 rows a tree. In "heavy tails" 1 % of the rows lie at the edge of a
bulk of normal numbers, and every column has some values that are 10,000 times as large. In
"amounts" all numbers are log-normal, and 2.5 % of the rows have 0.3 times as large ones.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import IsolationForest as Rival
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import OrdinalEncoder

import gpuforest
from benchmarks import real
from benchmarks.record import Log, table

Array = np.ndarray

SEED = 1
RARE = 0.02  # the share of anomalies where there are too many


def tasks(folder: Path) -> Iterator[tuple[str, Any, Array]]:
    """Name, X, and which rows are anomalies, bool[N]."""
    rng = np.random.default_rng(SEED)
    if (found := real.load("covtype", folder)) is not None:
        X, y = found
        yield "covtype, class 4 in 2", *_rare(rng, X[:, :10], y, [4], [2])
    if (found := real.load("spambase", folder)) is not None:
        yield "spambase, spam in others", *_rare(rng, *found, [1], [0])
    if (found := real.load("letter", folder)) is not None:
        X, y = found
        yield "letter, A in B to H", *_rare(rng, X, y, [0], list(range(1, 8)))
        yield "letter, Q in others", *_rare(rng, X, y, [16], [c for c in range(26) if c != 16])
    if (found := real.load("digits", folder)) is not None:
        yield "digits, 0 in others", *_rare(rng, *found, [0], list(range(1, 10)))
    for name in ("california", "bike"):
        if (found := real.load(name, folder)) is not None:
            X, y = found
            most = (y >= np.quantile(y, 1 - RARE)).astype(int)  # many equal the largest
            yield f"{name}, the largest 2 %", *_rare(rng, X, most, [1], [0])
    for file, target, odd, name in (
        ("mushroom", "label", "p", "mushroom, poisonous in others"),
        ("adult_train", "class", ">50K", "adult, high incomes in others"),
    ):
        if (folder / f"{file}.csv.gz").exists():  # categories and missing values
            frame = pd.read_csv(folder / f"{file}.csv.gz", na_values="?", skipinitialspace=True)
            y = (frame.pop(target) == odd).to_numpy().astype(int)
            text = frame.select_dtypes(exclude="number").columns
            frame[text] = frame[text].astype("category")
            yield name, *_rare(rng, frame, y, [1], [0])
    X = rng.normal(size=(50_000, 10))
    X[:500] = rng.normal(size=(500, 10)) * 1.5
    X[rng.random(X.shape) < 1e-3] *= 1e4
    yield "heavy tails", X.astype(np.float32), np.arange(50_000) < 500
    X = np.exp(2 * rng.normal(size=(12_000, 8)))
    X[:300] *= 0.3
    yield "amounts", X.astype(np.float32), np.arange(12_000) < 300


def _rare(rng: Any, X: Any, y: Array, rare: list[int], others: list[int]) -> tuple[Any, Array]:
    """The rows of other classes, and at most so many of the rare ones that they are RARE."""
    common, odd = (np.flatnonzero(np.isin(y, kinds)) for kinds in (others, rare))
    odd = rng.permutation(odd)[: max(int(RARE * len(common)), 1)]
    rows = rng.permutation(np.concatenate([common, odd]))
    X = X.iloc[rows].reset_index(drop=True) if hasattr(X, "iloc") else X[rows]
    return X, np.isin(rows, odd)


def compare(log: Log, folder: Path, n_seeds: int, bins: list[Any], only: list[str]) -> str:
    """A table of AUCs and times, ours beside scikit-learn's; of tasks that begin with a word of
    `only`, or of all."""
    rows = []
    for name, X, odd in tasks(folder):
        if only and not name.startswith(tuple(only)):
            continue
        codes = X
        if hasattr(X, "iloc"):  # the rival has no categories: it takes their numbers
            text = X.select_dtypes("category").columns
            codes = X.assign(
                **dict(zip(text, OrdinalEncoder().fit_transform(X[text]).T, strict=True))
            )
            codes = codes.to_numpy(np.float32)
        models: dict[str, Any] = {"scikit-learn": lambda seed: Rival(random_state=seed)}
        for n in bins:
            models[f"gpuforest, max_bins={n}"] = lambda seed, n=n: gpuforest.IsolationForest(
                max_bins=n, random_state=seed
            )
        measured: dict[str, list[list[float]]] = {kind: [] for kind in models}
        for seed in range(n_seeds + 1):
            for kind, make in models.items():
                mine = X if kind != "scikit-learn" else codes
                begin = time.perf_counter()
                model = make(seed).fit(mine)
                middle = time.perf_counter()
                score = model.score_samples(mine)
                end = time.perf_counter()
                auc = roc_auc_score(odd, -score)
                if seed:  # the first round warms up
                    measured[kind].append([auc, middle - begin, end - middle])
        rival = np.array(measured["scikit-learn"])
        for kind, found in measured.items():
            each = np.array(found)
            auc, error = each[:, 0].mean(), each[:, 0].std(ddof=1) / np.sqrt(n_seeds)
            fit, score = np.median(each[:, 1]), np.median(each[:, 2])
            ratios = np.median(rival[:, 1:] / each[:, 1:], axis=0)
            log.add(
                set=name, rows=len(odd), model=kind, seeds=n_seeds, auc=auc, error=error,
                fit_s=fit, score_s=score, fit_ratio=ratios[0], score_ratio=ratios[1],
            )  # fmt: skip
            times = [f"{1e3 * fit:.0f}", f"{1e3 * score:.0f}", *(f"{r:.1f}" for r in ratios)]
            rows.append([f"{name}: {kind}", f"{auc:.4f} ± {error:.4f}", *times])
            print(*rows[-1], flush=True)
    return table(["", "ROC AUC", "fit, ms", "score, ms", "times as fast", "times as fast"], rows)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=real.BESIDE)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--bins", type=int, nargs="*", default=[], help="also these max_bins")
    parser.add_argument("--tasks", nargs="*", default=[], help="words that their names begin with")
    parser.add_argument("--results", type=Path, help="a file of JSON lines to append to")
    given = parser.parse_args(arguments)
    log = Log("isolation", given.results)
    print(compare(log, given.data, given.seeds, ["auto", *given.bins], given.tasks))


if __name__ == "__main__":
    main()
