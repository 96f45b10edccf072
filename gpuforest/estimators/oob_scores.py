"""Scores of out-of-bag predictions."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuforest.data.arrays import to_host
from gpuforest.engine.target import CheckedTarget


def stacked(checked: CheckedTarget) -> tuple[np.ndarray, np.ndarray]:
    """Class codes [N, n_outputs], and where the outputs after the first begin among the values
    of a prediction."""
    assert checked.classes is not None
    y = np.stack([to_host(codes) for codes in checked.values], axis=1)
    return y, np.cumsum([len(c) for c in checked.classes])[:-1]


def accuracy(y: np.ndarray, values: np.ndarray, ends: np.ndarray) -> float:
    """Share of the rows of which all outputs have their most likely class."""
    found = [part.argmax(axis=1) for part in np.split(values, ends, axis=1)]
    return float(np.mean((np.stack(found, axis=1) == y).all(axis=1)))


def labels_of(
    codes: np.ndarray, classes: np.ndarray, means: np.ndarray, seen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """True and predicted labels of the rows that were out of some bag."""
    return classes[codes[seen]], classes[means[seen].argmax(axis=1)]


def subset_accuracy(y: np.ndarray, found: np.ndarray) -> float:
    """Share of the rows whose outputs are all right, as scikit-learn's `accuracy_score` where it
    takes the outputs: it refuses several of more than two classes."""
    return float(np.mean((y == found).all(axis=1)))


def columns_of(y: Any) -> np.ndarray:
    """Targets f64[N, n_outputs] on the host."""
    return np.asarray(to_host(y)).reshape(len(y), -1)


def r_squared(y: np.ndarray, found: np.ndarray) -> float:
    """R^2 of values f64[n, n_outputs] as scikit-learn's `r2_score` gives it, in a tenth of the
    time, because it is called often."""
    left = ((y - found) ** 2).sum(axis=0)
    spread = ((y - y.mean(axis=0)) ** 2).sum(axis=0)
    scores = 1 - left / np.where(spread > 0, spread, 1)
    return float(np.where(spread > 0, scores, left == 0).mean())
