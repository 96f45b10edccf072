"""The estimators: parameters, labels, weights, frames, and the same forest everywhere."""

import numpy as np
import pandas as pd
import pytest
from engine import same_forest
from optional import polars as pl
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris

import gpuforest as gf
from gpuforest.common.progress import listening
from gpuforest.estimators.settings import features_tried, rows_drawn

CLASSIFIERS = [gf.DecisionTreeClassifier, gf.RandomForestClassifier]


@pytest.mark.parametrize(
    "labels",
    [
        ["spam", "ham", "eggs"], [b"x", b"yy", b"z"], [-5, 3, 2**40], [1.0, 2.0, 7.0],
        np.array(["b", "a", "c"], dtype=object), np.array([3, 1, 2], dtype=object),
        np.array(["2020-01-01", "2021-01-01", "2019-05-05"], dtype="M8[D]"),
    ],
)  # fmt: skip
def test_labels_of_any_kind(backend, labels):
    X, y = load_iris(return_X_y=True)
    y = np.array(labels)[y]
    for kind in CLASSIFIERS:
        model = kind(random_state=0, backend=backend).fit(X, y)
        assert model.classes_.tolist() == sorted(np.array(labels).tolist())
        assert (model.predict(X) == y).mean() > 0.98
    frame = pd.Series(y) if y.dtype.kind != "S" else y
    assert (kind(2, backend=backend).fit(X, frame).predict(X) == y).mean() > 0.9


def test_booleans_and_categories_as_labels(backend):
    X, y = load_iris(return_X_y=True)
    model = gf.DecisionTreeClassifier(backend=backend).fit(X, y == 1)
    assert model.classes_.dtype == bool
    assert np.array_equal(model.predict(X), y == 1)
    model.fit(X, pd.Categorical(np.array(["b", "c", "a"])[y]))
    assert model.classes_.tolist() == ["a", "b", "c"]
    model.fit(X, pl.Series(y))
    assert np.array_equal(model.predict(X), y)


def test_weights_drive_the_draw_of_bags(backend):
    X, y = load_diabetes(return_X_y=True)
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    twice = np.repeat(np.arange(len(y)), weights)
    a = gf.RandomForestRegressor(3, max_samples=300, random_state=0, backend=backend)
    a.fit(X, y, weights)
    b = clone(a).fit(X[twice], y[twice])  # draws of the same points of the total weight
    assert np.array_equal(a.predict(X), b.predict(X))
    # equal weights are no weights, whatever their size
    assert same_forest(clone(a).fit(X, y).forest_, clone(a).fit(X, y, np.full(len(y), 0.3)).forest_)


def test_huge_targets_of_rows_without_weight_do_not_count(backend):
    X, y = load_diabetes(return_X_y=True)
    weights, other = np.ones(len(y)), y.copy()
    weights[5], other[5] = 0, 1e300
    a = gf.DecisionTreeRegressor(backend=backend).fit(X, other, weights)
    b = gf.DecisionTreeRegressor(backend=backend).fit(X, y, weights)
    assert np.array_equal(a.predict(X), b.predict(X))


def test_random_state(backend):
    X, y = load_iris(return_X_y=True)
    forest = gf.RandomForestClassifier(3, backend=backend)
    np.random.seed(0)  # noqa: NPY002 - the global state is what None means
    first = clone(forest).fit(X, y)
    assert clone(forest).fit(X, y).seed_ != first.seed_
    np.random.seed(0)  # noqa: NPY002
    assert clone(forest).fit(X, y).seed_ == first.seed_
    rng = np.random.RandomState(5)
    a = clone(forest).set_params(random_state=rng).fit(X, y)
    b = clone(forest).set_params(random_state=a.seed_).fit(X, y)
    assert same_forest(a.forest_, b.forest_)
    assert a.fit(X, y).seed_ != b.seed_
    other = clone(forest).set_params(random_state=b.seed_ + 1).fit(X, y)
    assert not same_forest(b.forest_, other.forest_)


@pytest.mark.parametrize(
    ("max_features", "expected"),
    [("sqrt", 3), ("log2", 3), (None, 15), (4, 4), (99, 15), (0.5, 7), (0.01, 1), (1 / 3, 5)],
)
def test_max_features(max_features, expected):
    assert features_tried(max_features, 15) == expected
    assert features_tried(max_features, 1) == 1


def test_max_samples():
    three = np.full(100, 3.0)
    for asked, n in ((250, 250), (0.5, 50), (2.5, 250)):
        assert rows_drawn(asked, 100, None) == n
    assert (rows_drawn(None, 100, three), rows_drawn(0.5, 100, three)) == (100, 150)
    with pytest.warns(UserWarning, match="draws only 1 rows"):
        assert rows_drawn(0.001, 100, None) == 1


def test_names_of_columns_that_one_side_alone_has_are_warned_of():
    X, y = np.arange(12.0).reshape(6, 2), [0, 1] * 3
    frame = pd.DataFrame(X, columns=["a", "b"])
    named, plain = (gf.DecisionTreeClassifier().fit(rows, y) for rows in (frame, X))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        named.predict(X)
    with pytest.warns(UserWarning, match="fitted without feature names"):
        plain.predict(frame)


def test_stages_are_reported(backend):
    X, y = load_iris(return_X_y=True)
    seen = []
    with listening(lambda *report: seen.append(report)) as seconds:
        model = gf.RandomForestClassifier(30, oob_score=True, random_state=0, backend=backend)
        model.fit(X, y).predict(X)
    stages = ["starting", "checking", "binning", "growing", "out of bag", "predicting"]
    assert list(seconds) == stages
    assert ("growing", 30, 30) in seen
