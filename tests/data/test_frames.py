"""Files as frames: what pandas wrote beside the columns, and columns with gaps."""

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from gpuforest.data.columns import (
    load_table,
)
from gpuforest.data.frames import read_frame


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
