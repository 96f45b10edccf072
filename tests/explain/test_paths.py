"""Paths of rows down trees, from the root to the leaf."""

import numpy as np
from sklearn.datasets import load_diabetes, load_wine

from gpuforest import (
    DecisionTreeRegressor,
    RandomForestClassifier,
)

X, y = load_wine(return_X_y=True)


DIABETES = load_diabetes(return_X_y=True)


def test_a_path_leads_from_the_root_to_the_leaf(backend):
    tree = DecisionTreeRegressor(max_depth=5, backend=backend).fit(*DIABETES)
    path, leaves = tree.decision_path(DIABETES[0]), tree.apply(DIABETES[0])
    assert path.shape == (442, tree.forest_.n_nodes)
    assert path.format == "csr"
    assert path.has_sorted_indices
    dense = path.toarray()
    assert set(np.unique(dense)) == {0, 1}
    assert dense[:, 0].all()
    assert dense[np.arange(442), leaves].all()
    # as many nodes as levels: each row is counted once in every level that it reaches
    for at, depth in ((at, d) for d, level in enumerate(tree.forest_.levels()) for at in level):
        assert (dense[leaves == at].sum(axis=1) == depth + 1).all()
    sums = tree.forest_.node_sums(0, 1)[:, 0]
    assert np.array_equal(dense.sum(axis=0), sums)  # every row weighs one


def test_paths_of_a_forest_stand_side_by_side(backend):
    forest = RandomForestClassifier(4, random_state=0, backend=backend).fit(X, y)
    path, begin = forest.decision_path(X)
    assert path.shape == (len(X), begin[-1]) == (len(X), forest.forest_.n_nodes)
    leaves = forest.apply(X)
    for t in range(4):
        tree = path[:, begin[t] : begin[t + 1]].toarray()
        assert tree[:, 0].all()
        assert tree[np.arange(len(X)), leaves[:, t]].all()
