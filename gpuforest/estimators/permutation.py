"""Importances of a fitted forest's features, from the rows out of its bags."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from gpuforest.backends.base import Backend
from gpuforest.backends.registry import run_on_backend
from gpuforest.common import progress
from gpuforest.data.binned import BinnedData, target_and_weight
from gpuforest.data.validation import check_table
from gpuforest.engine.binning import BinEdges, BinnedMatrix, bin_matrix
from gpuforest.engine.target import CheckedTarget
from gpuforest.estimators.ensembles import ForestClassifier, ForestRegressor
from gpuforest.explain.importances import permutation_decreases, unbiased_importances


def oob_permutation_importance(
    forest: Any, X: Any, y: Any, *, groups: Sequence[Sequence[int | str]] | None = None
) -> Bunch:
    """How much worse each tree predicts the rows out of its bag when a feature is permuted
    among them.

    No other data are needed, and a feature of many values is not preferred, as it is by
    `feature_importances_`. Where two features hold the same information, each makes up for the
    other, and both seem unimportant. The permutations come from the forest's seed: the same
    forest gives the same importances on every backend.

    Parameters
    ----------
    forest : RandomForest*, ExtraTrees* or Bagging*, fitted, with bags
        Not a bag that was loaded from a file, which does not know how its rows were drawn.
    X, y : as for `fit`, the data that the forest was fitted to; `BinnedData` too
    groups : lists of features, by number or name, default=None
        The features of a group are permuted together, by the same order: the importance of what
        they hold between them, such as the columns of a one-hot encoding. There is then one
        importance for each group in place of each feature.

    Returns
    -------
    Bunch
        importances : float64 ndarray of shape (n_features, n_estimators)
            Of classes the decrease of the tree's accuracy (of several outputs, the share of
            rows whose outputs are all right), of numbers the increase of its mean squared
            error. NaN for trees whose bag has all rows.
        importances_mean, importances_std : float64 ndarray of shape (n_features,), over the
            trees
        importances_error : float64 ndarray of shape (n_features,), standard errors of the means

    Raises
    ------
    TypeError
        Another kind of estimator.
    ValueError
        One that has no bags or does not know them; other data than it was fitted to.

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

    def work(matrix: BinnedMatrix, checked: CheckedTarget, backend: Backend) -> np.ndarray:
        grown, score = forest.forest_, forest._tree_score(checked)
        with progress.stage("permuting"):
            return permutation_decreases(grown, matrix, forest._sampling_, score, backend, numbers)

    return _over_trees(_with_bags(forest, X, y, work, "oob_permutation_importance"))


def oob_impurity_importance(forest: Any, X: Any, y: Any) -> Bunch:
    """How much the splits of each feature decrease the impurity of the rows out of bag.

    `feature_importances_` are computed from the rows that splits were chosen by. So a feature
    that says nothing seems to have some importance, and the more values it has, the more: there
    are more splits to choose from. The rows out of bag had no part in the choice. By them a
    feature that says nothing has an importance of 0 on average, above and below by chance. One
    walk of the rows down the trees is enough, so this takes a fraction of what permutations take.

    Parameters
    ----------
    forest : RandomForest*, ExtraTrees* or Bagging*, fitted, with bags
        Not a bag that was loaded from a file, which does not know how its rows were drawn.
    X, y : as for `fit`, the data that the forest was fitted to; `BinnedData` too

    Returns
    -------
    Bunch
        importances : float64 ndarray of shape (n_features, n_estimators)
            Decreases of Gini's impurity, of numbers of the variance, summed over each tree's
            splits and divided by its rows out of bag, whatever the criterion. They do not add up
            to one. NaN for trees whose bag has all rows.
        importances_mean, importances_std : float64 ndarray of shape (n_features,), over the
            trees
        importances_error : float64 ndarray of shape (n_features,), standard errors of the means
        measure : str, the label of the axis in `plot_importances`

    Raises
    ------
    TypeError
        Another kind of estimator.
    ValueError
        One that has no bags or does not know them; other data than it was fitted to.

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

    def work(matrix: BinnedMatrix, checked: CheckedTarget, backend: Backend) -> np.ndarray:
        codes = forest._encode_target(checked, forest._sampling_, backend)[1]
        with progress.stage("walking"):
            return unbiased_importances(forest.forest_, matrix, codes, forest._sampling_, backend)

    found = _over_trees(_with_bags(forest, X, y, work, "oob_impurity_importance"))
    found.measure = "decrease of impurity out of bag"
    return found


def _with_bags(
    forest: Any,
    X: Any,
    y: Any,
    work: Callable[[BinnedMatrix, CheckedTarget, Backend], np.ndarray],
    name: str,
) -> np.ndarray:
    """The result of `work` for the data that a forest was fitted to."""
    _check_bags(forest, name)

    def on(backend: Backend) -> np.ndarray:
        n_rows, edges = forest._sampling_.n_rows, forest.forest_.edges
        binned = isinstance(X, BinnedData)
        table = X if binned else check_table(forest, X, backend)
        if table.shape[0] != n_rows:
            raise ValueError(
                f"X has {table.shape[0]} rows, but the forest was fitted to {n_rows}: "
                "pass the data that it was fitted to"
            )
        if binned and not _same_bins(X.edges, edges):
            raise ValueError("X has other bins than the data that the forest was fitted to")
        checked = forest._check_target(target_and_weight(X, y, None)[0], n_rows, backend)
        _check_same_target(forest, checked, backend)
        return work(bin_matrix(table, edges, backend), checked, backend)

    return run_on_backend(on, **forest._chosen(X))


def _same_bins(one: BinEdges, other: BinEdges) -> bool:
    return one is other or (
        one.categories == other.categories
        and all(map(np.array_equal, (one.offsets, one.values), (other.offsets, other.values)))
    )


def _over_trees(found: np.ndarray) -> Bunch:
    """Importances f64[F, T], and their means, spreads and errors over the trees that have any."""
    known = found[:, ~np.isnan(found[0])]
    if not known.size:
        raise ValueError("every bag has all rows, none is out of bag: lower max_samples")
    std = known.std(axis=1)
    return Bunch(
        importances=found,
        importances_mean=known.mean(axis=1),
        importances_std=std,
        importances_error=std / np.sqrt(known.shape[1]),
    )


def _numbers_of(forest: Any, group: Sequence[int | str]) -> list[int]:
    """The numbers of features given by number or name."""
    check_is_fitted(forest)
    n, names = forest.n_features_in_, list(getattr(forest, "feature_names_in_", ()))
    unknown = [f for f in group if f not in (names if isinstance(f, str) else range(n))]
    if unknown or isinstance(group, str):
        wrong = unknown[0] if unknown else group
        raise ValueError(
            f"groups has {wrong!r}, which is no feature: pass lists of numbers "
            f"below {n}, or of names of the frame that the forest was fitted to"
        )
    return [names.index(f) if isinstance(f, str) else int(f) for f in group]


def _check_bags(forest: Any, name: str) -> None:
    if not isinstance(forest, ForestClassifier | ForestRegressor):
        raise TypeError(
            f"{name} takes a fitted RandomForest*, ExtraTrees* or Bagging* of gpuforest, not a "
            f"{type(forest).__name__}"
        )
    check_is_fitted(forest)
    if not hasattr(forest, "_sampling_"):
        raise ValueError(
            "the bags are not known to Bagging* that were loaded, older files and converted "
            "forests: fit it again, the same random_state gives the same trees"
        )
    if not forest._sampling_.n_draws:
        raise ValueError("no row is out of bag without bags: fit with bootstrap=True")


def _check_same_target(forest: Any, checked: CheckedTarget, backend: Backend) -> None:
    """Refuse other classes, whose codes would mean other labels, and numbers of another scale."""
    if checked.classes is None:
        own = forest.forest_.coding
        coding = forest._encode_target(checked, forest._sampling_, backend)[0]
        if coding.scale != own.scale or not np.array_equal(coding.centre, own.centre):
            raise ValueError(
                "y has other values than in training: pass what the forest was fitted to"
            )
        return
    own, other = forest.classes_, checked.classes
    own = own if isinstance(own, list) else [own]
    if len(own) != len(other) or not all(map(np.array_equal, own, other)):
        raise ValueError("y has other classes than in training: pass what the forest was fitted to")
