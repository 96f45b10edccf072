"""Proximities: the dense definition, outliers and prototypes of a known mixture, imputation."""

import numpy as np
import pytest
from saved import reloaded
from scipy.sparse import issparse

import gpuforest as gf
from gpuforest.explain import proximities

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 3, 90)
CENTRES = np.array([[0.0, 0], [4, 0], [0, 4]])
X = CENTRES[Y] + RNG.normal(size=(90, 2)) * 0.7


@pytest.fixture(scope="module")
def forest():
    return gf.RandomForestClassifier(15, min_samples_leaf=3, random_state=0).fit(X, Y)


def dense(forest, X, Z):
    return np.mean(forest.apply(X)[:, None] == forest.apply(Z)[None], axis=2)


@pytest.mark.parametrize("at_once", [1, 2**23])  # blocks of one row, and of all
def test_the_dense_definition_also_out_of_bag(forest, monkeypatch, at_once):
    monkeypatch.setattr(proximities, "PAIRS_AT_ONCE", at_once)
    found = forest.proximity(X)
    assert issparse(found)
    assert found.nnz < 90 * 90
    assert (found.data > 0).all()
    assert np.array_equal(found.toarray(), dense(forest, X, X))
    assert np.array_equal(forest.proximity(X[:7], X[5:]).toarray(), dense(forest, X[:7], X[5:]))
    out = np.ones((90, 15), bool)
    for t, bag in enumerate(forest.estimators_samples_):
        out[bag, t] = False
    leaves, both = forest.apply(X), out[:, None] & out[None]
    shared = ((leaves[:, None] == leaves[None]) & both).sum(axis=2)
    expected = shared / np.maximum(both.sum(axis=2), 1)
    assert np.array_equal(forest.proximity(X, oob=True).toarray(), expected)


def test_neighbours(forest):
    P = dense(forest, X, X)
    np.fill_diagonal(P, -1)
    share, rows = forest.neighbours(X, 4)
    assert np.array_equal(rows, np.argsort(-P, axis=1, kind="stable")[:, :4])
    assert np.array_equal(share, np.take_along_axis(P, rows, axis=1))
    share, rows = forest.neighbours(X[:3], 1, X)
    assert share.tolist() == [[1]] * 3
    share, rows = forest.neighbours(X[:1], 3, X[:1])
    assert rows.tolist() == [[0, -1, -1]]
    assert share.tolist() == [[1, 0, 0]]


def test_outliers_by_hand_and_prototypes_of_a_mixture():
    P = np.array([[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]])
    # raw 3 / 1.25, 3 / 1.25 and 3; the median is 2.4, the mean deviation 0.2
    assert np.allclose(gf.proximity_outliers(P), [0, 0, 3])
    forest = gf.RandomForestClassifier(50, min_samples_leaf=5, random_state=0).fit(X, Y)
    found = gf.class_prototypes(forest.proximity(X), X, Y)
    assert found.classes.tolist() == [0, 1, 2]
    assert np.abs(found.prototypes - CENTRES).max() < 0.5
    assert (Y[found.rows] == found.classes).all()
    assert (found.quartiles[0] <= found.prototypes).all()
    more = gf.class_prototypes(forest.proximity(X), X, Y, n_prototypes=2, n_neighbors=8)
    assert more.classes.tolist() == [0, 0, 1, 1, 2, 2]


def test_missing_values_are_imputed():
    kind = (Y > 0).astype(float)
    full = np.column_stack([X, kind])
    holes = full.copy()
    gone = np.random.default_rng(1).random(full.shape) < 0.1
    holes[gone] = np.nan
    model = gf.RandomForestClassifier(20, categorical_features=[2], random_state=0)
    filled = gf.impute_by_proximity(model, holes, Y, max_iter=2)
    assert np.array_equal(filled[~gone], full[~gone])
    assert np.isin(filled[:, 2], [0, 1]).all()
    assert (filled[gone[:, 2], 2] == kind[gone[:, 2]]).mean() > 0.8
    median = np.abs(np.nanmedian(holes, axis=0) - full)[:, :2][gone[:, :2]].mean()
    assert np.abs(filled - full)[:, :2][gone[:, :2]].mean() < 0.6 * median
    assert not hasattr(model, "forest_")


def test_forests_of_numbers_and_what_is_refused(forest, tmp_path):
    numbers = gf.ExtraTreesRegressor(5, max_depth=3, random_state=0).fit(X, X[:, 0])
    assert np.array_equal(numbers.proximity(X).toarray(), dense(numbers, X, X))
    loaded = reloaded(forest, tmp_path).proximity(X, oob=True)
    assert np.array_equal(loaded.toarray(), forest.proximity(X, oob=True).toarray())
    bag = reloaded(gf.BaggingRegressor(n_estimators=3).fit(X, X[:, 0]), tmp_path)
    for model, rows, message in (
        (numbers, [X], "no row is out of bag without bags"),
        (forest, [X, X], "oob=True is for the training rows"),
        (bag, [X], "the bags are not known to Bagging"),
    ):
        with pytest.raises(ValueError, match=message):
            model.proximity(*rows, oob=True)
