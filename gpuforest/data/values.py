"""Columns of text become numbers, truth values or strings; by pyarrow and by Python alike.

    text                          becomes
    "1", "-7", "", "4"            float64: 1, -7, NaN, 4 (int64 where none is missing)
    "1.5", "2e-3", "inf"          float64
    "true", "False"               booleans
    anything else                 strings, just as they are

Missing is what stands in `MISSING`, blanks around it left aside. Numbers are as Python's `float`
takes them, in ASCII and without underscores; blanks may stand around them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

MISSING = (  # pandas' markers, and the one of the UCI sets
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null", "?"),
)
TRUE, FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")
BLANKS = " \t"
NOT_IN_NUMBERS = re.compile(r"[^0-9eE+\-. \tinfatyINFATY]")
NUMBER = r"(?i)^[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf|infinity|nan)$"
GROUP = 2**20  # values that go to pyarrow at once
WHOLE = re.compile(r"-?[0-9]+")


@dataclass(frozen=True)
class Reading:
    """How a file is read; all but dates is about the text of a CSV file.

    decimal : the decimal mark of numbers
    thousands : the mark between groups of digits, or "" for none
    missing : markers of missing values beside `MISSING`
    units : characters that may stand around a number, such as "$%"
    dates : columns of dates, which become numbers (see `data.dates`)
    date_format : how dates are written, as `datetime.strptime` takes it; "" is ISO 8601
    """

    decimal: str = "."
    thousands: str = ""
    missing: tuple[str, ...] = ()
    units: str = ""
    dates: tuple[str, ...] = ()
    date_format: str = ""

    @property
    def no_number(self) -> str:
        """A pattern of what no number has: a mark for thousands before other than three digits,
        or an English point; "" where that cannot be."""
        mark = re.escape(self.thousands)
        found = [f"{mark}([0-9]{{0,2}}([^0-9]|$)|[0-9]{{4}})"] if mark else []
        if "." not in (self.decimal, self.thousands):
            found.append("[.]")
        return "|".join(found)

    def in_python(self, text: str) -> str:
        """A number's text as Python writes it, without marks between groups of digits."""
        return text.replace(self.thousands, "").replace(self.decimal, ".")

    @property
    def around(self) -> str:
        """Characters that may stand around a number."""
        return BLANKS + self.units

    def __post_init__(self) -> None:
        for name in ("decimal", "thousands"):
            mark = getattr(self, name)
            if len(mark) > 1 or mark in [*"0123456789+-eE"] or (name == "decimal" and not mark):
                raise ValueError(f"--{name} {mark!r}: one character that is part of no number")
        if self.decimal == self.thousands:
            raise ValueError(f"--decimal and --thousands are both {self.decimal!r}")
        if wrong := {*self.units} & {*"0123456789+-.eE", self.decimal, self.thousands}:
            shown = ", ".join(map(repr, sorted(wrong)))
            raise ValueError(f"--units {self.units!r}: {shown} may be part of a number")


def typed(columns: list[Any], reading: Reading, as_text: list[bool]) -> list[Any]:
    """Columns of text as what they hold.

    Parameters
    ----------
    columns : pyarrow.ChunkedArrays of strings, or arrays of NumPy's StringDType, each [N];
        emptied as they are read, so that their memory is free
    reading : marks of numbers and of missing values
    as_text : of each column, whether it holds strings though they may look like numbers

    Returns
    -------
    pyarrow arrays: float64 with NaN, int64, bool with nulls, or a dictionary of strings with
    nulls; or NumPy's: f64 with NaN, i64, bool, or objects (str or bool, None where missing)
    """
    if not columns or isinstance(columns[0], np.ndarray):
        found = []
        for i in range(len(columns)):
            found.append(_typed_plain(columns[i], reading, as_text[i]))
            columns[i] = None
        return found
    size, found = max(1, GROUP // max(1, len(columns[0]))), []
    for i in range(0, len(columns), size):
        found += _typed_arrow(columns[i : i + size], reading, as_text[i : i + size])
        columns[i : i + size] = [None] * len(as_text[i : i + size])
    return found


def _typed_arrow(columns: list[Any], reading: Reading, as_text: list[bool]) -> list[Any]:
    """Columns one behind another in one array, because a call of pyarrow's takes long."""
    import pyarrow as pa
    import pyarrow.compute as pc

    n, N = len(columns), len(columns[0])
    text = pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.string())
    if n > 1:
        text = text.combine_chunks()
    bare = pc.utf8_trim(text, BLANKS)
    missing = pc.is_in(bare, pa.array([*MISSING, *reading.missing]))
    bare, text = pc.if_else(missing, None, bare), pc.if_else(missing, None, text)
    missing = missing.to_numpy(False).reshape(n, N)

    def every(mask: Any) -> np.ndarray:
        """Columns in which a mask holds for all values that are not missing."""
        holds = pc.fill_null(mask, True).to_numpy(False).reshape(n, N)
        return np.asarray((holds | missing).all(axis=1))

    numbers, whole, is_number, is_whole = _arrow_numbers(bare, reading, n, every)
    if whole is None and is_whole.any() and n > 1:  # a number of one column is too large
        return [c for i in range(n) for c in _typed_arrow([columns[i]], reading, [as_text[i]])]
    truth = pc.is_in(bare, pa.array(TRUE))
    is_truth = every(pc.or_(truth, pc.is_in(bare, pa.array(FALSE)))) & ~is_number
    has_gaps, found = missing.any(axis=1), []
    for i, is_text in enumerate(as_text):
        own = slice(i * N, (i + 1) * N)
        if is_number[i] and not is_text:
            exact = whole is not None and is_whole[i] and not has_gaps[i]
            found.append(pa.array((whole if exact else numbers)[own]))
        elif is_truth[i] and not is_text:
            found.append(pa.array(truth.to_numpy(False)[own], mask=missing[i]))
        else:
            found.append(text.slice(i * N, N).dictionary_encode())
    return found


def _arrow_numbers(
    bare: Any, reading: Reading, n: int, every: Callable[[Any], np.ndarray]
) -> tuple[Any, Any, np.ndarray, np.ndarray]:
    """Trimmed text of n columns as f64 and as i64, and which columns are such numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if reading.units:
        bare = pc.utf8_trim(bare, reading.around)
    if reading.no_number:
        bare = pc.if_else(pc.match_substring_regex(bare, reading.no_number), "-", bare)
    if reading.thousands:
        bare = pc.replace_substring(bare, reading.thousands, "")
    if reading.decimal != ".":
        bare = pc.replace_substring(bare, reading.decimal, ".")
    none = np.zeros(n, bool)
    try:
        numbers, is_number = pc.cast(bare, pa.float64()), ~none
    except pa.ArrowInvalid:
        if n == 1:
            return None, None, none, none
        match = pc.match_substring_regex(bare, NUMBER)
        is_number = every(match)
        bare = pc.if_else(match, bare, None)
        numbers = pc.cast(bare, pa.float64())
    digits = pc.ascii_is_decimal(pc.ascii_ltrim(bare, "-"))
    is_whole = every(digits)
    whole = None
    if is_whole.any():
        try:
            whole = pc.cast(pc.fill_null(pc.if_else(digits, bare, "0"), "0"), pa.int64())
            whole = whole.to_numpy(False)
        except pa.ArrowInvalid:  # too large
            pass
    return numbers.to_numpy(False), whole, is_number, is_whole


def _typed_plain(column: np.ndarray, reading: Reading, as_text: bool) -> np.ndarray:
    values, markers = column.tolist(), {*MISSING, *reading.missing}
    bare = [value.strip(BLANKS) for value in values]
    known = np.array([value not in markers for value in bare], bool)
    found = [value for value in bare if value not in markers]
    if not as_text:
        if (numbers := _plain_numbers(found, reading, bool(known.all()))) is not None:
            return _spread(numbers, known, np.float64, np.nan)
        if {*found} <= {*TRUE, *FALSE}:
            return _spread(np.array([value in TRUE for value in found]), known, object, None)
    strings = [value for value, is_known in zip(values, known, strict=True) if is_known]
    return _spread(np.array(strings, object), known, object, None)


def _spread(found: np.ndarray, known: np.ndarray, dtype: type, missing: Any) -> np.ndarray:
    """Values in the rows that are known, and a mark in the others."""
    if known.all():
        return found
    out: np.ndarray = np.full(len(known), missing, dtype)
    out[known] = found
    return out


def _plain_numbers(bare: list[str], reading: Reading, exact: bool) -> np.ndarray | None:
    """Trimmed text as numbers, whole ones as i64 if `exact`; None if it holds others."""
    if reading.units:
        bare = [value.strip(reading.around) for value in bare]
    if reading.no_number and any(re.search(reading.no_number, value) for value in bare):
        return None
    bare = [reading.in_python(value) for value in bare]
    if NOT_IN_NUMBERS.search("".join(bare)):
        return None
    kinds: list[tuple[Callable[[str], Any], Any]] = [(float, np.float64)]
    if exact and all(WHOLE.fullmatch(value) for value in bare):
        kinds.insert(0, (int, np.int64))
    for convert, dtype in kinds:
        try:
            return np.fromiter(map(convert, bare), dtype, len(bare))
        except (ValueError, OverflowError):  # no number, or too large a whole one
            continue
    return None
