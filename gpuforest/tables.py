"""Tables: what users hold (NumPy arrays, pandas, polars and other frames) as one array."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any

SMALL_BITS = 16  # integers of so many bits are exact in float32


def is_frame(X: Any) -> bool:
    """Whether X has named columns; asks the type, because a lazy frame's answer costs."""
    return not isinstance(X, np.ndarray) and (
        hasattr(type(X), "columns") or hasattr(X, "__narwhals_dataframe__")
    )


def frame_to_array(X: Any) -> tuple[np.ndarray, list[Any]]:
    """Numbers f32 or f64 [N, F] of a frame, nulls as NaN, and its column names.

    A pandas frame of one float dtype is not copied where pandas holds it in one block.

    Raises
    ------
    ValueError, TypeError : as `open_frame` does
    """
    frame, names, dtype = open_frame(X)
    if frame.implementation.is_pandas() and len(names):
        native = frame.to_native()
        if set(native.dtypes) == {np.dtype(dtype)}:
            return native.to_numpy(copy=False), names
    import narwhals.stable.v2 as nw

    out = np.empty(frame.shape, dtype, order="F")
    wide = nw.Float32() if dtype == np.float32 else nw.Float64()
    for i, column in enumerate(frame.iter_columns()):
        out[:, i] = column.cast(wide).to_numpy()  # a cast to float makes nulls NaN
    return out, names


def open_frame(X: Any) -> tuple[Any, list[Any], type]:
    """A frame as narwhals sees it, its column names, and the dtype of its numbers.

    Numeric and boolean columns only. float32 where every column fits it exactly.

    Raises
    ------
    ValueError : a column that holds no numbers, named
    TypeError : no frame in memory
    """
    import narwhals.stable.v2 as nw

    try:
        frame = nw.from_native(X, eager_only=True)
    except TypeError as error:
        raise TypeError(
            f"X is a {type(X).__name__}, which is not held in memory: collect it first"
        ) from error
    small = True
    for name, dtype in frame.schema.items():
        if isinstance(dtype, nw.Categorical | nw.Enum | nw.String | nw.Object | nw.Binary):
            raise ValueError(
                f"column {name!r} holds {dtype}: categorical features are not supported "
                "yet; encode it as numbers or drop it"
            )
        if not (dtype.is_numeric() or isinstance(dtype, nw.Boolean)):
            raise ValueError(
                f"column {name!r} holds {dtype}: only numeric and boolean columns are supported"
            )
        small &= isinstance(
            dtype, nw.Float32 | nw.Boolean | nw.Int8 | nw.Int16 | nw.UInt8 | nw.UInt16
        )
    return frame, list(frame.columns), np.float32 if small else np.float64
