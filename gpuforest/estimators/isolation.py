"""Isolation forests (Liu, Ting and Zhou 2008): rows that few random cuts isolate are anomalies."""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpuforest.backends.base import Backend
from gpuforest.common.imports import deferred
from gpuforest.core.forest import Forest
from gpuforest.data import arrays, binned, validation
from gpuforest.estimators import bases, ensembles, params, settings
from gpuforest.estimators.plan import TrainingPlan
from gpuforest.explain.paths import average_path_length, with_path_lengths
from gpuforest.growing import predict as prediction
from gpuforest.growing.isolation import EVEN_BINS


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
        expected = float(average_path_length(np.array(self.max_samples_)))
        # of trees of one row all lengths are 0
        shares = lengths[:, 0] / expected if expected else np.ones(len(lengths))
        return np.asarray(-(2.0**-shares))

    @property
    def max_samples_(self) -> int:
        """Rows drawn for each tree."""
        check_is_fitted(self)
        return int(self.forest_.node_sums(0, 1)[0, 0])

    @property
    def feature_importances_(self) -> np.ndarray:
        """Isolation forests have no importances: their cuts are random, and gain nothing."""
        raise AttributeError("IsolationForest has no feature_importances_: its cuts are random")

    def _settings(self) -> settings.Settings:
        bins = EVEN_BINS if self.max_bins == "auto" else int(self.max_bins)
        asked = replace(super()._settings(), max_features=1, max_bins=bins, even_bins=self.max_bins)
        once = not self.bootstrap
        return replace(asked, features_drawn=self.max_features, without_replacement=once)

    def _keep(self, forest: Forest, plan: TrainingPlan | None = None) -> None:
        super()._keep(with_path_lengths(forest), plan)

    def _fit(self, given: binned.FitInput, seed: int, earlier: Any, backend: Backend) -> None:
        super()._fit(given, seed, earlier, backend)
        self.offset_ = -0.5
        if self.contamination != "auto":
            is_binned = isinstance(given.X, binned.BinnedData)
            table = given.X if is_binned else validation.check_table(self, given.X, backend)
            scores = self._scores(arrays.to_host(prediction.predict(self.forest_, table, backend)))
            if given.sample_weight is not None:
                scores = scores[arrays.to_host(given.sample_weight) != 0]
            self.offset_ = float(np.percentile(scores, 100.0 * self.contamination))
