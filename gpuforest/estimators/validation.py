"""What users pass, checked before any work; every error names the parameter or column."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite, check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from gpuforest.dtypes import MAX_FEATURES, MAX_ROWS, VALUE
from gpuforest.tables import frame_to_array, is_frame
from gpuforest.target import integer_weights

Array = Any

BLOCK_VALUES = 2**22  # values looked at at once; a copy of so many stays small


def check_table(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as a real array [N, F] of any layout; NaN is missing, infinities are refused.

    A NumPy array of numbers is not copied. Sets (`reset`) or checks the estimator's
    number and names of features.
    """
    names: list[Any] | None = None
    if is_frame(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        X, names = frame_to_array(X)
    X = _real_array(X, names)
    check_array(X, dtype=None, ensure_all_finite=False, estimator=estimator, input_name="X")
    if X.shape[0] > MAX_ROWS:
        raise ValueError(f"X has {X.shape[0]} rows; at most {MAX_ROWS} are supported")
    if X.shape[1] > MAX_FEATURES:
        raise ValueError(f"X has {X.shape[1]} features; at most {MAX_FEATURES} are supported")
    if names is None:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    if X.dtype.kind == "f":
        _refuse_infinities(X, names)
    return X


def _real_array(X: Any, names: list[Any] | None) -> Any:
    """X as an array of bool, int or float up to 64 bits; no copy where it is one."""
    if hasattr(X, "toarray"):
        raise TypeError("sparse X is not supported: pass a dense array, X.toarray()")
    X = np.asarray(X)
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: X must hold real numbers")
    if X.dtype.kind in "UST":
        raise ValueError(f"X holds strings ({X.dtype}): encode them as numbers, or drop them")
    if X.dtype.kind == "O" and X.ndim == 2:
        out = np.empty(X.shape, VALUE)
        for i in range(X.shape[1]):
            try:
                out[:, i] = X[:, i]
            except (TypeError, ValueError) as error:
                raise type(error)(
                    f"{_column(i, names)} of X holds no numbers: {error}; categorical "
                    "features are not supported yet; encode it as numbers or drop it"
                ) from error
        return out
    if X.dtype.kind not in "biufO":
        raise ValueError(f"X has the dtype {X.dtype}: only real numbers are supported")
    return X.astype(VALUE) if X.dtype.itemsize > 8 and X.dtype.kind == "f" else X


def _column(i: int, names: list[Any] | None) -> str:
    return f"column {i}" if names is None else f"column {names[i]!r}"


def _refuse_infinities(X: np.ndarray, names: list[Any] | None) -> None:
    size = max(1, BLOCK_VALUES // X.shape[1])
    wide = np.float32 if X.dtype == np.float16 else None  # float16 soon overflows
    for begin in range(0, len(X), size):
        block = X[begin : begin + size]
        with np.errstate(over="ignore", invalid="ignore"):
            total = block.sum(dtype=wide)
        # a finite sum has only finite terms; otherwise look closer
        if not np.isfinite(total) and (infinite := np.isinf(block)).any():
            row, column = np.argwhere(infinite)[0]
            raise ValueError(
                f"Input X contains infinity: {_column(int(column), names)}, row "
                f"{begin + int(row)}; NaN means missing, infinities must be replaced"
            )


def _one_column(y: Any, n_rows: int) -> Any:
    """y [N]; a column vector is taken with a warning."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    if hasattr(y, "toarray"):
        raise TypeError("sparse y is not supported: pass a dense array")
    y = np.asarray(y)
    if y.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must hold labels or real numbers")
    if y.ndim == 2 and y.shape[1] > 1:
        raise ValueError(f"y has {y.shape[1]} columns: multi-output y is not supported yet")
    y = column_or_1d(y, warn=True)
    if len(y) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} "
            f"rows, y has {len(y)}"
        )
    return y


def check_labels(y: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Class codes [N] and the sorted classes [C] of the labels y."""
    y = _one_column(y, n_rows)
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    if y.dtype.kind in "biuf":
        check_classification_targets(y)
    try:
        classes, codes = np.unique(y, return_inverse=True)
        missing = any(label is None or bool(label != label) for label in classes.flat)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "Unknown label type: y mixes labels without an order, or misses some (NaN, "
            f"None): {error}"
        ) from error
    if missing:
        raise ValueError("Input y contains NaN or None: every row needs a label")
    if y.dtype.kind == "O" and not any(isinstance(label, str) for label in classes):
        plain = np.array(classes.tolist())  # Python numbers are numbers
        if plain.dtype.kind in "biuf" and plain.shape == classes.shape:
            check_classification_targets(plain[codes])
            classes = plain
    return codes, classes


def check_numbers(y: Any, n_rows: int, criterion: str) -> Any:
    """Targets f64[N] of a regression."""
    y = _one_column(y, n_rows)
    if y.dtype.kind not in "biufO":
        raise ValueError(f"y must hold real numbers, not {y.dtype}")
    try:
        y = y.astype(VALUE)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must hold real numbers: {error}") from error
    assert_all_finite(y, input_name="y")
    if criterion == "poisson":
        if (y < 0).any():
            raise ValueError("y has negative values, which criterion='poisson' does not allow")
        if not (y > 0).any():
            raise ValueError("y has no positive value, which criterion='poisson' needs")
    return y


def check_weights(sample_weight: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Weights f64[N] >= 0 and the same as integers i32[N]; None: all equal."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight)
    if weights.ndim == 0:
        weights = np.full(n_rows, weights)
    if weights.dtype.kind == "c":
        raise ValueError("Complex data not supported: sample_weight must hold real numbers")
    try:
        weights = weights.astype(VALUE)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight must hold real numbers: {error}") from error
    if weights.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar: sample_weight is not")
    if len(weights) != n_rows:
        raise ValueError(f"sample_weight has {len(weights)} values, X has {n_rows} rows")
    assert_all_finite(weights, input_name="sample_weight")
    if (weights < 0).any():
        raise ValueError("sample_weight has negative values")
    if not (weights > 0).any():
        raise ValueError("sample_weight is all zeros: at least one row must count")
    return weights, integer_weights(weights)
