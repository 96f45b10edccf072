"""Infinities in X: most estimators refuse them. For gradient boosting they count as the largest and
the least number of the dtype, as in scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuforest.engine.binning import DEVICE_VALUES

Array = Any

BLOCK_VALUES = 2**22  # values that are checked at once; a copy of so many stays small


def without_infinities(estimator: Any, X: Array, names: list[Any] | None, xp: Any) -> Array:
    """X real [N, F] itself, or a copy if there are infinities, and the estimator takes them.

    names : of the columns, if they have any
    xp : the library of X's device

    Raises
    ------
    ValueError : it does not take them
    """
    on_host = isinstance(X, np.ndarray)
    xp = np if on_host else xp
    size = max(1, (BLOCK_VALUES if on_host else DEVICE_VALUES) // X.shape[1])
    for begin in range(0, X.shape[0], size) if X.dtype.kind == "f" else ():
        block = X[begin : begin + size]
        if on_host and _sum_is_finite(block):
            continue
        infinite = xp.isinf(block)
        if bool(xp.any(infinite)):
            row, column = (int(indices[0]) for indices in xp.nonzero(infinite))
            where = f"{column_name(column, names)}, row {begin + row}"
            most = _most(estimator, X.dtype, where)
            return xp.clip(X, -most, most)
    return X


def without_infinities_in_sparse(estimator: Any, X: Any) -> Any:
    """The same of a sparse X by rows."""
    if X.dtype.kind != "f" or not (infinite := np.isinf(X.data)).any():
        return X
    most = _most(estimator, X.dtype, column_name(int(X.indices[infinite.argmax()]), None))
    X = X.copy()  # the user's stays as it is
    np.clip(X.data, -most, most, out=X.data)
    return X


def column_name(i: int, names: list[Any] | None) -> str:
    """How errors name a column."""
    return f"column {i}" if names is None else f"column {names[i]!r}"


def _most(estimator: Any, dtype: Any, where: str) -> Any:
    """The largest number."""
    if not getattr(estimator, "_takes_infinities", False):
        raise ValueError(
            f"Input X contains infinity: {where}; NaN means missing, infinities must be replaced"
        )
    return np.finfo(dtype).max


def _sum_is_finite(block: np.ndarray) -> bool:
    """Then its terms are too; the quickest look at many."""
    wide = np.float32 if block.dtype == np.float16 else None  # float16 soon overflows
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(block.sum(dtype=wide)))
