"""Histogram gradient boosting that ranks the rows of queries."""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.metrics import ndcg_score

from gpuforest.core.target import CheckedTarget
from gpuforest.data import arrays, validation
from gpuforest.data.binned import BinnedData
from gpuforest.data.labels import Labels
from gpuforest.estimators import boosting, params, presets
from gpuforest.estimators.task import Numbers, On
from gpuforest.kernels.gradients.ranking import MOST_GRADE


class Ranks(Numbers):
    """Grades of relevance, and the number of each row's query: f64[N, 2] from `ranked`."""

    def check(self, y: Any, n_rows: int, on: On) -> CheckedTarget:
        if len(y) != n_rows:
            raise ValueError(f"X has {n_rows} rows, y has {len(y)}")
        return CheckedTarget(y)


def ranked(y: Any, qid: Any, group: Any, suffix: str = "") -> np.ndarray:
    """Grades, and the number of each row's query, f64[N, 2].

    Raises
    ------
    ValueError : both or neither of qid and group; grades that are no integers 0 .. 31; queries
        whose rows are apart; sizes of groups that are not those of the rows
    """
    if (qid is None) == (group is None):
        names = f"qid{suffix} and group{suffix}"
        raise ValueError(f"pass one of {names}: which rows are of one query")
    grades = None if y is None else arrays.to_host(y, f"y{suffix}")
    grades = None if isinstance(y, Labels) else np.asarray(grades)
    if grades is None or grades.ndim != 1 or grades.dtype.kind not in "biuf":
        raise ValueError(f"y{suffix} must hold one grade of relevance for each row: an integer")
    is_grade = (grades >= 0) & (grades <= MOST_GRADE) & (grades == np.floor(grades))
    if not is_grade.all():
        wrong = grades[np.argmin(is_grade)]
        raise ValueError(f"y{suffix} must hold integers from 0 to {MOST_GRADE}, not {wrong}")
    number = numbers_of(qid, group, len(grades), suffix)
    return np.stack([grades.astype(np.float64), number], axis=1)


def numbers_of(qid: Any, group: Any, n_rows: int, suffix: str) -> np.ndarray:
    """The number i64[N] of each row's query, in the order of rows."""
    if group is not None:
        sizes = np.asarray(arrays.to_host(group, f"group{suffix}"))
        if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or not (sizes > 0).all():
            raise ValueError(f"group{suffix} must hold positive integers: the rows of each query")
        if sizes.sum() != n_rows:
            raise ValueError(
                f"the sizes of group{suffix} add up to {sizes.sum()}, and y has {n_rows} rows"
            )
        return np.repeat(np.arange(len(sizes)), sizes)
    labels = validation.check_groups(qid, n_rows, f"qid{suffix}")
    assert labels is not None
    new = np.append(True, labels[1:] != labels[:-1])[:n_rows]
    if new.sum() > len(np.unique(labels)):
        raise ValueError(f"the rows of a query of qid{suffix} are apart: sort all rows by query")
    return np.asarray(np.cumsum(new) - 1)


@params.parameters(params.RANKING, params.OF_RANKING, params.OF_BOOSTING)
class HistGradientBoostingRanker(boosting.HistGradientBoosting):
    """Gradient boosting that ranks the rows of queries, such as the pages that a search finds.

    Each round grows a tree from gradients of the order of each query's rows (LambdaMART), and adds
    the values of its leaves. Predictions are scores: the higher one of a query comes first. The
    trees grow on the CPU.

    References
    ----------
    Burges, "From RankNet to LambdaRank to LambdaMART: an overview", MSR-TR-2010-82, 2010. Bruch,
    "An alternative cross entropy loss for learning-to-rank", 2020 (arXiv:1911.09798).

    Examples
    --------
    >>> import numpy as np
    >>> from gpuforest import HistGradientBoostingRanker
    >>> X = np.arange(200.0).reshape(-1, 1) % 10
    >>> y, qid = X[:, 0] // 4, np.arange(200) // 10
    >>> model = HistGradientBoostingRanker(random_state=0).fit(X, y, qid=qid)
    >>> model.score(X, y, qid=qid) > 0.99
    True
    """

    _task, _family = Ranks(), "ranking"
    multi_strategy = "one_output_per_tree"
    _presets = presets.BOOSTING_OF_ONE

    def fit(  # type: ignore[override]  # a ranker has queries
        self, X: Any, y: Any = None, sample_weight: Any = None, *, qid: Any = None,
        group: Any = None, X_val: Any = None, y_val: Any = None, sample_weight_val: Any = None,
        qid_val: Any = None, group_val: Any = None,
    ) -> Self:  # fmt: skip
        """Grow the trees, round after round.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Real numbers, or categories (see `categorical_features`); NaN means missing. Or
            `BinnedData`, which may bring y, weights and, as groups, queries. The rows of a query
            follow each other.
        y : array-like of shape (n_samples,)
            Grades of relevance: integers from 0 to 31. A row gains 2^y - 1.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0 of the gradients of rows. A row of weight zero is as if it were not there.
        qid : array-like of shape (n_samples,), default=None
            Labels of the rows' queries, of any kind.
        group : array-like of shape (n_queries,), default=None
            Instead of qid: how many rows each query has, in the order of rows.
        X_val, y_val, sample_weight_val, qid_val, group_val : as X, y, ..., default=None
            The rows on which early stopping judges, instead of queries of X.
        """
        if isinstance(X, BinnedData):
            y = X.y if y is None else y
            qid = X.groups if qid is None and group is None else qid
        target, held = ranked(y, qid, group), None
        if y_val is not None:
            held = ranked(y_val, qid_val, group_val, "_val")
        elif qid_val is not None or group_val is not None:
            raise ValueError("qid_val and group_val are for y_val: pass X_val and y_val as well")
        return super().fit(
            X, target, sample_weight, X_val=X_val, y_val=held, sample_weight_val=sample_weight_val,
            groups=target[:, 1].astype(np.int64),
        )  # fmt: skip

    def predict(self, X: Any) -> np.ndarray:
        """Scores of rows, float64 array of shape (n_samples,): in a query the highest first."""
        return self._predictions(self._raw_predict(X))

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """`predict(X)` after each round."""
        return map(self._predictions, self._staged_raw_predict(X))

    def score(self, X: Any, y: Any, *, qid: Any = None, group: Any = None) -> float:
        """The mean NDCG of the queries that have two rows and some relevance, by
        `sklearn.metrics.ndcg_score`, whose gains are the grades.

        Parameters
        ----------
        X, y, qid, group : as in `fit`

        Raises
        ------
        ValueError
            What `fit` refuses; no such query.
        """
        target, found = ranked(y, qid, group), self.predict(X)
        if len(target) != len(found):
            raise ValueError(f"X has {len(found)} rows, y has {len(target)}")
        starts = np.flatnonzero(np.diff(target[:, 1])) + 1
        queries = zip(np.split(target[:, 0], starts), np.split(found, starts), strict=True)
        scores = [ndcg_score([y], [p]) for y, p in queries if len(y) > 1 and y.any()]
        if not scores:
            raise ValueError("no query of y has two rows and some relevance")
        return float(np.mean(scores))
