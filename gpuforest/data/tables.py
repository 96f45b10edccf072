"""Tables: what users hold (NumPy arrays, pandas, polars and other frames) as one array."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gpuforest.data.categories import CategoryReader

Array = Any

TEXT = (str, bytes)
# what float() takes, or NumPy converts, but is no real number
NOT_NUMBERS = (complex, np.complexfloating, np.datetime64, np.timedelta64)
DATES = "make numbers of it, such as year, month and weekday or days since a date, or drop it"
CATEGORIES = "list it in categorical_features at fit, encode it as numbers or drop it"


def is_frame(X: Any) -> bool:
    """Whether X has named columns; asks the type, because a lazy frame's answer costs."""
    return not isinstance(X, np.ndarray) and (
        hasattr(type(X), "columns") or hasattr(X, "__narwhals_dataframe__")
    )


def open_frame(X: Any) -> Any:
    """A frame in memory as narwhals sees it, of whatever columns; Arrow's record batches as a
    table. Several columns of one name are an error."""
    import narwhals.stable.v2 as nw
    from narwhals.exceptions import DuplicateError

    if type(X).__name__ == "RecordBatch" and (pyarrow := sys.modules.get("pyarrow")) is not None:
        X = pyarrow.table(X)
    try:
        return nw.from_native(X, eager_only=True)
    except DuplicateError as error:
        names = list(X.columns if hasattr(type(X), "iloc") else X.column_names)
        twice = [name for name, n in Counter(names).items() if n > 1]
        raise ValueError(
            f"X has several columns of one name: {', '.join(map(repr, twice))}; rename or remove "
            "all but one, or pass an array, whose columns have no names"
        ) from error
    except TypeError as error:
        # of dask, of polars and others, of Spark
        ways = [name for name in ("compute", "collect", "toPandas") if hasattr(type(X), name)]
        raise TypeError(
            f"X is a {type(X).__module__}.{type(X).__qualname__}, not a frame in memory: "
            + (f"call X.{ways[-1]}() first, or " if ways else "")
            + "make it one of pandas, polars or Arrow (pyarrow.Table)"
        ) from error


def frame_to_array(
    X: Any, categories: CategoryReader | None = None
) -> tuple[np.ndarray, list[Any]]:
    """Numbers f32 or f64 [N, F] of a frame, what is missing as NaN, and its column names;
    `categories` turns the columns of categories into codes, if there are some.

    A pandas frame of one float dtype is not copied where pandas holds it in one block.
    """
    frame, categorical = open_frame(X), frozenset() if categories is None else categories.features
    names, dtype = list(frame.columns), frame_dtype(frame, categorical)
    if frame.implementation.is_pandas() and len(names) and not categorical:
        native = frame.to_native()
        if set(native.dtypes) == {np.dtype(dtype)}:
            return native.to_numpy(copy=False), names
    import narwhals.stable.v2 as nw

    out = np.empty(frame.shape, dtype, order="F")
    wide = nw.Float32() if dtype == np.float32 else nw.Float64()
    for i, (column, native) in enumerate(
        zip(frame.iter_columns(), native_dtypes(frame), strict=True)
    ):
        if categories is not None and i in categorical:
            out[:, i] = categories.codes(i, column, f"column {names[i]!r}")
        elif is_object_column(column.dtype, native):
            out[:, i] = object_numbers(column.to_numpy(), f"column {names[i]!r}")
        elif is_sparse(native) or is_numbered(native):
            out[:, i] = np.asarray(column.to_native(), dtype)
        elif frame.implementation.is_pyarrow():  # whose safe cast refuses to round
            arrow = "float" if dtype == np.float32 else "double"
            rounded = column.to_native().cast(arrow, safe=False)
            out[:, i] = nw.from_native(rounded, series_only=True).to_numpy()
        else:
            out[:, i] = column.cast(wide).to_numpy()  # a cast to float makes nulls NaN
    return out, names


def frame_dtype(frame: Any, categorical: Collection[int] = ()) -> type:
    """The dtype of a frame's numbers: float32 where every column fits it exactly.

    Columns are categorical (whose codes fit it), numeric or boolean, of pandas' categories that are
    numbers, empty, or hold objects (which may prove no numbers); the error of any other names it.
    """
    import narwhals.stable.v2 as nw

    short = nw.Float32 | nw.Boolean | nw.Int8 | nw.Int16 | nw.UInt8 | nw.UInt16
    small = True
    for i, ((name, dtype), native) in enumerate(
        zip(frame.schema.items(), native_dtypes(frame), strict=True)
    ):
        if i in categorical:
            continue
        if is_sparse(native) and native.subtype.kind in "biuf":
            small &= bool(np.can_cast(native.subtype, np.float32))
        elif is_numbered(native) or is_object_column(dtype, native):
            small = False
        elif isinstance(dtype, nw.Categorical | nw.Enum | nw.String | nw.Binary):
            raise ValueError(f"column {name!r} holds {dtype}: {CATEGORIES}")
        elif dtype.is_numeric() or isinstance(dtype, nw.Boolean):
            small &= isinstance(dtype, short)
        elif not (isinstance(dtype, nw.Unknown) and frame[name].null_count() == len(frame)):
            what = native if isinstance(dtype, nw.Unknown) and native is not None else dtype
            is_date = isinstance(dtype, nw.Date | nw.Datetime | nw.Duration | nw.Time)
            raise ValueError(
                f"column {name!r} holds {what}: only numeric and boolean columns are supported; "
                + (DATES if is_date else "encode it as numbers or drop it")
            )
    return np.float32 if small else np.float64


def object_numbers(column: np.ndarray, name: str, text: bool = False) -> np.ndarray:
    """Numbers f64[N] of Python objects [N]; None and pandas' NA as NaN. An object that is no real
    number is an error of the column's `name`; with `text` strings that hold a number count as
    that."""
    NA = getattr(sys.modules.get("pandas"), "NA", None)  # without pandas there is none
    types = set(map(type, column))
    try:
        refused = NOT_NUMBERS if text else (*NOT_NUMBERS, *TEXT)
        if any(issubclass(kind, (*NOT_NUMBERS, *TEXT)) for kind in types):
            for value in column:
                if isinstance(value, refused) or (isinstance(value, TEXT) and not is_number(value)):
                    raise ValueError(f"{value!r} is a {type(value).__name__}")
        if type(NA) in types:
            column = np.array([None if value is NA else value for value in column], dtype=object)
        return column.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name} of X holds no numbers: {error}; {CATEGORIES}") from error


def is_number(text: str | bytes) -> bool:
    """Whether Python's `float` takes the text."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def native_dtypes(frame: Any) -> list[Any]:
    """The columns' dtypes in pandas; None for columns of other frames."""
    if frame.implementation.is_pandas():
        return list(frame.to_native().dtypes)
    return [None] * frame.shape[1]


def is_object_column(dtype: Any, native: Any) -> bool:
    """Whether a column holds Python objects; of pandas' narwhals may say what they are."""
    import narwhals.stable.v2 as nw

    return isinstance(dtype, nw.Object) if native is None else bool(native == np.dtype(object))


def is_sparse(native: Any) -> bool:
    """Whether a dtype is pandas' for sparse columns, which narwhals does not know."""
    return hasattr(native, "subtype") and hasattr(native, "fill_value")


def is_numbered(native: Any) -> bool:
    """Whether a dtype is pandas' for categories, and these are numbers or truth values."""
    categories = getattr(native, "categories", None)
    return getattr(getattr(categories, "dtype", None), "kind", "") in {"b", "i", "u", "f"}
