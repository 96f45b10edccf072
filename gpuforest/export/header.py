"""The part of a model file's header beside the forest: curves of errors, {column: [...]}, the
command line's facts about the training data, {"target": "price", "decimal": ","}, and those of
every fit, {"rows": 100, "version": "0.1.0"}."""

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
TRAINING: dict[str, type] = {"rows": int, "version": str}
# attributes of estimators by their name in the header
KEPT = {**{name: f"{name}_" for name in (*CURVES, "source")}, "training": "_training_"}


def kept_of(estimator: Any) -> dict[str, dict[str, Any]]:
    """The curves that a fitted estimator has, by name, its source and what is known of its fit."""
    found: dict[str, dict[str, Any]] = {}
    for name, attribute in KEPT.items():
        if (kept := getattr(estimator, attribute, None)) is not None:
            if name in CURVES:
                kept = {column: kept[column].tolist() for column in CURVES[name]}
            elif name == "training":
                kept = {fact: kept[fact] for fact in TRAINING}  # there are more in old pickles
            found[name] = kept
    return found


def read_kept(name: str, written: dict[str, Any]) -> Any:
    """A curve, the source or the facts of the fit as its attribute.

    Raises
    ------
    ModelFormatError : it is none
    """
    if name in CURVES:
        return read_curve(name, written)
    if name == "training":
        need(written.keys() == TRAINING.keys(), "other facts of the fit")
        need(all(type(written[fact]) is kind for fact, kind in TRAINING.items()), "odd facts")
        need(0 <= written["rows"] < 2**63, "a number out of range")
        return written
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
