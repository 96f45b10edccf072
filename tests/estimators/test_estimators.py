"""The estimators: parameters, labels, weights, frames, and the same forest everywhere."""

import copy
import pickle

import cloudpickle
import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_diabetes, load_digits, load_iris
from sklearn.model_selection import cross_val_score

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


def same_forest(a, b):
    return (
        np.array_equal(a.forest_.nodes, b.forest_.nodes)
        and np.array_equal(a.forest_.tree_offsets, b.forest_.tree_offsets)
        and np.array_equal(a.forest_.leaf_sums, b.forest_.leaf_sums)
    )


@pytest.mark.parametrize("criterion", ["gini", "entropy", "log_loss", "misclassification"])
def test_classes_on_all_backends(criterion):
    X, y = load_digits(return_X_y=True)
    params = {"criterion": criterion, "max_depth": 6, "random_state": 0}
    a = RandomForestClassifier(3, **params, backend="numpy").fit(X, y)
    b = RandomForestClassifier(3, **params, backend="numba", n_jobs=2).fit(X, y)
    assert same_forest(a, b)
    assert np.array_equal(a.predict_proba(X), b.predict_proba(X))
    assert np.array_equal(a.apply(X), b.apply(X))
    assert a.score(X, y) > 0.8


@pytest.mark.parametrize("criterion", ["squared_error", "poisson"])
def test_numbers_on_all_backends(criterion):
    X, y = load_diabetes(return_X_y=True)
    weights = np.random.default_rng(0).random(len(y))
    params = {"criterion": criterion, "random_state": 0, "min_samples_leaf": 3}
    for bootstrap in (True, False):
        a = RandomForestRegressor(3, **params, bootstrap=bootstrap, backend="numpy")
        b = RandomForestRegressor(3, **params, bootstrap=bootstrap, backend="numba", n_jobs=2)
        assert same_forest(a.fit(X, y, weights), b.fit(X, y, weights))
        assert np.array_equal(a.predict(X), b.predict(X))
        assert np.array_equal(a.feature_importances_, b.feature_importances_)
    assert a.score(X, y) > 0.5


def test_forests_learn(backend):
    X, y = load_iris(return_X_y=True)
    assert (
        cross_val_score(RandomForestClassifier(20, random_state=0, backend=backend), X, y).mean()
        > 0.93
    )
    X, y = load_diabetes(return_X_y=True)
    assert (
        cross_val_score(RandomForestRegressor(20, random_state=0, backend=backend), X, y).mean()
        > 0.35
    )


def test_attributes(backend):
    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(3, random_state=7, backend=backend)
    assert model.fit(X, y) is model
    assert model.classes_.tolist() == [0, 1, 2]
    assert (model.n_classes_, model.n_features_in_, model.n_outputs_) == (3, 4, 1)
    assert (model.seed_, model.forest_.seed, model.forest_.n_trees) == (7, 7, 3)
    assert model.apply(X).shape == (150, 3)
    assert is_classifier(model)
    assert not hasattr(model, "feature_names_in_")
    number = DecisionTreeRegressor(backend=backend).fit(X, y)
    assert is_regressor(number)
    assert number.predict(X).dtype == np.float64
    assert not hasattr(number, "classes_")


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
    assert same_forest(a, b)
    assert np.array_equal(a.predict(X), b.predict(X))
    y = y > 140
    a = RandomForestClassifier(
        3, bootstrap=False, max_features=0.5, random_state=0, backend=backend
    ).fit(X, y, weights)
    b = clone(a).fit(X[twice], y[twice])
    assert same_forest(a, b)


def test_weights_drive_the_draw_of_bags(backend):
    X, y = load_diabetes(return_X_y=True)
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    twice = np.repeat(np.arange(len(y)), weights)
    a = RandomForestRegressor(3, max_samples=300, random_state=0, backend=backend)
    a.fit(X, y, weights)
    b = clone(a).fit(X[twice], y[twice])  # draws of the same points of the total weight
    assert np.array_equal(a.predict(X), b.predict(X))
    # equal weights are no weights, whatever their size
    assert same_forest(clone(a).fit(X, y), clone(a).fit(X, y, np.full(len(y), 0.3)))


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
    assert same_forest(a, b)
    assert not same_forest(b, clone(forest).set_params(random_state=a.seed_ + 1).fit(X, y))


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


def test_bags_hold_max_samples(backend):
    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(4, max_samples=0.4, random_state=0, backend=backend).fit(X, y)
    for t in range(4):
        assert model.forest_.node_sums(t, t + 1)[0].sum() == 60


def test_defaults():
    assert RandomForestClassifier().max_features == "sqrt"
    assert RandomForestRegressor().max_features == 1 / 3
    assert RandomForestClassifier().n_estimators == RandomForestRegressor().n_estimators == 100
    assert DecisionTreeClassifier().max_features is None
    assert not {"n_estimators", "bootstrap", "n_jobs"} & set(DecisionTreeClassifier().get_params())


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
    assert same_forest(model, other)
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert np.array_equal(model.predict_proba(frame), other.predict_proba(reference.to_numpy()))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(reference.to_numpy())
    with pytest.warns(UserWarning, match="fitted without feature names"):
        other.predict(frame)


def test_narrow_frames_stay_float32(backend):
    from gpuforest.data.tables import frame_to_array

    narrow = pl.DataFrame({"a": [1.5], "b": [True], "c": [3]}).cast(
        {"a": pl.Float32, "c": pl.Int16}
    )
    assert frame_to_array(narrow)[0].dtype == np.float32
    assert frame_to_array(narrow.cast({"c": pl.Int32}))[0].dtype == np.float64
    held = pd.DataFrame(np.zeros((5, 3), np.float32))
    assert np.shares_memory(frame_to_array(held)[0], held.to_numpy())
    assert frame_to_array(held)[1] == [0, 1, 2]


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


def test_joblib(backend, tmp_path):
    X, y = load_diabetes(return_X_y=True)
    model = DecisionTreeRegressor(backend=backend).fit(X, y)
    joblib.dump(model, tmp_path / "model")
    assert np.array_equal(joblib.load(tmp_path / "model").predict(X), model.predict(X))


def test_stages_are_reported(backend):
    X, y = load_iris(return_X_y=True)
    seen = []
    with listening(lambda *report: seen.append(report)) as seconds:
        model = RandomForestClassifier(30, oob_score=True, random_state=0, backend=backend)
        model.fit(X, y).predict(X)
    assert list(seconds) == ["checking", "binning", "growing", "out of bag", "predicting"]
    assert ("growing", 30, 30) in seen


def test_a_failed_fit_leaves_no_half_model(backend):
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier(backend=backend)
    for fitted in (False, True):
        with pytest.raises(ValueError, match="sample_weight"):
            model.fit(X[:, :2], y, -np.ones(150))
        if fitted:  # the model before is whole
            assert model.predict(X).shape == (150,)
        with pytest.raises(ValueError, match="4 features" if fitted else "not fitted"):
            model.predict(X[:, :2])
        model.fit(X, y)


def test_arguments_are_not_changed(backend):
    X, y = load_iris(return_X_y=True)
    weights = np.linspace(0, 1, 150)
    arrays = [X, y, weights]
    before = [a.copy() for a in arrays]
    for a in arrays:
        a.flags.writeable = False
    RandomForestClassifier(2, backend=backend).fit(X, y, weights).predict(X)
    assert all(np.array_equal(a, b) for a, b in zip(arrays, before, strict=True))
