"""Columns that are text for a few values' sake: which option would make them numbers."""

from __future__ import annotations

import re
from typing import Any

from gpuforest.data.values import BLANKS, NUMBER, Reading

NEARLY = 0.9  # of the rows hold numbers
HALF, FEW = 0.5, 3  # of the rows do, and the others hold few values
LOOKED_AT = 10_000  # distinct values
SIGNS = "$€£¥%"
DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+|[+-]?[0-9]{1,3}(\.[0-9]{3})+,[0-9]+")
THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?")


def nearly_numbers(frame: Any, names: list[str], reading: Reading) -> list[str]:
    """A line for each of these columns of text that is nearly all numbers.

    Parameters
    ----------
    frame : of narwhals
    names : columns of text
    reading : how it was read
    """
    found = [_advice(frame[name], reading) for name in names]
    return [
        f"column {name!r} is nearly all numbers, but read as categories because of {advice}"
        for name, advice in zip(names, found, strict=True)
        if advice
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
    """The options by which a value would be a number; none if it would not."""
    found = []
    if signs := "".join(c for c in dict.fromkeys(value) if c in SIGNS and c not in reading.units):
        found.append(f"--units {signs!r}")
    if not _is_number(bare, reading):
        if THOUSANDS.fullmatch(bare) and reading.decimal == ".":
            found.append("--thousands ,")
        elif DECIMAL_COMMA.fullmatch(bare) and reading.decimal == ".":
            found.append("--decimal ,")
            if "." in bare:
                found.append("--thousands .")
        else:
            return []
    return found


def _is_number(text: str, reading: Reading) -> bool:
    if reading.no_number and re.search(reading.no_number, text):
        return False
    return re.fullmatch(NUMBER, reading.in_python(text)) is not None
