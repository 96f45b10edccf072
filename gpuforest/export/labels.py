"""Class labels in model files: numbers are an array, strings are in the header."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuforest.common.errors import need

MAX_LABELS = 2**28  # letters: an array of strings has room for the longest in each item


def kind_of(classes: np.ndarray) -> str:
    """How the header names the dtype of class labels: "str" and "object" hold strings."""
    if classes.dtype.kind in "biuf" and classes.itemsize <= 8:
        return classes.dtype.newbyteorder("=").name
    if not all(isinstance(label, str) for label in classes.tolist()):
        raise ValueError(
            f"classes of dtype {classes.dtype} cannot be saved: only numbers and "
            "strings; pickle the estimator instead"
        )
    return "str" if classes.dtype.kind == "U" else "object"


def read_classes(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> np.ndarray | None:
    """Class labels [C], from the header or an array; None of a regression."""
    if "classes" not in header:
        return arrays.get("classes")
    labels, kind = header["classes"], header["classes_dtype"]
    need("classes" not in arrays and kind in ("object", "str"), "classes in two places")
    need(all(isinstance(label, str) for label in labels), "classes of no strings")
    fits = "boosting" in header or len(labels) == arrays["leaf_sums"].shape[1]
    need(fits, "classes that do not fit the leaf table")
    need(kind == "object" or len(labels) * max(map(len, labels)) <= MAX_LABELS, "a label too long")
    return np.array(labels, dtype=object if kind == "object" else np.str_)


def read_outputs(described: list[Any]) -> tuple[np.ndarray, ...]:
    """Class labels of several outputs, each described by its dtype and a list."""
    found = []
    for each in described:
        need(type(each) is list and len(each) == 2 and type(each[1]) is list, "outputs of no kind")
        kind, labels = each
        need(kind in ("object", "str") or np.dtype(kind).kind in "biuf", "outputs of no kind")
        if kind in ("object", "str"):
            need(all(isinstance(label, str) for label in labels), "classes of no strings")
            need(len(labels) * max(map(len, labels), default=0) <= MAX_LABELS, "a label too long")
        else:
            need(all(type(label) in (bool, int, float) for label in labels), "no labels")
        found.append(np.array(labels, dtype=kind))
    return tuple(found)
