"""Waiting for tasks, but not for ever: a cluster may lose all its workers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from gpuforest.common import progress

Client = Any
PATIENCE = 30.0  # seconds without any worker
LOOK = 1.0  # seconds between looks at the workers
PAUSE = 0.005  # seconds between looks at the tasks


def addresses(client: Client) -> set[str]:
    """Those of the workers that there are."""
    return set(client.scheduler_info(-1)["workers"])


def as_done(client: Client, futures: list[Any]) -> Iterator[Any]:
    """The finished futures, each as it ends, and None after some seconds without one. RuntimeError
    after `PATIENCE` seconds without workers."""
    from distributed import as_completed

    coming = as_completed(futures)
    looked = seen = time.monotonic()
    while not coming.is_empty():
        ready = coming.next_batch(block=False)
        yield from ready
        now = time.monotonic()
        if ready:
            looked = seen = now
        elif now - looked > LOOK:
            looked = now
            yield None
            if addresses(client):
                seen = now
            elif now - seen > PATIENCE:
                raise RuntimeError(
                    f"the cluster has had no workers for {PATIENCE:.0f} seconds: they died, or it "
                    "was closed"
                )
        else:
            time.sleep(PAUSE)


def done_all(client: Client, futures: list[Any]) -> list[Any]:
    """The futures when all are done. An error, or dead workers, cancel the others and is raised."""
    from distributed import KilledWorker

    try:
        for done, future in enumerate(filter(None, as_done(client, futures)), 1):
            if future.status == "cancelled":
                raise RuntimeError("a task was cancelled: the cluster was closed, or the fit ended")
            if future.status == "error":
                future.result()  # raises
            progress.report(done, len(futures))
    except BaseException as error:
        client.cancel(futures)
        if isinstance(error, KilledWorker):
            raise RuntimeError(
                f"worker {error.last_worker.address} died, as others before it, while it ran a "
                "task of this fit: most often its memory was too small"
            ) from error
        raise
    return futures
