"""Early stopping: the rows that are set aside, and when scores no longer improve."""

from __future__ import annotations

import math
from numbers import Integral

import numpy as np
from sklearn.model_selection import train_test_split

SCORED_ROWS = 10_000  # of training rows at most, by a scorer


def validation_rows(n_rows: int, fraction: float | int) -> int:
    """How many rows `set_aside` gives for validation, where it leaves one to train on."""
    wanted = fraction if isinstance(fraction, Integral) else math.ceil(fraction * n_rows)
    return min(int(wanted), n_rows - 1)


def set_aside(
    n_rows: int, fraction: float | int, labels: np.ndarray | None, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The rows to train on and those to validate on, both ascending.

    labels : class codes, whose shares both parts keep
    seed : scikit-learn sets the same rows aside where it is random_state, an int below 2**32

    Raises
    ------
    ValueError : no row would be left for one of them
    """
    wanted = fraction if isinstance(fraction, Integral) else math.ceil(fraction * n_rows)
    if not wanted < n_rows:
        raise ValueError(
            f"validation_fraction={fraction} leaves no rows to train on: there are {n_rows}; set "
            "early_stopping=False, or pass X_val and y_val"
        )
    drawn = np.random.RandomState(seed % 2**32).randint(np.iinfo(np.uint32).max, dtype=np.uint64)
    train, validation = train_test_split(
        np.arange(n_rows), test_size=fraction, stratify=labels, random_state=int(drawn)
    )
    return np.sort(train), np.sort(validation)


def scored_rows(n_rows: int, labels: np.ndarray | None, seed: int) -> np.ndarray | None:
    """The training rows that a scorer gets, ascending; None: all."""
    if n_rows <= SCORED_ROWS:
        return None
    return set_aside(n_rows, SCORED_ROWS, labels, seed)[1]


def has_converged(scores: list[float], n_iter_no_change: int, tol: float) -> bool:
    """Whether none of the last scores is higher by more than `tol` than the one before them."""
    if len(scores) <= n_iter_no_change:
        return False
    before = scores[-n_iter_no_change - 1] + tol
    return not any(score > before for score in scores[-n_iter_no_change:])
