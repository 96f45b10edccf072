"""A file by its columns: features, target and weights, and which of them cannot be."""

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from tables_on_disk import CSV, column, write

from gpuforest.data.columns import (
    is_class_target,
    load_table,
    select_features,
    split_columns,
    string_columns,
)
from gpuforest.data.frames import read_frame
from gpuforest.data.text import Reading


def test_columns_go_to_their_parts(tmp_path):
    table = load_table(write(tmp_path, CSV), "y", weight="w")
    assert table.names == ["a", "b"]
    assert column(table.frame, "a") == [1, 2.5, -3]
    assert column(table.frame, "b") == [None] * 3
    assert table.y.tolist() == ["no", "yes", "no"]
    assert table.weight is not None
    assert table.weight.tolist() == [1, 2, 3]


def test_dropped_columns_may_hold_anything(tmp_path):
    table = load_table(write(tmp_path, CSV), "w", drop=["y", "b"])
    assert table.names == ["a"]
    assert table.y.dtype == np.int64


def test_categories_are_a_target_and_a_feature():
    frame = nw.from_native(
        pa.table({"x": [1, 2], "c": pa.array(["u", "v"]).dictionary_encode(), "s": ["u", None]})
    )
    assert split_columns(frame, "c").y.tolist() == ["u", "v"]
    table = split_columns(frame, "x")
    assert table.names == string_columns(table.frame) == ["c", "s"]


@pytest.mark.parametrize("values", [pd.to_datetime(["2020", "2021"]), [["u"], ["v"]]])
def test_other_columns_are_no_features(values):
    frame = nw.from_native(pa.table({"x": [1, 2], "c": values}))
    with pytest.raises(ValueError, match=r"that is neither numeric nor of strings: 'c'; .*--drop"):
        split_columns(frame, "x")


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("z", {}, "no column 'z': there are 'a', 'b', 'w', 'y'"),
        ("a", {"weight": "wieght"}, "no column 'wieght'"),
        ("a", {"drop": ["b", "q"]}, "no column 'q'"),
        ("y", {"drop": ["y"]}, "'y' is the target"),
        ("y", {"weight": "y"}, "'y' is the target"),
        ("b", {}, "'b' is missing in 3 of 3 rows"),
        ("a", {"weight": "y"}, "the weight column 'y' is not numeric"),
        ("y", {"weight": "b"}, "the weight column 'b' is missing in 3 of 3 rows"),
        ("y", {"weight": "a"}, "the weight column 'a' is negative or infinite in 1 of 3 rows"),
        ("y", {"reading": Reading(dates=("y",))}, "--dates y: this column is the target"),
        ("y", {"weight": "a", "reading": Reading(dates=("a",))}, "a: this column is the weight"),
        ("y", {"drop": ["a"], "reading": Reading(dates=("a",))}, "a: this column is dropped"),
        ("y", {"drop": ["a", "b", "w"]}, "no column is left"),
    ],
)
def test_columns_that_do_not_fit_are_named(tmp_path, target, options, message):
    with pytest.raises(ValueError, match=message):
        load_table(write(tmp_path, CSV), target, **options)


@pytest.mark.parametrize(
    ("weights", "message"),
    [(["inf", "1"], "negative or infinite in 1 of 2 rows"), (["0", "0"], "zero in all rows")],
)
def test_weights_that_cannot_be(tmp_path, weights, message):
    rows = "".join(f"{i},{w},{i}\n" for i, w in enumerate(weights))
    with pytest.raises(ValueError, match=f"the weight column 'w' is {message}"):
        load_table(write(tmp_path, f"a,w,y\n{rows}"), "y", weight="w")


def test_a_near_miss_is_suggested(tmp_path):
    with pytest.raises(ValueError, match="did you mean 'target'"):
        load_table(write(tmp_path, "target,x\n1,2\n"), "Target")


def test_a_file_without_a_header_is_suspected(tmp_path):
    with pytest.raises(ValueError, match="the first line should hold the columns' names"):
        load_table(write(tmp_path, "1,2\n3,4\n"), "y")


def test_columns_of_one_name(tmp_path):
    parquet.write_table(pa.table([[1], [2]], names=["x", "x"]), tmp_path / "data.parquet")
    with pytest.raises(ValueError, match=r"several columns of one name: 'x'"):
        read_frame(tmp_path / "data.parquet")


def test_features_are_selected_by_name():
    frame = nw.from_native(pa.table({"c": [1], "a": [2], "b": ["text"]}))
    X, ignored = select_features(frame, ["a", "c"])
    assert X.columns == ["a", "c"]
    assert ignored == ["b"]
    with pytest.raises(ValueError, match="a column that is absent from the data: 'd'"):
        select_features(frame, ["a", "d"])


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (["a", "b"], True),
        ([True, False], True),
        ([0, 1] * 5, True),
        (list(range(20)) * 2, True),
        (list(range(21)) * 2, False),
        ([1, 2, 3], False),
        ([0.0, 1.0] * 5, True),
        ([0.5, 1.0] * 5, False),
    ],
)
def test_which_targets_name_classes(y, classes):
    assert is_class_target(np.array(y)) is classes
