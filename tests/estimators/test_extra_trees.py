"""Random cuts: where they lie and how likely, and the leaves of random trees as features."""

import numpy as np
import pytest
import scipy.sparse as sp
from engine import same_forest
from scipy.stats import chisquare
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_wine

import gpuforest as gf
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.core.nodes import is_leaf, unpack

X, y = load_wine(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)


def extra(backend, n_estimators=3, Model=gf.ExtraTreesClassifier, **params):
    return Model(n_estimators, **{"random_state": 0, "backend": backend, **params})


def root_splits(model):
    forest = model.forest_
    return unpack(np, forest.nodes[forest.tree_offsets[:-1]])[:3]


def with_gaps():
    """Wine with missing values, and a column of one value or none."""
    rng = np.random.default_rng(0)
    table = np.column_stack([X[:, :6].round(1), np.full(len(X), 2.0)])
    table[rng.random(table.shape) < 0.2] = np.nan
    return table


@pytest.mark.parametrize("params", [{}, {"max_features": 1}, {"bootstrap": True}])
def test_cuts_lie_between_the_nodes_lowest_and_highest_bin(backend, params):
    table = with_gaps()
    model = extra(backend, **params).fit(table, y)
    forest = model.forest_
    codes = NumpyBackend().encode(table, forest.edges)
    missing, n_seen = forest.edges.missing_code, 0
    for t, rows in enumerate(model.estimators_samples_):
        feature, bin, missing_left, child = unpack(
            np, forest.nodes[slice(*forest.tree_offsets[t : t + 2])]
        )
        pending = [(0, rows)]
        while pending:
            node, rows = pending.pop()
            if feature[node] < 0:
                continue
            code = codes[rows, feature[node]].astype(int)
            present = code[code != missing]
            low, high = present.min(), present.max()
            if low < high:
                assert low <= bin[node] < high
                n_seen += 1
            else:  # one bin: it is cut from the missing ones, which go right
                assert bin[node] == forest.edges.n_bins[feature[node]] - 1
                assert len(present) < len(code)
                assert not missing_left[node]
            left = np.where(code == missing, missing_left[node], code <= bin[node])
            assert 0 < left.sum() < len(rows)
            pending += [(child[node], rows[left]), (child[node] + 1, rows[~left])]
    assert n_seen > 50


def test_each_bin_is_cut_as_often(backend):
    # eleven values, so ten cuts of a column; the values' distances do not matter
    column = np.repeat(np.arange(11.0) ** 3, 2)[:, None]
    labels = np.arange(22) % 2
    model = extra(backend, 2000, max_depth=1).fit(column, labels)
    counts = np.bincount(root_splits(model)[1], minlength=10)
    assert len(counts) == 10
    # the seed is fixed; a fair draw is refused once in a thousand seeds
    assert chisquare(counts).pvalue > 1e-3


def test_missing_values_go_both_ways(backend):
    column = np.array([0.0, 1, 2, 3, np.nan, np.nan])[:, None]
    model = extra(backend, 1000, max_depth=1).fit(column, [0, 1, 0, 1, 0, 1])
    _, bin, left = root_splits(model)
    # 500 in the mean, with a standard deviation of 16: four of them
    assert abs(left.sum() - 500) < 64
    # whatever the cut is, so both are drawn apart
    for cut in range(3):
        assert abs(left[bin == cut].mean() - 0.5) < 0.12


@pytest.mark.parametrize(("Tree", "Model", "data"), [
    (gf.DecisionTreeClassifier, gf.ExtraTreesClassifier, (X, y)),
    (gf.DecisionTreeRegressor, gf.ExtraTreesRegressor, DIABETES),
])  # fmt: skip
@pytest.mark.parametrize("max_features", [1, "sqrt", None])
def test_a_random_splitter_is_the_first_of_the_extra_trees(
    backend, Tree, Model, data, max_features
):
    params = {"random_state": 7, "max_features": max_features, "backend": backend}
    tree = Tree(splitter="random", **params).fit(*data)
    assert same_forest(tree.forest_, Model(1, **params).fit(*data).forest_)
    assert not same_forest(tree.forest_, Tree(**params).fit(*data).forest_)


def test_totally_random_trees_do_not_look_at_y(backend):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 442))  # no two rows are alike: no node is pure

    def forests(n):
        model = extra(backend, Model=gf.ExtraTreesRegressor, max_features=n)
        return [model.fit(DIABETES[0], target).forest_ for target in (a, b)]

    one, other = forests(1)
    assert np.array_equal(is_leaf(one.nodes), is_leaf(other.nodes))
    split = ~is_leaf(one.nodes)
    assert np.array_equal(one.nodes[split], other.nodes[split])
    assert split.sum() > 1000
    one, other = forests(2)  # the better of two features is taken, which y decides
    assert not np.array_equal(one.nodes[:50], other.nodes[:50])


def embedding(backend, n_estimators=8, **params):
    return gf.RandomTreesEmbedding(n_estimators, random_state=0, backend=backend, **params)


def test_a_row_has_a_one_for_its_leaf_in_each_tree(backend):
    model = embedding(backend, max_depth=3)
    found = model.fit_transform(X)
    assert sp.issparse(found)
    assert found.format == "csr"
    assert found.dtype == np.float64
    leaf = is_leaf(model.forest_.nodes)
    assert found.shape == (len(X), leaf.sum())
    dense = found.toarray()
    assert set(np.unique(dense)) == {0, 1}
    assert (dense.sum(axis=1) == 8).all()
    assert (dense.sum(axis=0) > 0).all()  # each leaf holds rows that it was grown from
    # rows share a column where they share a leaf
    leaves = model.apply(X)
    shared = (leaves[:, None] == leaves[None]).sum(axis=2)
    assert np.array_equal(dense @ dense.T, shared)
    assert np.array_equal(model.transform(X).toarray(), dense)
    plain = clone(model).set_params(sparse_output=False).fit(X).transform(X)
    assert isinstance(plain, np.ndarray)
    assert np.array_equal(plain, dense)


def test_y_is_not_looked_at(backend):
    forests = [embedding(backend).fit(X, target).forest_ for target in (None, y, ["any"] * 178)]
    assert all(same_forest(forests[0], other) for other in forests[1:])
    assert forests[0].depth == 5


def test_names_of_the_columns(backend):
    model = embedding(backend, 2, max_depth=1).fit(X)
    names = [f"randomtreesembedding_{t}_{leaf}" for t in (0, 1) for leaf in (1, 2)]
    assert model.get_feature_names_out().tolist() == names
    more = embedding(backend).fit(X)
    assert len(more.get_feature_names_out()) == more.transform(X).shape[1]
    with pytest.raises(ValueError, match="input_features"):
        model.get_feature_names_out(["one"])
