"""Tasks drawn by hypothesis, and large ones: what every backend must do alike."""

from __future__ import annotations

import math

import numpy as np
from engine import Task, table
from hypothesis import strategies as st

from gpuforest.growing.targets import integer_weights

CLASSIFICATION = ["gini", "entropy", "misclassification"]
REGRESSION = ["squared_error", "poisson"]
COMBINED = st.sampled_from([0.0, 0.0, 1.5, 2.0, 4.0, 8.0])  # features of a combination


@st.composite
def tables(draw: st.DrawFn) -> np.ndarray:
    """X of up to 150 rows and 7 columns of all kinds, some rows twice."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_rows = draw(st.integers(1, 30) | st.integers(30, 150))
    kinds = draw(st.lists(st.sampled_from("ctbfm0nNAd"), min_size=1, max_size=7))
    X = table(rng, n_rows, kinds, draw(st.sampled_from([np.float32, np.float64])))
    if draw(st.booleans()):
        X = X[rng.integers(0, n_rows, n_rows)]
    return X


@st.composite
def targets(draw: st.DrawFn, X: np.ndarray, criterion: str) -> np.ndarray:
    """y, in part from X's columns."""
    n_rows = len(X)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    if criterion in CLASSIFICATION:
        n_classes = draw(st.sampled_from([1, 2, 2, 2, 3, 4, 7, 30]))
        if criterion != "misclassification" and draw(st.integers(0, 5)) == 0:
            return rng.integers(0, min(n_classes, 4), (n_rows, draw(st.sampled_from([2, 3]))))
        return rng.integers(0, n_classes, n_rows)
    signal = np.where(np.isnan(X[:, 0]), -1.0, X[:, 0])
    n_outputs = 1 if criterion == "poisson" else draw(st.sampled_from([1, 1, 2, 3]))
    unit = draw(st.sampled_from([1.0, 0.1, 1e-200, 1e200]))
    match draw(st.sampled_from(["noise", "signal", "counts"])):
        case "noise":
            y = rng.normal(size=(n_rows, n_outputs)) * unit
        case "signal":
            y = signal[:, None] + rng.normal(size=(n_rows, n_outputs))
        case _:
            y = rng.poisson(0.7, size=(n_rows, n_outputs)) * unit
    return np.abs(y) if criterion == "poisson" else y


@st.composite
def row_weights(draw: st.DrawFn, n_rows: int) -> np.ndarray | None:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    match draw(st.sampled_from(["none", "none", "whole", "real", "far apart"])):
        case "none":
            return None
        case "whole":
            weights = rng.integers(0, 4, n_rows).astype(float)
        case "real":
            weights = rng.random(n_rows)
        case _:
            weights = 10.0 ** rng.integers(-9, 9, n_rows)
    weights[rng.integers(n_rows)] = 1  # never all zero
    return integer_weights(weights)


@st.composite
def row_groups(draw: st.DrawFn, n_rows: int) -> np.ndarray | None:
    """Numbers of groups, all of which have rows."""
    n_groups = draw(st.sampled_from([0, 0, 0, 1, 4, n_rows]))
    if not n_groups:
        return None
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return np.unique(rng.integers(0, n_groups, n_rows), return_inverse=True)[1].astype(np.int32)


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    X = draw(tables())
    n_rows, n_features = X.shape
    criterion = draw(st.sampled_from(CLASSIFICATION + REGRESSION))
    y = draw(targets(X, criterion))
    pairs = (y.ndim == 1 and y.max() == 1) if criterion in CLASSIFICATION else y.shape[1] == 1
    signs = draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=n_features, max_size=n_features))
    signs = tuple(signs) if pairs and draw(st.integers(0, 3)) == 0 else ()
    combined = 0.0 if signs else draw(COMBINED)
    weights, groups = draw(row_weights(n_rows)), draw(row_groups(n_rows))
    if weights is not None and groups is not None:  # they multiply, and must not overflow
        weights = np.minimum(weights, 5).astype(np.int32)
    rules = {
        "min_weight_leaf": [1, 1, 1, 4], "random": [False, False, True], "heaviest": [1, 5],
        "n_features_tree": [0, 0, 0, 1, max(1, n_features - 1)], "features_again": [False, True],
        "n_draws": [0, 1, n_rows, n_rows, 2 * n_rows], "max_bins": [2, 7, 255, 255, 1000],
        "max_depth": [0, 1, 3, 10**9, 10**9], "min_rows_split": [2, 2, 10],
        "min_rows_leaf": [1, 1, 3], "min_gain": [-math.inf, -math.inf, 0.0, 1.0, 1e9],
        "n_trees": [1, 2, 3, 4], "seed": [0, 1, 2**31 - 2],
    }  # fmt: skip
    n_tried = draw(st.integers(1, n_features * (1 + (combined > 0))))
    task = Task(X, y, criterion, weights, signs=signs, combined=combined, groups=groups)
    return task.but(n_tried=n_tried, **{n: draw(st.sampled_from(v)) for n, v in rules.items()})


def few_builds(task: Task) -> Task:
    """The task without combinations, but for some: in the deep phase on CUDA devices each criterion
    and kind of cut has kernels of its own for them, which take seconds to build."""
    kept = task.criterion == "gini" and task.n_class_outputs == 1 and not task.rules.limited
    return task if kept else task.but(combined=0.0)


def large(name: str) -> Task:
    """Enough rows for wide levels above the deep phase, with missing values."""
    rng = np.random.default_rng(7)
    X = table(rng, 6000, list("ccnNfbtmd0cc"), np.float32)
    z = np.where(np.isnan(X[:, 2]), 0.5, X[:, 0] * X[:, 2]) + X[:, 4]
    noise = rng.normal(size=6000)
    above, weights = z + noise, rng.integers(0, 3, 6000).astype(np.int32)
    y, criterion, more = {
        "binary": ((above > 0.3).astype(int), "gini", {}),
        "7 classes": (np.digitize(z, np.linspace(-2, 2, 6)), "entropy", {}),
        "60 classes": (np.digitize(above, np.linspace(-3, 3, 59)), "gini", {"weights": weights}),
        "regression": (above, "squared_error", {}),
        "two outputs": (np.stack([z, noise], axis=1), "squared_error", {}),
        "counts": (rng.poisson(np.exp(np.clip(z, -3, 3))).astype(float), "poisson", {}),
        "combinations": ((above > 0.3).astype(int), "gini", {"combined": 2.0}),
        "16 bits": ((z > 0).astype(int), "gini", {"max_bins": 2000}),
    }[name]
    return Task(X, y, criterion, n_draws=6000, n_tried=3, n_trees=3, seed=5).but(**more)


@st.composite
def category_tasks(draw: st.DrawFn) -> Task:
    """Up to 120 rows of categorical columns, beside one of numbers."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_rows = draw(st.integers(2, 30) | st.integers(30, 120))
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 6, 12, 70, 300]), min_size=1, max_size=3))
    X = np.stack([*(rng.integers(0, n, n_rows) for n in sizes), rng.normal(size=n_rows)], axis=1)
    X[rng.random(X.shape) < draw(st.sampled_from([0.0, 0.2]))] = np.nan
    criterion = draw(st.sampled_from(CLASSIFICATION + REGRESSION))
    if criterion in CLASSIFICATION:
        y = rng.integers(0, draw(st.sampled_from([2, 2, 3, 5])), n_rows)
        if criterion != "misclassification" and draw(st.integers(0, 5)) == 0:
            y = rng.integers(0, 3, (n_rows, 2))
    else:
        n_outputs = 1 if criterion == "poisson" else draw(st.sampled_from([1, 1, 2]))
        y = rng.poisson(1.0, (n_rows, n_outputs)) + rng.integers(0, 2, (n_rows, 1)) * 0.5
        y[0] = 1.0
    rules = {
        "n_others": [0, 1, 2], "n_draws": [0, n_rows], "random": [False, False, True],
        "min_rows_leaf": [1, 1, 3], "min_weight_leaf": [1, 1, 1, 4],
        "max_depth": [1, 3, 10**9, 10**9], "min_gain": [-math.inf, -math.inf, 0.5],
        "n_features_tree": [0, 0, 0, 1], "n_trees": [1, 2, 3], "seed": [0, 1, 2, 3],
    }  # fmt: skip
    categorical, weights = tuple(range(draw(st.integers(1, len(sizes))))), draw(row_weights(n_rows))
    task = Task(X, y, criterion, weights, combined=draw(COMBINED), categorical=categorical)
    n_tried = draw(st.integers(1, X.shape[1]))
    return task.but(n_tried=n_tried, **{n: draw(st.sampled_from(v)) for n, v in rules.items()})
