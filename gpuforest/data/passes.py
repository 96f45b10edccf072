"""The two passes that make binned data of blocks: one learns the edges, one encodes."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuforest.backends.base import Backend
from gpuforest.backends.registry import get_host_backend
from gpuforest.common import progress
from gpuforest.common.arguments import thread_count
from gpuforest.data.arrays import to_host
from gpuforest.data.binned import BinnedData, Folder, Labels
from gpuforest.data.blocks import Block, Blocks, named
from gpuforest.data.categories import factorize
from gpuforest.data.summary import Reader, Summary
from gpuforest.data.validation import check_weights
from gpuforest.engine.binning import BinEdges, encode_blocks


@dataclass(frozen=True)
class Binning:
    """How a table is binned; as of the estimators, but `seed` for their `random_state`."""

    max_bins: int | str
    categorical_features: Any
    min_category_frequency: int
    seed: int

    def reader(self) -> Reader:
        return Reader(self.categorical_features, self.min_category_frequency)

    def learned(self, reader: Reader, summary: Summary, rows: Rows, backend: Backend) -> BinnedData:
        """The data of all rows without their codes, after the first pass."""
        y, weights = rows.target(), rows.checked_weights()
        categories = reader.categories(summary.tallies)
        integers = None if weights is None else weights[1]
        edges = summary.edges(self.max_bins, integers, categories, backend)
        names = getattr(reader, "feature_names_in_", None)  # of strings only
        return BinnedData(
            by_feature=np.empty((edges.n_features, 0), edges.code_dtype),
            edges=edges,
            y=y,
            sample_weight=None if weights is None else weights[0],
            feature_names=None if names is None else names.tolist(),
            dtype=np.dtype(summary.sample.values.dtype),
            **vars(self),
        )


def binned_blocks(
    source: Blocks,
    binning: Binning,
    path: str | os.PathLike[str] | None,
    n_jobs: int | None,
    memory_limit: int | None,
    verbose: int,
) -> BinnedData:
    """See `BinnedData.from_blocks`."""
    backend, reader, rows = get_host_backend(thread_count(n_jobs)), binning.reader(), Rows()
    folder = None if path is None else Folder(path)  # refused before any work is lost
    with progress.printing(verbose), folder or nullcontext():
        with progress.stage("learning bins"):
            summary = summarised(source, reader, rows, binning.seed, backend)
            data = binning.learned(reader, summary, rows, backend)
        edges = data.edges
        shape = edges.n_features, summary.n_rows
        n_bytes = shape[0] * shape[1] * np.dtype(edges.code_dtype).itemsize
        if folder is None and memory_limit is not None and n_bytes > memory_limit:
            raise ValueError(
                f"the codes of {shape[1]:,} rows take {n_bytes / 1e6:,.0f} MB, more than "
                f"memory_limit={memory_limit}: pass path, a folder on a disk"
            )
        with progress.stage("binning"):
            new = np.empty if folder is None else folder.codes
            codes = new(shape, edges.code_dtype)
            write_codes(source, reader, edges, codes, backend)
        data = data.with_codes(codes)
        return data if folder is None else folder.finish(data)


def summarised(source: Blocks, reader: Reader, rows: Rows, seed: int, backend: Backend) -> Summary:
    """The summary of all blocks; `rows` collects what the blocks have beside X."""
    found: Summary | None = None
    for block in source:
        if not len(block.X):
            continue
        with named(block.name):
            begin = 0 if found is None else found.n_rows
            weight = rows.add(block)
            limit = {} if found is None else {"limit": found.limit}
            own = reader.summary(block.X, weight, begin, seed, backend, **limit)
            found = own if found is None else found + own
        progress.report(found.n_rows, max(source.n_rows, found.n_rows))
    if found is None:
        raise ValueError("the blocks have no rows")
    return found


def write_codes(
    source: Blocks, reader: Reader, edges: BinEdges, codes: np.ndarray, backend: Backend
) -> None:
    """Write the codes [F, N] of all blocks."""
    begin, N = 0, codes.shape[1]
    for block in source:
        if not len(block.X):
            continue
        with named(block.name):
            if begin + len(block.X) > N:
                raise ValueError("the second pass over the blocks finds more rows than the first")
            X = reader.read(block.X, edges.categories, backend)
            for first, last, part in encode_blocks(X, edges, backend):
                codes[:, begin + first : begin + last] = part.T
        begin += len(block.X)
        progress.report(begin, N)
    if begin < N:
        raise ValueError(f"the second pass over the blocks finds {begin:,} rows, the first {N:,}")


class Rows:
    """Collects y and weights of blocks."""

    def __init__(self) -> None:
        self._n_rows = 0
        self._targets: list[np.ndarray] = []
        self._weights: list[np.ndarray] = []
        self._codes: dict[Any, int] = {}  # of labels
        self._label_type: Any = None

    def add(self, block: Block) -> np.ndarray | None:
        """The weights of a block, once its y and weights are kept.

        Raises
        ------
        ValueError : they do not fit X, or earlier blocks; missing targets; negative weights
        """
        n = len(block.X)
        for values, kept, name in (
            (block.y, self._targets, "y"),
            (block.weight, self._weights, "sample_weight"),
        ):
            if self._n_rows and (values is None) == bool(kept):
                raise ValueError(f"some blocks have {name}, and others have not")
            if values is not None and len(values) != n:
                raise ValueError(f"X has {n} rows, {name} has {len(values)}")
        self._n_rows += n
        if block.y is not None:
            self._targets.append(self._numbers(block.y))
        if block.weight is None:
            return None
        weight = np.asarray(to_host(block.weight, "sample_weight"))
        if weight.dtype.kind not in "biuf" or (weight != 0).any():  # else all are zero, by block
            weight = check_weights_of(weight, n)
        self._weights.append(weight.astype(np.float64))
        return self._weights[-1]

    def extend(self, other: Rows) -> None:
        """Add the rows that another collected.

        Raises
        ------
        ValueError : only one of them has y or weights, or labels
        """
        for own, others, name in (
            (self._targets, other._targets, "y"),
            (self._weights, other._weights, "sample_weight"),
        ):
            if self._n_rows and bool(own) != bool(others):
                raise ValueError(f"some blocks have {name}, and others have not")
        if self._targets and (self._label_type is None) != (other._label_type is None):
            raise ValueError("y holds labels in some blocks, and numbers in others")
        self._n_rows, self._label_type = self._n_rows + other._n_rows, other._label_type
        self._weights += other._weights
        table = [self._codes.setdefault(label, len(self._codes)) for label in other._codes]
        moved = np.array(table, np.int32)
        self._targets += [moved[codes] for codes in other._targets] if table else other._targets

    def _numbers(self, y: Any) -> np.ndarray:
        """A block's targets, or codes of its labels."""
        column = y if hasattr(y, "implementation") else np.asarray(to_host(y, "y"))
        if not isinstance(column, np.ndarray) and (
            column.dtype.is_numeric() or column.dtype.is_boolean()
        ):
            if column.null_count():
                raise ValueError(f"y is missing in {column.null_count()} rows")
            column = column.to_numpy()
        is_labels = not isinstance(column, np.ndarray) or column.dtype.kind not in "biuf"
        if self._targets and is_labels != (self._label_type is not None):
            raise ValueError("y holds labels in some blocks, and numbers in others")
        if not is_labels:
            if column.dtype.kind == "f" and not np.isfinite(column).all():
                raise ValueError("y contains NaN or infinity: every row needs a finite target")
            return np.asarray(column)
        is_text = isinstance(column, np.ndarray) and column.dtype.kind == "U"
        self._label_type = np.str_ if is_text else object
        factor = factorize(column, "y")
        if (factor.codes < 0).any():
            raise ValueError("y contains NaN or None: every row needs a label")
        table = [self._codes.setdefault(value, len(self._codes)) for value in factor.values]
        return np.asarray(np.array(table, np.int32)[factor.codes])

    def target(self) -> Any:
        """y [N], `Labels`, or None."""
        if not self._targets:
            return None
        y = np.concatenate(self._targets)
        self._targets.clear()
        if self._label_type is None:
            return y
        if len({isinstance(value, str) for value in self._codes}) > 1:
            raise ValueError("Unknown label type: y mixes strings and numbers")
        classes = sorted(self._codes)
        place = {label: i for i, label in enumerate(classes)}
        moved = np.array([place[label] for label in self._codes], np.int32)
        if not isinstance(classes[0], str):  # Python numbers are numbers
            return np.array(classes)[moved[y]]
        return Labels(moved[y], np.array(classes, self._label_type))

    def checked_weights(self) -> tuple[np.ndarray, np.ndarray] | None:
        """All weights, and the same as integers, see `check_weights`."""
        if not self._weights:
            return None
        weights = np.concatenate(self._weights)
        self._weights.clear()
        return check_weights(weights, len(weights))


def check_weights_of(weight: np.ndarray, n_rows: int) -> np.ndarray:
    found = check_weights(weight, n_rows)
    assert found is not None
    return found[0]
