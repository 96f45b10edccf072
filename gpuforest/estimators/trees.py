"""Single decision trees: the first tree of a forest that draws no bags."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from gpuforest.data.arrays import to_host
from gpuforest.engine import predict as prediction
from gpuforest.engine.nodes import is_leaf
from gpuforest.estimators import params
from gpuforest.estimators.pruned import PrunedTree
from gpuforest.estimators.tasks import Classifier, Regressor
from gpuforest.explain.paths import decision_paths
from gpuforest.explain.views import TreeView


class SingleTree(PrunedTree):
    """The methods of a single tree beside its predictions."""

    __metadata_request__fit: ClassVar[dict[str, str]] = {"check_input": UNUSED}
    __metadata_request__predict: ClassVar[dict[str, str]] = {"check_input": UNUSED}

    @cached_property
    def tree_(self) -> Any:
        """The tree as scikit-learn has it, see `inspection.sklearn_tree`."""
        from gpuforest.explain.sklearn_tree import shown_tree

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


@params.parameters(params.SINGLE_TREE, params.OF_A_TREE)
class DecisionTreeClassifier(SingleTree, Classifier):
    """A decision tree (CART) for classes.

    Where every feature has at most 1,023 distinct values (or `max_bins`) this is the exact
    tree; otherwise thresholds are chosen among 254 (or `max_bins` - 1) edges a feature. The
    same data and `random_state` give the same tree, bit for bit, on every backend.

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
    forest_ : gpuforest.engine.forest.Forest, of one tree
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

    def predict_proba(self, X: Any, check_input: bool = True) -> Any:
        """Class proportions as of a forest of this tree alone. `check_input` is ignored."""
        return super().predict_proba(X)


@params.parameters(params.SINGLE_TREE, params.OF_NUMBERS, params.OF_A_TREE)
class DecisionTreeRegressor(SingleTree, Regressor):
    """A decision tree (CART) for real numbers.

    Where every feature has at most 1,023 distinct values (or `max_bins`) this is the exact
    tree; otherwise thresholds are chosen among 254 (or `max_bins` - 1) edges a feature. The
    same data and `random_state` give the same tree, bit for bit, on every backend.

    Attributes
    ----------
    As of `DecisionTreeClassifier`, without classes.
    """
