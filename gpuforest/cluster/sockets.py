"""Participants in several processes, which send arrays to each other over TCP.

Sums go round a ring: each participant sends and receives 2 (size - 1) / size times the array.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from gpuforest.cluster.communicator import TIMEOUT
from gpuforest.common.errors import ClusterError

Address = tuple[str, int]
LENGTH = struct.Struct("!Q")
MOST_HEADER = 10_000  # bytes


class SocketCommunicator:
    """A participant that is a process.

    Parameters
    ----------
    rank, size : as of `Communicator`
    host : an address of this machine that the others reach
    meet : takes this participant's address, and returns those of all, by rank
    token : a secret of this fit, which keeps strangers out
    timeout : seconds that this one waits for another
    """

    def __init__(
        self,
        rank: int,
        size: int,
        host: str,
        meet: Callable[[Address], list[Address]],
        token: str,
        timeout: float = TIMEOUT,
    ) -> None:
        self.rank, self.size = rank, size
        self.sent = 0  # bytes
        self._links: dict[int, socket.socket] = {}
        self._senders = {r: ThreadPoolExecutor(1) for r in range(size) if r != rank}
        try:
            with socket.create_server((host, 0), backlog=size) as server:
                server.settimeout(timeout)
                addresses = meet((host, server.getsockname()[1]))
                for other in range(rank):
                    link = socket.create_connection(addresses[other], timeout)
                    self._links[other] = link
                    _send(link, json.dumps([token, rank]).encode())
                while len(self._links) < size - 1:
                    link, _ = server.accept()
                    link.settimeout(timeout)
                    theirs, other = json.loads(_receive(link, MOST_HEADER))
                    if theirs == token:
                        self._links[other] = link
                    else:
                        link.close()
            for link in self._links.values():
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except (OSError, ValueError) as error:
            self.close()
            raise ClusterError(
                f"another participant of this fit is not reached: {error}"
            ) from error

    def __enter__(self) -> SocketCommunicator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connections, at which the others fail if they still need this participant."""
        for sender in self._senders.values():
            sender.shutdown(wait=True, cancel_futures=True)
        for link in self._links.values():
            link.close()

    def all_reduce(self, array: np.ndarray) -> np.ndarray:
        size, rank = self.size, self.rank
        if size == 1:
            return array.copy()
        total = array.reshape(-1).copy()
        ends = len(total) * np.arange(size + 1) // size
        parts = [total[a:b] for a, b in pairwise(ends)]
        after, before = (rank + 1) % size, (rank - 1) % size
        for step in range(2 * (size - 1)):
            going = self._put(after, parts[(rank - step) % size])
            part, got = parts[(rank - step - 1) % size], self._get(before)
            if step < size - 1:
                part += got
            else:
                part[:] = got
            _done(going)
        return total.reshape(array.shape)

    def all_gather(self, array: np.ndarray) -> list[np.ndarray]:
        return self.exchange([array] * self.size)

    def exchange(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        going = [self._put(r, arrays[r]) for r in self._links]
        found = [arrays[r] if r == self.rank else self._get(r) for r in range(self.size)]
        for each in going:
            _done(each)
        return found

    def _put(self, other: int, array: np.ndarray) -> Future[None]:
        """Send an array, in a thread, because the other may be sending too."""
        array = np.ascontiguousarray(array)
        header = json.dumps([array.dtype.str, array.shape]).encode()
        self.sent += array.nbytes
        link = self._links[other]

        def send() -> None:
            _send(link, header)
            _send(link, _bytes(array) if array.size else b"")

        return self._senders[other].submit(send)

    def _get(self, other: int) -> np.ndarray:
        try:
            link = self._links[other]
            dtype, shape = json.loads(_receive(link, MOST_HEADER))
            found = np.empty(shape, np.dtype(dtype))
            _receive_into(link, _bytes(found) if found.size else None)
        except (OSError, ValueError) as error:
            raise ClusterError(f"participant {other} of this fit failed: {error}") from error
        return found


def _bytes(array: Any) -> memoryview:
    return memoryview(array.reshape(-1)).cast("B")


def _done(going: Future[None]) -> None:
    try:
        going.result()
    except OSError as error:
        raise ClusterError(f"another participant of this fit failed: {error}") from error


def _send(link: socket.socket, data: Any) -> None:
    link.sendall(LENGTH.pack(len(data)))
    link.sendall(data)


def _receive(link: socket.socket, most: int) -> bytes:
    buffer = bytearray(LENGTH.size)
    _fill(link, memoryview(buffer))
    [length] = LENGTH.unpack(buffer)
    if length > most:
        raise ValueError("no message of a participant")
    data = bytearray(length)
    _fill(link, memoryview(data))
    return bytes(data)


def _receive_into(link: socket.socket, view: memoryview | None) -> None:
    buffer = bytearray(LENGTH.size)
    _fill(link, memoryview(buffer))
    [length] = LENGTH.unpack(buffer)
    if length != (0 if view is None else len(view)):
        raise ValueError("an array of another size than announced")
    if view is not None:
        _fill(link, view)


def _fill(link: socket.socket, view: memoryview) -> None:
    at = 0
    while at < len(view):
        n = link.recv_into(view[at:])
        if not n:
            raise ConnectionError("the connection ended")
        at += n
