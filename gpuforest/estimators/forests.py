"""Random forests (Breiman 2001), and extremely randomized trees (Geurts, Ernst, Wehenkel 2006)."""

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from gpuforest.core.nodes import is_leaf
from gpuforest.data.arrays import to_host
from gpuforest.estimators import bases, ensembles, influence, learning, params, presets
from gpuforest.growing import predict as prediction


@params.parameters(params.FOREST, params.BY_IDS)
class RandomForestClassifier(ensembles.ForestClassifier, presets.HasPresets):
    """A random forest for classes.

    Examples
    --------
    >>> from gpuforest import RandomForestClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]] * 5, ["a", "a", "b", "b"] * 5
    >>> forest = RandomForestClassifier(random_state=0).fit(X, y)
    >>> forest.predict([[0.5], [2.5]]).tolist()
    ['a', 'b']
    """

    _presets = presets.FOREST_OF_CLASSES
    fit, row_ids_ = ensembles.ByIds.fit, ensembles.ByIds.row_ids_
    delete, insert, kept_bytes_ = ensembles.delete, ensembles.insert, ensembles.ByIds.kept_bytes_
    influence = influence.influence
    min_samples_leaf_ = property(ensembles.fewest_rows)
    shrinkage_ = property(ensembles.shrinkage)
    refit, add_rows, __add__ = learning.refit, learning.add_rows, learning.add
    keep_trees, prune_trees = learning.keep_trees, learning.prune_trees


@params.parameters(params.FOREST, params.NUMBERS_BY_IDS, max_features=1 / 3)
class RandomForestRegressor(ensembles.ForestRegressor, presets.HasPresets):
    """A random forest for real numbers."""

    fit, row_ids_ = ensembles.ByIds.fit, ensembles.ByIds.row_ids_
    delete, insert, kept_bytes_ = ensembles.delete, ensembles.insert, ensembles.ByIds.kept_bytes_
    influence = influence.influence
    min_samples_leaf_ = property(ensembles.fewest_rows)
    shrinkage_ = property(ensembles.shrinkage)
    refit, add_rows, __add__ = learning.refit, learning.add_rows, learning.add
    keep_trees, prune_trees = learning.keep_trees, learning.prune_trees


@params.parameters(params.FOREST, params.BY_IDS, bootstrap=False)
class ExtraTreesClassifier(ensembles.ForestClassifier, presets.HasPresets):
    """Extremely randomized trees for classes.

    A split tries one random cut of each of its features, drawn among the feature's bins from
    the first to the last that hold rows of the node, and takes the best of these cuts.

    References
    ----------
    P. Geurts, D. Ernst and L. Wehenkel, "Extremely randomized trees", Machine Learning 63,
    2006. There the cut is uniform between the smallest and the largest value; here between
    the bins that hold them, whatever their width.
    """

    _splitter = "random"
    _presets = presets.FOREST_OF_CLASSES
    fit, row_ids_ = ensembles.ByIds.fit, ensembles.ByIds.row_ids_
    delete, insert, kept_bytes_ = ensembles.delete, ensembles.insert, ensembles.ByIds.kept_bytes_
    influence = influence.influence
    min_samples_leaf_ = property(ensembles.fewest_rows)
    shrinkage_ = property(ensembles.shrinkage)
    refit, add_rows, __add__ = learning.refit, learning.add_rows, learning.add
    keep_trees, prune_trees = learning.keep_trees, learning.prune_trees


@params.parameters(params.FOREST, params.NUMBERS_BY_IDS, max_features=1.0, bootstrap=False)
class ExtraTreesRegressor(ensembles.ForestRegressor, presets.HasPresets):
    """Extremely randomized trees for real numbers.

    A split tries one random cut of each of its features, see `ExtraTreesClassifier`.
    """

    _splitter = "random"
    fit, row_ids_ = ensembles.ByIds.fit, ensembles.ByIds.row_ids_
    delete, insert, kept_bytes_ = ensembles.delete, ensembles.insert, ensembles.ByIds.kept_bytes_
    influence = influence.influence
    min_samples_leaf_ = property(ensembles.fewest_rows)
    shrinkage_ = property(ensembles.shrinkage)
    refit, add_rows, __add__ = learning.refit, learning.add_rows, learning.add
    keep_trees, prune_trees = learning.keep_trees, learning.prune_trees


@params.parameters(params.EMBEDDING, params.UNSUPERVISED, max_depth=5)
class RandomTreesEmbedding(bases.TransformerMixin, ensembles.UnsupervisedForest):
    """Turns rows into the leaves that they reach in completely random trees.

    Each tree fits a random target with one random cut a node. A row becomes a vector of zeros
    with a one for its leaf in each tree.

    References
    ----------
    P. Geurts, D. Ernst and L. Wehenkel, "Extremely randomized trees", Machine Learning 63,
    2006; F. Moosmann, B. Triggs and F. Jurie, "Fast discriminative visual codebooks using
    randomized clustering forests", NIPS 2007.

    Examples
    --------
    >>> from gpuforest import RandomTreesEmbedding
    >>> RandomTreesEmbedding(random_state=0).fit_transform([[0], [1], [2]]).shape
    (3, 300)
    """

    def _set_oob_score_and_attributes(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("OOB score not supported by tree embedding")

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Grow the trees, and transform the rows that they were grown from."""
        return self.fit(X, y, sample_weight).transform(X)

    def transform(self, X: Any) -> Any:
        """The leaves that the rows reach."""
        leaves, forest = to_host(self._walk(X, prediction.apply)), self.forest_
        leaf, (N, T) = is_leaf(forest.nodes), leaves.shape
        columns = (np.cumsum(leaf) - 1)[leaves + forest.tree_offsets[:-1]]
        rows, shape = np.arange(0, N * T + 1, T), (N, int(leaf.sum()))
        indicator = csr_matrix((np.ones(N * T), columns.reshape(-1), rows), shape)
        return indicator if self.sparse_output else indicator.toarray()

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of `transform`, randomtreesembedding_{tree}_{leaf}, as an ndarray
        of str objects."""
        check_is_fitted(self)
        _check_feature_names_in(self, input_features, generate_names=False)
        offsets, at = self.forest_.tree_offsets, np.flatnonzero(is_leaf(self.forest_.nodes))
        tree = np.searchsorted(offsets, at, side="right") - 1
        pairs = zip(tree.tolist(), (at - offsets[tree]).tolist(), strict=True)
        return np.array([f"randomtreesembedding_{t}_{leaf}" for t, leaf in pairs], dtype=object)
