"""What CSV text is read as: numbers, truth values, strings and gaps."""

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tables_on_disk import BATTERY, CSV, READINGS, TEXT, by_python, column, plain, write

from gpuforest.data import files, frames, text


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separator_is_read_off_the_header(tmp_path, separator):
    assert frames.read_frame(write(tmp_path, CSV.replace(",", separator))).shape == (3, 4)


@pytest.mark.parametrize("case", [*BATTERY, *READINGS])
def test_the_table_is_that_of_python(tmp_path, case):
    content, reading = READINGS.get(case) or (BATTERY[case], text.Reading())
    found = plain(frames.read_frame(write(tmp_path, content), reading))
    assert found == by_python(content, reading)


@pytest.mark.parametrize("name", ["data.csv", "data.parquet"])
def test_names_have_no_blanks_around_them(tmp_path, name):
    parquet.write_table(pa.table({" a": ["007"], "b ": ["2020-12-31"]}), tmp_path / "data.parquet")
    write(tmp_path, " a,b \n007,2020-12-31\n")
    frame = frames.read_frame(tmp_path / name, text.Reading(dates=("b",)), text=[" a"])
    assert frame.columns == [
        "a",
        *(f"b_{part}" for part in ("year", "month", "weekday", "seconds")),
    ]
    assert column(frame, "a") == ["007"]
    # a model that was trained by pandas knows the names with their blanks
    assert frames.select_features(frame, [" a"])[0].columns == [" a"]


NO = 'say "no"'


@pytest.mark.parametrize(("case", "expected"), [
    ("missing markers", [("Float64", [None, 1, None, 2])] * 1),
    ("whole numbers with gaps", [("Float64", [1, None, 3]), ("Float64", [None, 2, 2.0**53])]),
    ("large whole numbers", [("Int64", [2**53 + 1, -1]), ("Int64", [2**63 - 1, -(2**63)])]),
    ("too large whole numbers", [("Float64", [1, 2.0**63])]),
    ("booleans", [("Boolean", [True, False]), ("Boolean", [False, None])]),
    ("leading zeros", [("Int64", [7, 12]), ("Float64", [0, 0.1])]),
    ("no numbers", [(TEXT, ["0x1F", "1"]), (TEXT, ["1_000", "1"])]),
    ("quotes", [("Int64", [1, 2]), (TEXT, ["x, y", "z"]), (TEXT, [NO, "line\nbreak"])]),
    ("blanks around",
     [("Int64", [1, 3, 5]), ("Float64", [2, 4, None]), (TEXT, [" x", "x ", None])]),
    ("one column", [("Float64", [1, 2, None])]),
    ("decimal commas", [("Float64", [1.5, 2]), (TEXT, ["1.5", "2"]), ("Float64", [-0.5, 1500])]),
    ("thousands", [("Float64", [1234, -12345678.5]), (TEXT, ["1", "1,0"])]),
    ("both", [("Float64", [1234.5, 2]), ("Int64", [1000, 2000]), (TEXT, ["x", "1.5"])]),
    ("markers", [("Float64", [None, 1, -2]), (TEXT, [None, None, "x"])]),
])  # fmt: skip
def test_what_text_is_read_as(tmp_path, case, expected):
    content, reading = READINGS.get(case) or (BATTERY[case], None)
    found = plain(frames.read_frame(write(tmp_path, content), reading))
    assert list(found.values())[: len(expected)] == expected


def test_columns_that_are_to_be_text_and_zeros_beside_gaps(tmp_path):
    frame = frames.read_frame(write(tmp_path, "zip,n\n007,1\n?,2\n1.50,3\n"), text=["zip"])
    assert plain(frame) == {"zip": (TEXT, ["007", None, "1.50"]), "n": ("Int64", [1, 2, 3])}
    found = frames.read_frame(write(tmp_path, "a,b\n-0,-0\n,0\n"))
    assert np.signbit(found["a"].to_numpy()).tolist() == [True, False]
    assert found["b"].to_list() == [0, 0]


@pytest.mark.parametrize("units", ["1", "-", "e", "$.", " ,", "'"])
def test_units_that_are_part_of_numbers(units):
    with pytest.raises(ValueError, match="may be part of a number"):
        text.Reading(decimal=",", thousands="'", units=units)


@pytest.mark.parametrize(("values", "advice"), [
    (["1", "2", "-"], "'-'; if it is a number: --missing='-'"),
    (["$1,200", "$3", "1"], "'$1,200', '$3'; if it is a number: --units '$' --thousands ,"),
    (["12 %", "13 %"], "'12 %', '13 %'; if it is a number: --units '%'"),
    (["1,5", "2,25"], "'1,5', '2,25'; if it is a number: --decimal ,"),
    (["1.000,5", "2"], "'1.000,5'; if it is a number: --decimal , --thousands ."),
    (["1,200", "3"], "'1,200'; if it is a number: --thousands ,"),
    (["1", "2", "x"] * 2 + ["3x", "5y", "7z"], None),
    (["a", "b", "1"], None),
])  # fmt: skip
def test_columns_that_are_nearly_numbers(values, advice):
    frame = nw.from_native(pa.table({"c": values}))
    found = text.nearly_numbers(frame, ["c"], text.Reading())
    begin = "column 'c' is nearly all numbers, but read as categories because of "
    assert found == ([] if advice is None else [begin + advice])


def test_what_is_not_installed_or_damages_text_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "find_spec", lambda name: None)
    for name, what in (("data.parquet", "Parquet files"), ("data.csv", "files")):
        with pytest.raises(ImportError, match=rf"^{what} need .*'gpuforest\[files\]'"):
            frames.read_frame(write(tmp_path, CSV, name))
    monkeypatch.setattr(files, "version", lambda name: "22.0.0")
    with pytest.raises(ImportError, match="need pyarrow 24 or newer"):
        files.require_pyarrow()
