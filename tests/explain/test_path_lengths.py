"""Path lengths of isolation trees, beside a case worked by hand and scikit-learn's formula."""

import numpy as np
from sklearn.ensemble._iforest import _average_path_length

from gpuforest import RandomForestRegressor
from gpuforest.explain.paths import average_path_length, with_path_lengths


def test_a_case_worked_by_hand():
    assert average_path_length([0, 1, 2]).tolist() == [0, 0, 1]
    # c(3) = 2 (ln 2 + 0.5772...) - 2 * 2 / 3
    assert np.isclose(average_path_length(3), 2 * (np.log(2) + np.euler_gamma) - 4 / 3)
    assert np.isclose(average_path_length(256), 10.244770920)


def test_the_same_as_scikit_learns():
    n = np.arange(300)
    assert np.array_equal(average_path_length(n), _average_path_length(n))


def test_leaves_predict_their_depth_and_what_is_missing_to_isolation():
    X, y = np.array([[0.0], [1], [2], [3], [3], [3]]), [0.0, 9, 5, 5, 6, 7]
    model = RandomForestRegressor(1, bootstrap=False, max_depth=2, random_state=0).fit(X, y)
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
    tree = RandomForestRegressor(3, bootstrap=False, random_state=0).fit(X, X[:, 0]).forest_
    found = with_path_lengths(tree)
    assert len(found.leaf_sums) < len(tree.leaf_sums)
    assert (found.leaf_sums[:, 0] == 1).all()  # each row is by itself
    assert found.node_sums(1, 2)[0, 0] == 64
