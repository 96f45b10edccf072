"""Dask collections as partitions: blocks of rows that lie on workers, and what each is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuforest.backends.registry import get_host_backend
from gpuforest.data.arrays import to_host
from gpuforest.data.blocks import Block, named
from gpuforest.data.passes import Reader, Rows, Summary
from gpuforest.engine.binning import BinEdges, bin_matrix


def is_collection(X: Any) -> bool:
    """Whether X is a dask array or DataFrame, or a list of delayed blocks."""
    from dask.base import is_dask_collection
    from dask.delayed import Delayed

    if isinstance(X, list | tuple):
        return len(X) > 0 and all(isinstance(block, Delayed) for block in X)
    return bool(is_dask_collection(X))


def delayed_blocks(X: Any, y: Any, sample_weight: Any) -> list[Any]:
    """Delayed triples (X, y, sample_weight), one for each partition.

    Raises
    ------
    TypeError : y or sample_weight is no collection, though X is one
    ValueError : they are cut into other numbers of partitions
    """
    from dask.delayed import delayed

    parts = _parts(X, "X")
    columns = []
    for values, name in ((y, "y"), (sample_weight, "sample_weight")):
        found = [None] * len(parts) if values is None else _parts(values, name)
        if len(found) != len(parts):
            raise ValueError(
                f"X has {len(parts)} partitions, {name} has {len(found)}: cut both in the same way"
            )
        columns.append(found)
    return [delayed(_triple)(*each) for each in zip(parts, *columns, strict=True)]


def _parts(values: Any, name: str) -> list[Any]:
    if not is_collection(values):
        raise TypeError(
            f"{name} is a {type(values).__name__}, but X is a dask collection: pass {name} as one "
            "that is cut in the same way"
        )
    if isinstance(values, list | tuple):
        return list(values)
    if hasattr(values, "numblocks"):  # an array: its blocks are to hold whole rows
        if values.ndim > 1 and values.numblocks[1] > 1:
            values = values.rechunk({1: -1})
        return list(values.to_delayed().reshape(-1))
    # optimised apart, X and y of the same files would be cut into other partitions
    return list(values.to_delayed(optimize_graph=False))


def _triple(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    return X, y, sample_weight


def rows_of(triple: tuple[Any, Any, Any], name: str) -> Rows:
    """The checked y and weights of a partition."""
    with named(name):
        return Rows(Block(name, *triple))


def opened(triple: tuple[Any, Any, Any], name: str, reader: Reader) -> Reader:
    """The reader after the first partition that has rows: it knows the columns."""
    with named(name):
        reader.summary(triple[0], None, 0, get_host_backend())
    return reader


def summarised(
    triple: tuple[Any, Any, Any], name: str, reader: Reader, begin: int, limit: int
) -> Summary:
    """The summary of a partition whose first row has the number `begin`."""
    X, _, weight = triple
    if weight is not None:
        weight = np.asarray(to_host(weight, "sample_weight"), np.float64)
    with named(name):
        return reader.summary(X, weight, begin, get_host_backend(), limit)


def added(summaries: Sequence[Summary]) -> Summary:
    return sum(summaries[1:], summaries[0])


def encoded(triple: tuple[Any, Any, Any], name: str, reader: Reader, edges: BinEdges) -> np.ndarray:
    """The codes of a partition, u8 or u16 [F, n]."""
    backend = get_host_backend()
    with named(name):
        X = reader.read(triple[0], edges.categories, backend)
        return np.ascontiguousarray(bin_matrix(X, edges, backend).codes.T)
