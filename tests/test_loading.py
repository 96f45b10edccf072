"""Loading: files good and bad."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gpuforest import loading
from gpuforest.loading import (
    is_class_target,
    load_table,
    plain_features,
    read_frame,
    select_features,
)

CSV = "a,b,w,y\n1,?,1,no\n2.5,NA,2,yes\n-3,,3,no\n"


def write(folder: Path, content: str | bytes, name: str = "data.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_columns_go_to_their_parts(tmp_path):
    table = load_table(write(tmp_path, CSV), "y", weight="w")
    assert list(table.X.columns) == ["a", "b"]
    assert table.X["a"].tolist() == [1, 2.5, -3]
    assert table.X["b"].isna().all()
    assert table.y.tolist() == ["no", "yes", "no"]
    assert table.weight is not None
    assert table.weight.tolist() == [1, 2, 3]


def test_dropped_columns_may_hold_anything(tmp_path):
    table = load_table(write(tmp_path, CSV), "w", drop=["y", "b"])
    assert list(table.X.columns) == ["a"]
    assert table.y.dtype == np.int64


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separator_is_read_off_the_header(tmp_path, separator):
    assert read_frame(write(tmp_path, CSV.replace(",", separator))).shape == (3, 4)


def test_gzip_and_parquet_hold_the_same(tmp_path):
    plain = read_frame(write(tmp_path, CSV))
    pd.testing.assert_frame_equal(
        read_frame(write(tmp_path, gzip.compress(CSV.encode(), mtime=0), "data.csv.gz")), plain
    )
    plain.to_parquet(tmp_path / "data.parquet")
    pd.testing.assert_frame_equal(read_frame(tmp_path / "data.parquet"), plain)


def test_nullable_columns_become_plain_numbers(tmp_path):
    frame = pd.DataFrame(
        {
            "i": pd.array([1, None, 3], dtype="Int64"),
            "t": pd.array([True, False, None], dtype="boolean"),
            "f": np.array([1, 2, 3], np.float32),
            "y": pd.array([True, False, True], dtype="boolean"),
        }
    )
    frame.to_parquet(tmp_path / "data.parquet")
    table = load_table(tmp_path / "data.parquet", "y")
    np.testing.assert_array_equal(table.X["i"].to_numpy(), [1, np.nan, 3])
    np.testing.assert_array_equal(table.X["t"].to_numpy(), [1, 0, np.nan])
    assert table.X["f"].dtype == np.float32
    assert table.y.dtype == np.bool_


def test_categories_are_a_target_and_a_feature():
    frame = pd.DataFrame({"x": [1, 2], "c": pd.Categorical(["u", "v"]), "s": ["u", None]})
    assert loading.split_columns(frame, "c").y.tolist() == ["u", "v"]
    found = loading.split_columns(frame, "x").X
    pd.testing.assert_frame_equal(found, frame[["c", "s"]])


def test_numbers_become_categories_where_they_are_named():
    frame = pd.DataFrame({"x": [2, 1], "n": pd.array([3, None], dtype="Int64"), "y": [0, 1]})
    found = loading.split_columns(frame, "y", categorical=["x", "n"]).X
    assert found["x"].cat.categories.tolist() == [1, 2]
    assert found["n"].cat.categories.tolist() == [3]
    assert found["n"].isna().tolist() == [False, True]


def test_truth_values_beside_missing_ones_are_numbers():
    frame = pd.DataFrame({"x": pd.Series([True, None], dtype=object), "y": [0, 1]})
    pd.testing.assert_frame_equal(loading.split_columns(frame, "y").X, frame[["x"]])


@pytest.mark.parametrize(
    "values", [pd.to_datetime(["2020", "2021"]), [["u"], ["v"]], pd.to_timedelta([1, 2])]
)
def test_other_columns_are_no_features(values):
    frame = pd.DataFrame({"x": [1, 2], "c": values})
    with pytest.raises(ValueError, match=r"that is neither numeric nor of strings: 'c'; .*--drop"):
        loading.split_columns(frame, "x")


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ("", "data.csv", "is empty"),
        ("\n\n", "data.csv", "is empty, or its first line is"),
        ("a,b\n", "data.csv", "has no rows"),
        ("a,b\n1,2,3\n4,5,6\n", "data.csv", "more fields than its first line"),
        ("a,b\n1,2\n1,2,3\n", "data.csv", "no CSV file: Expected 2 fields in line 3"),
        ('a,b\n1,"2\n', "data.csv", "is no CSV file"),
        ("a,café\n1,2\n".encode("latin-1"), "data.csv", "no CSV file in UTF-8"),
        ("a,b\n1,café\n".encode("latin-1"), "data.csv", "no CSV file in UTF-8"),
        (b"\x7fELF\0\0\0\n1", "data.csv", "binary data"),
        (CSV, "data.csv.gz", "no whole gzip file"),
        (gzip.compress(CSV.encode(), mtime=0)[:30], "data.csv.gz", "no whole gzip file"),
        (CSV, "data.parquet", "no Parquet file"),
        ("", "data.parquet", "no Parquet file"),
    ],
)
def test_bad_files_are_named(tmp_path, content, name, message):
    with pytest.raises(ValueError, match=message) as caught:
        read_frame(write(tmp_path, content, name))
    assert name in str(caught.value)


def test_no_file_and_a_directory(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_frame(tmp_path / "absent.csv")
    with pytest.raises(IsADirectoryError, match="is a directory"):
        read_frame(tmp_path)


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"gpuforest\[parquet\]"):
        read_frame(write(tmp_path, "", "data.parquet"))


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("z", {}, "no column 'z': there are 'a', 'b', 'w', 'y'"),
        ("a", {"weight": "wieght"}, "no column 'wieght'"),
        ("a", {"drop": ["b", "q"]}, "no column 'q'"),
        ("y", {"drop": ["y"]}, "'y' is the target"),
        ("y", {"weight": "y"}, "'y' is the target"),
        ("b", {}, "'b' is missing in 3 of 3 rows"),
        ("y", {"categorical": ["c"]}, "no column 'c'"),
        (
            "y",
            {"categorical": ["b"], "drop": ["b"]},
            "a categorical column that is no feature: 'b'",
        ),
        ("a", {"weight": "y"}, "the weight column 'y' is not numeric"),
        ("y", {"weight": "b"}, "the weight column 'b' is missing in 3 of 3 rows"),
        ("y", {"drop": ["a", "b", "w"]}, "no column is left"),
    ],
)
def test_columns_that_do_not_fit_are_named(tmp_path, target, options, message):
    with pytest.raises(ValueError, match=message):
        load_table(write(tmp_path, CSV), target, **options)


def test_a_near_miss_is_suggested(tmp_path):
    with pytest.raises(ValueError, match="did you mean 'target'"):
        load_table(write(tmp_path, "target,x\n1,2\n"), "Target")


def test_a_file_without_a_header_is_suspected(tmp_path):
    with pytest.raises(ValueError, match="the first line should hold the columns' names"):
        load_table(write(tmp_path, "1,2\n3,4\n"), "y")


def test_columns_of_one_name(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    pa = pytest.importorskip("pyarrow")
    pq.write_table(pa.table([[1], [2]], names=["x", "x"]), tmp_path / "data.parquet")
    with pytest.raises(ValueError, match=r"several columns of one name|no Parquet file"):
        read_frame(tmp_path / "data.parquet")


def test_features_are_selected_by_name():
    frame = pd.DataFrame({"c": [1], "a": [2], "b": ["text"]})
    X, ignored = select_features(frame, ["a", "c"])
    assert list(X.columns) == ["a", "c"]
    assert ignored == ["b"]
    with pytest.raises(ValueError, match="a column that is absent from the data: 'd'"):
        select_features(frame, ["a", "d"])


def test_numeric_frames_are_not_copied():
    frame = pd.DataFrame({"a": [1.0, 2.0]})
    assert np.shares_memory(plain_features(frame)["a"].to_numpy(), frame["a"].to_numpy())


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (["a", "b"], True),
        ([True, False], True),
        ([0, 1] * 5, True),
        (list(range(20)) * 2, True),
        (list(range(21)) * 2, False),
        ([1, 2, 3], False),
        ([0.0, 1.0] * 5, False),
    ],
)
def test_which_targets_name_classes(y, classes):
    assert is_class_target(np.array(y)) is classes
