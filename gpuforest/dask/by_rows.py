"""Strategy "rows": codes stay on the workers that have them, and sums go round.

All workers that hold codes grow the same trees together, level by level; see cluster/rows.py. They
talk over connections of their own, because dask's tasks know only their inputs and results.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

import numpy as np

from gpuforest.backends.registry import get_host_backend
from gpuforest.cluster.sockets import Address, SocketCommunicator
from gpuforest.common.errors import ClusterError
from gpuforest.dask.waiting import addresses, as_done
from gpuforest.data.binned import BinnedData
from gpuforest.estimators.shares import grow_of_rows

Client = Any
ATTEMPTS = 3  # with the workers that are there, after others died
MEETING = 60.0  # seconds that participants wait for each other
LAST_WORDS = 5.0  # seconds for the others to say what happened, when one has failed


def fit_rows(
    client: Client, estimator: Any, data: Any, parts: list[Any], ranges: list[range], begin: int
) -> Any:
    """The estimator, fitted.

    Parameters
    ----------
    data : future of the data without codes
    parts : futures of codes [F, n]
    ranges : the numbers of their rows
    begin : the number of the first new tree

    Raises
    ------
    RuntimeError : workers died in each of `ATTEMPTS` attempts
    """
    from distributed import Variable

    for _ in range(ATTEMPTS):
        list(as_done(client, parts))  # those of a worker that died are made again
        held = held_by(client.who_has(parts), parts)
        token = uuid4().hex
        futures = [
            client.submit(
                participant, data, estimator, [parts[i] for i in some],
                np.concatenate([np.array(ranges[i]) for i in some]), begin,
                Seat(token, rank, len(held)), workers=[worker], pure=False,
            )
            for rank, (worker, some) in enumerate(held.items())
        ]  # fmt: skip
        try:
            if _all_done(client, futures, set(held)):
                return futures[0].result()
        finally:
            client.cancel(futures)
            for rank in range(len(held)):
                Variable(f"{token}-{rank}", client=client).delete()
    raise RuntimeError(
        f"workers of this fit died in each of {ATTEMPTS} attempts: most often their memory was too "
        "small"
    )


class Seat(NamedTuple):
    """A participant's part in an attempt; `token`: the attempt's secret name."""

    token: str
    rank: int
    size: int


def held_by(holders: dict[str, Any], parts: list[Any]) -> dict[str, list[int]]:
    """The numbers of the parts that each worker has; each part counts for one worker."""
    found: dict[str, list[int]] = {}
    for i, part in enumerate(parts):
        found.setdefault(sorted(holders[part.key])[0], []).append(i)
    return found


def _all_done(client: Client, futures: list[Any], workers: set[str]) -> bool:
    """Whether all participants have finished; False: some worker died.

    Raises
    ------
    Exception : what a participant raised, but for "another one failed"
    RuntimeError : no workers are left
    """
    from distributed import wait

    for future in as_done(client, futures):
        if future is None and workers <= addresses(client):
            continue
        if future is not None and future.status == "finished":
            continue
        with suppress(TimeoutError):  # the task of a worker that died waits for it
            wait(futures, timeout=LAST_WORDS)
        for each in futures:
            if each.status == "error" and not isinstance(each.exception(), ClusterError):
                each.result()  # raises
        return False
    return True


def participant(
    data: BinnedData,
    estimator: Any,
    parts: list[np.ndarray],
    own: np.ndarray,
    begin: int,
    seat: Seat,
) -> Any:
    """What each worker does. The first one returns the fitted estimator, the others None."""
    from distributed import Variable, get_client, get_worker

    from gpuforest.dask.training import here, without_grown

    token, rank, size = seat
    client, host = get_client(), urlsplit(get_worker().address).hostname or "127.0.0.1"
    if get_worker().address.startswith("inproc"):
        host = "127.0.0.1"

    def meet(address: Address) -> list[Address]:
        Variable(f"{token}-{rank}", client=client).set(list(address))
        found = [Variable(f"{token}-{r}", client=client).get(timeout=MEETING) for r in range(size)]
        return [(host, int(port)) for host, port in found]

    alone = here(estimator, oob_score=False, backend=get_host_backend().name)
    codes = np.concatenate(parts, axis=1)
    with SocketCommunicator(rank, size, host, meet, token) as communicator:
        grown = grow_of_rows(alone, data, begin, codes, own, communicator)
    if rank:
        return None
    none = np.broadcast_to(np.zeros((), codes.dtype), (len(codes), len(data.y)))
    alone._grown = (grown,)
    return without_grown(alone.fit(data.with_codes(none)))
