"""Class weights become weights of rows, or of the draws of a bag."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight

from gpuforest.common.dtypes import WEIGHT
from gpuforest.engine.sampling import Sampling, most_draw_weight
from gpuforest.engine.target import CheckedTarget

# "balanced_subsample" of several outputs multiplies weights, and in a bag they may be so many
# times larger than among all rows before they are cut off
HEADROOM = 8


def class_weights_of(
    class_weight: Any,
    codes: np.ndarray,
    classes: np.ndarray,
    sample_weight: np.ndarray | None = None,
) -> np.ndarray:
    """Weights f64[C] of the classes, as scikit-learn gives them.

    sample_weight : f64[N], which "balanced" adds up; None: it counts rows. A class without
        any weight weighs zero.
    """
    if isinstance(class_weight, list | tuple):
        raise ValueError("a list as class_weight is for several outputs: pass a dict")
    if sample_weight is not None and class_weight == "balanced":
        totals = np.bincount(codes, sample_weight, len(classes))
        share = totals.sum() / (len(classes) * np.where(totals > 0, totals, 1))
        return np.where(totals > 0, share, 0)
    found = compute_class_weight(class_weight, classes=classes, y=classes[codes])
    weights = np.asarray(found, np.float64)
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ValueError(f"class_weight must be numbers >= 0, and one above 0: {class_weight}")
    return weights


def row_weights_of(
    class_weight: Any, labels: CheckedTarget, sample_weight: np.ndarray | None = None
) -> np.ndarray:
    """The weight f64[N] that class_weight gives each row: with several outputs, their product.

    sample_weight : see `class_weights_of`
    """
    codes, classes = labels.values, labels.classes
    assert classes is not None
    if len(classes) == 1:
        found = class_weights_of(class_weight, codes[0], classes[0], sample_weight)
        return np.asarray(found[codes[0]])
    if class_weight == "balanced":
        class_weight = ["balanced"] * len(classes)
    else:
        sample_weight = None  # "balanced" in a list counts rows, as in scikit-learn
    if not isinstance(class_weight, list | tuple):
        raise ValueError(
            "For multi-output, class_weight should be a list of dicts, or the string 'balanced'."
        )
    if len(class_weight) != len(classes):
        raise ValueError(
            "For multi-output, number of elements in class_weight should match number of "
            f"outputs. Got {len(class_weight)} element(s) while having {len(classes)} outputs."
        )
    each = [
        class_weights_of(weight, own, kinds, sample_weight)[own]
        for weight, own, kinds in zip(class_weight, codes, classes, strict=True)
    ]
    return np.asarray(np.prod(each, axis=0))


def check_some_weight(weights: np.ndarray) -> None:
    if not weights.any():
        raise ValueError("class_weight and sample_weight leave no row any weight")


def weigh_draws(
    sampling: Sampling, labels: CheckedTarget, each: np.ndarray | None, user: np.ndarray | None
) -> Sampling:
    """The sampling with class weights: each draw weighs an integer, and no sum overflows.

    each : f64[N], of each row; None: "balanced_subsample"
    user : f64[N], chances of the rows to be drawn; None: all equal
    """
    room = most_draw_weight(sampling)
    if room == 0:
        raise ValueError(f"class_weight with {sampling.n_draws} draws a tree: lower max_samples")
    if each is None:
        return _balance_draws(sampling, labels, room, user)
    each = np.where(each > 0, each, each.max())  # the others are never drawn
    whole = np.array_equal(each, np.round(each)) and each.max() <= room
    if not whole:
        each = np.maximum(
            np.round(np.ldexp(each, room.bit_length() - 1 - math.frexp(each.max())[1])), 1
        )
    mean = np.average(each, weights=user)
    return replace(sampling, factors=each.astype(WEIGHT), draw_weight=float(mean))


def _balance_draws(
    sampling: Sampling, labels: CheckedTarget, room: int, user: np.ndarray | None
) -> Sampling:
    """The sampling in which classes are balanced in each bag."""
    balance = 2 ** (room.bit_length() - 1)
    if len(labels.values) == 1:
        return replace(sampling, balance=balance, draw_weight=balance)
    each = row_weights_of("balanced", labels, user)
    most = math.ceil(each.max() * HEADROOM)
    balance = max(1, balance >> most.bit_length())
    mean = np.average(each, weights=user)
    return replace(sampling, balance=balance, draw_weight=float(balance * mean))
