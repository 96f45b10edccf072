"""What isolation forests grow from: bins of equal width, and the few rows that trees draw from."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from gpuforest.backends.base import Backend
from gpuforest.backends.rows import draw_rows
from gpuforest.common import hashing
from gpuforest.common.dtypes import MAX_BINS, VALUE
from gpuforest.core.bins import BinEdges, Categories

# Trees draw their rows from this number of rows, or from eight times the rows of a tree if that is
# more. A fit looks at no other rows, however many there are
POOL_ROWS = 2**15
EVEN_BINS = 1023  # of "auto", except for features with long tails
# Bins wanted for the middle half of a feature's values; EVEN_BINS give them if the range is at most
# 16 times as wide. With 16 bins the ROC AUC among long tails was lower than that of exact cuts
BINS_OF_HALF = 64
LOOKED_AT = 2048  # rows, evenly spaced, that say how wide the middle half is


def even_edges(X: Any, max_bins: int | str, categories: Categories, backend: Backend) -> BinEdges:
    """Bins of equal width between the least and the largest value of each feature. A cut is drawn
    from a node's bins with the same chance for each. Where bins are equally wide, it is uniform
    between the node's least and largest value, as in the paper, up to the width of a bin. Bins by
    quantiles would make cuts between inliers as likely as cuts next to an anomaly. max_bins="auto"
    means `EVEN_BINS`, and more where a few values lie so far out that all others would share a few
    bins. X [N, F] may be sparse, or lie on the backend's device."""
    columns, (low, high) = [], _ranges(X, backend)
    for f, n_bins in enumerate(_bins_of(X, max_bins, low, high, backend)):
        at = np.arange(1, n_bins) / n_bins
        is_cut = f not in categories and low[f] < high[f]
        between = np.unique(low[f] * (1 - at) + high[f] * at) if is_cut else np.zeros(0)
        columns.append(between[(between >= low[f]) & (between < high[f])])
    return BinEdges.of(columns, categories)


def _bins_of(
    X: Any, max_bins: int | str, low: np.ndarray, high: np.ndarray, backend: Backend
) -> list[int]:
    """The bins of each feature, which lies between low and high f64[F]."""
    if max_bins != "auto":
        return [int(max_bins)] * X.shape[1]
    sample = X[:: max(1, -(-X.shape[0] // LOOKED_AT))]
    sample = sample.toarray() if issparse(sample) else backend.asnumpy(sample)
    sample = np.sort(np.asarray(sample, VALUE), axis=0)  # missing values last
    counts = []
    for f, n in enumerate((~np.isnan(sample)).sum(axis=0).tolist()):
        half = sample[3 * n // 4, f] - sample[n // 4, f] if n else 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            n_bins = BINS_OF_HALF * (high[f] - low[f]) / half if half > 0 else 0.0
        counts.append(int(np.ceil(np.clip(np.nan_to_num(n_bins), EVEN_BINS, MAX_BINS))))
    return counts


def _ranges(X: Any, backend: Backend) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest value of each column, f64[F]; inf and -inf of an empty one."""
    if issparse(X):
        ends = X.nanmin(axis=0).toarray().reshape(-1), X.nanmax(axis=0).toarray().reshape(-1)
        low, high = (np.asarray(e, VALUE) for e in ends)
        return np.where(np.isnan(low), np.inf, low), np.where(np.isnan(high), -np.inf, high)
    xp = np if isinstance(X, np.ndarray) else backend.xp
    X = X if X.dtype.kind == "f" else xp.astype(X, xp.float64)
    missing = xp.isnan(X)
    low, high = (
        f(xp.where(missing, xp.asarray(fill, dtype=X.dtype), X), axis=0)
        for f, fill in ((xp.min, np.inf), (xp.max, -np.inf))
    )
    return backend.asnumpy(low).astype(VALUE), backend.asnumpy(high).astype(VALUE)


def pool_of(seed: int, n_rows: int, n_drawn: int, weights: np.ndarray | None) -> np.ndarray | None:
    """The rows that trees draw from, i64[...]; None: all. Of equal weights each row of positive
    weight comes once, and rows ascend. Else rows are drawn with replacement, with chances in
    proportion to their weights i32[n_rows]: a row of weight two is as two rows. A tree draws
    `n_drawn` rows."""
    size = max(POOL_ROWS, 8 * n_drawn)
    counted = np.arange(n_rows) if weights is None else np.flatnonzero(weights)
    if weights is None or bool((weights[counted] == weights[counted[0]]).all()):
        if len(counted) > size:
            return np.asarray(counted[draw_rows(seed, len(counted), size)])
        return None if len(counted) == n_rows else counted
    key = hashing.hash_at(np.full(1, seed, np.uint64), hashing.ROWS)
    draws = hashing.hash_at(key, np.arange(size, dtype=np.uint64))
    upto = np.cumsum(weights, dtype=np.int64)
    point = (draws >> np.uint64(11)).astype(VALUE) / 2**53 * upto[-1]
    rows: np.ndarray = np.searchsorted(upto, point, side="right")
    return rows
