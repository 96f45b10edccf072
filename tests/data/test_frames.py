"""Files as frames: compressed ones hold the same, faults are named with the file, and columns go to
their parts: features, target and weights."""

import gzip
from datetime import datetime
from pathlib import Path

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from tables_on_disk import CSV, column, write

from gpuforest.data import frames, text
from gpuforest.data.text import Reading


@pytest.mark.parametrize(("content", "name", "message"), [
    ("", "data.csv", "is empty"),
    ("\n\n", "data.csv", "is empty, or its first line is"),
    ("a,b\n", "data.csv", "has no rows"),
    ("a,b\n1,2,3\n4,5,6\n", "data.csv", "line 2 has more fields than its first .*3 and not 2"),
    ("a,b\n1,2\n1,2,3\n", "data.csv", "line 3 has more fields than its first line"),
    ("a,b\n1,2\n\n1\n", "data.csv", "line 4 has fewer fields than its first line, 1 and"),
    ('a,b\n1,"2\n', "data.csv", "a quotation mark is never closed"),
    ('a,b\n"1,2\n3,4\n', "data.csv", "line 3 has fewer fields"),
    ("a,b, a\n1,2,3\n", "data.csv", "several columns of one name: 'a'; rename or remove"),
    ("a,b,a\n1,2,3\n", "data.csv", "several columns of one name: 'a'; rename or remove"),
    ("a,café\n1,2\n".encode("latin-1"), "data.csv", "no CSV file in UTF-8"),
    ("a,b\n1,café\n".encode("latin-1"), "data.csv", "no CSV file in UTF-8"),
    (b"\x7fELF\0\0\0\n1", "data.csv", "binary data"),
    (gzip.compress(CSV.encode(), mtime=0)[:30], "data.csv.gz", "no whole compressed file"),
    (CSV, "data.parquet", "no Parquet file"),
    ("", "data.parquet", "no Parquet file"),
])  # fmt: skip
def test_bad_files_are_named(tmp_path, content, name, message):
    with pytest.raises(ValueError, match=message) as caught:
        frames.read_frame(write(tmp_path, content, name))
    assert name in str(caught.value)


def test_long_fields_are_read_and_rows_longer_than_a_block_are_refused(tmp_path, monkeypatch):
    long = "x" * 200_000  # above the limit of Python's csv module
    assert frames.read_frame(write(tmp_path, f"{long},b\n1,2\n")).columns == [long, "b"]
    with pytest.raises(ValueError, match="line 3 has more fields"):
        frames.read_frame(write(tmp_path, f"a,b\n{long},2\n1,2,3\n"))
    monkeypatch.setattr(text, "BLOCK_BYTES", 1000)
    with pytest.raises(ValueError, match=r"data.csv is no CSV file: a row has more than 1000 "):
        frames.read_frame(write(tmp_path, f"a,b\n{long},2\n"))


def test_parts_of_dates(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("d.csv").write_text(
        "when,k\n2020-12-31,1\n,2\n1970-01-01T00:01:00,3\n19700105,4\n1970-01-01T01:00+01:00,5\n"
    )
    frame, nan = frames.read_frame("d.csv", Reading(dates=("when",))), np.nan
    assert frame.columns == ["when_year", "when_month", "when_weekday", "when_seconds", "k"]
    expected = [
        [2020, 12, 3, datetime(2020, 12, 31).toordinal() * 86400 - 62135683200],
        [nan] * 4,
        [1970, 1, 3, 60],
        [1970, 1, 0, 4 * 86400],
        [1970, 1, 3, 0],
    ]
    assert np.array_equal(frame.to_numpy()[:, :4], expected, equal_nan=True)
    times = pa.table({"t": pa.array([datetime(2001, 2, 3, 4, 5), None])})
    found = frames.with_date_parts(nw.from_native(times), Reading(dates=("t",))).to_numpy()
    assert found[0].tolist() == [2001, 2, 5, 981173100]
    assert np.isnan(found[1]).all()
    clash = nw.from_native(times.append_column("t_year", [[1, 2]]))
    with pytest.raises(ValueError, match="--dates t: there is a column t_year already"):
        frames.with_date_parts(clash, Reading(dates=("t",)))


def test_columns_go_to_their_parts_and_dropped_ones_may_hold_anything(tmp_path):
    table = frames.load_table(write(tmp_path, CSV), "y", weight="w")
    assert table.names == ["a", "b"]
    assert column(table.frame, "a") == [1, 2.5, -3]
    assert column(table.frame, "b") == [None] * 3
    assert table.y.tolist() == ["no", "yes", "no"]
    assert table.weight is not None
    assert table.weight.tolist() == [1, 2, 3]
    table = frames.load_table(write(tmp_path, CSV), "w", drop=["y", "b"])
    assert table.names == ["a"]
    assert table.y.dtype == np.int64


@pytest.mark.parametrize("values", [pd.to_datetime(["2020", "2021"]), [["u"], ["v"]]])
def test_other_columns_are_no_features(values):
    frame = nw.from_native(pa.table({"x": [1, 2], "c": values}))
    with pytest.raises(ValueError, match=r"that is neither numeric nor of strings: 'c'; .*--drop"):
        frames.split_columns(frame, "x")


@pytest.mark.parametrize(("target", "options", "message"), [
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
    ("y", {"weight": "w", "of": "a,w,y\n0,inf,0\n1,1,1\n"}, "or infinite in 1 of 2 rows"),
    ("y", {"weight": "w", "of": "a,w,y\n0,0,0\n1,0,1\n"}, "column 'w' is zero in all rows"),
    ("y", {"weight": "w", "of": "yy,w,b\n1,2,3\n"}, "did you mean 'yy'"),
    ("y", {"of": "1,2\n3,4\n"}, "the first line should hold the columns' names"),
])  # fmt: skip
def test_columns_that_do_not_fit_are_named(tmp_path, target, options, message):
    options = {"of": CSV} | options
    path = write(tmp_path, options.pop("of"))
    with pytest.raises(ValueError, match=message):
        frames.load_table(path, target, **options)


def test_indexes_nullable_columns_and_columns_of_one_name(tmp_path):
    frame = pd.DataFrame({"x": [1, 2]}, index=[5, 3])
    frame.to_parquet(tmp_path / "data.parquet")
    assert frames.read_frame(tmp_path / "data.parquet").columns == ["x"]
    frame = pa.table(
        {
            "i": pa.array([1, None, 3]),
            "t": pa.array([True, False, None]),
            "f": pa.array([1, 2, 3], pa.float32()),
            "y": pa.array([True, False, True]),
        }
    )
    parquet.write_table(frame, tmp_path / "data.parquet")
    table = frames.load_table(tmp_path / "data.parquet", "y")
    assert table.names == ["i", "t", "f"]
    assert table.y.dtype == np.bool_
    parquet.write_table(pa.table([[1], [2]], names=["x", "x"]), tmp_path / "data.parquet")
    with pytest.raises(ValueError, match=r"several columns of one name: 'x'"):
        frames.read_frame(tmp_path / "data.parquet")


def test_categories_are_a_target_and_features_are_selected_by_name():
    frame = nw.from_native(
        pa.table({"x": [1, 2], "c": pa.array(["u", "v"]).dictionary_encode(), "s": ["u", None]})
    )
    assert frames.split_columns(frame, "c").y.tolist() == ["u", "v"]
    table = frames.split_columns(frame, "x")
    assert table.names == frames.string_columns(table.frame) == ["c", "s"]
    frame = nw.from_native(pa.table({"c": [1], "a": [2], "b": ["text"]}))
    X, ignored = frames.select_features(frame, ["a", "c"])
    assert X.columns == ["a", "c"]
    assert ignored == ["b"]
    with pytest.raises(ValueError, match="a column that is absent from the data: 'd'"):
        frames.select_features(frame, ["a", "d"])


@pytest.mark.parametrize(("y", "classes"), [
    (["a", "b"], True), ([True, False], True), ([0, 1] * 5, True), (list(range(20)) * 2, True),
    (list(range(21)) * 2, False), ([1, 2, 3], False), ([0.0, 1.0] * 5, True),
    ([0.5, 1.0] * 5, False),
])  # fmt: skip
def test_which_targets_name_classes(y, classes):
    assert frames.is_class_target(np.array(y)) is classes
