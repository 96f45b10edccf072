"""What the text of a column is read as: numbers, truth values, strings and units."""

import numpy as np
import pytest
from tables_on_disk import BATTERY, ENGINES, READINGS, TEXT, plain, write

from gpuforest.data.frames import read_frame
from gpuforest.data.values import Reading

NO = 'say "no"'


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


@pytest.mark.parametrize("units", ["1", "-", "e", "$.", " ,", "'"])
def test_units_that_are_part_of_numbers(units):
    with pytest.raises(ValueError, match="may be part of a number"):
        Reading(decimal=",", thousands="'", units=units)
