"""Bagged trees: what rows and features each one sees, and what scikit-learn's bags do."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_wine

import gpuforest as gf
from gpuforest.core.nodes import is_leaf, unpack

X, y = load_wine(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)


def bag(backend, n_estimators=5, tree=None, **params):
    tree = gf.DecisionTreeClassifier() if tree is None else clone(tree)
    return gf.BaggingClassifier(
        tree.set_params(backend=backend), n_estimators, **{"random_state": 0, **params}
    )


def tree_values(model, X):
    """What each tree's leaves say of each row: f64[T, N, C]."""
    forest, leaves = model.forest_, model.apply(X)
    child = unpack(np, forest.nodes)[3]
    return np.stack(
        [forest.values[child[forest.tree_offsets[t] + own]] for t, own in enumerate(leaves.T)]
    )


@pytest.mark.parametrize(
    "params",
    [{}, {"max_samples": 50}, {"max_samples": 0.5, "bootstrap": False}, {"bootstrap": False}],
)
def test_a_tree_is_the_one_grown_from_its_rows(backend, params):
    model = bag(backend, 4, **params).fit(X, y)
    for t, rows in enumerate(model.estimators_samples_):
        counts = np.bincount(rows, minlength=len(X))
        alone = gf.DecisionTreeClassifier(backend=backend).fit(X[rows], y[rows])
        weighted = gf.DecisionTreeClassifier(backend=backend).fit(X, y, sample_weight=counts)
        values = tree_values(model, X[rows])[t]
        assert np.array_equal(values, weighted.predict_proba(X[rows]))
        assert np.array_equal(values, alone.predict_proba(X[rows]))


def test_weights_are_chances_with_replacement_and_statistics_without(backend):
    weights = np.where(np.arange(len(y)) % 3 == 0, 0, 2)
    for rows in bag(backend).fit(X, y, weights).estimators_samples_:
        assert (weights[rows] == 2).all()
    model = bag(backend, bootstrap=False, max_samples=100).fit(X, y, weights)
    for t, rows in enumerate(model.estimators_samples_):
        counts = np.bincount(y[rows], weights[rows], minlength=3)
        assert np.array_equal(model.forest_.node_sums(t, t + 1)[0], counts)


def test_shares_of_a_weighted_bag_are_of_the_bag(backend):
    # equal weights change nothing, whatever they are
    weights = np.full(len(y), 3)
    for limit in ({"min_weight_fraction_leaf": 0.2}, {"min_impurity_decrease": 0.02}):
        tree = gf.DecisionTreeClassifier(**limit)
        model = bag(backend, tree=tree, bootstrap=False, max_samples=60)
        plain, weighted = model.fit(X, y).forest_, clone(model).fit(X, y, weights).forest_
        assert np.array_equal(plain.tree_offsets, weighted.tree_offsets)
        assert np.array_equal(plain.node_sums(0, 5) * 3, weighted.node_sums(0, 5))


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(("max_features", "n"), [(0.5, 6), (1, 1), (4, 4), (1.0, 13), (0.01, 1)])
def test_trees_use_no_other_features(backend, max_features, n, again):
    params = {"max_features": max_features, "bootstrap_features": again}
    model = bag(backend, 12, **params).fit(X, y)
    used = unpack(np, model.forest_.nodes)[0]
    for t, features in enumerate(model.estimators_features_):
        assert np.array_equal(features, np.unique(features))
        assert len(features) <= n if again else len(features) == n
        own = used[slice(*model.forest_.tree_offsets[t : t + 2])]
        assert set(own[own >= 0]) <= set(features)
    if n < 13:
        assert len({tuple(f) for f in model.estimators_features_}) > 5


def test_a_tree_is_the_one_grown_from_its_features(backend):
    model = bag(backend, 4, max_features=5, bootstrap=False).fit(X, y)
    for t, features in enumerate(model.estimators_features_):
        alone = gf.DecisionTreeClassifier(backend=backend).fit(X[:, features], y)
        assert np.array_equal(tree_values(model, X)[t], alone.predict_proba(X[:, features]))


def test_a_part_of_the_features_drawn_is_tried(backend):
    # of four drawn for a tree two are tried at a node, so the root's is not always the best
    tree = gf.DecisionTreeClassifier(max_features=0.5, max_depth=1)
    some = bag(backend, 30, tree=tree, max_features=4).fit(X, y)
    every = bag(backend, 30, max_features=4, tree=gf.DecisionTreeClassifier(max_depth=1)).fit(X, y)
    roots = [unpack(np, m.forest_.nodes[m.forest_.tree_offsets[:-1]])[0] for m in (some, every)]
    assert some.estimators_features_[7].tolist() == every.estimators_features_[7].tolist()
    assert (roots[0] != roots[1]).any()


@pytest.mark.parametrize("kind", ["forest", "bag"])
def test_hard_votes_are_the_majority_of_the_trees(backend, kind):
    params = {"voting": "hard", "random_state": 0}
    if kind == "forest":
        model = gf.RandomForestClassifier(7, max_depth=2, backend=backend, **params)
    else:
        model = bag(backend, 7, tree=gf.DecisionTreeClassifier(max_depth=2), **params)
    labels = np.array(["a", "b", "c"])[y]
    model.fit(X, labels)
    forest, leaves = model.forest_, model.apply(X)
    votes = np.zeros((len(X), 3))
    for t in range(7):
        sums = forest.node_sums(t, t + 1)
        assert is_leaf(forest.nodes[forest.tree_offsets[t] + leaves[:, t]]).all()
        votes[np.arange(len(X)), sums[leaves[:, t]].argmax(axis=1)] += 1
    assert np.array_equal(model.predict_proba(X), votes / 7)
    assert np.array_equal(model.predict(X), model.classes_[votes.argmax(axis=1)])
    soft = clone(model).set_params(voting="soft").fit(X, labels)
    assert np.array_equal(soft.apply(X), leaves)
    assert not np.array_equal(soft.predict_proba(X), votes / 7)


def test_out_of_bag_votes(backend):
    model = bag(backend, 40, voting="hard", oob_score=True).fit(X, y)
    out = np.stack([np.bincount(r, minlength=len(X)) == 0 for r in model.estimators_samples_])
    votes = (tree_values(model, X) * out[:, :, None]).sum(axis=0) / out.sum(axis=0)[:, None]
    assert np.array_equal(model.oob_decision_function_, votes)
    assert model.oob_score_ == np.mean(votes.argmax(axis=1) == y)


def test_parameters_of_the_tree(backend):
    model = bag(backend, tree=gf.DecisionTreeClassifier(max_depth=2, criterion="entropy"))
    params = model.get_params(deep=True)
    assert params["estimator__max_depth"] == 2
    assert params["estimator__criterion"] == "entropy"
    copy = clone(model).set_params(estimator__max_depth=1)
    assert copy.fit(X, y).forest_.depth == 1
    assert model.estimator.max_depth == 2
    assert model.fit(X, y).forest_.depth == 2
    assert model.criterion_ == "entropy"
    assert model.estimator_.get_params() == model.estimator.get_params()
    assert model.estimator_ is not model.estimator
