"""Arrays and frames of all libraries: an array becomes one of the backend, a frame one on the host,
and results become the kind of the input.

Arrays on a GPU (CuPy, torch, JAX, cuDF, DLPack, `__cuda_array_interface__`) are read without a
copy, those of other libraries on the host as NumPy arrays. A library is used only for objects
of its types, so it is imported at need.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Collection
from contextlib import nullcontext
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj, is_cupy_namespace
from array_api_compat import device as device_of
from sklearn import get_config

from gpuforest.backends import gpu
from gpuforest.backends.base import Array, Backend
from gpuforest.common.errors import BackendError

CUDA, CUDA_MANAGED = 2, 13  # device types of DLPack
LIBRARIES = {"cupy": "cupy", "torch": "torch", "jax": "jax", "jaxlib": "jax", "cudf": "cudf"}
TEXT = (str, bytes)
# what float() takes, or NumPy converts, but is no real number
NOT_NUMBERS = (complex, np.complexfloating, np.datetime64, np.timedelta64)
DATES = "make numbers of it, such as year, month and weekday or days since a date, or drop it"
# names of the columns of a target of survival
TIME = """time|duration|tenure|lifespan|follow.?up|hours|days|weeks|months|years
    |(?<![a-z])(t|age|hour|day|week|month|year)(?![a-z])"""
EVENT = """event|status|death|died|deceased|fail|cause|observed|churn|relapse|recurrence|outcome
    |(dead|stat|(?<![a-z])(e|delta))(?![a-z])"""
CATEGORIES = "list it in categorical_features at fit, encode it as numbers or drop it"


def is_on_device(X: Any) -> bool:
    """Whether X is in a GPU's memory. This imports and initialises nothing."""
    if X is None or isinstance(X, np.ndarray):
        return False
    X = _native(X)
    if _library(X) == "cudf":
        return True
    try:
        return int(X.__dlpack_device__()[0]) in (CUDA, CUDA_MANAGED)
    except Exception:  # no DLPack, or none for where X lies (torch's meta, sharded JAX)
        return hasattr(X, "__cuda_array_interface__")


def count_rows(X: Any) -> int:
    """Number of rows of X, which is not checked yet; 0 if X has no length."""
    try:
        return int(X.shape[0]) if hasattr(X, "shape") else len(X)
    except Exception:
        return 0


def count_columns(X: Any) -> int:
    """Number of columns of X, which is not checked yet; 1 if X does not say."""
    try:
        return int(X.shape[1])
    except Exception:
        return 1


def bring(X: Any, backend: Backend, name: str) -> Any:
    """X as the backend's array if on a GPU, else as `to_host` returns it; `name` is for
    messages."""
    if not is_on_device(X) or not is_cupy_namespace(backend.xp):
        return to_host(X, name)
    import cupy

    array, current = _as_cupy(X, name), cupy.cuda.runtime.getDevice()
    if not isinstance(array, np.ndarray) and array.device.id != current:
        other = array.device.id
        raise ValueError(
            f"{name} is on GPU {other}, but GPU {current} is the current one: move {name}, or call "
            f"inside `with cupy.cuda.Device({other}):`"
        )
    return array


def to_host(X: Any, name: str = "the array") -> Any:
    """An array of any library as NumPy's, cuDF objects as pandas ones; other objects unchanged."""
    if isinstance(X, np.ndarray):
        return X
    if not is_on_device(X):
        return _as_numpy(X, name) if _is_host_array(X) else X
    X = _native(X)
    match _library(X):
        case "torch":
            return X.detach().cpu().numpy()
        case "jax":
            return np.asarray(X)
        case "cudf":
            return X.to_pandas()
    if hasattr(X, "copy_to_host"):  # Numba's
        return X.copy_to_host()
    return _as_cupy(X, name).get()


def stack_columns(frame: Any, dtype: type) -> Array:
    """A cuDF frame of numbers, in narwhals, as a device array [N, F]; nulls become NaN."""
    import cupy
    import narwhals.stable.v2 as nw

    out = cupy.empty(frame.shape, dtype=dtype)
    wide = nw.Float32() if dtype == np.float32 else nw.Float64()
    for i, column in enumerate(frame.iter_columns()):
        # only in a float column can a null become NaN
        out[:, i] = column.cast(wide).to_native().to_cupy(na_value=float("nan"))
    return out


def fields_of(y: Any, name: str) -> dict[str, np.ndarray]:
    """Columns of a frame, or fields of a structured array [n], on the host; {} of other arrays."""
    y = to_host(y, name)
    if is_frame(y):
        return {str(c.name): np.asarray(c.to_numpy()) for c in open_frame(y, name).iter_columns()}
    y = np.asarray(y)
    names = y.dtype.names or ()
    if several := [field for field in names if y.dtype[field].shape]:
        raise ValueError(f"the field {several[0]!r} of {name} must hold one number for each row")
    return {field: y[field] for field in names} if y.ndim == 1 else {}


def part_of(name: str) -> int:
    """Whether a name in a target of survival is one of events (0), neither (1), or times (2)."""
    is_time, is_event = (re.search(words, name, re.I | re.X) for words in (TIME, EVENT))
    return 2 if is_time else 0 if is_event else 1


def ordered_codes(labels: Any) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Positions of labels [N] among the values of their ordered type, -1: missing, and these
    values. Ordered types are a pandas ordered categorical, a polars Enum, an ordered Arrow
    dictionary; other labels give empty results."""
    dtype = getattr(labels, "dtype", None)
    if getattr(dtype, "ordered", False):
        of_pandas = getattr(labels, "cat", labels)  # of a series, or a categorical itself
        return np.asarray(of_pandas.codes), tuple(of_pandas.categories)
    if type(labels).__module__.startswith("polars") and str(dtype).startswith("Enum"):
        codes = labels.to_physical().cast(int).fill_null(-1)
        return codes.to_numpy(), tuple(labels.dtype.categories)
    if getattr(getattr(labels, "type", None), "ordered", False):
        if hasattr(labels, "combine_chunks"):
            labels = labels.unify_dictionaries().combine_chunks()
        codes = labels.indices.fill_null(-1)
        return codes.to_numpy(zero_copy_only=False), tuple(labels.dictionary.to_pylist())
    return np.empty(0), ()


def in_kind_of(X: Any, result: Any) -> Any:
    """A result (host or CuPy array) as an array of X's library, on X's device. NumPy's for X on the
    host (except under scikit-learn's `array_api_dispatch`), for names of classes, and without CuPy;
    CuPy's for cuDF and for libraries without rules here."""
    on_host = isinstance(result, np.ndarray)
    if on_host and (result.dtype.kind not in "biuf" or result.dtype.itemsize > 8):
        return result
    if not is_on_device(X):
        if not (_is_host_array(X) and get_config()["array_api_dispatch"]):
            return result
        return array_namespace(X).asarray(result, device=device_of(X))
    X = _native(X)
    match _library(X):
        case "torch":
            torch = import_module("torch")
            return torch.from_numpy(result).to(X.device) if on_host else torch.from_dlpack(result)
        case "jax":
            if on_host:
                return import_module("jax").device_put(result, next(iter(X.devices())))
            return import_module("jax.dlpack").from_dlpack(result)
    if on_host and find_spec("cupy") is not None:
        import cupy

        with nullcontext() if _library(X) == "cudf" else _as_cupy(X, "X").device:
            return cupy.asarray(result)
    return result


def _is_host_array(X: Any) -> bool:
    """Whether X, on the host, is an array of the array API standard other than NumPy's."""
    return is_array_api_obj(X) and not isinstance(X, np.ndarray | np.generic)


def _as_numpy(X: Any, name: str) -> np.ndarray:
    """X, a host array of the array API standard, as a NumPy array, without a copy if possible."""
    if _library(X) == "torch":
        X = X.detach().cpu()
    try:
        return np.from_dlpack(X)
    except Exception as error:  # no DLPack, or none for its dtype or where it lies
        reason = error
    try:
        if hasattr(X, "__array__"):
            return np.asarray(X)
    except (RuntimeError, TypeError, ValueError) as error:
        reason = error
    raise ValueError(_unreadable(X, name, "as a NumPy array", reason)) from reason


def host_array(X: Any, name: str) -> np.ndarray:
    """X, which is on the host, as a NumPy array; a TypeError or ValueError if it is none."""
    if np.ma.is_masked(X):  # NumPy would show what lies below the mask
        raise ValueError(f"{name} has masked values: drop these rows, or fill them")
    try:
        return np.asarray(X)
    except (TypeError, ValueError, MemoryError):
        raise
    except Exception as error:  # of the library whose array it is
        raise ValueError(_unreadable(X, name, "as a NumPy array", error)) from error


def _unreadable(X: Any, name: str, how: str, error: Exception) -> str:
    kind = f"{type(X).__module__}.{type(X).__name__} of dtype {getattr(X, 'dtype', '?')}"
    return f"{name} ({kind}) cannot be read {how}: {error}"


def _native(X: Any) -> Any:
    """The object that narwhals has wrapped, or X itself."""
    if type(X).__module__.partition(".")[0] == "narwhals" and hasattr(X, "to_native"):
        return X.to_native()
    return X


def _library(X: Any) -> str | None:
    """The library that X's type or a base of it comes from, if this module has rules for it."""
    roots = (base.__module__.partition(".")[0] for base in type(X).__mro__)
    return next((LIBRARIES[root] for root in roots if root in LIBRARIES), None)


def _as_cupy(X: Any, name: str) -> Any:
    """X on its GPU as a CuPy array, without a copy; cuDF labels may be copied to the host."""
    if find_spec("cupy") is None:
        raise BackendError(f"{name} is on a GPU, and reading it there needs CuPy: {gpu.INSTALL}")
    import cupy

    X = _native(X)
    library = _library(X)
    if library == "cudf":
        numbers = X.ndim == 1 and getattr(X.dtype, "kind", "O") in "biuf"
        if not numbers or X.isnull().any():
            return np.asarray(X.to_pandas())
        return X.to_cupy()
    try:
        if isinstance(X, cupy.ndarray):
            return X
        if hasattr(X, "__dlpack__"):
            # DLPack first: it orders the work of both libraries' streams
            return cupy.from_dlpack(X.detach() if library == "torch" else X)
        return cupy.asarray(X)
    except (BufferError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(_unreadable(X, name, "on its GPU", error)) from error


# frames


def is_frame(X: Any) -> bool:
    """Whether X has named columns; asks the type, because a lazy frame's answer costs."""
    return not isinstance(X, np.ndarray) and (
        hasattr(type(X), "columns") or hasattr(X, "__narwhals_dataframe__")
    )


def open_frame(X: Any, called: str = "X") -> Any:
    """A frame in memory as narwhals sees it; record batches as a table. Names must differ."""
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
            f"{called} has several columns of one name: {', '.join(map(repr, twice))}; rename or "
            "remove all but one, or pass an array, whose columns have no names"
        ) from error
    except TypeError as error:
        # of dask, of polars and others, of Spark
        ways = [name for name in ("compute", "collect", "toPandas") if hasattr(type(X), name)]
        raise TypeError(
            f"{called} is a {type(X).__module__}.{type(X).__qualname__}, not a frame in memory: "
            + (f"call {called}.{ways[-1]}() first, or " if ways else "")
            + "make it one of pandas, polars or Arrow (pyarrow.Table)"
        ) from error


def frame_to_array(X: Any, categories: Any = None) -> tuple[np.ndarray, list[Any]]:
    """Numbers f32 or f64 [N, F] of a frame, NaN where missing, and its column names. `categories`,
    a `CategoryReader`, turns categorical columns into codes. A pandas frame of one float dtype that
    pandas holds in one block is not copied."""
    frame, categorical = open_frame(X), frozenset() if categories is None else categories.features
    names, dtype = list(frame.columns), frame_dtype(frame, categorical)
    if frame.implementation.is_pandas() and len(names) and not categorical:
        native = frame.to_native()
        if set(native.dtypes) == {np.dtype(dtype)}:
            return native.to_numpy(copy=False), names
    import narwhals.stable.v2 as nw

    out = np.empty(frame.shape, dtype, order="F")
    wide = nw.Float32() if dtype == np.float32 else nw.Float64()
    columns = zip(frame.iter_columns(), native_dtypes(frame), strict=True)
    for i, (column, native) in enumerate(columns):
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
    """The dtype of a frame's numbers: float32 if every column fits it exactly, else float64. An
    error names a column that is neither categorical, numeric, boolean, empty nor of objects."""
    import narwhals.stable.v2 as nw

    short = nw.Float32 | nw.Boolean | nw.Int8 | nw.Int16 | nw.UInt8 | nw.UInt16
    small = True
    columns = zip(frame.schema.items(), native_dtypes(frame), strict=True)
    for i, ((name, dtype), native) in enumerate(columns):
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
    """Numbers f64[N] of Python objects [N]; None and pandas' NA are NaN. An object that is not a
    real number is an error that names the column; with `text` strings may hold numbers."""
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
