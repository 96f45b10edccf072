"""Single decision trees: the first tree of a forest that draws no bags."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from gpuforest import predict as prediction
from gpuforest.backends.arrays import to_host
from gpuforest.estimators.pruned import PRUNING, PrunedTree
from gpuforest.estimators.settings import (
    CLASS_WEIGHT,
    SPLITTER,
    TREE_CONSTRAINTS,
    criterion_constraint,
    current_criterion,
    keep,
)
from gpuforest.estimators.tasks import Classifier, Regressor
from gpuforest.inspection.paths import decision_paths
from gpuforest.inspection.views import TreeView
from gpuforest.nodes import is_leaf


class SingleTree(PrunedTree):
    """The methods of a single tree beside its predictions."""

    __metadata_request__fit: ClassVar[dict[str, str]] = {"check_input": UNUSED}
    __metadata_request__predict: ClassVar[dict[str, str]] = {"check_input": UNUSED}

    @cached_property
    def tree_(self) -> Any:
        """The tree as scikit-learn has it, see `inspection.sklearn_tree`."""
        from gpuforest.inspection.sklearn_tree import shown_tree

        check_is_fitted(self)
        if self.forest_.oblique:
            raise ValueError(
                "tree_ has one feature a node, and this tree splits by combinations of features: "
                "use export_text or tree_nodes, or train with feature_combinations=None"
            )
        signs = self._signs()
        return shown_tree(TreeView(self.forest_, 0, self._criterion, self.backend, signs))

    # callers of scikit-learn's trees pass `check_input`; rows are always checked, because
    # kernels trust them

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, check_input: bool = True
    ) -> Any:
        """Grow the tree; see `RandomForestClassifier.fit`. `check_input` is ignored."""
        return super().fit(X, y, sample_weight)

    def predict(self, X: Any, check_input: bool = True) -> Any:
        """Predict as a forest of this tree alone does. `check_input` is ignored."""
        return super().predict(X)

    def apply(self, X: Any, check_input: bool = True) -> Any:
        """The number of the leaf that each row reaches, int64 of shape (n_samples,).

        `check_input` is ignored.
        """
        return self._walk(X, prediction.apply)[:, 0]

    def decision_path(self, X: Any, check_input: bool = True) -> Any:
        """The nodes that each row passes, from the root to its leaf.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
        check_input : bool, ignored

        Returns
        -------
        sparse int64 matrix of shape (n_samples, n_nodes), ones where a row passes a node
        """
        leaves = to_host(self._walk(X, prediction.apply))
        return decision_paths(self.forest_, leaves)

    def get_depth(self) -> int:
        """Levels below the root."""
        check_is_fitted(self)
        return self.forest_.depth

    def get_n_leaves(self) -> int:
        """Leaves of the tree."""
        check_is_fitted(self)
        return int(is_leaf(self.forest_.nodes).sum())


class DecisionTreeClassifier(SingleTree, Classifier):
    """A decision tree (CART) for classes.

    Where every feature has at most 1,023 distinct values (or `max_bins`) this is the exact
    tree; otherwise thresholds are chosen among 254 (or `max_bins` - 1) edges a feature. The
    same data and `random_state` give the same tree, bit for bit, on every backend.

    Parameters
    ----------
    criterion : {"gini", "entropy", "log_loss", "misclassification", "gain_ratio"}, default="gini"
    splitter : {"best", "random"}, default="best"
        The best cut of each feature tried, or the best of one random cut of each.
    max_features : "sqrt", "log2", int, float or None, default=None
        Features, among those that vary in the node, tried at a split; None: all.
    ccp_alpha : float or "cv", default=0.0
        Minimal cost-complexity pruning (Breiman et al. 1984, chapter 3): the subtree of the
        largest cost complexity below this is kept; 0: no pruning. "cv": chosen by
        cross-validation.
    ccp_cv : int, splitter or iterable, default=10
        The folds of `ccp_alpha="cv"`: an int takes that many, shuffled by `random_state`, and
        stratified for classes; else as `sklearn.model_selection.check_cv` takes it.
    ccp_rule : {"min", "one_se"}, default="min"
        Which subtree `ccp_alpha="cv"` takes: the smallest of the least error, or of at most
        one standard error more.
    class_weight : "balanced", dict, list of dict or None, default=None
        What each row of a class adds to the statistics: {label: weight}, or "balanced",
        rows / (classes * rows of the class). A list is for several outputs.
    max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf, max_leaf_nodes
        As for `RandomForestClassifier`, where the tree's bag is all rows.
    min_impurity_decrease, monotonic_cst, categorical_features, min_category_frequency
        As for `RandomForestClassifier`.
    categorical_split, feature_combinations, combination_weights
        As for `RandomForestClassifier`.
    random_state, max_bins, backend, memory_limit
        As for `RandomForestClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_classes_ : int
    n_outputs_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), of frames with string names
    is_categorical_ : bool ndarray of shape (n_features_in_,), or None: no feature is
    feature_importances_ : float64 ndarray of shape (n_features_in_,)
    seed_ : int, what random draws came from
    criterion_ : str, what the tree was grown with
    backend_ : str, the name of the backend that grew it
    forest_ : gpuforest.forest.Forest, of one tree
    tree_ : sklearn.tree._tree.Tree, its nodes as scikit-learn has them
    ccp_alpha_ : float, what the tree was pruned at
    pruning_curve_ : Bunch, where alpha was chosen (`ccp_alpha="cv"`, or `prune`): of each
        subtree, the largest first, `ccp_alphas` and the `n_leaves` of the tree pruned at it,
        and `errors` of rows that did not grow it with their `std_errors`; NumPy arrays

    Examples
    --------
    >>> from gpuforest import DecisionTreeClassifier
    >>> tree = DecisionTreeClassifier().fit([[0.0], [1.0], [2.0]], ["a", "a", "b"])
    >>> tree.predict([[1.4], [1.6]]).tolist()
    ['a', 'b']
    """

    __metadata_request__predict_proba: ClassVar[dict[str, str]] = {"check_input": UNUSED}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TREE_CONSTRAINTS,
        **PRUNING,
        "splitter": SPLITTER,
        **criterion_constraint("classification"),
        "class_weight": [StrOptions({"balanced"}), *CLASS_WEIGHT],
    }

    def __init__(
        self,
        *,
        criterion: str = "gini",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: str | int | float | None = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float | str = 0.0,
        ccp_cv: Any = 10,
        ccp_rule: str = "min",
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        min_category_frequency: int = 5,
        categorical_split: str = "subset",
        feature_combinations: float | None = None,
        combination_weights: str = "binary",
        class_weight: dict[Any, float] | list[Any] | str | None = None,
        random_state: int | np.random.RandomState | None = None,
        max_bins: int | str = "auto",
        backend: str = "auto",
        memory_limit: int | None = None,
    ) -> None:
        keep(self, locals())

    def predict_proba(self, X: Any, check_input: bool = True) -> Any:
        """Class proportions as of a forest of this tree alone. `check_input` is ignored."""
        return super().predict_proba(X)


class DecisionTreeRegressor(SingleTree, Regressor):
    """A decision tree (CART) for real numbers.

    Where every feature has at most 1,023 distinct values (or `max_bins`) this is the exact
    tree; otherwise thresholds are chosen among 254 (or `max_bins` - 1) edges a feature. The
    same data and `random_state` give the same tree, bit for bit, on every backend.

    Parameters
    ----------
    criterion : {"squared_error", "absolute_error", "poisson"}, default="squared_error"
        "absolute_error" predicts medians: it is slower, grows on the CPU alone and takes no
        categories. "poisson" is for counts: y >= 0, not all zero.
    splitter, max_features, ccp_alpha, ccp_cv, ccp_rule
        As for `DecisionTreeClassifier`.
    max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf, max_leaf_nodes
        As for `RandomForestClassifier`, where the tree's bag is all rows.
    feature_combinations, combination_weights
        As for `RandomForestClassifier`.
    min_impurity_decrease, categorical_features, min_category_frequency, categorical_split
        As for `RandomForestClassifier`.
    random_state, max_bins, backend, memory_limit
        As for `RandomForestClassifier`.
    monotonic_cst
        As for `RandomForestRegressor`.

    Attributes
    ----------
    As of `DecisionTreeClassifier`, without classes.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TREE_CONSTRAINTS,
        **PRUNING,
        "splitter": SPLITTER,
        **criterion_constraint("regression"),
    }

    def __init__(
        self,
        *,
        criterion: str = "squared_error",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: str | int | float | None = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float | str = 0.0,
        ccp_cv: Any = 10,
        ccp_rule: str = "min",
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        min_category_frequency: int = 5,
        categorical_split: str = "subset",
        feature_combinations: float | None = None,
        combination_weights: str = "binary",
        random_state: int | np.random.RandomState | None = None,
        max_bins: int | str = "auto",
        backend: str = "auto",
        memory_limit: int | None = None,
    ) -> None:
        keep(self, locals() | {"criterion": current_criterion(criterion)})
