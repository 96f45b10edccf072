"""A fit on a cluster: partitions become codes where they lie, every worker gets all codes, and each
grows its share of the trees.

    partitions --> facts --> summaries --> bin edges        (small, to the client)
         `------------------------------------> codes --> on every worker: all codes --> its trees
                                                                            one forest <--'
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gpuforest.backends.registry import get_host_backend
from gpuforest.common import progress
from gpuforest.data.binned import BinnedData
from gpuforest.data.blocks import named
from gpuforest.data.passes import Reader, Rows, Summary
from gpuforest.engine.binning import SAMPLE_ROWS, hash_limit
from gpuforest.engine.forest import Forest
from gpuforest.estimators.growing import grow_share
from gpuforest.tools.dask import partitions
from gpuforest.tools.dask.by_rows import fit_rows
from gpuforest.tools.dask.waiting import as_done

Client = Any
NEED_ALL_ROWS = {
    "criterion": ("absolute_error",),
    "class_weight": ("balanced_subsample",),
    "categorical_split": ("multiway",),
    "oob_score": (True,),
    "unbiased_importances": (True,),
}  # parameters with which strategy "rows" cannot do
ADDED_AT_ONCE = 8  # summaries that one task adds


@dataclass(frozen=True, eq=False)
class Codes:
    """Binned data whose codes lie on the workers.

    data : without codes
    parts : futures of codes [F, n]
    ranges : the numbers of their rows
    """

    data: BinnedData
    parts: list[Any]

    ranges: list[range]

    def __len__(self) -> int:
        return self.ranges[-1].stop

    @property
    def n_bytes(self) -> int:
        """Of what each worker that trains holds: codes twice, while the parts become one array;
        targets and weights."""
        edges = self.data.edges
        each = edges.n_features * np.dtype(edges.code_dtype).itemsize
        return len(self) * (2 * each + 16)


def fit(client: Client, estimator: Any, triples: list[Any], strategy: str, verbose: int) -> Any:
    """The estimator, fitted on a worker; `random_state` is a number.

    Parameters
    ----------
    estimator : a local one
    triples : delayed (X, y, sample_weight)
    strategy : "auto", "trees" or "rows"

    Raises
    ------
    ValueError : no workers; what the data have wrong, with the partition's name; a strategy that
        does not fit
    """
    begin = estimator._earlier().n_trees if continues(estimator) else 0
    with progress.printing(verbose):
        if strategy == "rows":
            require_shared_rows(estimator)
            if begin == estimator.n_estimators:
                strategy = "trees"  # which has nothing to grow
        codes = binned(client, estimator, triples)
        lacking = without_room(client, codes)
        if strategy == "auto" and lacking and not why_not_rows(estimator):
            strategy = "rows"
        if strategy == "rows":
            with progress.stage("growing"):
                return fit_rows(client, estimator, codes.data, codes.parts, codes.ranges, begin)
        if lacking:
            raise ValueError(lacking)
        [data] = client.scatter([codes.data], broadcast=True, hash=False)
        return fit_trees(client, estimator, data, codes, begin)


def fit_trees(client: Client, estimator: Any, data: Any, codes: Codes, begin: int) -> Any:
    """Every worker gets all codes, and grows some of the trees."""
    workers = workers_of(client)
    with progress.stage("sharing codes"):
        copies = {w: client.submit(gathered, data, codes.parts, **_on(w)) for w in workers}
        done_all(client, list(copies.values()))
    codes.parts.clear()
    grown = []
    if shares_trees(estimator):
        with progress.stage("growing"):
            ranges = evenly_shared(begin, int(estimator.n_estimators), workers)
            grown = [
                client.submit(grown_share, copies[w], estimator, a, b, **_on(w))
                for w, (a, b) in ranges.items()
            ]
            done_all(client, grown)
    with progress.stage("joining"):
        first = next(iter(workers))
        last = client.submit(fitted, copies[first], estimator, grown, **_on(first))
        return done_all(client, [last])[0].result()


def require_shared_rows(estimator: Any) -> None:
    """Raise a ValueError unless strategy "rows" can grow the estimator."""
    if why := why_not_rows(estimator):
        raise ValueError(f"strategy='rows' cannot do {why}: use 'trees'")


def why_not_rows(estimator: Any) -> str:
    """What strategy "rows" cannot do of what the estimator wants; "": nothing."""
    if not shares_trees(estimator):
        return "models whose trees depend on each other"
    params = estimator.get_params(deep=False)
    for name, values in NEED_ALL_ROWS.items():
        if params.get(name) in values:
            return f"{name}={params[name]!r}, which needs all rows in one place"
    if (params.get("feature_combinations") or 0) > 1:
        return "feature_combinations, which needs all rows of a node in one place"
    return ""


def workers_of(client: Client) -> dict[str, int]:
    """The workers' addresses, and their threads.

    Raises
    ------
    ValueError : there are none
    """
    found = {w: facts["nthreads"] for w, facts in client.scheduler_info(-1)["workers"].items()}
    if not found:
        raise ValueError("the cluster has no workers: start some, or scale it up")
    return found


def without_room(client: Client, codes: Codes) -> str:
    """What is wrong where a worker has no memory for all codes; "": each has."""
    for worker, known in client.scheduler_info(-1)["workers"].items():
        if 0 < known["memory_limit"] < codes.n_bytes:
            return (
                f"the codes of {len(codes):,} rows take {codes.n_bytes / 1e9:.3g} GB on each "
                f"worker, but {worker} has {known['memory_limit'] / 1e9:.3g} GB of memory: give "
                "the workers more, use fewer of them on a machine, or use strategy='rows'"
            )
    return ""


def _on(worker: str) -> dict[str, Any]:
    """Where a task runs; on another worker if that one dies."""
    return {"workers": [worker], "allow_other_workers": True, "pure": False}


def continues(estimator: Any) -> bool:
    return bool(getattr(estimator, "warm_start", False)) and hasattr(estimator, "forest_")


def shares_trees(estimator: Any) -> bool:
    """Whether the trees do not depend on each other. Out-of-bag errors may choose their number."""
    number, tried = getattr(estimator, "n_estimators", None), getattr(estimator, "max_features", 0)
    return isinstance(number, int | np.integer) and tried != "oob"


def evenly_shared(begin: int, end: int, threads: dict[str, int]) -> dict[str, tuple[int, int]]:
    """Ranges of tree numbers, in proportion to the workers' threads; empty ones are left out."""
    ends = begin + np.cumsum([0, *threads.values()]) * (end - begin) // sum(threads.values())
    pairs = zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    return {w: pair for w, pair in zip(threads, pairs, strict=True) if pair[0] < pair[1]}


def done_all(client: Client, futures: list[Any]) -> list[Any]:
    """The futures, when all are done.

    Raises
    ------
    Exception : that of a task; the other tasks are cancelled
    RuntimeError : workers that died while they ran a task, time after time; no workers are left
    """
    from distributed import KilledWorker

    try:
        done = 0
        for future in as_done(client, futures):
            if future is None:
                continue
            if future.status == "cancelled":
                raise RuntimeError("a task was cancelled: the cluster was closed, or the fit ended")
            if future.status == "error":
                future.result()  # raises
            done += 1
            progress.report(done, len(futures))
    except KilledWorker as error:
        client.cancel(futures)
        raise RuntimeError(
            f"worker {error.last_worker.address} died, as others before it, while it ran a task of "
            "this fit: most often its memory was too small"
        ) from error
    except BaseException:
        client.cancel(futures)
        raise
    return futures


def binned(client: Client, estimator: Any, triples: list[Any]) -> Codes:
    """The codes of all partitions, on the workers."""
    workers_of(client)
    names = [f"partition {i}" for i in range(len(triples))]
    with progress.stage("reading partitions"):
        blocks = done_all(client, client.compute(triples))
        each = [client.submit(partitions.rows_of, *b) for b in zip(blocks, names, strict=True)]
        each = client.gather(done_all(client, each))
    ends = np.cumsum([0, *(rows.n_rows for rows in each)]).tolist()
    found = [
        Part(name, block, rows, range(first, last))
        for name, block, rows, (first, last) in zip(
            names, blocks, each, pairwise(ends), strict=True
        )
        if rows.n_rows
    ]
    if not found:
        raise ValueError("the partitions have no rows")
    reader = Reader(
        estimator.max_bins,
        estimator.categorical_features,
        estimator.min_category_frequency,
        estimator.random_state,
    )
    with progress.stage("learning bins"):
        first, rows = found[0], Rows()
        reader = client.submit(partitions.opened, first.block, first.name, reader).result()
        summary = summary_of(client, found, reader)
        for part in found:
            with named(part.name):
                rows.add(part.collected)
        data = reader.learned(summary, rows, get_host_backend())
    with progress.stage("binning"):
        codes = [
            client.submit(partitions.encoded, p.block, p.name, reader, data.edges) for p in found
        ]
        done_all(client, codes)
    return Codes(data, codes, [part.rows for part in found])


class Part(NamedTuple):
    """A partition that has rows; `block`: a future."""

    name: str
    block: Any
    collected: Rows  # its y and weights
    rows: range  # of the table


def summary_of(client: Client, parts: list[Part], reader: Reader) -> Summary:
    """The summary of all rows; workers add up those of partitions."""
    n_counted = sum(part.collected.n_counted for part in parts)
    wanted = min(SAMPLE_ROWS, n_counted)

    def found(limit: int) -> Summary:
        each = [
            client.submit(partitions.summarised, p.block, p.name, reader, p.rows.start, limit)
            for p in parts
        ]
        done_all(client, each)
        while len(each) > 1:
            groups = [each[g : g + ADDED_AT_ONCE] for g in range(0, len(each), ADDED_AT_ONCE)]
            each = [client.submit(partitions.added, group) for group in groups]
        summary: Summary = each[0].result()
        return summary

    summary = found(hash_limit(wanted, max(n_counted, 1)))
    # with a chance of 10**-15 these are too few
    return summary if len(summary.sample.rows) >= wanted else found(2**64 - 1)


# what workers run


def gathered(data: BinnedData, parts: list[np.ndarray]) -> BinnedData:
    """The data with the codes of all partitions."""
    return data.with_codes(np.concatenate(parts, axis=1))


def grown_share(data: BinnedData, estimator: Any, begin: int, end: int) -> Forest:
    return grow_share(here(estimator, oob_score=False), data, begin, end)


def fitted(data: BinnedData, estimator: Any, grown: list[Forest]) -> Any:
    """The whole estimator: of trees that have grown, or it grows them itself."""
    own = here(estimator)
    own._grown = tuple(grown)
    return without_grown(own.fit(data))


def without_grown(estimator: Any) -> Any:
    """The fitted estimator alone: its parts need not travel beside its forest."""
    estimator.__dict__.pop("_grown", None)
    return estimator


def here(estimator: Any, **others: Any) -> Any:
    """A copy for this worker, on its threads."""
    from distributed import get_worker

    known = estimator.get_params(deep=False)
    given = {"n_jobs": get_worker().state.nthreads, **others}
    return copy(estimator).set_params(**{k: v for k, v in given.items() if k in known})
