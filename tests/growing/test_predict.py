"""Prediction: every layout and dtype, the same way as in training, in bounded memory."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris

import gpuforest as gf
from gpuforest.backends.registry import get_backend
from gpuforest.core.forest import check_forest
from gpuforest.data.validation import learn_table
from gpuforest.growing import edges as binning
from gpuforest.growing.edges import bin_matrix, fit_edges
from gpuforest.growing.predict import apply, predict


def test_blocks_do_not_change_codes_or_predictions(engine, monkeypatch):
    X, y = load_digits(return_X_y=True)
    model = gf.RandomForestClassifier(4, random_state=0, backend=engine.name).fit(X, y)
    codes = engine.asnumpy(bin_matrix(X, model.forest_.edges, engine).codes)
    whole, leaves = predict(model.forest_, X, engine), apply(model.forest_, X, engine)
    monkeypatch.setattr(binning, "BLOCK_ROWS", 100)
    assert np.array_equal(bin_matrix(X, model.forest_.edges, engine).codes, codes)
    assert np.array_equal(predict(model.forest_, X, engine), whole)
    assert np.array_equal(apply(model.forest_, X, engine), leaves)
    monkeypatch.setattr(binning, "BLOCK_VALUES", 64 * 7)
    assert np.array_equal(bin_matrix(X, model.forest_.edges, engine).codes, codes)


def test_columns_are_never_copied_as_a_whole(monkeypatch):
    monkeypatch.setattr(binning, "BLOCK_ROWS", 4096)
    engine = get_backend("numpy")
    X = np.asfortranarray(np.random.default_rng(0).random((200_000, 20), np.float32))
    edges = fit_edges(X[:1000], max_bins=16)
    tracemalloc.start()
    codes = bin_matrix(X, edges, engine).codes
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak - codes.nbytes < X.nbytes / 4


def test_prediction_is_the_mean_of_the_trees_in_their_order(backend):
    X, y = load_iris(return_X_y=True)
    model = gf.RandomForestClassifier(7, max_depth=2, random_state=3, backend=backend).fit(X, y)
    forest, leaves = model.forest_, model.apply(X)
    total = np.zeros((150, 3))
    for t in range(7):
        sums = forest.node_sums(t, t + 1)[leaves[:, t]]
        total += sums / sums.sum(axis=1, keepdims=True)
    assert np.array_equal(model.predict_proba(X), total / 7)
    assert np.array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])
    # values that were never missing in training go somewhere, all the same way
    proba = model.predict_proba(np.full((2, 4), np.nan))
    assert np.allclose(proba.sum(axis=1), 1)
    assert np.array_equal(proba[0], proba[1])
    tree = gf.DecisionTreeClassifier(max_features=2, random_state=9, backend=backend).fit(X, y)
    many = gf.RandomForestClassifier(
        3, max_features=2, bootstrap=False, random_state=9, backend=backend
    )
    assert np.array_equal(tree.apply(X), many.fit(X, y).apply(X)[:, 0])
    # close float64 values are told apart; as float32 they are one, and the tree a root alone
    X = np.array([[1.0], [1.0 + 1e-12]])
    assert tree.fit(X, [0, 1]).predict(X).tolist() == [0, 1]
    assert tree.fit(X.astype(np.float32), [0, 1]).forest_.n_nodes == 1


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_checking_copies_no_array(order, dtype):
    X = np.zeros((300_000, 10), dtype, order=order)
    X[5, 5] = np.nan  # a finite sum alone does not settle it
    tracemalloc.start()
    checked = learn_table(gf.DecisionTreeClassifier(), X, get_backend("numpy"))[0]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.shares_memory(checked, X)
    assert peak < X.nbytes / 2


def test_forests_that_do_not_combine_are_refused():
    X = np.arange(20.0)[:, None]
    forest = gf.RandomForestRegressor(2, random_state=0, backend="numpy").fit(X, X[:, 0]).forest_
    values = np.ones((len(forest.leaf_sums), 1))
    forest = replace(forest, leaf_values=values)
    check_forest(forest)
    for wrong in (values[:-1], values[:, 0], values * np.nan, values.astype(np.float32)):
        with pytest.raises(gf.ModelFormatError):
            check_forest(replace(forest, leaf_values=wrong))
    for combine in ("product", "votes", None):  # votes are of classes
        with pytest.raises(gf.ModelFormatError):
            check_forest(replace(forest, combine=combine))
    with pytest.raises(gf.ModelFormatError, match="a sum of trees that are not boosted"):
        check_forest(replace(forest, combine="sum"))
