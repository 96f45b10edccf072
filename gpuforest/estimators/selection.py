"""Importances by the rows out of bag, and the selection of features by them (Boruta)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from gpuforest.backends.base import Backend
from gpuforest.backends.registry import run_on_backend
from gpuforest.common import arguments, hashing, progress
from gpuforest.core import bins, criteria, rules, target
from gpuforest.core.forest import Forest
from gpuforest.data import arrays, target_statistics, validation
from gpuforest.data.binned import BinnedData, FitInput
from gpuforest.estimators import bases, ensembles, fit_scope, out_of_bag, params, prepare
from gpuforest.estimators.task import On
from gpuforest.explain import importances as measures
from gpuforest.growing.edges import bin_matrix

if TYPE_CHECKING:
    from gpuforest.estimators.bases import SelectorMixin
else:
    from sklearn.feature_selection import SelectorMixin

FORESTS = ensembles.ForestClassifier | ensembles.ForestRegressor
Judges = tuple[Forest, rules.Sampling]  # trees that judge rows, and how they drew rows
Data = tuple[target.CheckedTarget, Any]  # the target, and the same as trees take it


def oob_permutation_importance(
    forest: Any, X: Any, y: Any, *, groups: Sequence[Sequence[int | str]] | None = None
) -> Bunch:
    """The loss of each tree's score on the rows out of its bag when a feature is permuted there.

    It needs no other data, and does not prefer features of many values, as
    `feature_importances_` does. If two features hold the same information, each replaces the
    other, and both seem unimportant. The permutations come from the forest's seed, so the
    importances are the same on every backend.

    Parameters
    ----------
    forest : RandomForest*, ExtraTrees* or Bagging*, fitted, with bags
        A Bagging* from a file does not know its bags.
    X, y : as for `fit`, the data that the forest was fitted to; `BinnedData` too
    groups : lists of features, by number or name, default=None
        The features of a group, such as the columns of a one-hot encoding, are permuted together
        by one order, and each group (not each feature) has an importance.

    Returns
    -------
    Bunch
        importances : float64 ndarray of shape (n_features, n_estimators)
            The decrease of the tree's accuracy (of several outputs, the share of rows whose
            outputs are all right), or the increase of its mean squared error. NaN for trees
            whose bag has all rows.
        importances_mean, importances_std : float64 ndarray of shape (n_features,), over trees
        importances_error : float64 ndarray of shape (n_features,), standard errors of the means

    Raises
    ------
    TypeError
        Another kind of estimator.
    ValueError
        An estimator without known bags; other data than in training.

    References
    ----------
    L. Breiman, "Random forests", Machine Learning 45, 2001, section 10.

    Examples
    --------
    >>> from gpuforest import RandomForestClassifier, oob_permutation_importance
    >>> X, y = [[i % 2, i % 3] for i in range(60)], [i % 2 for i in range(60)]
    >>> forest = RandomForestClassifier(20, random_state=0).fit(X, y)
    >>> found = oob_permutation_importance(forest, X, y)
    >>> int(found.importances_mean.argmax())
    0
    """
    numbers = None if groups is None else [_numbers_of(forest, group) for group in groups]

    def work(judges: Judges, matrix: bins.BinnedMatrix, data: Data, backend: Backend) -> np.ndarray:
        (trees, sampling), score = judges, forest._task.tree_score(data[0])
        with progress.stage("permuting"):
            return measures.permutation_decreases(trees, matrix, sampling, score, backend, numbers)

    return _with_bags(forest, X, y, work, "oob_permutation_importance")


def oob_impurity_importance(forest: Any, X: Any, y: Any) -> Bunch:
    """The decrease of the impurity of the rows out of bag by the splits of each feature.

    `feature_importances_` chooses splits and measures them by the same rows. So a feature without
    information seems important, and more so with more values, because it has more splits. The
    rows out of bag had no part in the choice: by them, a feature without information has an
    importance of 0 on average. One walk of the rows down the trees is enough, so this takes a
    fraction of the permutations' time.

    Parameters
    ----------
    forest, X, y : as for `oob_permutation_importance`

    Returns
    -------
    Bunch
        importances : float64 ndarray of shape (n_features, n_estimators)
            Decreases of Gini's impurity, or for numbers of the variance, summed over each tree's
            splits and divided by its rows out of bag, for any criterion. They do not add up to
            one. NaN for trees whose bag has all rows.
        importances_mean, importances_std, importances_error : as there
        measure : str, the label of the axis in `plot_importances`

    Raises
    ------
    TypeError, ValueError : as there

    References
    ----------
    Z. Zhou and G. Hooker, "Unbiased measurement of feature importance in tree-based methods", ACM
    TKDD 15, 2021 (arXiv 1903.05179); X. Li, Y. Wang, S. Basu, K. Kumbier and B. Yu, "A debiased
    MDI feature importance measure for random forests", NeurIPS 2019 (arXiv 1906.10845).

    Examples
    --------
    >>> from gpuforest import RandomForestClassifier, oob_impurity_importance
    >>> X, y = [[i % 2, i % 3] for i in range(60)], [i % 2 for i in range(60)]
    >>> forest = RandomForestClassifier(20, random_state=0).fit(X, y)
    >>> found = oob_impurity_importance(forest, X, y)
    >>> int(found.importances_mean.argmax())
    0
    """

    def work(judges: Judges, matrix: bins.BinnedMatrix, data: Data, backend: Backend) -> np.ndarray:
        (trees, sampling), (_, coded) = judges, data
        with progress.stage("walking"):
            return measures.unbiased_importances(trees, matrix, coded, sampling, backend)

    measure = "decrease of impurity out of bag"
    return _with_bags(forest, X, y, work, "oob_impurity_importance", measure=measure)


def _with_bags(
    forest: Any, X: Any, y: Any, work: Callable[..., np.ndarray], name: str, **others: Any
) -> Bunch:
    """The importances f64[F, T] by `work`, and their means, spreads and errors over the trees."""
    if not isinstance(forest, FORESTS):
        raise TypeError(
            f"{name} takes a fitted RandomForest*, ExtraTrees* or Bagging* of gpuforest, not a "
            f"{type(forest).__name__}"
        )
    check_is_fitted(forest)
    judges, edges = out_of_bag.evaluation_forest(forest), forest.forest_.edges
    sampling = judges[1]
    categories = {f: statistic.categories for f, statistic in edges.statistics.items()}

    def on(backend: Backend) -> np.ndarray:
        binned = isinstance(X, BinnedData)
        known = edges.categories | categories
        table = X if binned else validation.check_table(forest, X, backend, known)
        out_of_bag.check_rows(sampling, table.shape[0])
        if binned and not fit_scope.same_edges(X.edges, edges):
            raise ValueError("X has other bins than the data that the forest was fitted to")
        criterion = criteria.CRITERIA[forest.criterion]
        task, for_task = forest._task, On(criterion, backend, forest.seed_)
        checked = task.check(FitInput.of(X, y).y, sampling.n_rows, for_task)
        encoded = task.encode_target(checked, sampling, for_task)
        if not fit_scope.same_coding(encoded.coding, forest.forest_.unweighted.coding):
            what = "values" if checked.classes is None else "classes"
            raise ValueError(
                f"y has other {what} than in training: pass what the forest was fitted to"
            )
        judged = None
        if categories and not binned:
            of_rows = sampling.weights, forest.seed_, sampling.groups
            made = target_statistics.OrderedTarget.of(checked, *of_rows, judges=True)
            judged = target_statistics.judged_again(table, edges.statistics, made)
            table = target_statistics.with_numbers(table, edges.statistics)
        matrix = bin_matrix(table, edges, backend, judged)
        return work(judges, matrix, (checked, encoded.y), backend)

    importances = run_on_backend(on, **forest._chosen(X))
    known = importances[:, ~np.isnan(importances[0])]
    if not known.size:
        raise ValueError("every bag has all rows, none is out of bag: lower max_samples")
    mean, std = known.mean(axis=1), known.std(axis=1)
    return Bunch(
        importances=importances, importances_mean=mean, importances_std=std,
        importances_error=std / np.sqrt(known.shape[1]), **others,
    )  # fmt: skip


def _numbers_of(forest: Any, group: Sequence[int | str]) -> list[int]:
    """The numbers of features given by number or name."""
    check_is_fitted(forest)
    n, names = forest.n_features_in_, list(getattr(forest, "feature_names_in_", ()))
    unknown = [f for f in group if f not in (names if isinstance(f, str) else range(n))]
    if unknown or isinstance(group, str):
        wrong = unknown[0] if unknown else group
        raise ValueError(
            f"groups has {wrong!r}, which is no feature: pass lists of numbers below {n}, or of "
            "names of the frame that the forest was fitted to"
        )
    return [names.index(f) if isinstance(f, str) else int(f) for f in group]


BINNING = ("max_bins", "categorical_features", "min_category_frequency", "categorical_split")
OUT_OF_BAG = {
    "oob_impurity": oob_impurity_importance, "oob_permutation": oob_permutation_importance
}  # fmt: skip


@params.parameters(params.BORUTA, params.OF_BORUTA)
class BorutaSelector(SelectorMixin, bases.MetaEstimatorMixin, bases.BaseEstimator):
    """Selects all features that are related to the target.

    In each round a forest sees the features and their shadows, which hold the same values in a
    random order. A feature that is more important than every shadow scores a hit. After each
    round, features with more hits than by chance are confirmed, and features with fewer hits are
    rejected and leave. Values are binned once; shadows are permuted bin codes.

    Notes
    -----
    `transform` keeps the confirmed features. Features that hold the same information are all
    confirmed. Confirmed features are related to the target in these rows, perhaps by chance: the
    selector compares features with shuffled features, not rows with other rows.

    References
    ----------
    M. B. Kursa and W. R. Rudnicki, "Feature selection with the Boruta package", Journal of
    Statistical Software 36(11), 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from gpuforest import BorutaSelector, RandomForestClassifier
    >>> X = np.random.default_rng(1).normal(size=(300, 6))
    >>> forest = RandomForestClassifier(50, max_depth=5)
    >>> BorutaSelector(forest, random_state=0).fit(X, X[:, 1] + X[:, 4] > 0).get_support(True)
    array([1, 4])
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the features that are related to the target."""
        self._validate_params()
        forest = self._checked_forest()
        y = FitInput.of(X, y).y
        seed = arguments.draw_seed(self.random_state)
        data = _binned(forest, X, y, seed)
        if data.shape[0] < 2:
            raise ValueError(
                f"Found array with {data.shape[0]} sample(s) (shape={data.shape}) while a minimum "
                "of 2 is required by BorutaSelector."
            )
        with fit_scope.replacing(self) as fitted:
            fitted._select(forest, data, y, seed)
        return self

    def _select(self, forest: Any, data: BinnedData, y: Any, seed: int) -> None:
        """Play rounds until all features are decided, and keep what they found."""
        n = self.n_features_in_ = data.shape[1]
        if data.feature_names is not None:
            self.feature_names_in_ = np.array(data.feature_names, object)
        confirmed, rejected, hits = np.zeros(n, bool), np.zeros(n, bool), np.zeros(n, np.int64)
        history, best = list[np.ndarray](), list[float]()
        with progress.stage("boruta"):
            while len(best) < int(self.max_iter) and not (confirmed | rejected).all():
                importances, shadow = self._round(forest, data, y, ~rejected, len(best), seed)
                # a feature that no tree uses has 0, which may be more than five poor shadows have
                hits += np.nan_to_num(importances, nan=-np.inf) > max(shadow, 0.0)
                history.append(importances)
                best.append(shadow)
                more, less = measures.decided(hits, len(best), self.alpha)
                undecided = ~(confirmed | rejected)
                confirmed |= more & undecided
                rejected |= less & undecided
                progress.report(len(best), int(self.max_iter))
        self.importance_history_, self.shadow_max_ = np.array(history), np.array(best)
        self.support_, self.support_weak_ = confirmed, ~(confirmed | rejected)
        self.n_features_, self.n_iter_ = int(confirmed.sum()), len(best)
        self.ranking_ = np.where(confirmed, 1, 2)
        if rejected.any():
            means = np.nanmean(self.importance_history_[:, rejected], axis=0)
            self.ranking_[rejected] = 2 + rankdata(-means, method="min")

    def _checked_forest(self) -> Any:
        forest = self.estimator
        if not isinstance(forest, FORESTS):
            kind = type(forest)
            raise TypeError(
                "BorutaSelector takes a RandomForest*, ExtraTrees* or Bagging* of gpuforest as "
                f"estimator, not a {kind.__name__} of {kind.__module__.partition('.')[0]}"
            )
        if self.importance in OUT_OF_BAG and not forest.bootstrap:
            raise ValueError(
                f"importance={self.importance!r} needs rows out of bag: set bootstrap=True of the "
                "estimator, or importance='impurity'"
            )
        return forest

    def _round(
        self, forest: Any, data: BinnedData, y: Any, left: np.ndarray, number: int, seed: int
    ) -> tuple[np.ndarray, float]:
        """The importances f64[F] of the features left (else NaN), and the largest of a shadow."""
        key, features = measures.round_key(seed, number), np.flatnonzero(left)
        given = data.edges, features, key
        codes, edges, sources = measures.with_shadows(data.by_feature, *given)
        judged = {}
        if data.judged:  # shadows of these codes are in the same orders
            of_judges = data.by_feature.copy()
            for f, column in data.judged.items():
                of_judges[f] = column
            rows = measures.with_shadows(of_judges, *given)[0]
            judged = {i: rows[i] for i, f in enumerate(sources.tolist()) if f in data.judged}
        data = replace(data, by_feature=codes, edges=edges, judged=judged, feature_names=None)
        grown = clone(forest).set_params(random_state=int(hashing.hash_at(key, 0)[0] % 2**32))
        if getattr(forest, "monotonic_cst", None) is not None:
            grown.set_params(monotonic_cst=np.asarray(forest.monotonic_cst)[sources])
        grown.fit(data, y)
        measure = OUT_OF_BAG.get(self.importance)
        means = measure(grown, data, y).importances_mean if measure else grown.feature_importances_
        importances = np.full(len(left), np.nan)
        importances[features] = means[: len(features)]
        return importances, float(means[len(features) :].max())

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        return self.support_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def _binned(forest: Any, X: Any, y: Any, seed: int) -> BinnedData:
    """X as the forest would bin it, and its names; X and y are checked as in the forest's fit."""
    if isinstance(X, BinnedData):
        return X
    judges = bool(forest.bootstrap)  # rows out of bag may be judged
    forest = clone(forest).set_params(oob_score=judges)
    forest._validate_params()

    def work(backend: Backend) -> BinnedData:
        matrix = prepare.prepare(forest, FitInput(X, y), seed, backend).training.matrix
        codes = arrays.to_host(matrix.codes)[:, : matrix.edges.n_features]
        names = [*getattr(forest, "feature_names_in_", ())] or None
        how = {name: getattr(forest, name) for name in BINNING}
        return BinnedData(
            by_feature=np.ascontiguousarray(codes.T), edges=matrix.edges, y=None,
            sample_weight=None, feature_names=names, seed=seed, dtype=np.dtype(np.float32),
            judged={f: arrays.to_host(column) for f, column in matrix.judged.items()}, **how,
        )  # fmt: skip

    return run_on_backend(work, **forest._chosen(X))
