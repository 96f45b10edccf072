"""Frames: missing values in all their forms, sparse columns, names that must match."""

import re
from datetime import datetime, timedelta
from decimal import Decimal

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from category_columns import N, Y, frame_of
from optional import polars as pl

from gpuforest import DecisionTreeClassifier, DecisionTreeRegressor, RandomForestRegressor
from gpuforest.data import categories
from gpuforest.data.arrays import frame_to_array

NUMBERS = [None if i in (3, 7) else i % 5 for i in range(N)]
FLAGS = [None if i in (3, 7) else i % 2 == 0 for i in range(N)]
PLAIN = np.array([np.nan if v is None else v for v in NUMBERS], np.float64)
FLAGS_PLAIN = np.array([np.nan if v is None else v for v in FLAGS], np.float64)


def objects(missing):
    return pd.Series([missing if v is None else v for v in NUMBERS], dtype=object)


MISSING = {
    "NaN": pd.Series(PLAIN),
    "objects, None": objects(None),
    "objects, NaN": objects(np.nan),
    "objects, NA": objects(pd.NA),
    "objects, Decimal": objects(None).map(Decimal, na_action="ignore"),
    "objects, NumPy's": objects(None).map(np.float32, na_action="ignore").astype(object),
    "Int64": pd.Series(NUMBERS, dtype="Int64"),
    "UInt8": pd.Series(NUMBERS, dtype="UInt8"),
    "Float32": pd.Series(NUMBERS, dtype="Float32"),
    "Arrow in pandas": pd.Series(NUMBERS, dtype="int64[pyarrow]"),
    "sparse": pd.Series(pd.arrays.SparseArray(PLAIN)),
    "sparse, filled with 0": pd.Series(pd.arrays.SparseArray(PLAIN, fill_value=0.0)),
    "polars": pl.Series(NUMBERS),
    "polars, small": pl.Series(NUMBERS, dtype=pl.Int8),
    "polars, decimal": pl.Series(NUMBERS).cast(pl.Decimal(10, 2)),
    "polars, objects": pl.Series(NUMBERS, dtype=pl.Object),
    "Arrow": pa.array(NUMBERS),
    "Arrow, in chunks": pa.chunked_array([NUMBERS[:5], NUMBERS[5:]]),
    "Arrow, decimal": pa.array(NUMBERS).cast(pa.decimal128(21, 2)),
    "Arrow, float16": pa.array(PLAIN.astype(np.float16), mask=np.isnan(PLAIN)),
}
MISSING_FLAGS = {
    "objects": pd.Series(FLAGS, dtype=object),
    "boolean": pd.Series(FLAGS, dtype="boolean"),
    "Arrow in pandas": pd.Series(FLAGS, dtype="bool[pyarrow]"),
    "polars": pl.Series(FLAGS),
    "Arrow": pa.array(FLAGS),
}
ALL_MISSING = {
    "NaN": pd.Series([np.nan] * N),
    "objects": pd.Series([None] * N, dtype=object),
    "Int64": pd.Series([None] * N, dtype="Int64"),
    "Arrow in pandas": pd.Series([None] * N, dtype=pd.ArrowDtype(pa.null())),
    "polars": pl.Series([None] * N),
    "Arrow": pa.nulls(N),
}


def fitted_as(form, X):
    """The model of rows in some form; forest and predictions are those of the array X."""
    model, other = (DecisionTreeClassifier(backend="numpy").fit(rows, Y) for rows in (form, X))
    assert np.array_equal(model.forest_.nodes, other.forest_.nodes)
    assert np.array_equal(model.predict_proba(form), other.predict_proba(X))
    return model


COLUMNS = {f"numbers, {form}": (column, PLAIN) for form, column in MISSING.items()}
COLUMNS |= {f"booleans, {form}": (each, FLAGS_PLAIN) for form, each in MISSING_FLAGS.items()}
COLUMNS |= {f"none, {form}": (each, np.full(N, np.nan)) for form, each in ALL_MISSING.items()}
COLUMNS |= {
    f"sparse, {kind.__name__}": (
        pd.Series(pd.arrays.SparseArray((np.arange(N) % 2).astype(kind), fill_value=kind(0))),
        (np.arange(N) % 2).astype(kind),
    )
    for kind in (np.int64, np.int8, np.bool_, np.float32)
}


@pytest.mark.parametrize("form", COLUMNS)
def test_columns_of_numbers(form):
    if form == "numbers, Arrow, float16" and not hasattr(nw, "Float16"):
        pytest.skip("this narwhals knows no float16")
    column, plain = COLUMNS[form]
    frame, X = frame_of(column), np.column_stack([plain, np.arange(N)])
    found, names = frame_to_array(frame)
    assert np.array_equal(found, X, equal_nan=True)
    assert names == ["a", "b"]
    fitted_as(frame, X)


def test_sparse_columns_stay_narrow():
    narrow = pd.DataFrame({"a": pd.arrays.SparseArray(np.zeros(5, np.float32))})
    assert frame_to_array(narrow)[0].dtype == np.float32
    narrow["b"] = pd.arrays.SparseArray(np.zeros(5, np.int32))
    assert frame_to_array(narrow)[0].dtype == np.float64


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_missing_objects_of_arrays_and_lists(missing):
    objects = [[missing if v is None else v, i % 7] for i, v in enumerate(NUMBERS)]
    X = np.column_stack([PLAIN, np.arange(N) % 7])
    for form in (objects, np.array(objects, dtype=object)):
        fitted_as(form, X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.bool_, object])
def test_what_numpy_masks_is_missing(dtype):
    values = np.nan_to_num(FLAGS_PLAIN).astype(dtype)[:, None]
    masked = np.ma.masked_array(values, mask=np.isnan(FLAGS_PLAIN)[:, None])
    model = fitted_as(masked, FLAGS_PLAIN[:, None])
    # behind a mask there may be anything
    masked.data[masked.mask] = 1
    assert np.array_equal(model.predict(masked), model.predict(FLAGS_PLAIN[:, None]))


@pytest.mark.parametrize(
    "masked",
    [np.ma.masked_array(Y, mask=Y == 1), pd.array([None, *Y[1:]], dtype="Int64")],
    ids=["NumPy", "pandas"],
)
def test_labels_and_weights_behind_a_mask_are_refused(masked):
    X = np.zeros((N, 1))
    with pytest.raises(ValueError, match="y has masked values: drop these rows"):
        DecisionTreeClassifier().fit(X, masked)
    with pytest.raises(ValueError, match="sample_weight has masked values"):
        RandomForestRegressor().fit(X, Y, sample_weight=masked)


NOT_NUMBERS = [
    (pd.Series(["1", 2] * 12, dtype=object), "'1' is a str"),
    (pd.Series([b"1", 2] * 12, dtype=object), "b'1' is a bytes"),
    (pd.Series([1, pd.NaT] * 12, dtype=object), "NaTType"),
    (pd.Series([1, datetime(2020, 1, 1)] * 12, dtype=object), "datetime"),
    (pd.Series([1, timedelta(1)] * 12, dtype=object), "timedelta"),
    (pd.Series([1, np.timedelta64(1, "s")] * 12, dtype=object), "is a timedelta64"),
    (pd.Series([1, 1j] * 12, dtype=object), "is a complex"),
    (pd.Series([1, np.complex64(1)] * 12, dtype=object), "is a complex64"),
    (pd.Series([1, [2]] * 12, dtype=object), "setting an array element|a real number"),
    (pd.Series([1, 10**400] * 12, dtype=object), "too large"),
    (pl.Series(["1", 2] * 12, dtype=pl.Object), "'1' is a str"),
]


NOT_NUMBERS = [
    (column, f"column 'a' of X holds no numbers: .*({message}).*; .*or drop it")
    for column, message in NOT_NUMBERS
]
NOT_NUMBERS += [
    (column, r"column 'a' holds .*: only numeric and boolean")
    for column in (
        pd.Series(pd.to_datetime([None] * N)), pd.Series(pd.to_timedelta([None] * N)),
        pd.Series(pd.arrays.SparseArray(np.array([1j] * N))),
        pl.Series([None] * N, dtype=pl.Duration), pl.Series([[1.0]] * N),
        pa.array([datetime(2020, 1, 1)] * N),
    )
]  # fmt: skip


@pytest.mark.parametrize(("column", "message"), NOT_NUMBERS, ids=range(len(NOT_NUMBERS)))
def test_columns_that_are_no_numbers_are_named(column, message):
    with pytest.raises((TypeError, ValueError), match=message):
        DecisionTreeClassifier().fit(frame_of(column), Y)


@pytest.mark.parametrize("frame", [
    pd.DataFrame(np.zeros((N, 3)), columns=["a", "b", "a"]),
    pd.DataFrame({0: pd.Categorical(["x"] * N), 1: 0.0}).set_axis(["a", "a"], axis=1),
    pa.table([pa.array(np.zeros(N))] * 2, names=["a", "a"]),
], ids=["pandas", "categories", "Arrow"])  # fmt: skip
def test_columns_of_one_name_are_named(frame):
    tree = DecisionTreeClassifier(backend="numpy")
    expected = "X has several columns of one name: 'a'; rename or remove all but one, or pass an"
    with pytest.raises(ValueError, match=expected) as caught:
        tree.fit(frame, Y)
    assert type(caught.value) is ValueError  # no library's own
    with pytest.raises(ValueError, match=expected):
        tree.fit(np.eye(N, frame.shape[1]), Y).predict(frame)


@pytest.mark.parametrize("values", [
    np.arange(N) % 3,
    np.arange(N) % 3 * 1.5,
    np.where(np.arange(N) % 3, np.arange(N) % 5, np.nan),
    np.arange(N) % 2 == 0,
], ids=["integers", "floats", "missing", "truth values"])  # fmt: skip
def test_categories_that_are_numbers_are_numbers_where_none_are_meant(values):
    """As for scikit-learn: a model that was fitted on numbers takes them in this form too."""
    rows = np.stack([np.linspace(0, 1, N), values], axis=1)
    tree = DecisionTreeRegressor(backend="numpy").fit(rows, np.nan_to_num(rows.sum(axis=1)))
    frame = pd.DataFrame({0: rows[:, 0], 1: pd.Categorical(values)})
    assert np.array_equal(tree.predict(frame), tree.predict(rows))
    given = DecisionTreeRegressor(backend="numpy", categorical_features=None).fit(frame, rows[:, 0])
    assert given.is_categorical_ is None
    assert DecisionTreeRegressor(backend="numpy").fit(frame, rows[:, 0]).is_categorical_[1]
    frame[1] = pd.Categorical(["1", "2"] * (N // 2))
    with pytest.raises(ValueError, match="column 1 holds Categorical: list it in"):
        tree.predict(frame)


NAMES = ["age", "height", "weight", "size"]


@pytest.fixture(scope="module")
def model():
    X = np.random.default_rng(0).normal(size=(N, 4))
    return DecisionTreeClassifier(backend="numpy").fit(pd.DataFrame(X, columns=NAMES), Y)


@pytest.mark.parametrize("library", ["pandas", "polars", "Arrow"])
@pytest.mark.parametrize(("names", "message"), [
    (NAMES[:3], "seen at fit time, yet now missing:\n- size\n"),
    ([*NAMES, "colour"], "unseen at fit time:\n- colour\n"),
    (["age", "heigth", "weight", "size"], "unseen at fit time:\n- heigth\n"
     "Feature names seen at fit time, yet now missing:\n- height\n"),
    (["age", "size", "height", "weight"], "in the same order as they were in fit.\n"
     "The first out of place is 'size': it is column 1, where 'height' belongs, and belongs to "
     "column 3."),
], ids=["missing", "extra", "misspelt", "reordered"])  # fmt: skip
def test_other_columns_at_prediction_are_named(model, library, names, message):
    kind = pa.table if library == "Arrow" else {"pandas": pd, "polars": pl}[library].DataFrame
    frame = kind({name: np.zeros(3) for name in names})
    expected = "The feature names should match those that were passed during fit.\n"
    for method in (model.predict, model.predict_proba, model.apply, model.decision_path):
        with pytest.raises(ValueError, match=re.escape(expected) + ".*" + re.escape(message)):
            method(frame)


def test_order_is_not_asked_of_numbered_columns(model):
    frame = pd.DataFrame({name: [1.0] for name in NAMES} | {"name": ["Ada"]})
    with pytest.raises(ValueError, match="unseen at fit time:\n- name"):  # before what they hold
        model.predict(frame)
    X = np.random.default_rng(0).normal(size=(N, 2))
    model = DecisionTreeClassifier(backend="numpy").fit(pd.DataFrame(X), Y)
    assert np.array_equal(model.predict(pd.DataFrame(X, columns=[1, 0])), model.predict(X))


@pytest.mark.parametrize("column", [
    np.array([0.5, np.nan, -1, 0.5, np.nan, 7]), np.array([np.nan, np.nan]),
    np.array([3, -1, 3, 2]), np.array([True, False, True]),
    np.array(["b", None, "a", "b", np.nan, "ü"], dtype=object),
    np.array([None, None], dtype=object),
    np.array([2, 1.5, True, 2, float("nan")], dtype=object), np.array([], dtype=object),
    np.array([]),
], ids=str)  # fmt: skip
def test_categories_without_pandas_are_those_with_it(column):
    (codes, values), (theirs, kept) = categories._factorize_plain(column), pd.factorize(column)
    assert np.array_equal(codes == -1, theirs == -1)
    assert values[codes[codes >= 0]].tolist() == np.asarray(kept)[theirs[theirs >= 0]].tolist()
    assert len(values) == len(kept)


def test_what_holds_no_categories_is_refused_without_pandas_too():
    with pytest.raises(TypeError, match="unhashable"):
        categories._factorize_plain(np.array([[1], None, "a"], dtype=object)[[0, 1]])
