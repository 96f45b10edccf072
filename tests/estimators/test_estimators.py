"""The estimators: parameters, labels, weights, frames, and the same forest everywhere."""

import copy
import pickle

import cloudpickle
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from engine import same_forest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris

from gpuforest import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from gpuforest.common.progress import listening
from gpuforest.estimators.settings import features_tried, rows_drawn

CLASSIFIERS = [DecisionTreeClassifier, RandomForestClassifier]
REGRESSORS = [DecisionTreeRegressor, RandomForestRegressor]
FORESTS = [RandomForestClassifier, RandomForestRegressor]


@pytest.mark.parametrize(
    "labels",
    [
        ["spam", "ham", "eggs"],
        [b"x", b"yy", b"z"],
        [-5, 3, 2**40],
        [1.0, 2.0, 7.0],
        np.array(["b", "a", "c"], dtype=object),
        np.array([3, 1, 2], dtype=object),
        np.array(["2020-01-01", "2021-01-01", "2019-05-05"], dtype="M8[D]"),
    ],
)
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
    model = DecisionTreeClassifier(backend=backend).fit(X, y == 1)
    assert model.classes_.dtype == bool
    assert np.array_equal(model.predict(X), y == 1)
    model.fit(X, pd.Categorical(np.array(["b", "c", "a"])[y]))
    assert model.classes_.tolist() == ["a", "b", "c"]
    model.fit(X, pl.Series(y))
    assert np.array_equal(model.predict(X), y)


def test_weight_two_is_the_row_twice(backend):
    X, y = load_diabetes(return_X_y=True)
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    twice = np.repeat(np.arange(len(y)), weights)
    a = DecisionTreeRegressor(backend=backend).fit(X, y, weights)
    b = DecisionTreeRegressor(backend=backend).fit(X[twice], y[twice])
    assert same_forest(a.forest_, b.forest_)
    assert np.array_equal(a.predict(X), b.predict(X))
    y = y > 140
    a = RandomForestClassifier(
        3, bootstrap=False, max_features=0.5, random_state=0, backend=backend
    ).fit(X, y, weights)
    b = clone(a).fit(X[twice], y[twice])
    assert same_forest(a.forest_, b.forest_)


def test_weights_drive_the_draw_of_bags(backend):
    X, y = load_diabetes(return_X_y=True)
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    twice = np.repeat(np.arange(len(y)), weights)
    a = RandomForestRegressor(3, max_samples=300, random_state=0, backend=backend)
    a.fit(X, y, weights)
    b = clone(a).fit(X[twice], y[twice])  # draws of the same points of the total weight
    assert np.array_equal(a.predict(X), b.predict(X))
    # equal weights are no weights, whatever their size
    assert same_forest(clone(a).fit(X, y).forest_, clone(a).fit(X, y, np.full(len(y), 0.3)).forest_)


def test_huge_targets_of_rows_without_weight_do_not_count(backend):
    X, y = load_diabetes(return_X_y=True)
    weights, other = np.ones(len(y)), y.copy()
    weights[5], other[5] = 0, 1e300
    a = DecisionTreeRegressor(backend=backend).fit(X, other, weights)
    b = DecisionTreeRegressor(backend=backend).fit(X, y, weights)
    assert np.array_equal(a.predict(X), b.predict(X))


def test_random_state(backend):
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(3, backend=backend)
    np.random.seed(0)  # noqa: NPY002 - the global state is what None means
    first = clone(forest).fit(X, y)
    assert clone(forest).fit(X, y).seed_ != first.seed_
    np.random.seed(0)  # noqa: NPY002
    assert clone(forest).fit(X, y).seed_ == first.seed_
    rng = np.random.RandomState(5)
    a = clone(forest).set_params(random_state=rng).fit(X, y)
    b = clone(forest).set_params(random_state=a.seed_).fit(X, y)
    assert same_forest(a.forest_, b.forest_)
    other = clone(forest).set_params(random_state=a.seed_ + 1).fit(X, y)
    assert not same_forest(b.forest_, other.forest_)


@pytest.mark.parametrize(
    ("max_features", "expected"),
    [("sqrt", 3), ("log2", 3), (None, 15), (4, 4), (99, 15), (0.5, 7), (0.01, 1), (1 / 3, 5)],
)
def test_max_features(max_features, expected):
    assert features_tried(max_features, 15) == expected
    assert features_tried(max_features, 1) == 1


def test_max_samples():
    weights = np.full(100, 3.0)
    assert rows_drawn(None, 100, weights) == 100
    assert rows_drawn(250, 100, None) == 250
    assert rows_drawn(0.5, 100, None) == 50
    assert rows_drawn(2.5, 100, None) == 250
    assert rows_drawn(0.5, 100, weights) == 150
    with pytest.warns(UserWarning, match="draws only 1 rows"):
        assert rows_drawn(0.001, 100, None) == 1


def frames():
    """One table in several libraries: nulls, booleans, small and large integers."""
    columns = {
        "a": [1.5, None, 3.5, 4.0] * 10,
        "b": [1, 2, 3, 4] * 10,
        "c": [True, False, None, True] * 10,
        "d": [2**40, None, 7, 8] * 10,
    }
    nullable = pd.DataFrame(columns).astype(
        {"a": "Float32", "b": "int16", "c": "boolean", "d": "Int64"}
    )
    arrow = pa.table(columns)
    numpy = pd.DataFrame(
        {n: [np.nan if v is None else float(v) for v in c] for n, c in columns.items()}
    )
    return {
        "pandas": numpy,
        "nullable": nullable,
        "pandas of arrow": arrow.to_pandas(types_mapper=pd.ArrowDtype),
        "arrow": arrow,
        "polars": pl.DataFrame(columns),
    }


@pytest.mark.parametrize("library", list(frames()))
def test_frames(backend, library):
    frame, reference = frames()[library], frames()["pandas"]
    y = [0, 1, 1, 2] * 10
    model = RandomForestClassifier(5, random_state=0, backend=backend).fit(frame, y)
    other = RandomForestClassifier(5, random_state=0, backend=backend).fit(reference.to_numpy(), y)
    assert same_forest(model.forest_, other.forest_)
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert np.array_equal(model.predict_proba(frame), other.predict_proba(reference.to_numpy()))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(reference.to_numpy())
    with pytest.warns(UserWarning, match="fitted without feature names"):
        other.predict(frame)


@pytest.mark.parametrize("kind", CLASSIFIERS + REGRESSORS)
def test_edge_cases_work(backend, kind):
    one = kind(backend=backend).fit([[1.0, 2.0]], [3])
    assert one.predict([[9.0, np.nan]]).tolist() == [3]
    X = np.column_stack([np.full(20, 7.0), np.full(20, np.nan), np.arange(20.0)])
    model = kind(random_state=0, backend=backend).fit(X, np.arange(20) // 10)
    assert model.feature_importances_.tolist() == [0, 0, 1]
    assert model.score(X, np.arange(20) // 10) > 0.9
    same = kind(backend=backend).fit(X, np.ones(20, int))
    assert (same.predict(X) == 1).all()
    nothing = kind(backend=backend).fit(X[:, :2], np.arange(20) // 10)
    assert nothing.forest_.depth == 0


def test_pickles(backend):
    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(3, random_state=0, backend=backend).fit(X, y)
    expected = model.predict_proba(X)
    for other in (
        pickle.loads(pickle.dumps(model)),
        cloudpickle.loads(cloudpickle.dumps(model)),
        copy.deepcopy(model),
    ):
        assert np.array_equal(other.predict_proba(X), expected)
        assert np.array_equal(other.feature_importances_, model.feature_importances_)


def test_stages_are_reported(backend):
    X, y = load_iris(return_X_y=True)
    seen = []
    with listening(lambda *report: seen.append(report)) as seconds:
        model = RandomForestClassifier(30, oob_score=True, random_state=0, backend=backend)
        model.fit(X, y).predict(X)
    assert list(seconds) == ["checking", "binning", "growing", "out of bag", "predicting"]
    assert ("growing", 30, 30) in seen


def test_arguments_are_not_changed(backend):
    X, y = load_iris(return_X_y=True)
    weights = np.linspace(0, 1, 150)
    arrays = [X, y, weights]
    before = [a.copy() for a in arrays]
    for a in arrays:
        a.flags.writeable = False
    RandomForestClassifier(2, backend=backend).fit(X, y, weights).predict(X)
    assert all(np.array_equal(a, b) for a, b in zip(arrays, before, strict=True))
