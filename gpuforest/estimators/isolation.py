"""Isolation forests (Liu, Ting and Zhou 2008): rows that few random cuts isolate are anomalies."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from gpuforest.backends.base import Backend, take_rows
from gpuforest.backends.rows import draw_rows
from gpuforest.common import hashing
from gpuforest.common.dtypes import CATEGORICAL, MAX_BINS, OFFSET, VALUE
from gpuforest.common.imports import deferred
from gpuforest.core.bins import BinEdges, Categories
from gpuforest.core.forest import Forest
from gpuforest.data import arrays, validation
from gpuforest.data.binned import BinnedData, Passed
from gpuforest.estimators import bases, ensembles, growing, params
from gpuforest.estimators.settings import RowWeights, Settings
from gpuforest.explain.paths import average_path_length, with_path_lengths
from gpuforest.growing import predict as prediction

EVEN_BINS = 1023  # of "auto", but for features with long tails
# Bins wanted for the middle half of a feature's values; EVEN_BINS give them if the range is at most
# 16 times as wide. With 16 bins the ROC AUC among long tails was lower than that of exact cuts
BINS_OF_HALF = 64
LOOKED_AT = 2048  # rows, evenly spaced, that say how wide the middle half is


def even_edges(X: Any, max_bins: int | str, categories: Categories, backend: Backend) -> BinEdges:
    """Bins of equal width between the least and the largest value of each feature.

    A cut is drawn from a node's bins with the same chance for each. If bins are equally wide, it
    is uniform between the node's least and largest value, as in the paper, up to the width of a
    bin. Bins by quantiles would make cuts between inliers as likely as cuts next to an anomaly.
    max_bins="auto" means `EVEN_BINS`, or more if far outliers would leave few bins for the other
    values. X [N, F] may be sparse, or lie on the backend's device.
    """
    columns, kinds = [], np.zeros(X.shape[1], np.uint8)
    low, high = _ranges(X, backend)
    for f, n_bins in enumerate(_bins_of(X, max_bins, low, high)):
        at = np.arange(1, n_bins) / n_bins
        if f in categories:
            columns.append(np.arange(len(categories[f]), dtype=VALUE))
            kinds[f] = CATEGORICAL
        elif low[f] < high[f]:
            between = np.unique(low[f] * (1 - at) + high[f] * at)
            columns.append(between[(between >= low[f]) & (between < high[f])])
        else:
            columns.append(np.zeros(0))
    offsets = np.concatenate([[0], np.cumsum([len(c) for c in columns])]).astype(OFFSET)
    return BinEdges(np.concatenate(columns), offsets, kinds, categories)


def _bins_of(X: Any, max_bins: int | str, low: np.ndarray, high: np.ndarray) -> list[int]:
    """The bins of each feature, which lies between low and high f64[F]."""
    if max_bins != "auto":
        return [int(max_bins)] * X.shape[1]
    sample = X[:: max(1, -(-X.shape[0] // LOOKED_AT))]
    sample = sample.toarray() if issparse(sample) else arrays.to_host(sample)
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
    return tuple(np.asarray(arrays.to_host(e), VALUE) for e in (low, high))  # type: ignore[return-value]


AUTO_SAMPLES = 256  # rows of a tree, of the paper: more make inliers hide anomalies
# Trees draw their rows from this number of rows, or from eight times the rows of a tree if that is
# more. A fit looks at no other rows, however many there are
POOL_ROWS = 2**15


@params.parameters(params.ISOLATION, params.OF_ISOLATION)
class IsolationForest(bases.OutlierMixin, ensembles.UnsupervisedForest):
    """Anomalies are the rows that random cuts isolate soon.

    Each tree cuts a few rows at random, until each is by itself or the depth of a balanced tree
    is reached: a random feature, at a random value between the least and the largest of the
    node's rows. The fewer cuts isolate a row on average, the more abnormal it is.

    Notes
    -----
    Rows with missing values go to a random side of each cut. If there are more than 32,768 rows,
    all trees draw from the same 32,768 of them.

    References
    ----------
    F. T. Liu, K. M. Ting and Z.-H. Zhou, "Isolation forest", ICDM 2008, and "Isolation-based
    anomaly detection", ACM TKDD 6, 2012.

    Examples
    --------
    >>> from gpuforest import IsolationForest
    >>> X = [[-1.1], [0.3], [0.5], [100.0]]
    >>> IsolationForest(random_state=0).fit(X).predict([[0.1], [0.0], [90.0]]).tolist()
    [1, 1, -1]
    """

    contamination: Any
    max_samples: Any
    max_features: int | float
    estimators_features_ = property(ensembles.drawn_features)
    _to_sklearn = staticmethod(deferred("gpuforest.export.sklearn", "isolation_to_sklearn"))

    def predict(self, X: Any) -> np.ndarray:
        """1 for inliers, -1 for anomalies (`decision_function(X)` is below zero), int64 of shape
        (n_samples,)."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def decision_function(self, X: Any) -> np.ndarray:
        """`score_samples(X)` minus `offset_`, float64 of shape (n_samples,): anomalies are below
        zero."""
        return np.asarray(self.score_samples(X) - self.offset_)

    def score_samples(self, X: Any) -> np.ndarray:
        """How normal rows are: minus 2 to the power of - E(h) / c(`max_samples_`).

        E(h) is the mean path length over the trees, and c(n) the path length of a random tree for
        n rows. From -1, an anomaly, to 0; rows without a structure have about -0.5.
        """
        return self._scores(arrays.to_host(self._walk(X, prediction.predict)))

    def _scores(self, lengths: np.ndarray) -> np.ndarray:
        """Scores f64[N] of mean path lengths f64[N, 1]."""
        # of trees of one row all lengths are 0
        shares = lengths[:, 0] / self._length if self._length else np.ones(len(lengths))
        return np.asarray(-(2.0**-shares))

    @property
    def _length(self) -> float:
        """c(max_samples_), what lengths of paths are compared with."""
        return float(average_path_length(np.array(self.max_samples_)))

    @property
    def max_samples_(self) -> int:
        """Rows drawn for each tree."""
        check_is_fitted(self)
        return int(self.forest_.node_sums(0, 1)[0, 0])

    @property
    def feature_importances_(self) -> np.ndarray:
        """Isolation forests have no importances: their cuts are random, and gain nothing."""
        raise AttributeError("IsolationForest has no feature_importances_: its cuts are random")

    def _tree_params(self) -> dict[str, Any]:
        deepest = depth_of(self.max_samples_) if hasattr(self, "forest_") else None
        fixed = {"criterion": self.criterion, "max_features": 1, "max_depth": deepest}
        return super()._tree_params() | fixed

    def _settings(self) -> Settings:
        settings = super()._settings()
        return replace(
            settings,
            max_bins=EVEN_BINS if self.max_bins == "auto" else settings.max_bins,
            features_drawn=self.max_features,
            without_replacement=not self.bootstrap,
        )

    def _for_rows(self, settings: Settings, n_rows: int) -> Settings:
        """The parameters with the number of rows of a tree, which is as deep as a balanced one."""
        is_auto, draws = self.max_samples == "auto", self.max_samples
        if not is_auto and isinstance(draws, Integral) and int(draws) > n_rows:
            warnings.warn(
                f"max_samples ({draws}) is greater than the total number of samples "
                f"({n_rows}). max_samples will be set to n_samples for estimation.",
                UserWarning,
                stacklevel=2,
            )
        if is_auto or isinstance(draws, Integral):
            n_drawn = min(AUTO_SAMPLES if is_auto else int(draws), n_rows)
        else:
            n_drawn = max(1, int(float(draws) * n_rows))
        return replace(settings, max_samples=n_drawn, max_depth=depth_of(n_drawn))

    def _pooled(
        self, X: Any, weights: RowWeights, settings: Settings, seed: int, backend: Backend
    ) -> tuple[Any, RowWeights]:
        """The rows of a pool, which weights have drawn."""
        integers = None if weights is None else weights[1]
        pool = self._pool = pool_of(seed, X.shape[0], int(settings.max_samples or 0), integers)
        if pool is not None and isinstance(X, BinnedData):
            return X.take(pool), None
        return take_rows(X, pool, backend), None

    def _bins(
        self, X: Any, settings: Settings, integers: Any, categories: Categories, backend: Backend
    ) -> tuple[int, BinEdges]:
        binned = isinstance(X, BinnedData)
        edges = X.edges if binned else even_edges(X, self.max_bins, categories, backend)
        most = edges.n_bins[edges.kinds != CATEGORICAL].max(initial=2)
        return max(int(most), int(settings.max_bins)), edges

    def _keep_fit(self, forest: Forest, plan: growing.TrainingPlan) -> None:
        super()._keep_fit(with_path_lengths(forest), plan)

    def _fit(self, data: Passed, seed: int, earlier: Self | None, backend: Backend) -> None:
        super()._fit(data, seed, earlier, backend)
        self.offset_ = -0.5
        if self.contamination != "auto":
            binned = isinstance(data.X, BinnedData)
            table = data.X if binned else validation.check_table(self, data.X, backend)
            scores = self._scores(arrays.to_host(prediction.predict(self.forest_, table, backend)))
            if data.sample_weight is not None:
                scores = scores[arrays.to_host(data.sample_weight) != 0]
            self.offset_ = float(np.percentile(scores, 100.0 * self.contamination))


def depth_of(n_drawn: int) -> int:
    """The levels of a balanced tree of n_drawn rows; no tree is deeper."""
    return math.ceil(math.log2(max(n_drawn, 2)))


def pool_of(seed: int, n_rows: int, n_drawn: int, weights: np.ndarray | None) -> np.ndarray | None:
    """The rows that trees draw their `n_drawn` rows from, i64[...]; None: all.

    If all weights i32[n_rows] are equal or 0, each row of weight > 0 comes at most once, and rows
    ascend. Else rows are drawn with replacement, by their weights.
    """
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
