"""Boosted trees as arrays: sums, gains and values agree with each other and with the model."""

import numpy as np
import pytest
from boosted_models import SUM, X, leaves, number_model

from gpuforest.core.nodes import unpack
from gpuforest.export.walker import opened


def trees(model):
    found = [opened(model, t).columns for t in range(model.forest_.n_trees)]
    return [columns | {"value": columns["value"].reshape(-1)} for columns in found]


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
        np.testing.assert_allclose(tree["gradients"], G, atol=1e-8)
        assert np.array_equal(tree["hessians"], H)
        at_leaf = feature < 0
        np.testing.assert_allclose(
            tree["value"][at_leaf], (-rate * G / (H + l2))[at_leaf], atol=1e-12
        )
        if not l2:  # above leaves too, as LightGBM shows it
            np.testing.assert_allclose(tree["value"], -rate * G / H, atol=1e-10)
        score = G**2 / (H + l2)
        split = np.flatnonzero(~at_leaf)
        gains = score[child[split]] + score[child[split] + 1] - score[split]
        np.testing.assert_allclose(tree["gain"][split], gains, rtol=1e-9, atol=1e-7)
        raw = raw + tree["value"][leaf]


def test_targets_whose_squares_are_no_numbers():
    huge = number_model(y=SUM * 1e300)
    for tree in trees(huge):
        assert np.isfinite(tree["value"]).all()
        assert (tree["gain"] >= 0).all()
    assert np.isfinite(huge.feature_importances_).all()
