"""Ways down trees: the nodes that rows pass, and path lengths beside scikit-learn's formula."""

import numpy as np
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble._iforest import _average_path_length

import gpuforest as gf
from gpuforest.explain.paths import average_path_length, with_path_lengths

X, Y = load_wine(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)


def test_a_path_leads_from_the_root_to_the_leaf(backend):
    tree = gf.DecisionTreeRegressor(max_depth=5, backend=backend).fit(*DIABETES)
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


def test_the_same_as_scikit_learns():
    n = np.arange(300)
    assert np.isclose(average_path_length(256), 10.244770920)
    assert np.array_equal(average_path_length(n), _average_path_length(n))


def test_leaves_predict_their_depth_and_what_is_missing_to_isolation():
    X, y = np.array([[0.0], [1], [2], [3], [3], [3]]), [0.0, 9, 5, 5, 6, 7]
    model = gf.RandomForestRegressor(1, bootstrap=False, max_depth=2, random_state=0).fit(X, y)
    tree = model.forest_
    depth = np.zeros(tree.n_nodes)
    for level, nodes in enumerate(tree.levels()):
        depth[nodes] = level
    lengths = with_path_lengths(tree)
    size = np.bincount(model.apply(X)[:, 0], minlength=tree.n_nodes)
    expected = depth + average_path_length(size)
    model._keep(lengths)
    leaf = model.apply(X)[:, 0]
    assert np.array_equal(model.predict(X), expected[leaf])
    assert len(np.unique(leaf)) > 2
    assert 4 in size


def test_leaves_of_the_same_depth_and_size_share_a_row():
    X = np.random.default_rng(0).normal(size=(64, 2))
    tree = gf.RandomForestRegressor(3, bootstrap=False, random_state=0).fit(X, X[:, 0]).forest_
    found = with_path_lengths(tree)
    assert len(found.leaf_sums) < len(tree.leaf_sums)
    assert (found.leaf_sums[:, 0] == 1).all()  # each row is by itself
    assert found.node_sums(1, 2)[0, 0] == 64
