"""A fit on a cluster: partitions become codes where they lie, every worker gets all codes, and each
grows its share of the trees.

    partitions --> facts --> summaries --> bin edges        (small, to the client)
         `------------------------------------> codes --> on every worker: all codes --> its trees
                                                                            one forest <--'
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from gpuforest.backends.registry import get_host_backend
from gpuforest.common import progress
from gpuforest.core.bins import SAMPLE_ROWS
from gpuforest.data.binned import BinnedData, learned
from gpuforest.data.blocks import named
from gpuforest.data.passes import Reader, Rows, Summary
from gpuforest.estimators import by_ids, capabilities, settings, survival
from gpuforest.growing.edges import hash_limit
from gpuforest.tools.dask import partitions
from gpuforest.tools.dask.rows import fit_rows
from gpuforest.tools.dask.waiting import done_all

Client = Any
ADDED_AT_ONCE = 8  # summaries that one task adds


def fit(client: Client, estimator: Any, blocks: list[Any], strategy: str, verbose: int) -> Any:
    """Fit a local estimator on workers to delayed blocks by "auto", "trees" or "rows"."""
    goes_on = continues(estimator) and shares_trees(estimator)
    begin = estimator._n_before() if goes_on else 0
    with progress.printing(verbose):
        if strategy == "rows":
            if why := why_not_rows(estimator):
                raise ValueError(capabilities.ROWS.format(why))
            if begin == estimator.n_estimators:
                strategy = "trees"  # which has nothing to grow
        data, parts, ranges = binned(client, estimator, blocks)
        lacking = without_room(client, data)
        if strategy == "auto" and lacking and not why_not_rows(estimator):
            strategy = "rows"
        if strategy == "rows":
            with progress.stage("growing"):
                return fit_rows(client, estimator, data, parts, ranges, begin)
        if lacking:
            raise ValueError(lacking)
        return fit_trees(client, estimator, data, parts, begin)


def fit_trees(
    client: Client, estimator: Any, data: BinnedData, parts: list[Any], begin: int
) -> Any:
    """Every worker gets all codes, whose parts are futures, and grows some of the trees."""
    workers = workers_of(client)
    [sent] = partitions.sent(client, [data])
    with progress.stage("sharing codes"):
        copies = on_each(client, partitions.gathered, dict.fromkeys(workers, (sent, parts)))
    parts.clear()  # makes room
    grown = []
    if shares_trees(estimator):
        with progress.stage("growing"):
            shares = evenly_shared(begin, int(estimator.n_estimators), workers)
            given = {w: (copies[w], estimator, *shares[w]) for w in shares}
            grown = [*on_each(client, partitions.grown_share, given).values()]
    with progress.stage("joining"):
        first = next(iter(workers))
        done = on_each(client, partitions.fitted, {first: (copies[first], estimator, grown)})
        return done[first].result()


def why_not_rows(estimator: Any) -> str:
    """What strategy "rows" cannot do of what the estimator wants; "": nothing."""
    if not shares_trees(estimator):
        return "models whose trees depend on each other"
    if isinstance(estimator, survival.SurvivalForest):
        return "survival forests, whose curves need all rows in one place"
    kind, params = estimator._settings().kind, estimator.get_params(deep=False)
    if kind.whole_rows:
        return f"{kind.title}, which needs all rows of a node in one place"
    needing = [name for name in ("oob_score", "unbiased_importances") if params.get(name)]
    if estimator._settings().by_class:
        return "draws of each class"
    if params.get("bootstrap") == by_ids.BY_IDS:
        return "bootstrap='poisson'"
    if params.get("class_weight") == "balanced_subsample":
        needing.append("class_weight")
    if params.get("shrinkage") == "oob":
        needing.append("shrinkage")
    return "".join(f"{n}={params[n]!r}, which needs all rows in one place" for n in needing[:1])


def workers_of(client: Client) -> dict[str, int]:
    """The workers' addresses, and their threads."""
    threads: dict[str, int] = client.nthreads()
    if not threads:
        raise ValueError("the cluster has no workers: start some, or scale it up")
    return threads


def without_room(client: Client, data: BinnedData) -> str:
    """What is wrong where a worker has no memory for all codes; "": each has."""
    edges, n_rows = data.edges, len(data.y)
    # codes twice, while the parts become one array; targets and weights
    n_bytes = n_rows * (2 * edges.n_features * np.dtype(edges.code_dtype).itemsize + 16)
    for worker, facts in client.scheduler_info(-1)["workers"].items():
        if 0 < facts["memory_limit"] < n_bytes:
            return (
                f"the codes of {n_rows:,} rows take {n_bytes / 1e9:.3g} GB on each "
                f"worker, but {worker} has {facts['memory_limit'] / 1e9:.3g} GB of memory: give "
                "the workers more, use fewer of them on a machine, or use strategy='rows'"
            )
    return ""


def on_each(client: Client, work: Any, given: dict[str, tuple[Any, ...]]) -> dict[str, Any]:
    """The finished futures of a task on each worker, or on another one if that one dies."""
    on = {w: {"workers": [w], "allow_other_workers": True, "pure": False} for w in given}
    futures = [client.submit(work, *args, **on[w]) for w, args in given.items()]
    return dict(zip(given, done_all(client, futures), strict=True))


def continues(estimator: Any) -> bool:
    return bool(getattr(estimator, "warm_start", False)) and hasattr(estimator, "forest_")


def shares_trees(estimator: Any) -> bool:
    """True if trees are independent: no out-of-bag errors choose numbers or parameters."""
    number = getattr(estimator, "n_estimators", None)
    words = settings.BY_ERROR | {"shrinkage": None}  # which is chosen after the trees have grown
    by_error = (getattr(estimator, name, words) == word for name, word in words.items())
    return isinstance(number, int | np.integer) and not any(by_error)


def evenly_shared(begin: int, end: int, threads: dict[str, int]) -> dict[str, tuple[int, int]]:
    """Ranges of tree numbers, in proportion to the workers' threads; empty ones are left out."""
    ends = begin + np.cumsum([0, *threads.values()]) * (end - begin) // sum(threads.values())
    shares = zip(threads, pairwise(ends.tolist()), strict=True)
    return {worker: pair for worker, pair in shares if pair[0] < pair[1]}


def binned(
    client: Client, estimator: Any, delayed_blocks: list[Any]
) -> tuple[BinnedData, list[Any], list[range]]:
    """Binned data without codes, futures of codes [F, n] on the workers, ranges of rows."""
    workers_of(client)
    with progress.stage("reading partitions"):
        blocks = done_all(client, client.compute(delayed_blocks))
        collected = client.map(partitions.rows_of, blocks, pure=False)
        collected = client.gather(done_all(client, collected))
    ends = np.cumsum([0, *(rows.n_rows for rows in collected)]).tolist()
    ranges = [range(*pair) for pair in pairwise(ends)]
    filled = [i for i, part in enumerate(ranges) if part]
    if not filled:
        raise ValueError("the partitions have no rows")
    blocks, ranges = [blocks[i] for i in filled], [ranges[i] for i in filled]
    reader = Reader.of(estimator, estimator.random_state, is_classifier(estimator))
    with progress.stage("learning bins"):
        reader = client.submit(partitions.opened, blocks[0], reader).result()
        n_counted = sum(rows.n_counted for rows in collected)
        summary = summary_of(client, blocks, ranges, n_counted, reader)
        rows = Rows()
        for i in filled:
            with named(f"partition {i}"):
                rows.add(collected[i])
        data, ordered = learned(reader, summary, rows, get_host_backend())
    with progress.stage("binning"):
        codes = [
            client.submit(
                partitions.encoded, block, reader, data.edges,
                {f: values[part.start : part.stop] for f, values in ordered.items()},
            )
            for block, part in zip(blocks, ranges, strict=True)
        ]  # fmt: skip
        return data, done_all(client, codes), ranges


def summary_of(
    client: Client, blocks: list[Any], ranges: list[range], n_counted: int, reader: Reader
) -> Summary:
    """The summary of all rows; workers add up those of partitions."""
    wanted = min(SAMPLE_ROWS, n_counted)

    def below(limit: int) -> Summary:
        parts = [
            client.submit(partitions.summarised, b, reader, r.start, limit)
            for b, r in zip(blocks, ranges, strict=True)
        ]
        done_all(client, parts)
        while len(parts) > 1:
            groups = [parts[g : g + ADDED_AT_ONCE] for g in range(0, len(parts), ADDED_AT_ONCE)]
            parts = [client.submit(partitions.added, group) for group in groups]
        return parts[0].result()  # type: ignore[no-any-return]

    summary = below(hash_limit(wanted, max(n_counted, 1)))
    # with a chance of 10**-15 these are too few
    return summary if len(summary.sample.rows) >= wanted else below(2**64 - 1)
