"""Random forests (Breiman 2001)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpuforest.estimators.ensembles import ForestClassifier, ForestRegressor
from gpuforest.estimators.settings import current_criterion, keep


class RandomForestClassifier(ForestClassifier):
    """A random forest for classes.

    The same data and `random_state` give the same forest, bit for bit, on every backend
    and with any number of threads.

    Parameters
    ----------
    n_estimators : int or "auto", default=100
        Trees; "auto": as many as it takes until the out-of-bag error has converged, see `oob_tol`.
        Needs bootstrap.
    criterion : {"gini", "entropy", "log_loss", "misclassification", "gain_ratio"}, default="gini"
    max_depth : int or None, default=None
        Levels below the root; None: until leaves are pure or may not be split.
    min_samples_split : int or float, default=2
        Rows of a node that may be split; a float is a fraction of the rows.
    min_samples_leaf : int or float, default=1
        Rows that either side of a split must have; a float is a fraction of the rows.
    min_weight_fraction_leaf : float, default=0.0
        Share of a bag's total weight that either side of a split must have, up to 0.5.
    max_features : "sqrt", "log2", "oob", int, float or None, default="sqrt"
        Features, among those that vary in the node, tried at a split; None: all; "oob": as many
        as give the least out-of-bag error, from the default on by factors of two, which needs
        bootstrap.
    max_leaf_nodes : int or None, default=None
        At most so many leaves of a tree: of all splits those that decrease the impurity most,
        chosen from the root down (best first); None: any number.
    min_impurity_decrease : float, default=0.0
        Least decrease of impurity, weighted by the node's share of the rows.
    ccp_alpha : float, default=0.0
        Minimal cost-complexity pruning of each tree (Breiman et al. 1984, chapter 3); 0: none.
    monotonic_cst : array-like of int of shape (n_features,) or None, default=None
        1: the probability of the second class must not fall as the feature rises, -1: it must
        not rise, 0: either. For two classes, or one real output.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Features whose values are categories: a mask of shape (n_features,), indices, or names of
        columns. "from_dtype": columns of a frame that hold strings or are of a categorical
        dtype. None: no feature is.
    min_category_frequency : int, default=5
        Rows of a category, where a feature has more than ten: those of fewer rows become one,
        "other", where values also go that training did not see. 1: each is a category.
    categorical_split : {"subset", "multiway"}, default="subset"
        How a categorical feature splits: in two sets of its categories, the best of all sets or
        near it; or in a branch for each category, as ID3 and C4.5 do, once on a path.
    feature_combinations : float or None, default=None
        Splits by sums of several features (oblique splits): the mean number of features in a sum,
        1 to 8; 1.5 to 3 is usual. `max_features` then counts the sums tried, of which there may
        be more than features. None: splits by one feature. See docs/oblique.md.
    combination_weights : {"binary", "integer"}, default="binary"
        What features are multiplied with in a sum: 1 or -1; or a whole number from -5 to 5.
    bootstrap : bool, default=True
        Each tree sees rows drawn with replacement; False: all rows.
    max_samples : int, float or None, default=None
        Rows drawn for a tree; a float is a fraction of the total weight; None: as many
        as there are rows. Needs bootstrap.
    oob_score : bool or callable, default=False
        Predict each row by the trees that did not draw it. Needs bootstrap. A callable takes
        the true and the predicted targets of these rows and gives the score.
    unbiased_importances : bool, default=False
        Find `unbiased_feature_importances_`, by one walk of the rows down the trees that did not
        draw them. Needs bootstrap.
    oob_tol : float, default=0.005
        Of n_estimators="auto": growing ends when over the last half of the trees the out-of-bag
        error (of classes the share of wrong rows, of numbers 1 - R^2) lay within this.
    max_estimators : int, default=1000
        Of n_estimators="auto": at most so many trees.
    class_weight : {"balanced", "balanced_subsample"}, dict, list of dict or None, default=None
        What each row of a class adds to the statistics: {label: weight}, or "balanced",
        rows / (classes * rows of the class); "balanced_subsample" counts the
        rows drawn for each tree. A list is for several outputs.
    voting : {"soft", "hard"}, default="soft"
        The mean of the trees' class proportions, or the share of trees that vote for a class.
    random_state : int, RandomState or None, default=None
        An int is the seed as it is; None draws one from NumPy's global state.
    warm_start : bool, default=False
        A later fit of the same data with more `n_estimators` adds trees; the forest is the same
        as if all had been grown at once.
    n_jobs : int or None, default=None
        Threads on the CPU; None: one (or joblib's context), -1: all.
    verbose : int, default=0
        1: print the stages of a fit; 2: also how far they are.
    max_bins : int or "auto", default="auto"
        At most so many bins of a feature, 2 to 65535; above 255 codes take two bytes. "auto": a bin
        for each value, and so exact trees, where no feature has more than 1,023 values; else 255.
    backend : str, default="auto"
        See `gpuforest.available_backends`.
    memory_limit : int or None, default=None
        Bytes that a fit may take, about, beside X and y; fewer trees then grow at once, and the
        same ones. See `gpuforest.estimate_memory`. None: no limit.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), or a list of them, one an output
    n_classes_ : int, or list of int
    n_outputs_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), of frames with string names
    is_categorical_ : bool ndarray of shape (n_features_in_,), or None: no feature is
    feature_importances_ : float64 ndarray of shape (n_features_in_,)
    unbiased_feature_importances_ : float64 ndarray of shape (n_features_in_,)
        With unbiased_importances, the means of `gpuforest.oob_impurity_importance`: 0 on average
        for features that say nothing, however many values they have.
    oob_score_ : float, accuracy (or `oob_score`) over the rows that are out of some bag
    oob_decision_function_ : float64 ndarray of shape (n_samples, n_classes[, n_outputs])
        NaN where a row was never out of bag.
    oob_curve_ : Bunch of `n_estimators`, int64, and `error`, float64 of the same shape
        Out-of-bag errors of growing numbers of trees, of many rows on a sample; with oob_score or
        n_estimators="auto".
    oob_max_features_ : Bunch of `max_features` and `error`
        Of max_features="oob", what was tried.
    n_estimators_ : int, trees
    max_features_ : int, features tried at a split
    seed_ : int, what random draws came from
    criterion_ : str, what the trees were grown with
    backend_ : str, the name of the backend that grew them
    estimators_samples_ : list of int32 ndarray, the rows of each tree's bag
    forest_ : gpuforest.forest.Forest
    estimators_ : list of the trees, as DecisionTreeClassifier

    Examples
    --------
    >>> from gpuforest import RandomForestClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]] * 5, ["a", "a", "b", "b"] * 5
    >>> forest = RandomForestClassifier(random_state=0).fit(X, y)
    >>> forest.predict([[0.5], [2.5]]).tolist()
    ['a', 'b']
    """

    def __init__(
        self,
        n_estimators: int | str = 100,
        *,
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: str | int | float | None = "sqrt",
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        min_category_frequency: int = 5,
        categorical_split: str = "subset",
        feature_combinations: float | None = None,
        combination_weights: str = "binary",
        bootstrap: bool = True,
        max_samples: int | float | None = None,
        oob_score: bool | Callable[..., float] = False,
        unbiased_importances: bool = False,
        oob_tol: float = 0.005,
        max_estimators: int = 1000,
        class_weight: dict[Any, float] | list[Any] | str | None = None,
        voting: str = "soft",
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        max_bins: int | str = "auto",
        backend: str = "auto",
        memory_limit: int | None = None,
    ) -> None:
        keep(self, locals())


class RandomForestRegressor(ForestRegressor):
    """A random forest for real numbers.

    The same data and `random_state` give the same forest, bit for bit, on every backend
    and with any number of threads.

    Parameters
    ----------
    criterion : {"squared_error", "absolute_error", "poisson"}, default="squared_error"
        "absolute_error" predicts medians: it is slower, grows on the CPU alone and takes no
        categories. "poisson" is for counts: y >= 0, not all zero.
    max_features : "sqrt", "log2", "oob", int, float or None, default=1/3
        Features, among those that vary in the node, tried at a split; None: all; "oob": see
        `RandomForestClassifier`.
    n_estimators, max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf
        As for `RandomForestClassifier`.
    max_leaf_nodes, min_impurity_decrease, ccp_alpha
        As for `RandomForestClassifier`.
    monotonic_cst : array-like of int of shape (n_features,) or None, default=None
        1: the prediction must not fall as the feature rises, -1: it must not rise, 0: either.
    categorical_features, min_category_frequency, categorical_split, feature_combinations
        As for `RandomForestClassifier`.
    combination_weights, bootstrap, max_samples
        As for `RandomForestClassifier`.
    oob_score, unbiased_importances, oob_tol, max_estimators
        As for `RandomForestClassifier`.
    random_state, warm_start, n_jobs, verbose, max_bins, backend, memory_limit
        As for `RandomForestClassifier`.

    Attributes
    ----------
    oob_score_ : float, R^2 (or `oob_score`) over the rows that are out of some bag
    oob_prediction_ : float64 ndarray of shape (n_samples[, n_outputs])
        NaN where a row was never out of bag.
    estimators_ : list of the trees, as DecisionTreeRegressor
    others : as of `RandomForestClassifier`, without classes and `oob_decision_function_`
    """

    def __init__(
        self,
        n_estimators: int | str = 100,
        *,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: str | int | float | None = 1 / 3,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        min_category_frequency: int = 5,
        categorical_split: str = "subset",
        feature_combinations: float | None = None,
        combination_weights: str = "binary",
        bootstrap: bool = True,
        max_samples: int | float | None = None,
        oob_score: bool | Callable[..., float] = False,
        unbiased_importances: bool = False,
        oob_tol: float = 0.005,
        max_estimators: int = 1000,
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        max_bins: int | str = "auto",
        backend: str = "auto",
        memory_limit: int | None = None,
    ) -> None:
        keep(self, locals() | {"criterion": current_criterion(criterion)})
