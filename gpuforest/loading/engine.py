"""Which library reads files and holds their frames: pyarrow, or pandas where it is alone."""

from __future__ import annotations

from importlib.util import find_spec


def frame_engine() -> str:
    """The library that holds frames: "pyarrow" if it is installed, else "pandas".

    Raises
    ------
    ImportError : neither is installed
    """
    for name in ("pyarrow", "pandas"):
        if find_spec(name) is not None:
            return name
    raise ImportError("files need pyarrow (CSV: or pandas): pip install 'gpuforest[files]'")


def require_pyarrow(what: str = "Parquet files") -> None:
    """Raise an ImportError that names the extra if pyarrow is absent."""
    if find_spec("pyarrow") is None:
        raise ImportError(f"{what} need pyarrow, an extra: pip install 'gpuforest[files]'")
