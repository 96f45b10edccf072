"""Dates as numbers: a column becomes its year, month, weekday and seconds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np

PARTS = ("year", "month", "weekday", "seconds")
EXAMPLE = "2020-12-31 or 2020-12-31T23:59:59"


def with_date_parts(frame: Any, names: Sequence[str], form: str = "") -> Any:
    """The frame with numbers instead of dates.

    A column `when` becomes `when_year`, `when_month` (1 to 12), `when_weekday` (0 is Monday) and
    `when_seconds` (since 1970, in UTC where the date has no zone); missing dates become NaN.

    Parameters
    ----------
    frame : of narwhals
    names : columns of text, dates or times that it has
    form : how text is written, as `datetime.strptime` takes it; "" is ISO 8601

    Raises
    ------
    ValueError : text that is no such date, or a part's name that is a column already
    """
    import narwhals.stable.v2 as nw

    if not names:
        return frame
    columns = []
    for name in frame.columns:
        if name not in names:
            columns.append(frame[name])
            continue
        numbers = _parts(frame[name], form)
        for part, values in zip(PARTS, numbers.T, strict=True):
            if f"{name}_{part}" in frame.columns:
                raise ValueError(f"--dates {name}: there is a column {name}_{part} already")
            backend = frame.implementation
            columns.append(nw.new_series(f"{name}_{part}", np.array(values), backend=backend))
    return columns[0].to_frame().with_columns(*columns)


def _parts(column: Any, form: str) -> np.ndarray:
    """The parts f64[N, 4] of each date."""
    known: dict[Any, tuple[float, ...]] = {None: (np.nan,) * len(PARTS)}
    missing = column.is_null().to_list()
    values = [None if m else v for v, m in zip(column.to_list(), missing, strict=True)]
    for value in dict.fromkeys(v for v in values if v is not None):
        known[value] = _parts_of(_moment(value, form, column.name))
    return np.array([known[value] for value in values])


def _parts_of(when: datetime) -> tuple[float, ...]:
    zoned = when if when.tzinfo else when.replace(tzinfo=UTC)
    return when.year, when.month, when.weekday(), zoned.timestamp()


def _moment(value: Any, form: str, name: str) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    text = str(value).strip()
    try:
        return datetime.strptime(text, form) if form else datetime.fromisoformat(text)
    except ValueError as error:
        hint = (
            f"it is not of the form {form!r}"
            if form
            else f"write it as {EXAMPLE}, or say its form: --date-format '%d/%m/%Y'"
        )
        raise ValueError(f"--dates {name}: {text!r} is no date; {hint}") from error
