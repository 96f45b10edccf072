"""Out-of-bag: recomputed bags against a slow implementation, and scikit-learn's conventions."""

import numpy as np
import pytest
from engine import out_of_bag
from sklearn.datasets import load_diabetes, load_iris
from sklearn.metrics import accuracy_score, r2_score

from gpuforest import RandomForestClassifier, RandomForestRegressor
from gpuforest.backends import get_backend
from gpuforest.engine.binning import bin_matrix
from gpuforest.engine.sampling import Sampling, draw_bags


def slow_means(model, X, sampling, n_values):
    """Tree by tree, from the bags and the leaves' values."""
    forest, leaves = model.forest_, model.apply(X)
    numpy = get_backend("numpy")
    sums, counts = np.zeros((len(X), n_values)), np.zeros(len(X), int)
    for t in range(forest.n_trees):
        out = draw_bags(sampling, model.seed_, t, t + 1, numpy)[0] == 0
        values = forest.coding.values(forest.node_sums(t, t + 1)[leaves[:, t]])
        sums[out] += values[out]
        counts += out
    return sums / counts[:, None]


def test_classifier(backend):
    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(40, oob_score=True, random_state=0, backend=backend).fit(X, y)
    expected = slow_means(model, X, Sampling(150, 150, None), 3)
    assert np.array_equal(model.oob_decision_function_, expected)
    assert model.oob_score_ == accuracy_score(y, expected.argmax(axis=1))
    assert 0.9 < model.oob_score_ < 1


def test_regressor_with_fewer_draws_and_weights(backend):
    X, y = load_diabetes(return_X_y=True)
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    model = RandomForestRegressor(
        40, oob_score=True, max_samples=200, random_state=0, backend=backend
    ).fit(X, y, weights)
    expected = slow_means(model, X, Sampling(len(y), 200, weights.astype("i4")), 1)[:, 0]
    assert np.array_equal(model.oob_prediction_, expected)
    some = weights > 0  # the others score nothing
    assert model.oob_score_ == r2_score(y[some], expected[some])
    assert 0.3 < model.oob_score_ < 0.6


def test_rows_of_weight_zero_are_always_out_of_bag(engine):
    X, y = load_iris(return_X_y=True)
    weights = np.ones(150)
    weights[::10] = 0
    model = RandomForestClassifier(6, random_state=0, backend=engine.name).fit(X, y, weights)
    matrix = bin_matrix(X, model.forest_.edges, engine)
    _, counts = out_of_bag(model.forest_, matrix, Sampling(150, 135, weights.astype("i4")), engine)
    assert (counts[::10] == 6).all()
    assert (counts[weights > 0] < 6).any()


def test_the_memory_budget_changes_no_bit(backend):
    X, y = load_diabetes(return_X_y=True)
    model = RandomForestRegressor(9, random_state=1, backend=backend).fit(X, y)
    found = []
    for budget in (1, 30_000, 2**28):
        engine = get_backend(backend, memory_budget=budget)
        matrix = bin_matrix(X, model.forest_.edges, engine)
        found.append(out_of_bag(model.forest_, matrix, Sampling(442, 442, None), engine))
    for sums, counts in found[1:]:
        assert np.array_equal(sums, found[0][0])
        assert np.array_equal(counts, found[0][1])


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
def test_rows_in_every_bag_are_nan_with_a_warning(backend, kind):
    X, y = load_iris(return_X_y=True)
    model = kind(2, oob_score=True, random_state=0, backend=backend)
    with pytest.warns(UserWarning, match="Some inputs do not have OOB scores"):
        model.fit(X, y)
    bags = draw_bags(Sampling(150, 150, None), 0, 0, 2, get_backend("numpy"))
    never = (bags > 0).all(axis=0)
    name = "oob_decision_function_" if kind is RandomForestClassifier else "oob_prediction_"
    means = getattr(model, name).reshape(150, -1)
    assert never.any()
    assert np.array_equal(np.isnan(means).all(axis=1), never)
    assert np.array_equal(np.isnan(means).any(axis=1), never)
    assert 0.5 < model.oob_score_ <= 1  # of the other rows


def test_refit_without_oob_forgets_it(backend):
    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(30, oob_score=True, random_state=0, backend=backend).fit(X, y)
    model.set_params(oob_score=False).fit(X, y)
    assert not hasattr(model, "oob_score_")
