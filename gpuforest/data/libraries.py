"""The library that reads files and holds their frames, and what each calls its dtypes."""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np

OLDEST_PYARROW = 24  # 17, 20 and 22 changed the last byte of text beside missing values


def has_pyarrow() -> bool:
    """Whether pyarrow is installed, and so new that it keeps text whole."""
    return find_spec("pyarrow") is not None and (
        int(version("pyarrow").partition(".")[0]) >= OLDEST_PYARROW
    )


def frame_engine() -> str:
    """The library that holds frames: "pyarrow" if it is installed, else "pandas".

    Raises
    ------
    ImportError : neither is installed
    """
    if has_pyarrow():
        return "pyarrow"
    if find_spec("pandas") is not None:
        return "pandas"
    raise ImportError(
        f"files need pyarrow {OLDEST_PYARROW} or newer (CSV: or pandas): "
        "pip install 'gpuforest[files]'"
    )


def require_pyarrow(what: str = "Parquet files") -> None:
    """Raise an ImportError that names the extra if pyarrow is absent or too old."""
    if not has_pyarrow():
        raise ImportError(
            f"{what} need pyarrow {OLDEST_PYARROW} or newer, an extra: "
            "pip install 'gpuforest[files]'"
        )


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
