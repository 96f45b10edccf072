"""Loading: a file becomes a frame of numbers and categories, a target and weights."""

from gpuforest.loading.advice import nearly_numbers
from gpuforest.loading.columns import (
    MAX_CLASSES,
    Table,
    find_columns,
    is_class_target,
    load_table,
    require_column,
    select_features,
    split_columns,
    string_columns,
)
from gpuforest.loading.engine import require_pyarrow
from gpuforest.loading.files import PARQUET, named_files
from gpuforest.loading.frames import listed, read_frame
from gpuforest.loading.values import Reading

__all__ = [
    "MAX_CLASSES",
    "PARQUET",
    "Reading",
    "Table",
    "find_columns",
    "is_class_target",
    "listed",
    "load_table",
    "named_files",
    "nearly_numbers",
    "read_frame",
    "require_column",
    "require_pyarrow",
    "select_features",
    "split_columns",
    "string_columns",
]
