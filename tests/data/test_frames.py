"""Files as frames: what pandas wrote beside the columns, columns with gaps, dates as numbers."""

from datetime import datetime
from pathlib import Path

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from gpuforest.data import files as engine
from gpuforest.data.columns import (
    load_table,
)
from gpuforest.data.frames import read_frame, with_date_parts
from gpuforest.data.text import Reading


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


@pytest.mark.parametrize("library", ["pyarrow", "pandas"])
def test_parts_of_dates(tmp_path, monkeypatch, library):
    pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(engine, "find_spec", lambda name: name == library or None)
    Path("d.csv").write_text(
        "when,k\n2020-12-31,1\n,2\n1970-01-01T00:01:00,3\n19700105,4\n1970-01-01T01:00+01:00,5\n"
    )
    frame, nan = read_frame("d.csv", Reading(dates=("when",))), np.nan
    assert frame.columns == ["when_year", "when_month", "when_weekday", "when_seconds", "k"]
    expected = [
        [2020, 12, 3, datetime(2020, 12, 31).toordinal() * 86400 - 62135683200],
        [nan] * 4,
        [1970, 1, 3, 60],
        [1970, 1, 0, 4 * 86400],
        [1970, 1, 3, 0],
    ]
    assert np.array_equal(frame.to_numpy()[:, :4], expected, equal_nan=True)


def test_parts_of_dates_that_are_no_text():
    times = pa.table({"t": pa.array([datetime(2001, 2, 3, 4, 5), None])})
    found = with_date_parts(nw.from_native(times), ["t"]).to_numpy()
    assert found[0].tolist() == [2001, 2, 5, 981173100]
    assert np.isnan(found[1]).all()
    clash = nw.from_native(times.append_column("t_year", [[1, 2]]))
    with pytest.raises(ValueError, match="--dates t: there is a column t_year already"):
        with_date_parts(clash, ["t"])
