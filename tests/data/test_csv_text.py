"""CSV as text: separators, quotes and gaps, the same whichever engine reads them."""

import pyarrow as pa
import pytest
from pyarrow import parquet
from tables_on_disk import BATTERY, CSV, ENGINES, READINGS, column, plain, write

from gpuforest.data.columns import (
    select_features,
)
from gpuforest.data.frames import read_frame
from gpuforest.data.values import Reading


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separator_is_read_off_the_header(tmp_path, separator):
    assert read_frame(write(tmp_path, CSV.replace(",", separator))).shape == (3, 4)


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
