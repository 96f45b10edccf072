"""Extremely randomized trees (Geurts, Ernst and Wehenkel 2006): one random cut a feature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.random import RandomState
from scipy.sparse import csr_matrix
from sklearn.base import TransformerMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from gpuforest import predict as prediction
from gpuforest.backends.arrays import to_host
from gpuforest.backends.base import Backend
from gpuforest.estimators.base import FitData
from gpuforest.estimators.ensembles import ForestClassifier, ForestRegressor, ManyTrees
from gpuforest.estimators.settings import (
    FOREST_CONSTRAINTS,
    TREE_CONSTRAINTS,
    current_criterion,
    keep,
)
from gpuforest.estimators.tasks import Numbers
from gpuforest.nodes import is_leaf
from gpuforest.target import CheckedTarget

# parameters of forests that have no meaning without a target or bags
BAGS = {"bootstrap", "max_samples", "oob_score", "unbiased_importances"}
BAGS |= {"oob_tol", "max_estimators"}
UNSUPERVISED = {"max_features", "ccp_alpha", "monotonic_cst", *BAGS}


class ExtraTreesClassifier(ForestClassifier):
    """Extremely randomized trees for classes.

    Of each feature tried at a split one cut is drawn at random, among the feature's bins from
    the first to the last that hold rows of the node; the best of these cuts is taken. The
    same data and `random_state` give the same trees, bit for bit, on every backend and with
    any number of threads.

    Parameters
    ----------
    bootstrap : bool, default=False
        Each tree sees rows drawn with replacement; False: all rows.
    n_estimators, criterion, max_depth, min_samples_split, min_samples_leaf
        As for `RandomForestClassifier`.
    min_weight_fraction_leaf, max_features, max_leaf_nodes, min_impurity_decrease, ccp_alpha
        As for `RandomForestClassifier`.
    feature_combinations, combination_weights
        As for `RandomForestClassifier`.
    monotonic_cst, categorical_features, min_category_frequency, categorical_split, class_weight
        As for `RandomForestClassifier`.
    voting, max_samples, oob_score, unbiased_importances, oob_tol, max_estimators
        As for `RandomForestClassifier`.
    random_state, warm_start, n_jobs, verbose, max_bins, backend, memory_limit
        As for `RandomForestClassifier`.

    Attributes
    ----------
    As of `RandomForestClassifier`.

    References
    ----------
    P. Geurts, D. Ernst and L. Wehenkel, "Extremely randomized trees", Machine Learning 63,
    2006. There the cut is uniform between the smallest and the largest value; here between
    the bins that hold them, whatever their width.
    """

    _splitter = "random"

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
        bootstrap: bool = False,
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


class ExtraTreesRegressor(ForestRegressor):
    """Extremely randomized trees for real numbers.

    Of each feature tried at a split one cut is drawn at random, see `ExtraTreesClassifier`.

    Parameters
    ----------
    max_features : "sqrt", "log2", "oob", int, float or None, default=1.0
        Features, among those that vary in the node, tried at a split; None: all; "oob": see
        `RandomForestClassifier`.
    bootstrap : bool, default=False
        Each tree sees rows drawn with replacement; False: all rows.
    criterion, max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf
        As for `RandomForestRegressor`.
    max_leaf_nodes, min_impurity_decrease, ccp_alpha, monotonic_cst, categorical_features
        As for `RandomForestRegressor`.
    feature_combinations, combination_weights
        As for `RandomForestRegressor`.
    min_category_frequency, categorical_split, max_samples, oob_score, unbiased_importances
        As for `RandomForestRegressor`.
    n_estimators, oob_tol, max_estimators
        As for `RandomForestClassifier`.
    random_state, warm_start, n_jobs, verbose, max_bins, backend, memory_limit
        As for `RandomForestClassifier`.

    Attributes
    ----------
    As of `RandomForestRegressor`.
    """

    _splitter = "random"

    def __init__(
        self,
        n_estimators: int | str = 100,
        *,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: str | int | float | None = 1.0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        min_category_frequency: int = 5,
        categorical_split: str = "subset",
        feature_combinations: float | None = None,
        combination_weights: str = "binary",
        bootstrap: bool = False,
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


class RandomTreesEmbedding(TransformerMixin, ManyTrees, Numbers):  # type: ignore[misc]
    """Rows as the leaves that they reach in completely random trees.

    Trees of one random cut a node are grown for a random target. A row becomes a vector of
    zeros with a one for its leaf in each tree.

    Parameters
    ----------
    n_estimators : int, default=100
        Trees.
    max_depth : int or None, default=5
        Levels below the root.
    sparse_output : bool, default=True
        A sparse matrix; False: an array.
    min_samples_split, min_samples_leaf, min_weight_fraction_leaf
        As for `RandomForestRegressor`.
    max_leaf_nodes, min_impurity_decrease, categorical_features
        As for `RandomForestRegressor`.
    min_category_frequency, categorical_split, feature_combinations, combination_weights
        As for `RandomForestRegressor`.
    random_state, warm_start, n_jobs, verbose, max_bins, backend, memory_limit
        As for `RandomForestClassifier`.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), of frames with string names
    is_categorical_ : bool ndarray of shape (n_features_in_,), or None: no feature is
    seed_ : int, what random draws came from
    backend_ : str, the name of the backend that grew the trees
    forest_ : gpuforest.forest.Forest

    References
    ----------
    P. Geurts, D. Ernst and L. Wehenkel, "Extremely randomized trees", Machine Learning 63,
    2006; F. Moosmann, B. Triggs and F. Jurie, "Fast discriminative visual codebooks using
    randomized clustering forests", NIPS 2007.
    """

    _splitter = "random"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{
            name: allowed
            for name, allowed in (TREE_CONSTRAINTS | FOREST_CONSTRAINTS).items()
            if name not in UNSUPERVISED
        },
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "sparse_output": ["boolean"],
    }
    criterion = "squared_error"

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        max_depth: int | None = 5,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        categorical_features: Any = "from_dtype",
        min_category_frequency: int = 5,
        categorical_split: str = "subset",
        feature_combinations: float | None = None,
        combination_weights: str = "binary",
        sparse_output: bool = True,
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        max_bins: int | str = "auto",
        backend: str = "auto",
        memory_limit: int | None = None,
    ) -> None:
        keep(self, locals())

    def _tree_params(self) -> dict[str, Any]:
        fixed = {"criterion": self.criterion, "max_features": 1, "ccp_alpha": 0.0}
        return super()._tree_params() | fixed | {"monotonic_cst": None}

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Grow the trees; see `RandomForestRegressor.fit`. `y` is ignored."""
        return super().fit(X, None, sample_weight)

    def _fit(self, data: FitData, backend: Backend) -> None:
        super()._fit(replace(data, y=data.seed), backend)

    def _check_target(self, y: Any, n_rows: int, backend: Backend) -> CheckedTarget:
        return CheckedTarget(RandomState(y % 2**32).uniform(size=n_rows))  # y is the seed

    def _set_oob_score_and_attributes(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("OOB score not supported by tree embedding")

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Grow the trees, and transform the rows that they were grown from.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        as `transform`
        """
        return self.fit(X, y, sample_weight).transform(X)

    def transform(self, X: Any) -> Any:
        """The leaves that the rows reach.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)

        Returns
        -------
        float64 csr_matrix (or array) of shape (n_samples, n_out), n_out the leaves of all trees
        """
        leaves = to_host(self._walk(X, prediction.apply))
        forest = self.forest_
        leaf = is_leaf(forest.nodes)
        column = np.cumsum(leaf) - 1
        columns = column[leaves + forest.tree_offsets[:-1]]
        N, T = leaves.shape
        shape = (N, int(leaf.sum()))
        rows = np.arange(0, N * T + 1, T)
        found = csr_matrix((np.ones(N * T), columns.reshape(-1), rows), shape)
        return found if self.sparse_output else found.toarray()

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of `transform`: randomtreesembedding_{tree}_{leaf}.

        Parameters
        ----------
        input_features : names of the features in training, or None

        Returns
        -------
        ndarray of str objects of shape (n_out,)
        """
        check_is_fitted(self)
        _check_feature_names_in(self, input_features, generate_names=False)
        offsets, at = self.forest_.tree_offsets, np.flatnonzero(is_leaf(self.forest_.nodes))
        tree = np.searchsorted(offsets, at, side="right") - 1
        pairs = zip(tree.tolist(), (at - offsets[tree]).tolist(), strict=True)
        return np.array([f"randomtreesembedding_{t}_{leaf}" for t, leaf in pairs], dtype=object)
