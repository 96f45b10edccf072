"""Out-of-bag permutation importances of a fitted forest."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from gpuforest.backends.base import Backend
from gpuforest.backends.registry import run_on_backend
from gpuforest.binning import bin_matrix
from gpuforest.common import progress
from gpuforest.data.validation import check_table
from gpuforest.estimators.ensembles import ForestClassifier, ForestRegressor
from gpuforest.inspection.permutation import permutation_decreases
from gpuforest.target import CheckedTarget


def oob_permutation_importance(forest: Any, X: Any, y: Any) -> Bunch:
    """How much worse each tree predicts the rows out of its bag when a feature is permuted
    among them.

    No other data are needed, and a feature of many values is not preferred, as it is by
    `feature_importances_`. Where two features hold the same information, each makes up for the
    other, and both seem unimportant. The permutations come from the forest's seed: the same
    forest gives the same importances on every backend.

    Parameters
    ----------
    forest : RandomForest*, ExtraTrees* or Bagging*, fitted, with bags
        Not one that was loaded from a file, which does not know its bags.
    X, y : as for `fit`, the data that the forest was fitted to

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
    _check_bags(forest)

    def work(backend: Backend) -> np.ndarray:
        sampling, grown = forest._sampling_, forest.forest_
        table = check_table(forest, X, backend)
        if table.shape[0] != sampling.n_rows:
            raise ValueError(
                f"X has {table.shape[0]} rows, but the forest was fitted to {sampling.n_rows}: "
                "pass the data that it was fitted to"
            )
        checked = forest._check_target(y, sampling.n_rows, backend)
        _check_classes(forest, checked)
        matrix = bin_matrix(table, grown.edges, backend)
        with progress.stage("permuting"):
            score = forest._tree_score(checked)
            return permutation_decreases(grown, matrix, sampling, score, backend)

    found = run_on_backend(work, **forest._chosen(X))
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


def _check_bags(forest: Any) -> None:
    if not isinstance(forest, ForestClassifier | ForestRegressor):
        raise TypeError(
            "oob_permutation_importance takes a fitted RandomForest*, ExtraTrees* or Bagging* of "
            f"gpuforest, not a {type(forest).__name__}"
        )
    check_is_fitted(forest)
    if not hasattr(forest, "_sampling_"):
        raise ValueError(
            "the bags are known only to the estimator that was fitted, not to one that was "
            "loaded or converted: fit it again, the same random_state gives the same trees"
        )
    if not forest._sampling_.n_draws:
        raise ValueError("no row is out of bag without bags: fit with bootstrap=True")


def _check_classes(forest: Any, checked: CheckedTarget) -> None:
    """Refuse other classes: their codes would mean other labels."""
    if checked.classes is None:
        return
    own, other = forest.classes_, checked.classes
    own = own if isinstance(own, list) else [own]
    if len(own) != len(other) or not all(map(np.array_equal, own, other)):
        raise ValueError("y has other classes than in training: pass what the forest was fitted to")
