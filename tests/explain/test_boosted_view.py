"""Boosted trees as arrays: sums, gains and values agree with each other and with the model."""

import numpy as np
import pytest
from boosted_models import FIT, SUM, X, data_of, leaves, number_model
from sklearn.ensemble import HistGradientBoostingRegressor as Sklearns

from gpuforest import HistGradientBoostingRegressor
from gpuforest.boosting.model import gain_importances, node_gains
from gpuforest.engine.nodes import is_leaf, unpack
from gpuforest.explain.views import BoostedView


def trees(model):
    return [BoostedView.of(model.forest_, t) for t in range(model.forest_.n_trees)]


@pytest.mark.parametrize("kind", FIT)
def test_values_of_leaves_add_up_to_the_raw_predictions(kind):
    model, rows = FIT[kind], data_of(kind)
    raw = np.repeat(model.forest_.baseline[None], len(rows), axis=0)
    for tree, leaf in zip(trees(model), leaves(model, rows).T, strict=True):
        raw[:, tree.output] += tree.value[leaf]
    assert np.array_equal(raw, model._raw_predict(rows))


@pytest.mark.parametrize("kind", FIT)
def test_trees_know_their_round_and_what_they_add_to(kind):
    model, found = FIT[kind], trees(FIT[kind])
    K = model.n_trees_per_iteration_
    assert [tree.output for tree in found] == [*range(K)] * model.n_iter_
    assert [tree.round for tree in found] == np.repeat(range(1, model.n_iter_ + 1), K).tolist()


@pytest.mark.parametrize("l2", [0.0, 3.0])
def test_sums_gains_and_values_are_those_of_the_formulas(l2):
    rate = 0.1
    model = number_model(l2_regularization=l2)
    y = SUM
    raw = np.full(len(y), model.forest_.baseline[0])
    for t, (tree, leaf) in enumerate(zip(trees(model), leaves(model, X).T, strict=True)):
        gradient = raw - y
        begin, end = model.forest_.tree_offsets[t : t + 2]
        feature, _, _, child = unpack(np, model.forest_.nodes[begin:end])
        # from the leaves up: which rows pass a node
        passes = np.zeros((end - begin, len(y)), bool)
        for node in range(end - begin - 1, -1, -1):
            if feature[node] < 0:
                passes[node] = leaf == node
            else:
                passes[node] = passes[child[node]] | passes[child[node] + 1]
        G, H = passes @ gradient, passes.sum(axis=1)
        np.testing.assert_allclose(tree.gradients, G, atol=1e-8)
        assert np.array_equal(tree.hessians, H)
        at_leaf = feature < 0
        np.testing.assert_allclose(tree.value[at_leaf], (-rate * G / (H + l2))[at_leaf], atol=1e-12)
        if not l2:  # above leaves too, as LightGBM shows it
            np.testing.assert_allclose(tree.value, -rate * G / H, atol=1e-10)
        score = G**2 / (H + l2)
        split = np.flatnonzero(~at_leaf)
        gains = score[child[split]] + score[child[split] + 1] - score[split]
        np.testing.assert_allclose(tree.gain[split], gains, rtol=1e-9, atol=1e-7)
        raw = raw + tree.value[leaf]


def test_importances_are_the_gains_of_all_trees():
    for model in FIT.values():
        forest, total = model.forest_, np.zeros(model.n_features_in_)
        for t, tree in enumerate(trees(model)):
            begin, end = forest.tree_offsets[t : t + 2]
            feature = unpack(np, forest.nodes[begin:end])[0]
            split = ~is_leaf(forest.nodes[begin:end])
            total += np.bincount(feature[split], tree.gain[split], minlength=len(total))
        assert np.array_equal(
            node_gains(forest, 0, forest.n_trees),
            np.concatenate([tree.gain for tree in trees(model)]),
        )
        np.testing.assert_allclose(gain_importances(forest), total / (total.sum() or 1.0))


@pytest.mark.parametrize("l2", [0.0, 2.0])
def test_counts_gains_and_values_are_scikit_learns(l2):
    rng = np.random.default_rng(0)
    few = rng.integers(0, 12, (500, 3)).astype(float)  # so few values have the same bins in both
    y = few[:, 0] * few[:, 1] + rng.normal(size=500)
    options = {"max_iter": 3, "max_leaf_nodes": 8, "l2_regularization": l2}
    model = HistGradientBoostingRegressor(**options).fit(few, y)
    for tree, (theirs,) in zip(
        trees(model), Sklearns(**options).fit(few, y)._predictors, strict=True
    ):
        nodes, own = theirs.nodes, tree.gain > 0
        at = np.lexsort([tree.value[~own], tree.n_samples[~own]])
        expected = np.sort(nodes[nodes["is_leaf"] == 1][["count", "value"]])
        assert tree.n_samples[~own][at].tolist() == expected["count"].tolist()
        np.testing.assert_allclose(tree.value[~own][at], expected["value"], rtol=1e-6)
        gains = np.sort(nodes["gain"][nodes["is_leaf"] == 0])
        np.testing.assert_allclose(np.sort(tree.gain[own]), gains, rtol=1e-5)


def test_targets_whose_squares_are_no_numbers():
    huge = number_model(y=SUM * 1e300)
    for tree in trees(huge):
        assert np.isfinite(tree.value).all()
        assert (tree.gain >= 0).all()
    assert np.isfinite(huge.feature_importances_).all()
