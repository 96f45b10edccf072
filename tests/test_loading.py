"""Loading: files good and bad, read alike whatever is installed."""

import gzip
from pathlib import Path

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from gpuforest import loading
from gpuforest.loading import (
    Reading,
    engine,
    is_class_target,
    load_table,
    read_frame,
    select_features,
    split_columns,
)
from gpuforest.loading.columns import is_missing

NO = 'say "no"'
ENGINES = ("pyarrow", "pandas")
TEXT = "text"
CSV = "a,b,w,y\n1,?,1,no\n2.5,NA,2,yes\n-3,,3,no\n"


def write(folder: Path, content: str | bytes, name: str = "data.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.fixture
def only(monkeypatch):
    """Makes an engine the only one that is installed."""

    def hide(name):
        monkeypatch.setattr(engine, "find_spec", lambda other: object() if other == name else None)

    return hide


def column(frame, name):
    """A column as a list, None where it is missing."""
    missing = is_missing(frame[name])
    found = zip(frame[name].to_list(), missing, strict=True)
    return [None if absent else value for value, absent in found]


def plain(frame):
    """A frame as lists by name, with the kind of each column."""

    def kind(dtype):
        is_text = isinstance(dtype, nw.String | nw.Categorical | nw.Object)
        return TEXT if is_text else str(dtype)

    return {name: (kind(dtype), column(frame, name)) for name, dtype in frame.schema.items()}


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


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separator_is_read_off_the_header(tmp_path, separator):
    assert read_frame(write(tmp_path, CSV.replace(",", separator))).shape == (3, 4)


BATTERY = {
    "plain": CSV,
    "missing markers": "a,b,c\nNA,null,?\n1,nan,x\n-nan,None,N/A\n2,<NA>, ? \n",
    "whole numbers with gaps": "a,b\n1,\n,2\n3,9007199254740993\n",
    "large whole numbers": "a,b\n9007199254740993,9223372036854775807\n-1,-9223372036854775808\n",
    "too large whole numbers": "a\n1\n9223372036854775808\n",
    "booleans": "a,b,c,d\ntrue,False,TRUE,True\nFalse,,0,yes\n",
    "booleans and numbers": "a\ntrue\n1\n",
    "signs, points and exponents": "a,b,c,d\n+1,.5,1.,1e5\n-2,-.5,-0,-1E-5\n",
    "leading zeros": "a,b\n007,00\n012,0.10\n",
    "infinities": "a,b,c\ninf,Infinity,1e400\n-inf,-INF,-1e400\n",
    "tiny and long": "a\n1e-400\n0.1000000000000000055511151231257827\n2.2250738585072011e-308\n",
    "no numbers": "a,b,c,d,e,f\n0x1F,1_000,1e,--1,٣,1 2\n1,1,1,1,1,1\n",
    "no numbers but almost": "a,b,c,d\n-,12 %,$1,1.2.3\n1,1,1,1\n",
    "blanks around": "a, b,c\n 1,2 , x\n3 , 4,x \n\t5,\t , ?\n",
    "quotes": 'a,"b, c","d""e"\n"1","x, y","say ""no"""\n"2",z,"line\nbreak"\n',
    "odd quotes": 'a,b\nx"y"z,5"\n"x"y,""\n',
    "a line break among numbers": 'a,b\n"1\n2",1\n3,1\n',
    "quoted numbers and empty": 'a,b\n"1.5",""\n"",""\n',
    "blank lines": "a,b\n\n1,2\n\n\n3,4\n\n",
    "lines of blanks": "a,b\n  \n1,2\n",
    "one column": "a\n1\n\n2\n  \n",
    "windows": "a,b\r\n1,x\r\n2,y\r\n",
    "old mac": "a,b\r1,x\r2,y\r",
    "no last line break": "a,b\n1,2",
    "byte order mark": "\ufeffa,b\n1,2\n",
    "unicode": "größe,名\n1,ö\n2,東京\n",
    "strings like numbers": "a\n1\nx\n2\n",
    "all missing": "a,b\n,1\n?,2\n",
    "nothing but a number": "a,b\nnan,x\nNaN,1\n",
    "blanks in the header": "a , b,\tc\t\n1,2,3\n",
    "control characters": "a,b\n1,\x1b[31m\n2,\x00\n",
}
READINGS = {
    "decimal commas": ("a;b;c\n1,5;1.5;-,5\n2;2;1,5e3\n", Reading(decimal=",")),
    "thousands": ('a,b\n"1,234",1\n"-12,345,678.5","1,0"\n', Reading(thousands=",")),
    "both": ("a;b;c\n1.234,5;1.000;x\n2;2.000;1.5\n", Reading(decimal=",", thousands=".")),
    "thousands of blanks": ("a,b\n1 234,1\n12 345 678, 2\n", Reading(thousands=" ")),
    "markers": ("a,b\n-,n.a.\n1, - \n-2,x\n", Reading(missing=("-", "n.a."))),
}


@pytest.mark.parametrize("case", [*BATTERY, *READINGS])
def test_the_table_is_the_same_whichever_engine_reads_it(tmp_path, only, case):
    content, reading = READINGS.get(case) or (BATTERY[case], None)
    path, found = write(tmp_path, content), []
    for name in ENGINES:
        only(name)
        frame = read_frame(path, reading)
        assert str(frame.implementation) == name
        found.append(plain(frame))
    assert found[0] == found[1]
    assert list(found[0]) == list(found[1])


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("missing markers", [("Float64", [None, 1, None, 2])] * 1),
        ("whole numbers with gaps", [("Float64", [1, None, 3]), ("Float64", [None, 2, 2.0**53])]),
        ("large whole numbers", [("Int64", [2**53 + 1, -1]), ("Int64", [2**63 - 1, -(2**63)])]),
        ("too large whole numbers", [("Float64", [1, 2.0**63])]),
        ("booleans", [("Boolean", [True, False]), ("Boolean", [False, None])]),
        ("leading zeros", [("Int64", [7, 12]), ("Float64", [0, 0.1])]),
        ("no numbers", [(TEXT, ["0x1F", "1"]), (TEXT, ["1_000", "1"])]),
        ("quotes", [("Int64", [1, 2]), (TEXT, ["x, y", "z"]), (TEXT, [NO, "line\nbreak"])]),
        (
            "blanks around",
            [("Int64", [1, 3, 5]), ("Float64", [2, 4, None]), (TEXT, [" x", "x ", None])],
        ),
        ("one column", [("Float64", [1, 2, None])]),
        (
            "decimal commas",
            [("Float64", [1.5, 2]), (TEXT, ["1.5", "2"]), ("Float64", [-0.5, 1500])],
        ),
        ("thousands", [("Float64", [1234, -12345678.5]), (TEXT, ["1", "1,0"])]),
        ("both", [("Float64", [1234.5, 2]), ("Int64", [1000, 2000]), (TEXT, ["x", "1.5"])]),
        ("markers", [("Float64", [None, 1, -2]), (TEXT, [None, None, "x"])]),
    ],
)
def test_what_text_is_read_as(tmp_path, case, expected):
    content, reading = READINGS.get(case) or (BATTERY[case], None)
    found = plain(read_frame(write(tmp_path, content), reading))
    assert list(found.values())[: len(expected)] == expected


def test_many_columns_of_all_kinds_are_read_alike(tmp_path, only):
    rng = np.random.default_rng(0)
    kinds = ["%d", "%.3f", "x%d", "", "%e", "T"]
    rows = [[kind % rng.normal() if "%" in kind else "true"[: len(kind) * 4] for kind in kinds * 50]
            for _ in range(7)]  # fmt: skip
    lines = [",".join(f"c{i}" for i in range(300)), *(",".join(row) for row in rows)]
    path, found = write(tmp_path, "\n".join(lines)), []
    for name in ENGINES:
        only(name)
        found.append(plain(read_frame(path)))
    assert found[0] == found[1]
    assert {kind for kind, _ in found[0].values()} == {"Int64", "Float64", "text", "Boolean"}


@pytest.mark.parametrize("name", ENGINES)
def test_columns_that_are_to_be_text(tmp_path, only, name):
    only(name)
    frame = read_frame(write(tmp_path, "zip,n\n007,1\n?,2\n1.50,3\n"), text=["zip"])
    assert plain(frame) == {"zip": (TEXT, ["007", None, "1.50"]), "n": ("Int64", [1, 2, 3])}


@pytest.mark.parametrize("name", ENGINES)
def test_zeros_beside_gaps_keep_their_sign(tmp_path, only, name):
    only(name)
    found = read_frame(write(tmp_path, "a,b\n-0,-0\n,0\n"))
    assert np.signbit(found["a"].to_numpy()).tolist() == [True, False]
    assert found["b"].to_list() == [0, 0]


@pytest.mark.parametrize("name", ["data.csv", "data.parquet"])
def test_names_have_no_blanks_around_them(tmp_path, name):
    parquet.write_table(pa.table({" a": ["007"], "b ": ["2020-12-31"]}), tmp_path / "data.parquet")
    write(tmp_path, " a,b \n007,2020-12-31\n")
    frame = read_frame(tmp_path / name, Reading(dates=("b",)), text=[" a"])
    assert frame.columns == [
        "a",
        *(f"b_{part}" for part in ("year", "month", "weekday", "seconds")),
    ]
    assert column(frame, "a") == ["007"]
    # a model that was trained by pandas knows the names with their blanks
    assert select_features(frame, [" a"])[0].columns == [" a"]


def test_gzip_and_parquet_hold_the_same(tmp_path):
    frame = read_frame(write(tmp_path, CSV))
    packed = write(tmp_path, gzip.compress(CSV.encode(), mtime=0), "data.csv.gz")
    assert plain(read_frame(packed)) == plain(frame)
    parquet.write_table(frame.to_native(), tmp_path / "data.parquet")
    assert plain(read_frame(tmp_path / "data.parquet")) == plain(frame)


def test_an_index_that_pandas_wrote_is_no_column(tmp_path):
    frame = pd.DataFrame({"x": [1, 2]}, index=[5, 3])
    frame.to_parquet(tmp_path / "data.parquet")
    assert read_frame(tmp_path / "data.parquet").columns == ["x"]


def test_nullable_columns_are_numbers(tmp_path):
    frame = pa.table(
        {
            "i": pa.array([1, None, 3]),
            "t": pa.array([True, False, None]),
            "f": pa.array([1, 2, 3], pa.float32()),
            "y": pa.array([True, False, True]),
        }
    )
    parquet.write_table(frame, tmp_path / "data.parquet")
    table = load_table(tmp_path / "data.parquet", "y")
    assert table.names == ["i", "t", "f"]
    assert table.y.dtype == np.bool_


def test_categories_are_a_target_and_a_feature():
    frame = nw.from_native(
        pa.table({"x": [1, 2], "c": pa.array(["u", "v"]).dictionary_encode(), "s": ["u", None]})
    )
    assert split_columns(frame, "c").y.tolist() == ["u", "v"]
    table = split_columns(frame, "x")
    assert table.names == loading.string_columns(table.frame) == ["c", "s"]


@pytest.mark.parametrize("values", [pd.to_datetime(["2020", "2021"]), [["u"], ["v"]]])
def test_other_columns_are_no_features(values):
    frame = nw.from_native(pa.table({"x": [1, 2], "c": values}))
    with pytest.raises(ValueError, match=r"that is neither numeric nor of strings: 'c'; .*--drop"):
        split_columns(frame, "x")


@pytest.mark.parametrize("library", ENGINES)
@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
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
        (CSV, "data.csv.gz", "no whole gzip file"),
        (gzip.compress(CSV.encode(), mtime=0)[:30], "data.csv.gz", "no whole compressed file"),
        (CSV, "data.parquet", "no Parquet file"),
        ("", "data.parquet", "no Parquet file"),
    ],
)
def test_bad_files_are_named(tmp_path, only, library, content, name, message):
    if not name.endswith("parquet"):
        only(library)
    with pytest.raises(ValueError, match=message) as caught:
        read_frame(write(tmp_path, content, name))
    assert name in str(caught.value)


def test_no_file_and_a_directory(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_frame(tmp_path / "absent.csv")
    with pytest.raises(IsADirectoryError, match="is a directory"):
        read_frame(tmp_path)


def test_what_is_not_installed_is_named_with_its_extra(tmp_path, only):
    only("pandas")
    with pytest.raises(ImportError, match=r"Parquet .* need pyarrow.*'gpuforest\[files\]'"):
        read_frame(write(tmp_path, "", "data.parquet"))
    only(None)
    with pytest.raises(ImportError, match=r"pip install 'gpuforest\[files\]'"):
        read_frame(write(tmp_path, CSV))


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


@pytest.mark.parametrize("units", ["1", "-", "e", "$.", " ,", "'"])
def test_units_that_are_part_of_numbers(units):
    with pytest.raises(ValueError, match="may be part of a number"):
        Reading(decimal=",", thousands="'", units=units)


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


def test_a_pyarrow_that_damages_text_is_not_used(monkeypatch):
    monkeypatch.setattr(engine, "version", lambda name: "22.0.0")
    assert engine.frame_engine() == "pandas"
    with pytest.raises(ImportError, match="need pyarrow 24 or newer"):
        engine.require_pyarrow()
