"""Strategy "rows": codes stay on the workers that have them, and sums go round.

All workers that hold codes grow the same trees together, level by level; see cluster/rows.py. They
talk over connections of their own (links.py), because dask's tasks know only their inputs and
results.
"""

from __future__ import annotations

import time
from typing import Any
from uuid import uuid4

import numpy as np

from gpuforest.backends.registry import get_host_backend
from gpuforest.cluster.ring import RingCommunicator
from gpuforest.common.errors import ClusterError
from gpuforest.data.binned import BinnedData
from gpuforest.estimators.growing import grow_of_rows
from gpuforest.tools.dask.links import Seat, links_of, open_links
from gpuforest.tools.dask.waiting import addresses, as_done

Client = Any
ATTEMPTS = 3  # with the workers that are there, after others died
LAST_WORDS = 5.0  # seconds for the others to say what happened, when one has failed
LOOK = 0.1  # seconds between looks whether they have


def fit_rows(
    client: Client,
    estimator: Any,
    data: BinnedData,
    parts: list[Any],
    ranges: list[range],
    begin: int,
) -> Any:
    """The estimator, fitted.

    Parameters
    ----------
    data : without codes
    parts : futures of codes [F, n]
    ranges : the numbers of their rows
    begin : the number of the first new tree

    Raises
    ------
    ClusterError : workers died or fell silent in each of `ATTEMPTS` attempts
    """
    why = ""
    for _ in range(ATTEMPTS):
        list(as_done(client, parts))  # those of a worker that died are made again
        held = held_by(client.who_has(parts), parts)
        name = f"gpuforest-{uuid4().hex}"
        seats = [Seat(name, rank, tuple(held)) for rank in range(len(held))]
        futures = []
        try:
            for seat, worker in zip(seats, held, strict=True):
                futures.append(client.submit(open_links, seat, workers=[worker], pure=False))
            if why := failure(client, futures, list(held)):
                continue
            # in each attempt, because what was sent to a worker that died is not made again
            [sent] = client.scatter([data], workers=list(held), broadcast=True, hash=False)
            futures = [
                client.submit(
                    participant, sent, estimator, [parts[i] for i in some],
                    np.concatenate([np.array(ranges[i]) for i in some]), begin, seat,
                    workers=[worker], pure=False,
                )
                for seat, (worker, some) in zip(seats, held.items(), strict=True)
            ]  # fmt: skip
            if why := failure(client, futures, list(held)):
                continue
            return futures[0].result()
        finally:
            client.cancel(futures)
    raise ClusterError(
        f"each of {ATTEMPTS} attempts lost workers, most often because their memory was too small; "
        f"at last: {why}"
    )


def held_by(holders: dict[str, Any], parts: list[Any]) -> dict[str, list[int]]:
    """The numbers of the parts that each worker has; each part counts for one worker."""
    found: dict[str, list[int]] = {}
    for i, part in enumerate(parts):
        found.setdefault(sorted(holders[part.key])[0], []).append(i)
    return found


def failure(client: Client, futures: list[Any], workers: list[str]) -> str:
    """Why not all futures have a result: some worker is lost; "": all have.

    Parameters
    ----------
    workers : where each of the futures runs

    Raises
    ------
    Exception : what a task raised, but for "another one is lost"
    RuntimeError : no workers are left
    """
    for future in as_done(client, futures):
        gone = set(workers) - addresses(client) if future is None else set()
        if not gone and (future is None or future.status == "finished"):
            continue
        failed = last_words(client, futures, workers)
        for each in failed:
            if not isinstance(each.exception(), ClusterError):
                each.result()  # raises
        return str(failed[0].exception()) if failed else f"{', '.join(gone) or 'a task'} is gone"
    return ""


def last_words(client: Client, futures: list[Any], workers: list[str]) -> list[Any]:
    """The futures that have failed, when those of the workers that are left have had their time."""
    until = time.monotonic() + LAST_WORDS
    while time.monotonic() < until:
        here = addresses(client)
        pairs = zip(futures, workers, strict=True)
        if not any(future.status == "pending" and worker in here for future, worker in pairs):
            break
        time.sleep(LOOK)
    return [each for each in futures if each.status == "error"]


def participant(
    data: BinnedData,
    estimator: Any,
    parts: list[np.ndarray],
    own: np.ndarray,
    begin: int,
    seat: Seat,
) -> Any:
    """What each worker does. The first one returns the fitted estimator, the others None."""
    from gpuforest.tools.dask.training import here, without_grown

    alone = here(estimator, oob_score=False, backend=get_host_backend().name)
    codes = np.concatenate(parts, axis=1)
    with links_of(seat) as links:
        grown = grow_of_rows(alone, data, begin, codes, own, RingCommunicator(links))
    if seat.rank:
        return None
    none = np.broadcast_to(np.zeros((), codes.dtype), (len(codes), len(data.y)))
    alone._grown = (grown,)
    return without_grown(alone.fit(data.with_codes(none)))
