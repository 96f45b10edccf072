"""An estimator's parameters as what the engine takes: numbers, rules and bags."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from joblib import cpu_count, effective_n_jobs
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.class_weight import compute_class_weight

from gpuforest.criteria import CRITERIA, criterion_names
from gpuforest.dtypes import MAX_BINS, MAX_TOTAL_WEIGHT, WEIGHT
from gpuforest.frontier import Rules
from gpuforest.sampling import Sampling
from gpuforest.target import TargetCoding, integer_weights

UNLIMITED = 10**9  # levels; a packed tree has fewer nodes
# scikit-learn's allowance for rounding, so that a decrease of just the limit passes
EPSILON = np.finfo(np.float64).eps

TREE_CONSTRAINTS: dict[str, list[Any]] = {
    "max_depth": [Interval(Integral, 1, None, closed="left"), None],
    "min_samples_split": [
        Interval(Integral, 2, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="right"),
    ],
    "min_samples_leaf": [
        Interval(Integral, 1, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="neither"),
    ],
    "min_impurity_decrease": [Interval(Real, 0.0, None, closed="left")],
    "max_features": [
        Interval(Integral, 1, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="right"),
        StrOptions({"sqrt", "log2"}),
        None,
    ],
    "random_state": ["random_state"],
    "max_bins": [Interval(Integral, 2, MAX_BINS, closed="both")],
    "backend": [str],
}
FOREST_CONSTRAINTS: dict[str, list[Any]] = {
    "n_estimators": [Interval(Integral, 1, None, closed="left")],
    "bootstrap": ["boolean"],
    "max_samples": [
        None,
        Interval(RealNotInt, 0.0, None, closed="neither"),
        Interval(Integral, 1, None, closed="left"),
    ],
    "oob_score": ["boolean", callable],
    "warm_start": ["boolean"],
    "n_jobs": [Integral, None],
}


CLASS_WEIGHT = [dict, list, None]


def criterion_constraint(task: str) -> dict[str, list[Any]]:
    """Of a task, "classification" or "regression"."""
    return {"criterion": [StrOptions(set(criterion_names(task)))]}


def thread_count(n_jobs: int | None) -> int:
    """Threads, counted as joblib does; but its own count warns in a child process, where
    it takes jobs for processes."""
    if n_jobs is None:
        return int(effective_n_jobs(None))
    if n_jobs == 0:
        raise ValueError("n_jobs=0 means nothing; None is one thread, -1 all processors")
    return int(n_jobs) if n_jobs > 0 else max(1, cpu_count() + 1 + int(n_jobs))


def draw_seed(random_state: Any) -> int:
    """An int as it is; else drawn from the RandomState, or from NumPy's global one."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def features_tried(max_features: Any, n_features: int) -> int:
    """k: features tried at a split, as scikit-learn counts them."""
    if max_features is None:
        return n_features
    if max_features == "sqrt":
        return max(1, math.isqrt(n_features))
    if max_features == "log2":
        return max(1, n_features.bit_length() - 1)
    if isinstance(max_features, Integral):
        return min(int(max_features), n_features)
    return max(1, int(max_features * n_features))


def rows_drawn(max_samples: Any, n_rows: int, weights: np.ndarray | None) -> int:
    """Rows drawn for a bag; a fraction is one of the total weight (scikit-learn 1.9)."""
    drawn = n_rows if max_samples is None else int(max_samples)
    if max_samples is not None and not isinstance(max_samples, Integral):
        total = n_rows if weights is None else math.fsum(weights)
        drawn = max(1, int(max_samples * total))
        if drawn < max(10, n_rows ** (1 / 3)):
            warnings.warn(
                f"max_samples={max_samples} of a total weight of {total} draws only "
                f"{drawn} rows a tree; pass max_samples as an integer if that is meant",
                UserWarning,
                stacklevel=2,
            )
    if drawn > MAX_TOTAL_WEIGHT:
        raise ValueError(
            f"max_samples={max_samples} draws {drawn} rows a tree; at most "
            f"{MAX_TOTAL_WEIGHT} are supported"
        )
    return drawn


def class_weights_of(class_weight: Any, codes: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Weights f64[C] of the classes, as scikit-learn gives them; "balanced" counts rows."""
    if isinstance(class_weight, list | tuple):
        raise ValueError("a list as class_weight is for several outputs: pass a dict")
    found = compute_class_weight(class_weight, classes=classes, y=classes[codes])
    weights = np.asarray(found, np.float64)
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ValueError(f"class_weight must be numbers >= 0, and one above 0: {class_weight}")
    return weights


def sampling_of(
    params: dict[str, Any],
    n_rows: int,
    weights: tuple[np.ndarray, np.ndarray] | None,
    labels: tuple[np.ndarray, np.ndarray] | None = None,
) -> Sampling:
    """How the bags are drawn, and what is added up.

    weights : of rows, as they are and as integers
    labels : class codes and classes, on the host, where there are class weights
    """
    user, integers = (None, None) if weights is None else weights
    class_weight = params.get("class_weight")
    if not params.get("bootstrap", False):
        if params.get("max_samples") is not None:
            raise ValueError("max_samples needs bootstrap=True: set max_samples=None")
        if params.get("oob_score", False):
            raise ValueError("oob_score needs bootstrap=True: no row is out of bag without")
        if labels is not None:
            if class_weight == "balanced_subsample":
                class_weight = "balanced"  # every tree has all rows
            each = class_weights_of(class_weight, *labels)[labels[0]]
            user = each if user is None else user * each
            if not user.any():
                raise ValueError("class_weight and sample_weight leave no row any weight")
            integers = integer_weights(user)
        return Sampling(n_rows, 0, integers)
    sampling = Sampling(n_rows, rows_drawn(params["max_samples"], n_rows, user), integers)
    if labels is None:
        return sampling
    room = MAX_TOTAL_WEIGHT // (2 * sampling.n_draws)
    if room == 0:
        raise ValueError(f"class_weight with {sampling.n_draws} draws a tree: lower max_samples")
    if class_weight == "balanced_subsample":
        balance = 2 ** (room.bit_length() - 1)
        return replace(sampling, balance=balance, draw_weight=balance)
    each = class_weights_of(class_weight, *labels)
    if not each.all():
        raise ValueError(
            f"class_weight={class_weight} weighs a class zero: with bootstrap leave out its rows"
        )
    whole = np.array_equal(each, np.round(each)) and each.max() <= room
    if not whole:
        each = np.maximum(
            np.round(np.ldexp(each, room.bit_length() - 1 - math.frexp(each.max())[1])), 1
        )
    mean = np.average(each[labels[0]], weights=user)
    return replace(sampling, class_weights=each.astype(WEIGHT), draw_weight=float(mean))


def rules_of(
    params: dict[str, Any], n_features: int, sampling: Sampling, coding: TargetCoding
) -> Rules:
    """What a tree may do."""
    criterion = CRITERIA[params["criterion"]]
    split, leaf, least = (
        params[p] for p in ("min_samples_split", "min_samples_leaf", "min_impurity_decrease")
    )
    if not isinstance(split, Integral):
        split = max(2, math.ceil(split * sampling.n_rows))
    if not isinstance(leaf, Integral):
        leaf = math.ceil(leaf * sampling.n_rows)
    min_gain = -math.inf
    if least > 0:
        decrease = float(least - EPSILON) * sampling.bag_weight
        min_gain = coding.score_gain(decrease, criterion)
    return Rules(
        criterion=criterion.id,
        n_tried=features_tried(params["max_features"], n_features),
        max_depth=UNLIMITED if params["max_depth"] is None else min(params["max_depth"], UNLIMITED),
        min_rows_split=min(int(split), MAX_TOTAL_WEIGHT),
        min_rows_leaf=min(int(leaf), MAX_TOTAL_WEIGHT // 2),
        min_gain=float(min_gain),
    )
