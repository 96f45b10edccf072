"""The works of the comparison: data and depth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks import data, public_data
from benchmarks.data import Dataset

TEST_ROWS = 100_000


@dataclass(frozen=True)
class Work:
    """`rows` for training (None: what a real set has); `fits` in a process, for the median."""

    set: str
    rows: int | None = None
    depth: int | None = None
    fits: int = 1


WORKS = {
    "A8": Work("A", 200_000, 8), "A16": Work("A", 200_000, 16), "Aunl": Work("A", 200_000),
    "B16": Work("B", 400_000, 16), "Bunl": Work("B", 400_000),
    "C16": Work("C", 400_000, 16), "Cunl": Work("C", 400_000),
    "D16": Work("D", 20_000, 16), "Dunl": Work("D", 20_000),
    "F16": Work("F", 100_000, 16), "A1M": Work("A", 1_000_000, 16),
    # fits of milliseconds: one alone would be noise
    "digits": Work("digits", fits=5), "cancer": Work("cancer", fits=5),
    "diabetes": Work("diabetes", fits=5),
    "covtype": Work("covtype"), "letter": Work("letter"),
}  # fmt: skip


def load(work: Work, part: float, folder: Path | None) -> Dataset | None:
    """Its data, of made sets only a part; None, with a word, where they are absent."""
    if work.rows is not None:
        return data.make(work.set, int(part * work.rows), int(part * TEST_ROWS))
    loaded = public_data.numbers(work.set, folder)
    if loaded is None:
        return None
    X, y = loaded
    is_classes = not public_data.BY_NAME[work.set].numbers
    y = y.astype(np.int32 if is_classes else np.float32)
    n_test = TEST_ROWS if len(X) > 2 * TEST_ROWS else 0.3
    parts = train_test_split(X, y, test_size=n_test, random_state=0)
    X_train, X_test, y_train, y_test = map(np.ascontiguousarray, parts)
    return Dataset(work.set, is_classes, X_train, y_train, X_test, y_test)
