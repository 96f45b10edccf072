"""A table in blocks of rows: arrays or frames one after another, or files that are read by blocks.

Whoever passes over the rows twice asks for the blocks twice, so a source is not used up.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gpuforest.common.text import did_you_mean
from gpuforest.data import frames
from gpuforest.data.arrays import is_frame, open_frame
from gpuforest.data.files import PARQUET, named_files, require_pyarrow

ROWS = 65_536  # of a block of a file
CSV_BYTES = 2**24  # of a block of a CSV file


class Block(NamedTuple):
    """Some consecutive rows."""

    name: str  # what errors call it
    X: Any  # array or frame [n, F]
    y: Any = None  # array or series [n]
    weight: Any = None
    groups: Any = None
    blocks: Any = None  # of time


class Blocks:
    """A source of blocks that have rows, the same ones at each iteration; with `once` it may be an
    iterator. Source and columns are as in `BinnedData.from_blocks`. `n_rows`: rows of Parquet
    files, 0 if unknown."""

    def __init__(
        self, source: Any, target: str | Sequence[str] | None = None, weight: str | None = None,
        drop: Sequence[str] = (), once: bool = False, groups: str | None = None,
        time: str | None = None,
    ) -> None:  # fmt: skip
        self._apart, self._drop = (target, weight, groups, time), list(drop)
        files = _named(source)
        self._open = _opener(source, once) if files is None else partial(_file_blocks, files)
        self.n_rows = sum(_parquet_rows(file) for file, _ in files or ())

    def __iter__(self) -> Iterator[Block]:
        for name, block in self._open():
            with named(name):
                part = self._parts(name, block)
                if len(part.X):
                    yield part

    def _parts(self, name: str, block: Any) -> Block:
        X, *parts = (*(block if isinstance(block, tuple) else (block,)), *[None] * 4)[:5]
        target, *others = self._apart
        targets = [target] if isinstance(target, str) else [*(target or ())]
        apart = [c for c in (*targets, *others, *self._drop) if c is not None]
        if not apart:
            return Block(name, X, *parts)
        if not is_frame(X):
            raise ValueError(
                "target, sample_weight, groups, time and drop name columns, but the block is no "
                "frame"
            )
        frame, y = _frame_with(apart, X), parts[0]
        if targets:
            y = frame[target] if isinstance(target, str) else frame.select(targets).to_native()
        pairs = zip(others, parts[1:], strict=True)
        labels = [part if c is None else frame[c].to_native() for c, part in pairs]
        return Block(name, frame.drop(*apart).to_native(), y, *labels)


def predict_blocks(
    estimator: Any, blocks: Any, method: str = "predict", *, drop: Sequence[str] = ()
) -> Iterator[np.ndarray]:
    """Predict a table that need not fit into memory, block by block.

    Parameters
    ----------
    estimator : fitted
    blocks : as in `BinnedData.from_blocks`, but without y; also an iterator
        Of frames and files those columns are taken that the estimator was fitted on.
    method : str, default="predict"
        The estimator's method: also "predict_proba", "apply" and others that take X alone.
    drop : sequence of str
        Columns that are left out, of an estimator that was fitted without names.

    Yields
    ------
    what the method returns, for one block after another

    Raises
    ------
    ValueError, TypeError, OSError
        As `BinnedData.from_blocks`; a block that lacks a feature.

    Examples
    --------
    >>> import numpy as np
    >>> from gpuforest import DecisionTreeRegressor, predict_blocks
    >>> tree = DecisionTreeRegressor().fit([[0], [1]], [3.0, 4.0])
    >>> for found in predict_blocks(tree, [np.zeros((2, 1)), np.ones((1, 1))]):
    ...     print(found)
    [3. 3.]
    [4.]
    """
    names = list(getattr(estimator, "feature_names_in_", ()))
    for block in Blocks(blocks, drop=drop, once=True):
        with named(block.name):
            X = block.X
            if names and is_frame(X):
                X = _frame_with(names, X).select(names).to_native()
            found = getattr(estimator, method)(X)
        yield found


def _frame_with(names: list[str], X: Any) -> Any:
    """A frame in narwhals; an error if a column is absent."""
    frame = open_frame(X)
    if absent := [name for name in names if name not in frame.columns]:
        hint = did_you_mean(absent[0], frame.columns)
        raise ValueError(f"no column of the name {frames.listed(absent)}{hint}")
    return frame


@contextmanager
def named(name: str) -> Iterator[None]:
    """Say in the errors of the data inside which block they are of."""
    try:
        yield
    except (ValueError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name}: {error}") from error


def _opener(source: Any, once: bool) -> Callable[[], Iterator[tuple[str, Any]]]:
    """A function that begins to pass over the source's blocks and their names."""
    if hasattr(source, "to_batches"):  # pyarrow's Dataset
        return lambda: _numbered(source.to_batches(batch_size=ROWS))
    if is_frame(source) or hasattr(source, "__array__"):
        raise TypeError("blocks is one table: pass a list of blocks, such as [X] or [(X, y)]")
    if callable(source):
        return lambda: _numbered(source())
    if not isinstance(source, Iterable):
        raise TypeError(f"blocks must be an iterable of blocks, or files, not {type(source)}")
    if iter(source) is source and not once:
        raise ValueError(
            "blocks is an iterator, which gives its blocks only once, and they are needed twice: "
            "pass a list, or a function that returns a new iterator"
        )
    return lambda: _numbered(source)


def _named(source: Any) -> list[tuple[str, str]] | None:
    """The files that a source names, each with the path that named it; None: it names none."""
    paths = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(paths, list | tuple) or not paths:
        return None
    if not all(isinstance(path, str | os.PathLike) for path in paths):
        return None
    require_pyarrow("files in blocks")
    return [(file, os.fspath(path)) for path in paths for file in named_files(os.fspath(path))]


def _numbered(blocks: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    for i, block in enumerate(blocks):
        yield f"block {i}", block


def _file_blocks(files: list[tuple[str, str]]) -> Iterator[tuple[str, Any]]:
    """Tables of the files' rows. files : (file, the path that named it)"""
    folders = frames.folder_columns(files)
    types: dict[str, Any] = {}  # of the columns of CSV files, as the first one has them
    names: list[str] = []
    for i, (file, _) in enumerate(files):
        begin = 0
        read = _parquet if file.lower().endswith(PARQUET) else _csv
        tables = read(file, types)
        while True:
            with _errors_of(file):  # but not of what is done with the tables
                table = next(tables, None)
            if table is None:
                break
            if not begin:
                frames.require_unique(table.column_names, file)
                names = names or table.column_names
                frames.refuse_other_columns(file, table.column_names, files[0][0], names)
            table = table.select(names)  # which may stand in another order
            for name, values in folders.items():
                if name not in names:
                    table = table.append_column(name, values.take(np.full(len(table), i)))
            yield f"{file}, rows {begin:,} to {begin + len(table) - 1:,}", table
            begin += len(table)


@contextmanager
def _errors_of(file: str) -> Iterator[None]:
    """Say in the errors of reading which file they are of."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise type(error)(error.errno, os.strerror(error.errno), file) from error
        raise ValueError(f"{file} cannot be read: {str(error).splitlines()[0]}") from error


def _parquet(file: str, types: dict[str, Any]) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import parquet

    with parquet.ParquetFile(file) as source:
        for batch in source.iter_batches(ROWS):
            yield frames.plain_table(pa.Table.from_batches([batch], source.schema_arrow))


def _parquet_rows(file: str) -> int:
    from pyarrow import parquet

    if not file.lower().endswith(PARQUET):
        return 0
    with _errors_of(file):
        return int(parquet.read_metadata(file).num_rows)


def _csv(file: str, types: dict[str, Any]) -> Iterator[Any]:
    """Read whole numbers and empty columns as float64: later blocks may hold fractions."""
    import pyarrow as pa
    from pyarrow import csv

    by_blocks = csv.ReadOptions(block_size=CSV_BYTES)
    if not types:
        with csv.open_csv(file, by_blocks) as reader:
            for field in reader.schema:
                as_float = pa.types.is_integer(field.type) or pa.types.is_null(field.type)
                types[field.name] = pa.float64() if as_float else field.type
    convert = csv.ConvertOptions(column_types=types, strings_can_be_null=True)
    with csv.open_csv(file, by_blocks, convert_options=convert) as reader:
        for batch in reader:
            yield frames.plain_table(pa.Table.from_batches([batch]))
