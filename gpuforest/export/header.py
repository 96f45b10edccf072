"""The part of a model file's header beside the forest: curves of errors, {column: [...]}, and the
command line's facts about the training data, {"target": "price", "decimal": ","}."""

from __future__ import annotations

from itertools import pairwise
from math import inf
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from gpuforest.common.errors import need

# attributes, without the "_" at their end, and their columns; the first one ascends
CURVES: dict[str, dict[str, type]] = {
    "oob_curve": {"n_estimators": int, "error": float},
    "oob_max_features": {"max_features": int, "error": float},
    "pruning_curve": {"ccp_alphas": float, "n_leaves": int, "errors": float, "std_errors": float},
}
ERRORS = ("error", "errors", "std_errors")  # NaN where there are no rows, as out of few trees' bags
# what the source says, and as what
SOURCE: dict[str, type] = {
    **dict.fromkeys(("target", "decimal", "thousands", "units", "date_format"), str),
    **dict.fromkeys(("missing", "dates"), list),
}
KEPT = {*CURVES, "source"}


def kept_of(estimator: Any) -> dict[str, dict[str, Any]]:
    """The curves that a fitted estimator has, by name, and its source."""
    found = {name: getattr(estimator, f"{name}_", None) for name in (*CURVES, "source")}
    return {
        name: {column: kept[column].tolist() for column in CURVES[name]} if name in CURVES else kept
        for name, kept in found.items()
        if kept is not None
    }


def read_kept(name: str, written: dict[str, Any]) -> Any:
    """A curve or the source as its attribute.

    Raises
    ------
    ModelFormatError : it is none
    """
    if name in CURVES:
        return read_curve(name, written)
    need(written.keys() <= SOURCE.keys(), "a source of something else")
    for key, value in written.items():
        need(type(value) is SOURCE[key], "a source of another kind")
        need(all(type(word) is str for word in value), "a source that is no text")
    return written


def read_curve(name: str, written: dict[str, Any]) -> Bunch:
    """A curve as its attribute, from what `kept_of` gave.

    Raises
    ------
    ModelFormatError : it is none
    """
    columns = CURVES[name]
    need(written.keys() == columns.keys(), "a curve of something else")
    lengths = set()
    for column, kind in columns.items():
        values = written[column]
        need(type(values) is list and len(values) > 0, "a curve without points")
        need(all(type(value) is kind for value in values), "a curve of other numbers")
        most = 2**31 if kind is int else inf
        known = [value for value in values if value == value or column not in ERRORS]
        need(all(0 <= value < most for value in known), "a number out of range")
        lengths.add(len(values))
    need(len(lengths) == 1, "a curve of uneven columns")
    first = written[next(iter(columns))]
    need(all(a <= b for a, b in pairwise(first)), "a curve that goes back")
    kinds = {int: np.int64, float: np.float64}
    return Bunch(**{c: np.array(written[c], kinds[kind]) for c, kind in columns.items()})
