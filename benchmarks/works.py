"""The works of the comparison: data, depth, and how far ahead of the others we want to be."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks import data, real
from benchmarks.data import Dataset

TEST_ROWS = 100_000


@dataclass(frozen=True)
class Goals:
    """How many times as long as ours others are to take."""

    fit_sklearn: float | None = None
    fit_fastest: float | None = None
    predict_fastest: float | None = None


@dataclass(frozen=True)
class Work:
    """`rows` for training (None: what a real set has); `fits` in a process, for the median."""

    name: str
    set: str
    rows: int | None
    depth: int | None
    goals: Goals = Goals()
    fits: int = 1
    trees: int | None = None  # None: as many as the command line says


WORKS = [
    Work("A8", "A", 200_000, 8, Goals(20, 2, 1)),
    Work("A16", "A", 200_000, 16, Goals(20, 2.5, 1.3)),
    Work("Aunl", "A", 200_000, None, Goals(14, 3.3, 1.3)),
    Work("B16", "B", 400_000, 16, Goals(8, 5, 1.3)),
    Work("Bunl", "B", 400_000, None, Goals(8, 5, 1.3)),
    Work("C16", "C", 400_000, 16, Goals(30, 5, 1.3)),
    Work("Cunl", "C", 400_000, None, Goals(50, 10, 1.3)),
    Work("D16", "D", 20_000, 16, Goals(10, 2.5, 1.3)),
    Work("Dunl", "D", 20_000, None, Goals(10, 2.5, 1.3)),
    Work("F16", "F", 100_000, 16, Goals(12, 2.5, 1.3)),
    Work("A1M", "A", 1_000_000, 16, Goals(None, 2.5, 1.3)),
    # fits of milliseconds: one alone would be noise
    Work("digits", "digits", None, None, Goals(5, 1, 1), fits=5),
    Work("cancer", "cancer", None, None, fits=5),
    Work("diabetes", "diabetes", None, None, fits=5),
    Work("covtype", "covtype", None, None),
    Work("letter", "letter", None, None),
]


def scaling(trees: int) -> tuple[list[Work], list[Work]]:
    """Ever more rows, and ever more trees."""
    sizes = [50_000 * 2**i for i in range(6)]
    more_rows = [Work(f"{n:,} rows", "A", n, 16, trees=trees) for n in sizes]
    counts = [max(1, trees // 4) * 2**i for i in range(4)]
    return more_rows, [Work(f"{n} trees", "A", 200_000, 16, trees=n) for n in counts]


def load(work: Work, part: float, folder: Path | None) -> Dataset | None:
    """Its data, of made sets only a part; None, with a word, where they are absent."""
    if work.rows is not None:
        return data.make(work.set, int(part * work.rows), int(part * TEST_ROWS))
    loaded = real.load(work.set, folder)
    if loaded is None:
        return None
    X, y = loaded
    is_classes = work.set not in real.REGRESSIONS
    if is_classes:
        y = np.unique(y, return_inverse=True)[1]
    y = y.astype(np.int32 if is_classes else np.float32)
    n_test = TEST_ROWS if len(X) > 2 * TEST_ROWS else 0.3
    parts = train_test_split(X, y, test_size=n_test, random_state=0)
    X_train, X_test, y_train, y_test = map(np.ascontiguousarray, parts)
    return Dataset(work.set, is_classes, X_train, y_train, X_test, y_test)
