"""How rows differ from those that a model was trained on, as far as the model knows these."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuforest.binning import BinEdges
from gpuforest.inspection.report.rows import Rows

MOST_ROWS = 20_000
FEWEST_ROWS = 50  # below which nothing is said of what a feature alone predicts


@dataclass(frozen=True, eq=False)
class Drift:
    """Shares of the rows, of each feature.

    missing : f64[F]
    beyond : f64[F], numbers further out than the outermost bins are wide; NaN: not known, where
        there are too few bins
    unknown : f64[F], categories that are not among those learned: they are new, or were rare in
        training; NaN: the feature is numeric
    """

    missing: np.ndarray
    beyond: np.ndarray
    unknown: np.ndarray
    n_rows: int

    @property
    def worst(self) -> np.ndarray:
        """The share f64[F] that says that a feature differs."""
        parts = np.nan_to_num(self.beyond), np.nan_to_num(self.unknown)
        return np.asarray(np.maximum(*parts))


def drift(rows: Rows) -> Drift:
    """What the bins and categories of a model say about rows."""
    rows = rows.sample(MOST_ROWS)
    edges, F = rows.estimator.forest_.edges, rows.estimator.n_features_in_
    missing, beyond, unknown = np.zeros(F), np.full(F, np.nan), np.full(F, np.nan)
    for f in range(F):
        column = rows.column(f)
        known = column[~np.isnan(column)]
        missing[f] = (rows.n - len(known)) / rows.n
        if f in edges.categories:
            n = len(edges.categories[f])
            unknown[f] = np.count_nonzero(known >= n) / rows.n
        elif (ends := _ends(edges, f)) is not None:
            beyond[f] = np.count_nonzero((known < ends[0]) | (known > ends[1])) / rows.n
    return Drift(missing, beyond, unknown, rows.n)


def _ends(edges: BinEdges, f: int) -> tuple[float, float] | None:
    """How far the training values of a numeric feature reached, at the most: where each value had
    a bin. None: it has too few bins to tell.

    An edge lies in the middle between two values, so the last value is as far from the last edge
    as half the gap before it, which is less than the width of the bin below that edge.
    """
    own = edges.values[edges.offsets[f] : edges.offsets[f + 1]]
    if len(own) < 2:
        return None
    with np.errstate(over="ignore"):
        return float(2 * own[0] - own[1]), float(2 * own[-1] - own[-2])


def alone(rows: Rows) -> tuple[np.ndarray, float] | None:
    """What each feature predicts without any other: accuracy, or R², f64[F]; and the accuracy of
    the most frequent class, or 0. None: too few rows, or several outputs.

    Half of the rows give each bin of the feature its most frequent class, or its mean, by which
    the other half is predicted; and the other way round. Between bins of numbers that have rows
    the nearest one counts, or the means are interpolated.
    """
    rows = rows.sample(MOST_ROWS)
    if rows.n < FEWEST_ROWS or rows.estimator.n_outputs_ > 1 or not rows.has_targets:
        return None
    half, codes = np.arange(rows.n) % 2 == 0, rows.codes.astype(np.int64)
    kinds, halves = rows.estimator.forest_.edges.categories, (half, ~half)
    if rows.labels is not None:
        y, L = rows.labels[0].codes, len(rows.labels[0].names)
        sides = [(f, side) for f in range(codes.shape[1]) for side in halves]
        right = np.zeros(codes.shape[1])
        for f, side in sides:
            found = _class_by_bin(codes[side, f], y[side], codes[~side, f], L, f in kinds)
            right[f] += np.count_nonzero(found == y[~side])
        return right / rows.n, float(np.bincount(y).max() / rows.n)
    assert rows.numbers is not None
    y = rows.numbers[:, 0] / (np.abs(rows.numbers).max() or 1.0)
    spread, errors = float(((y - y.mean()) ** 2).sum()), np.zeros(codes.shape[1])
    if not spread > 0:
        return None
    for f in range(codes.shape[1]):
        for side in halves:
            found = _mean_by_bin(codes[side, f], y[side], codes[~side, f], f in kinds)
            errors[f] += float(((y[~side] - found) ** 2).sum())
    return 1 - errors / spread, 0.0


def _class_by_bin(
    codes: np.ndarray, y: np.ndarray, asked: np.ndarray, n_classes: int, is_category: bool
) -> np.ndarray:
    """The most frequent class of the rows in the bins that are asked for, i64[n]."""
    n_codes = max(int(codes.max()), int(asked.max())) + 1
    counts = np.bincount(codes * n_classes + y, minlength=n_codes * n_classes)
    counts = counts.reshape(n_codes, n_classes)
    if is_category:  # where there are no rows, the most frequent of all
        best = counts + np.bincount(y, minlength=n_classes) / (len(y) + 1)
        return np.asarray(best.argmax(axis=1)[asked])
    some = np.flatnonzero(counts.any(axis=1))
    nearest = np.rint(np.interp(asked, some, np.arange(len(some)))).astype(np.int64)
    return np.asarray(counts[some[nearest]].argmax(axis=1))


def _mean_by_bin(
    codes: np.ndarray, y: np.ndarray, asked: np.ndarray, is_category: bool
) -> np.ndarray:
    """The mean of the rows in the bins that are asked for, f64[n]."""
    n_codes = max(int(codes.max()), int(asked.max())) + 1
    n, sums = np.bincount(codes, minlength=n_codes), np.bincount(codes, y, n_codes)
    means = np.where(n > 0, sums / np.maximum(n, 1), y.mean())
    if is_category:
        return np.asarray(means[asked])
    some = np.flatnonzero(n)
    return np.asarray(np.interp(asked, some, means[some]))
