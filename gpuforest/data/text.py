"""Text of CSV files: bytes become columns of text, and these become numbers, truth values or
strings.

pyarrow reads the files. Where it finds a fault, Python's csv module says which line is wrong.

    text                          becomes
    "1", "-7", "", "4"            float64: 1, -7, NaN, 4 (int64 if no value is missing)
    "1.5", "2e-3", "inf"          float64
    "true", "False"               booleans
    anything else                 strings, just as they are

Missing is what stands in `MISSING`, blanks around it left aside. Numbers are as Python's `float`
takes them, in ASCII and without underscores; blanks may stand around them.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from gpuforest.data.files import require_pyarrow

MISSING = (  # pandas' markers, and the one of the UCI sets
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null", "?"),
)
TRUE, FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")
BLANKS = " \t"
NUMBER = r"(?i)^[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf|infinity|nan)$"
GROUP = 2**20  # values that go to pyarrow at once


@dataclass(frozen=True)
class Reading:
    """How a file is read; all but dates is about the text of a CSV file."""

    decimal: str = "."  # the decimal mark of numbers
    thousands: str = ""  # the mark between groups of digits, or "" for none
    missing: tuple[str, ...] = ()  # markers of missing values besides `MISSING`
    units: str = ""  # characters that may stand around a number, such as "$%"
    dates: tuple[str, ...] = ()  # columns of dates, which become numbers (see `data.frames`)
    date_format: str = ""  # how dates are written, for `datetime.strptime`; "" is ISO 8601

    @property
    def no_number(self) -> str:
        """A pattern that no number has: a misplaced mark for thousands, an English point; or ""."""
        mark = re.escape(self.thousands)
        patterns = [f"{mark}([0-9]{{0,2}}([^0-9]|$)|[0-9]{{4}})"] if mark else []
        return "|".join(patterns + ["[.]"] * ("." not in (self.decimal, self.thousands)))

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
    """Columns of text [N] (pyarrow.ChunkedArrays) as float64, int64, bool or dictionaries of
    strings. Columns marked `as_text` stay text. The list is emptied, to free memory."""
    size, results = max(1, GROUP // max(1, len(columns[0]))) if columns else 1, []
    for i in range(0, len(columns), size):
        group = columns[i : i + size]
        columns[i : i + size] = [None] * len(group)
        results += _typed_arrow(group, reading, as_text[i : i + size])
    return results


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
    has_gaps, results = missing.any(axis=1), []
    for i, is_text in enumerate(as_text):
        rows = slice(i * N, (i + 1) * N)
        if is_number[i] and not is_text:
            exact = whole is not None and is_whole[i] and not has_gaps[i]
            results.append(pa.array((whole if exact else numbers)[rows]))
        elif is_truth[i] and not is_text:
            results.append(pa.array(truth.to_numpy(False)[rows], mask=missing[i]))
        else:
            results.append(text.slice(i * N, N).dictionary_encode())
    return results


def _arrow_numbers(
    bare: Any, reading: Reading, n: int, every: Callable[[Any], np.ndarray]
) -> tuple[Any, Any, np.ndarray, np.ndarray]:
    """Trimmed text of n columns as f64 and as i64, and which columns are numbers."""
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


SEPARATORS = ",;\t"
BLOCK_BYTES = 2**24  # of a block of pyarrow's, in which a row must fit


def read_text(file: IO[bytes], name: str) -> tuple[list[str], list[Any]]:
    """Header and columns (ChunkedArrays of strings) of a UTF-8 CSV file of equally long rows."""
    require_pyarrow("files")
    import pyarrow as pa
    from pyarrow import csv as arrow

    first = file.readline()
    if not first.strip():
        raise ValueError(f"{name} is empty, or its first line is")
    if b"\0" in first:
        raise ValueError(f"{name} is no CSV or Parquet file: it holds binary data")
    separator = max(SEPARATORS, key=lambda s: first.count(s.encode()))
    with _rows(file, separator, name) as rows:
        names = next(rows)
    numbers = [str(i) for i in range(len(names))]
    file.seek(0)
    try:
        table = arrow.read_csv(
            pa.PythonFile(file, "r"),  # which leaves the file open
            read_options=arrow.ReadOptions(column_names=numbers, block_size=BLOCK_BYTES),
            parse_options=arrow.ParseOptions(
                delimiter=separator,
                newlines_in_values=True,
                invalid_row_handler=lambda row: "error" if row.text.strip() else "skip",
            ),
            convert_options=arrow.ConvertOptions(
                column_types=dict.fromkeys(numbers, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        with _rows(file, separator, name) as rows:
            for row in rows:
                if len(row) != len(names) and "".join(row).strip():
                    more = "more" if len(row) > len(names) else "fewer"
                    raise ValueError(
                        f"{name} is no CSV file: line {rows.line_num} has {more} fields than its "
                        f"first line, {len(row)} and not {len(names)}"
                    ) from error
        long = f"a row has more than {BLOCK_BYTES} bytes, or a quotation mark is never closed"
        why = long if "straddl" in str(error) else error
        raise ValueError(f"{name} is no CSV file: {why}") from error
    columns = [column.slice(1) for column in table.columns]
    _check_end(file, columns, name)
    return names, columns


@contextmanager
def _rows(file: IO[bytes], separator: str, name: str) -> Iterator[Any]:
    """The reader of Python's csv module, which is slow, but knows its line."""
    file.seek(0)
    text, limit = io.TextIOWrapper(file, "utf-8-sig", newline=""), csv.field_size_limit(2**31 - 1)
    try:
        yield csv.reader(text, delimiter=separator)
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is no CSV file in UTF-8: {error.reason}") from error
    except csv.Error as error:
        raise ValueError(f"{name} is no CSV file: {error}") from error
    finally:
        csv.field_size_limit(limit)
        text.detach()  # the file stays open


def _check_end(file: IO[bytes], columns: list[Any], name: str) -> None:
    """A quotation mark that is never closed takes the rest of the file into the last value."""
    last = str(columns[-1][-1]) if len(columns[-1]) else ""
    if "\n" in last or "\r" in last:
        file.seek(0, io.SEEK_END)
        file.seek(max(0, file.tell() - len(last.encode()) - 4))
        if not file.read().rstrip().endswith(b'"'):
            raise ValueError(f"{name} is no CSV file: a quotation mark is never closed")


NEARLY = 0.9  # a column with this share of numbers is nearly all numbers
HALF, FEW = 0.5, 3  # or this share, if the other rows hold at most FEW values
LOOKED_AT = 10_000  # distinct values
SIGNS = "$€£¥%"
DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+|[+-]?[0-9]{1,3}(\.[0-9]{3})+,[0-9]+")
THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?")


def nearly_numbers(frame: Any, names: list[str], reading: Reading) -> list[str]:
    """A line for each of these columns of text that holds numbers almost everywhere."""
    return [
        f"column {name!r} is nearly all numbers, but read as categories because of {advice}"
        for name in names
        if (advice := _advice(frame[name], reading))
    ]


def _advice(column: Any, reading: Reading) -> str:
    """The values that are no numbers and what helps; nothing where that is not the case."""
    counts = column.drop_nulls().value_counts(sort=True, name="rows").head(LOOKED_AT)
    rows = dict(zip(map(str, counts[column.name].to_list()), counts["rows"].to_list(), strict=True))
    total = sum(rows.values())
    others = [value for value in rows if not _is_number(value.strip(reading.around), reading)]
    bare = {value: value.strip(SIGNS + reading.around) for value in rows}
    mended = [value for value in others if _options(value, bare[value], reading)]
    wrong = [value for value in others if value not in mended]
    share = 1 - sum(rows[value] for value in wrong) / max(1, total)
    if not others or share < HALF or (share < NEARLY and len(wrong) > FEW):
        return ""
    options = dict.fromkeys(o for value in mended for o in _options(value, bare[value], reading))
    if wrong and len(wrong) <= FEW:
        options[f"--missing={','.join(value.strip(BLANKS) for value in wrong)!r}"] = None
    shown = ", ".join(repr(value) for value in [*mended[:FEW], *wrong[:FEW]])
    help = " ".join(options) or "remove them from the data"
    return f"{shown}; if it is a number: {help}"


def _options(value: str, bare: str, reading: Reading) -> list[str]:
    """The options that would make a number of a value; empty if no option does."""
    options = []
    if signs := "".join(c for c in dict.fromkeys(value) if c in SIGNS and c not in reading.units):
        options.append(f"--units {signs!r}")
    if not _is_number(bare, reading):
        if THOUSANDS.fullmatch(bare) and reading.decimal == ".":
            options.append("--thousands ,")
        elif DECIMAL_COMMA.fullmatch(bare) and reading.decimal == ".":
            options.append("--decimal ,")
            if "." in bare:
                options.append("--thousands .")
        else:
            return []
    return options


def _is_number(text: str, reading: Reading) -> bool:
    if reading.no_number and re.search(reading.no_number, text):
        return False
    return re.fullmatch(NUMBER, reading.in_python(text)) is not None
