"""What would make a column of text numbers, in a line."""

import narwhals.stable.v2 as nw
import pyarrow as pa
import pytest

from gpuforest.data.advice import nearly_numbers
from gpuforest.data.values import Reading


@pytest.mark.parametrize(
    ("values", "advice"),
    [
        (["1", "2", "-"], "'-'; if it is a number: --missing='-'"),
        (["$1,200", "$3", "1"], "'$1,200', '$3'; if it is a number: --units '$' --thousands ,"),
        (["12 %", "13 %"], "'12 %', '13 %'; if it is a number: --units '%'"),
        (["1,5", "2,25"], "'1,5', '2,25'; if it is a number: --decimal ,"),
        (["1.000,5", "2"], "'1.000,5'; if it is a number: --decimal , --thousands ."),
        (["1,200", "3"], "'1,200'; if it is a number: --thousands ,"),
        (["1", "2", "x"] * 2 + ["3x", "5y", "7z"], None),
        (["a", "b", "1"], None),
    ],
)
def test_columns_that_are_nearly_numbers(values, advice):
    frame = nw.from_native(pa.table({"c": values}))
    found = nearly_numbers(frame, ["c"], Reading())
    begin = "column 'c' is nearly all numbers, but read as categories because of "
    assert found == ([] if advice is None else [begin + advice])
