"""Targets of survival: which rows had their event, by which cause, and when."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gpuforest.data import arrays

MOST_CAUSES = 100  # of events
UNSAID = (
    "y does not say which of its columns {!r} and {!r} is the event and which is the time: name "
    "them so, such as 'event' and 'time', or let the event be of dtype bool and the time be numbers"
)
ENDS = {"lower", "upper"}  # columns of intervals
PAIR = np.dtype([("event", np.float64), ("time", np.float64)])  # a target of survival
HOW = (
    "y must say which rows had their event, and when: pass a structured array of two fields, "
    "whether the event came, and when or until when the row is known, or such a frame, as in "
    'numpy.array([(True, 5.0), (False, 7.5)], dtype=[("event", bool), ("time", float)])'
)


def check_survival(y: Any, n_rows: int) -> np.ndarray:
    """Times, and causes of events or 0, f64[N, 2] of a survival target; else a ValueError."""
    event, time = settled(pairs_of(y, HOW)).view((float, 2)).T
    if len(event) != n_rows:
        raise ValueError(f"X has {n_rows} rows, y has {len(event)}")
    if not are_causes(event, MOST_CAUSES):
        raise ValueError(
            f"the events of y must be True or False, or causes from 1 to {MOST_CAUSES} and 0 else"
        )
    if not np.isfinite(time).all() or (time < 0).any():
        row = int(np.argmax(~np.isfinite(time) | (time < 0)))
        raise ValueError(
            f"the times of y must be finite and not negative: row {row} has {time[row]}"
        )
    if event.max(initial=0) > 1 and event.all():
        warnings.warn(
            f"no row of y is censored: 1 to {int(event.max())} are taken for causes of events, and "
            "0 would be for rows without one",
            UserWarning,
            stacklevel=2,
        )
    return np.stack([time, event], axis=1)


def check_events(y: Any, n_rows: int) -> np.ndarray:
    """As `check_survival`, of events of one cause."""
    if {*arrays.fields_of(y, "y")} == ENDS:
        raise ValueError(
            "y has intervals, which loss='aft_logistic' and loss='aft_extreme' take: pass one of "
            "these, or events and times"
        )
    found = check_survival(y, n_rows)
    if found[:, 1].max(initial=0) > 1:
        raise ValueError(
            "boosting takes events of one cause, and y has several: pass whether the event of one "
            "cause came, or take RandomSurvivalForest"
        )
    return found


def check_intervals(y: Any, n_rows: int) -> np.ndarray:
    """The ends f64[N, 2] of intervals in which events came, of columns named lower and upper, or
    of events and times: a known time is both ends, and a censored one has no upper end."""
    fields = arrays.fields_of(y, "y")
    if {*fields} != ENDS:
        time, event = check_events(y, n_rows).T
        return np.stack([time, np.where(event > 0, time, np.inf)], axis=1)
    if any(column.dtype.kind not in "iuf" for column in fields.values()):
        raise ValueError("lower and upper of y must be numbers")
    low, high = (np.asarray(fields[name], np.float64) for name in ("lower", "upper"))
    if len(low) != n_rows:
        raise ValueError(f"X has {n_rows} rows, y has {len(low)}")
    wrong = ~((low >= 0) & (low <= high) & np.isfinite(low))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            "intervals of y must have 0 <= lower <= upper, and lower must be finite: row "
            f"{row} has {low[row]} and {high[row]}"
        )
    return np.stack([low, high], axis=1)


def are_ends(pairs: np.ndarray) -> bool:
    """Whether targets are intervals, which `check_intervals` checks."""
    return {*(pairs.dtype.names or ())} == ENDS


def events_of(y: np.ndarray) -> np.ndarray:
    """Times and events f64[N, 2] of intervals: a row without a known time is known up to the lower
    end."""
    return np.stack([y[:, 0], y[:, 0] == y[:, 1]], axis=1)


def are_survival(y: np.ndarray, n_causes: int) -> bool:
    """Whether finite numbers f64[N, 2] are times and causes, and some event has come."""
    time, event = y.T
    return bool((time >= 0).all() and are_causes(event, n_causes) and event.any())


def is_pair(y: Any) -> bool:
    """Whether targets are structured, or of two columns: those of survival are."""
    if arrays.is_frame(y):
        return arrays.count_columns(y) == 2
    return bool(getattr(getattr(y, "dtype", None), "names", None))


def pairs_of(y: Any, problem: str) -> np.ndarray:
    """Events and times, PAIR[n], or columns under their own names if dtypes do not tell which."""
    fields = arrays.fields_of(y, "y")
    names, columns = (*fields,), [*fields.values()]
    if len(columns) != 2 or any(column.dtype.kind not in "biuf" for column in columns):
        raise ValueError(problem)
    said, are_bool = [*map(arrays.part_of, names)], [column.dtype.kind == "b" for column in columns]
    event = None if said[0] == said[1] else int(said[1] < said[0])
    if any(are_bool):
        # scikit-survival's arrays begin with the event, by whatever name
        if event is None or (are_bool[0] and said != [2, 0] and not arrays.is_frame(y)):
            event = are_bool.index(True)
        if not are_bool[event] or are_bool[1 - event]:
            raise ValueError(UNSAID.format(*names))
    if event is not None:
        names, columns = ("event", "time"), [columns[event], columns[1 - event]]
    return np.stack(columns, axis=1).astype(float).view([(name, float) for name in names])[:, 0]


def settled(pairs: np.ndarray) -> np.ndarray:
    """The pairs of all rows as PAIR[n]: the column that cannot hold causes has the times.
    If both can hold causes, that is an error."""
    if pairs.dtype == PAIR:
        return pairs
    names = list(pairs.dtype.names or ())
    can = [are_causes(pairs[name], MOST_CAUSES) for name in names]
    if all(can):
        raise ValueError(UNSAID.format(*names))
    return (pairs[names[::-1]] if can[1] else pairs).astype(PAIR)


def are_causes(event: np.ndarray, most: int) -> bool:
    """Whether all are whole numbers from 0 to `most`."""
    return bool(((event >= 0) & (event <= most) & (event == np.round(event))).all())
