"""Loading: a file becomes a frame of numbers and categories, a target and weights."""

from gpuforest.loading.columns import (
    MAX_CLASSES,
    Table,
    is_class_target,
    listed,
    load_table,
    read_frame,
    require_column,
    select_features,
    split_columns,
    string_columns,
)
from gpuforest.loading.engine import require_pyarrow
from gpuforest.loading.files import PARQUET
from gpuforest.loading.values import Reading

__all__ = [
    "MAX_CLASSES",
    "PARQUET",
    "Reading",
    "Table",
    "is_class_target",
    "listed",
    "load_table",
    "read_frame",
    "require_column",
    "require_pyarrow",
    "select_features",
    "split_columns",
    "string_columns",
]
