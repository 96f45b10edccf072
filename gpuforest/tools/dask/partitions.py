"""Dask collections as partitions: blocks of rows that lie on workers, and what workers do."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from gpuforest.backends import base, gpu, registry
from gpuforest.common import arguments
from gpuforest.core import bins, forest
from gpuforest.data import arrays, labels
from gpuforest.data.binned import BinnedData, FitInput
from gpuforest.data.blocks import Block, named
from gpuforest.data.passes import Reader, Rows, Summary
from gpuforest.data.target_statistics import Numbers
from gpuforest.estimators.plan import TrainingPlan
from gpuforest.estimators.prepare import prepare
from gpuforest.growing.assemble import merged
from gpuforest.growing.edges import bin_matrix


def is_collection(X: Any) -> bool:
    """Whether X is a dask array or DataFrame, or a list of delayed blocks."""
    from dask.base import is_dask_collection
    from dask.delayed import Delayed

    if isinstance(X, list | tuple):
        return len(X) > 0 and all(isinstance(block, Delayed) for block in X)
    return bool(is_dask_collection(X))


def delayed_blocks(
    X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None, blocks: Any = None
) -> list[Any]:
    """A delayed `Block` for each partition."""
    from dask.delayed import delayed

    columns = [parts_of(X, "X")]
    for values, name in zip((y, sample_weight, groups, blocks), labels.OF_ROWS, strict=True):
        n = len(columns[0])
        columns.append([None] * n if values is None else parts_of(values, name))
        if len(columns[-1]) != n:
            raise ValueError(
                f"X has {n} partitions, {name} has {len(columns[-1])}: cut both in the same way"
            )
    parts = enumerate(zip(*columns, strict=True))
    return [delayed(Block)(f"partition {i}", *part) for i, part in parts]


def parts_of(values: Any, name: str) -> list[Any]:
    """A delayed value for each partition of a collection."""
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


def sent(client: Any, values: list[Any]) -> list[Any]:
    """Futures of values, which are made again where a worker dies. Of what is scattered dask soon
    keeps a single copy, however many workers had one, and it is lost with its worker."""
    from dask import config

    with config.set({"distributed.admin.large-graph-warning-threshold": "1PB"}):
        return list(client.map(itself, values, pure=False))


def itself(value: Any) -> Any:
    return value


def rows_of(block: Block) -> Rows:
    """The checked y and weights of a partition."""
    with named(block.name):
        return Rows(block)


def opened(block: Block, reader: Reader) -> Reader:
    """The reader after the first partition that has rows: it knows the columns."""
    with named(block.name):
        reader.summary(block.X, None, 0, registry.get_host_backend())
    return reader


def summarised(block: Block, reader: Reader, begin: int, limit: int) -> Summary:
    """The summary of a partition whose first row has the number `begin`."""
    weight = block.weight
    if weight is not None:
        weight = np.asarray(arrays.to_host(weight, "sample_weight"), np.float64)
    with named(block.name):
        return reader.summary(block.X, weight, begin, registry.get_host_backend(), limit)


def added(summaries: Sequence[Summary]) -> Summary:
    return sum(summaries[1:], summaries[0])


def encoded(block: Block, reader: Reader, edges: bins.BinEdges, ordered: Numbers) -> np.ndarray:
    """Codes of a partition, u8 or u16 [F, n]; a partition on a GPU is encoded there."""
    on_gpu = arrays.is_on_device(block.X) and not ordered and gpu.usable()
    backend = registry.get_backend(registry.GPU) if on_gpu else registry.get_host_backend()
    with named(block.name):
        X = reader.read(block.X, edges, ordered, 0, backend)
        codes = backend.asnumpy(bin_matrix(X, edges, backend).codes)
        return np.ascontiguousarray(codes[:, : edges.n_features].T)


def gathered(data: BinnedData, parts: list[np.ndarray]) -> BinnedData:
    """The data with the codes of all partitions."""
    return data.with_codes(np.concatenate(parts, axis=1))


def grown_share(data: BinnedData, estimator: Any, begin: int, end: int) -> forest.Forest:
    """The trees begin .. end - 1 of the estimator's forest, not finished."""
    local = local_copy(estimator, oob_score=False)

    def work(backend: base.Backend) -> forest.Forest:
        plan = share_plan(local, data, backend)
        return merged(plan.grow(begin, end), plan.training, backend.n_threads)

    grown: forest.Forest = registry.run_on_backend(work, **local._chosen(data))
    return grown


def share_plan(estimator: Any, data: BinnedData, backend: base.Backend) -> TrainingPlan:
    """What the trees of a share grow from; `random_state` is a number."""
    estimator._validate_params()
    seed = arguments.draw_seed(estimator.random_state)
    return prepare(estimator, FitInput.of(data), seed, backend)


def fitted(data: BinnedData, estimator: Any, grown: list[forest.Forest]) -> Any:
    """The whole estimator: of trees that have grown, or it grows them itself."""
    local = local_copy(estimator, verbose=0)  # the client prints
    local.fit(FitInput.of(data)._replace(grown=tuple(grown)) if grown else data)
    if hasattr(estimator, "verbose"):
        local.verbose = estimator.verbose
    return local


def local_copy(estimator: Any, **others: Any) -> Any:
    """A copy for this worker, on its threads, with other parameters where it has these."""
    from distributed import get_worker

    names = estimator.get_params(deep=False)
    values = {"n_jobs": get_worker().state.nthreads, **others}
    return copy(estimator).set_params(**{k: v for k, v in values.items() if k in names})
