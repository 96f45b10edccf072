"""Proximities: in how many trees two rows share a leaf (Breiman 2001; Breiman and Cutler 2003).

Only pairs of rows that share a leaf are written down, as sparse matrices and by blocks of rows.
What Breiman and Cutler compute from proximities is computed from these matrices.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.utils import Bunch

PAIRS_AT_ONCE = 2**23  # pairs of rows in a leaf that a block has at most: some 100 MB


def proximity_blocks(
    leaves: np.ndarray, others: np.ndarray, out: np.ndarray | None = None
) -> Iterator[tuple[slice, csr_array]]:
    """Blocks of rows, and their proximities to all other rows as csr_array f64[n, M].

    leaves, others : i64[N, T] and i64[M, T], the leaf that each row reaches in each tree. Numbers
        of different trees must differ
    out : bool[N, T] or None; given for `others` that are `leaves`: the trees that count for a row.
        A proximity is then the share among the trees that count for both rows

    Two trees; row 0 shares leaf 1 of the first with row 1, and leaf 5 of the second with row 2.

        leaves [[1, 5], [1, 4], [0, 5]]
        proximities [[1, 1/2, 1/2], [1/2, 1, 0], [1/2, 0, 1]]
    """
    n_leaves = int(max(leaves.max(initial=0), others.max(initial=0))) + 1
    columns = _incidence(others, n_leaves, out).T.tocsr()
    sizes = np.diff(columns.indptr)
    pairs = np.cumsum(sizes[leaves].sum(axis=1))  # with pairs that come in several trees
    cuts = np.flatnonzero(np.diff(pairs // PAIRS_AT_ONCE)) + 1
    ends = [*cuts.tolist(), len(leaves)]
    bits = None if out is None else np.packbits(out, axis=1)
    for first, last in zip([0, *ends], ends, strict=False):
        rows = slice(first, last)
        reached = _incidence(leaves[rows], n_leaves, None if out is None else out[rows])
        both = (reached @ columns).tocsr()
        both.sort_indices()
        if bits is None:
            shares = both.data / leaves.shape[1]
        else:
            row = np.repeat(np.arange(first, last), np.diff(both.indptr))
            shares = both.data / _common(bits, row, both.indices)
        yield rows, csr_array((shares, both.indices, both.indptr), both.shape)


def _incidence(leaves: np.ndarray, n_leaves: int, out: np.ndarray | None) -> csr_array:
    """Which leaves each row reaches, csr_array i32[N, n_leaves] of ones."""
    N, T = leaves.shape
    if out is None:
        column, starts = leaves.reshape(-1), np.arange(0, N * T + 1, T)
    else:
        column, starts = leaves[out], np.concatenate([[0], np.cumsum(out.sum(axis=1))])
    index = np.int32 if max(N * T, n_leaves) < 2**31 else np.int64  # also of products
    parts = np.ones(len(column), np.int32), column.astype(index), starts.astype(index)
    return csr_array(parts, (N, n_leaves))


def _common(bits: np.ndarray, row: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The trees that count for both rows of each pair, i64[n]."""
    counts, step = np.empty(len(row), np.int64), 2**20
    for i in range(0, len(row), step):
        both = bits[row[i : i + step]] & bits[other[i : i + step]]
        counts[i : i + step] = np.bitwise_count(both).sum(axis=1, dtype=np.int64)
    return counts


def nearest(
    leaves: np.ndarray, others: np.ndarray, k: int, same: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The k rows of highest proximity, first of equals: proximities f64[N, k], falling, and rows
    i64[N, k]; 0 and -1 where fewer rows share a leaf. With `same`, `others` hold the rows
    themselves, and no row is its own neighbour."""
    share, nearby = np.zeros((len(leaves), k)), np.full((len(leaves), k), -1)
    for rows, block in proximity_blocks(leaves, others):
        row = np.repeat(np.arange(rows.start, rows.stop), np.diff(block.indptr))
        other = row != block.indices if same else np.ones(len(row), bool)
        pairs = row[other], block.indices[other], block.data[other]
        row, column, value, rank = _highest(*pairs, k)
        share[row, rank], nearby[row, rank] = value, column
    return share, nearby


def _highest(row: np.ndarray, column: np.ndarray, value: np.ndarray, k: int) -> Any:
    """The k pairs of highest value of each row, which ascend: row, column, value and rank."""
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    order = np.lexsort((column, -value, row))[rank < k]
    return row[order], column[order], value[order], rank[rank < k]


def proximity_outliers(proximities: Any, y: Any = None) -> np.ndarray:
    """How much of an outlier each row is, among those of its class (Breiman and Cutler).

    The raw score is the number of rows divided by the sum of the row's squared proximities, its
    own of one included, to the rows of its class. From it the class's median is taken, and the
    result is divided by the class's mean absolute deviation from the median. Scores above 10 are
    outliers, as a rule of thumb.

    Parameters
    ----------
    proximities : sparse matrix of shape (n_samples, n_samples), of `proximity`
    y : array-like of shape (n_samples,), the classes; None: all rows are of one

    Returns
    -------
    float64 array of shape (n_samples,)
    """
    squares = csr_array(proximities, copy=True)
    squares.data **= 2
    N = squares.shape[0]
    codes = np.zeros(N, np.int64) if y is None else np.unique(y, return_inverse=True)[1]
    if len(codes) != N:
        raise ValueError(f"y has {len(codes)} rows, but the proximities have {N}: pass the same")
    row = np.repeat(np.arange(N), np.diff(squares.indptr))
    of_class = (codes[row] == codes[squares.indices]) & (row != squares.indices)
    raw = N / (1.0 + np.bincount(row[of_class], squares.data[of_class], minlength=N))
    for c in range(codes.max(initial=-1) + 1):
        rows = codes == c
        middle = np.median(raw[rows])
        raw[rows] = (raw[rows] - middle) / (np.abs(raw[rows] - middle).mean() or 1.0)
    return np.asarray(raw)


def class_prototypes(
    proximities: Any, X: Any, y: Any, *, n_prototypes: int = 1, n_neighbors: int | None = None
) -> Bunch:
    """Typical rows of each class (Breiman and Cutler).

    The first prototype of a class is the median of the neighbours, of the class, of the row that
    has the most of them among its `n_neighbors` of the highest proximity. The next one is found in
    the same way among the rows that are not neighbours of the first.

    Parameters
    ----------
    proximities : sparse matrix of shape (n_samples, n_samples), of `proximity`
    X : array-like of shape (n_samples, n_features), numbers; NaN is left out of medians
    y : array-like of shape (n_samples,), the classes
    n_prototypes : int, of each class
    n_neighbors : int or None: the number of rows of the smallest class, but at most 50

    Returns
    -------
    Bunch
        classes : ndarray of shape (n_found,), ascending
        prototypes : float64 ndarray of shape (n_found, n_features)
        rows : int64 ndarray of shape (n_found,), the rows whose neighbours these are
        quartiles : float64 ndarray of shape (2, n_found, n_features), how far the neighbours spread
    """
    P, X = csr_array(proximities), np.asarray(X, np.float64)
    classes, codes = np.unique(y, return_inverse=True)
    if not len(X) == len(codes) == P.shape[0]:
        raise ValueError(
            f"X has {len(X)} rows, y {len(codes)} and the proximities {P.shape[0]}: pass the same"
        )
    k = n_neighbors or min(50, int(np.bincount(codes).min()))
    row = np.repeat(np.arange(len(X)), np.diff(P.indptr))
    row, column, *_ = _highest(row, P.indices, P.data, k)
    groups: list[tuple[int, int, np.ndarray]] = []
    for c in range(len(classes)):
        free = codes == c
        for _ in range(n_prototypes):
            counts = free[row] & free[column]
            votes = np.bincount(row[counts], minlength=len(X))
            best = int(np.argmax(votes))
            if not votes[best]:
                break
            near = column[counts & (row == best)]
            groups.append((c, best, near))
            free[near] = False
    spreads = [np.nanpercentile(X[near], [25, 50, 75], axis=0) for _, _, near in groups]
    quartiles = np.stack(spreads, axis=1)
    return Bunch(
        classes=classes[[c for c, _, _ in groups]],
        prototypes=quartiles[1],
        rows=np.array([best for _, best, _ in groups]),
        quartiles=quartiles[[0, 2]],
    )


def impute_by_proximity(forest: Any, X: Any, y: Any, *, max_iter: int = 5) -> np.ndarray:
    """Fill missing values by the known values of similar rows (Breiman and Cutler).

    Missing values are medians at first, or most frequent values. Then, `max_iter` times, the
    forest is fitted, and each missing value becomes the mean of the column's known values,
    weighted by proximity; of categorical features the value of the highest total proximity.

    Parameters
    ----------
    forest : RandomForest* or ExtraTrees*, which need not be fitted and is not changed
        Its `categorical_features`, a mask or numbers, are filled by votes.
    X : array-like of shape (n_samples, n_features), numbers, with NaN for missing values
    y : array-like of shape (n_samples,), the target
    max_iter : int

    Returns
    -------
    float64 array of shape (n_samples, n_features), without NaN but in columns of nothing else
    """
    X, wanted = np.asarray(X, np.float64), forest.categorical_features
    filled, known, mask = X.copy(), ~np.isnan(X), np.zeros(X.shape[1], bool)
    if wanted is not None and not isinstance(wanted, str):
        mask[np.asarray(wanted)] = True
    columns = [X[some, f] for f, some in enumerate(known.T)]
    for f, column in enumerate(columns):
        values, counts = np.unique(column, return_counts=True)
        if len(values):
            filled[~known[:, f], f] = values[counts.argmax()] if mask[f] else np.median(column)
    for _ in range(0 if known.all() else max_iter):
        P = csr_array(clone(forest).fit(filled, y).proximity(filled))
        weight = P @ known.astype(np.float64)
        means = P @ np.where(known, X, 0.0) / np.where(weight > 0, weight, 1.0)
        for f in np.flatnonzero(mask).tolist():
            values, codes = np.unique(columns[f], return_inverse=True)
            votes = P[:, np.flatnonzero(known[:, f])] @ np.eye(len(values))[codes]
            means[:, f] = values[np.argmax(votes, axis=1)] if len(values) else np.nan
        # where no near row has a value, it stays as it is
        filled = np.where(known, X, np.where(weight > 0, means, filled))
    return np.asarray(filled)
