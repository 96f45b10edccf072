"""What workers that grow one forest together say to each other, over connections of dask's own.

A worker calls the servers that the others already have, and asks for a handler whose name only the
participants of this fit know. So nothing else listens, and what a connection does is the cluster's
choice: its encryption and certificates, its way to send arrays, its time limits. Connections live
in the event loop of the worker, and a participant in one of its threads.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import reduce
from itertools import pairwise
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from gpuforest.common.errors import ClusterError

MEETING = 60.0  # seconds that participants wait for each other
LOOK = 10.0  # seconds of silence after which a worker is asked whether it is there
SMALL = 1 << 14  # bytes of a sum, times the other participants


class Communicator(ABC):
    """The participant of a rank, 0 .. size - 1; all make the same calls in the same order.

    sent : bytes of the arrays that it has sent so far

    Sums go round a ring: each participant sends and receives 2 (size - 1) / size times the array.
    Where it is small, or for two participants, everyone sends all others the whole array, because a
    message costs more than its bytes. Arrays that were passed or returned must not be changed.
    """

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size, self.sent = rank, size, 0

    @abstractmethod
    def put(self, other: int, array: np.ndarray) -> Future[None]:
        """Send an array. The next one to this participant waits for the future, which raises a
        ClusterError if the participant is lost."""

    @abstractmethod
    def get(self, other: int) -> np.ndarray:
        """The next array that the other has sent; a ClusterError if it is lost."""

    def all_reduce(self, array: np.ndarray) -> np.ndarray:
        """Sum of all participants' integer arrays of one shape and dtype, as a new array."""
        size, rank = self.size, self.rank
        if size == 1:
            return array.copy()
        if size == 2 or array.nbytes * (size - 1) <= SMALL:
            return reduce(np.add, self.all_gather(array.copy()))
        flat = array.reshape(-1)
        parts = [flat[a:b] for a, b in pairwise(len(flat) * np.arange(size + 1) // size)]
        after, before = (rank + 1) % size, (rank - 1) % size
        for step in range(2 * (size - 1)):
            going = self._counted(after, parts[(rank - step) % size])
            at, got = (rank - step - 1) % size, self.get(before)
            parts[at] = parts[at] + got if step < size - 1 else got
            going.result()
        return np.concatenate(parts).reshape(array.shape)

    def all_gather(self, array: np.ndarray) -> list[np.ndarray]:
        """The arrays of all participants, by rank. Their first axes may differ."""
        return self.exchange([array] * self.size)

    def exchange(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """What each participant has for this one, by rank; arrays[r] is for participant r."""
        others = [r for r in range(self.size) if r != self.rank]
        going = [self._counted(r, arrays[r]) for r in others]
        got = [arrays[r] if r == self.rank else self.get(r) for r in range(self.size)]
        for future in going:
            future.result()
        return got

    def _counted(self, other: int, array: np.ndarray) -> Future[None]:
        self.sent += array.nbytes
        return self.put(other, array)


def open_links(name: str, rank: int, addresses: Sequence[str]) -> None:
    """Let the other workers call this one, of this rank, by the secret name of an attempt."""
    from distributed import get_worker

    worker = get_worker()
    worker.handlers[name] = WorkerLinks(worker, name, rank, addresses).receive


def links_of(name: str) -> WorkerLinks:
    """What `open_links` has made on this worker."""
    from distributed import get_worker

    return get_worker().handlers[name].__self__  # type: ignore[no-any-return]


class WorkerLinks(Communicator):
    """A worker's connections inside a `with` block: one to each participant, and one from each."""

    def __init__(self, worker: Any, name: str, rank: int, addresses: Sequence[str]) -> None:
        super().__init__(rank, len(addresses))
        self._worker, self._name, self._addresses = worker, name, addresses
        self._comms: dict[int, Any] = {}
        self._called_by = [asyncio.Event() for _ in addresses]
        self._inbox: list[SimpleQueue[Any]] = [SimpleQueue() for _ in addresses]

    def __enter__(self) -> WorkerLinks:
        try:
            self._run(self._meet()).result(MEETING + LOOK)
        except Exception as error:
            self.__exit__(error)
            others = enumerate(zip(self._addresses, self._called_by, strict=True))
            lost = [a for r, (a, called) in others if r != self.rank and not called.is_set()]
            why = str(error) or f"not there after {MEETING:.3g} seconds"
            raise ClusterError(f"{', '.join(lost)} of this fit: {why}") from error
        return self

    def __exit__(self, error: object, *_: object) -> None:
        self._worker.handlers.pop(self._name, None)
        self._run(self._end(error is not None)).result(patience() + LOOK)

    def put(self, other: int, array: np.ndarray) -> Future[None]:
        return self._run(self._send(other, array))

    def get(self, other: int) -> np.ndarray:
        while True:
            try:
                array = self._inbox[other].get(timeout=LOOK)
            except Empty:  # it works for long, or it is lost
                self._run(self._ask(other)).result(patience() + LOOK)
                continue
            if array is None:
                raise self._lost(other, "its connection ended")
            return array  # type: ignore[no-any-return]

    async def receive(self, comm: Any, rank: int) -> None:
        """Handler: the participant of this rank calls, and sends arrays until its end."""
        self._called_by[rank].set()
        try:
            while True:
                self._inbox[rank].put((await comm.read())["array"])
        except OSError:
            pass  # the other has finished, or is lost
        finally:
            self._inbox[rank].put(None)

    async def _meet(self) -> None:
        """Call the others, and wait until they have called."""
        async with asyncio.timeout(MEETING):
            others = (r for r in range(self.size) if r != self.rank)
            await asyncio.gather(*map(self._call, others))

    async def _call(self, other: int) -> None:
        from distributed.comm import connect

        comm = await connect(self._addresses[other], **self._worker.connection_args)
        self._comms[other] = comm
        await comm.write({"op": self._name, "rank": self.rank, "reply": False})
        await self._called_by[other].wait()

    async def _send(self, other: int, array: np.ndarray) -> None:
        from distributed.protocol import to_serialize

        try:
            await self._comms[other].write({"array": to_serialize(array)})
        except OSError as error:
            raise self._lost(other, str(error)) from error

    async def _ask(self, other: int) -> None:
        """Raise a ClusterError unless the other worker answers."""
        limit = patience()
        try:
            async with asyncio.timeout(limit):
                await self._worker.rpc(self._addresses[other]).ping()
        except TimeoutError as error:
            raise self._lost(other, f"it has not answered for {limit:.3g} seconds") from error
        except OSError as error:
            raise self._lost(other, str(error)) from error

    async def _end(self, failed: bool) -> None:
        if not failed:  # what is still on its way arrives
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(patience()):
                    await asyncio.gather(*(comm.close() for comm in self._comms.values()))
        for comm in self._comms.values():
            comm.abort()

    def _lost(self, other: int, why: str) -> ClusterError:
        return ClusterError(f"worker {self._addresses[other]} of this fit is lost: {why}")

    def _run(self, work: Coroutine[Any, Any, None]) -> Future[None]:
        return asyncio.run_coroutine_threadsafe(work, self._worker.loop.asyncio_loop)


def patience() -> float:
    """Seconds after which the cluster takes a worker that does not answer for lost."""
    from dask import config
    from dask.utils import parse_timedelta

    return float(parse_timedelta(config.get("distributed.comm.timeouts.tcp"), "s"))
