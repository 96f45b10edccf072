"""What processes that grow one forest together say to each other. Nothing else in the engine knows
that there are several.

Every participant makes the same calls in the same order.
"""

from __future__ import annotations

import threading
from typing import Protocol

import numpy as np

from gpuforest.common.errors import ClusterError

TIMEOUT = 600.0  # seconds that a participant waits for the others


class Communicator(Protocol):
    """One participant's end.

    rank : int, its number, 0 .. size - 1
    size : int, the number of participants
    """

    rank: int
    size: int

    def all_reduce(self, array: np.ndarray) -> np.ndarray:
        """The sum over all participants of their arrays of integers of one shape and dtype."""

    def all_gather(self, array: np.ndarray) -> list[np.ndarray]:
        """The arrays of all participants, by rank. Their first axes may differ. Neither what is
        given nor what is returned may be changed afterwards: it may still be on its way."""

    def exchange(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """What each participant has for this one, by rank; arrays[r] is for participant r. The
        same holds for what is given and returned."""


class Room:
    """Where the threads of one process meet."""

    def __init__(self, size: int, timeout: float) -> None:
        self.board: list[list[np.ndarray]] = [[] for _ in range(size)]
        self.barrier = threading.Barrier(size, timeout=timeout)


class ThreadCommunicator:
    """A participant that is a thread.

    sent : bytes that it would have sent to others so far, by call: of an array that is summed or
        gathered its size, once
    """

    def __init__(self, rank: int, room: Room) -> None:
        self.rank, self.size, self._room = rank, len(room.board), room
        self.sent = {"all_reduce": 0, "all_gather": 0, "exchange": 0}

    def all_reduce(self, array: np.ndarray) -> np.ndarray:
        self.sent["all_reduce"] += array.nbytes
        parts = [own[0] for own in self._shown([array])]
        total = parts[0].copy()
        for part in parts[1:]:
            total += part
        self._wait()  # before anyone changes what the others still add up
        return total

    def all_gather(self, array: np.ndarray) -> list[np.ndarray]:
        self.sent["all_gather"] += array.nbytes
        found = [own[0].copy() for own in self._shown([array])]
        self._wait()
        return found

    def exchange(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        self.sent["exchange"] += sum(a.nbytes for r, a in enumerate(arrays) if r != self.rank)
        found = [own[self.rank].copy() for own in self._shown(arrays)]
        self._wait()
        return found

    def abort(self) -> None:
        """Let the others know that this one has failed."""
        self._room.barrier.abort()

    def _shown(self, arrays: list[np.ndarray]) -> list[list[np.ndarray]]:
        self._room.board[self.rank] = arrays
        self._wait()
        return list(self._room.board)

    def _wait(self) -> None:
        try:
            self._room.barrier.wait()
        except threading.BrokenBarrierError as error:
            raise ClusterError("another participant of this fit failed, or hangs") from error


def threads(size: int, timeout: float = TIMEOUT) -> list[ThreadCommunicator]:
    """The participants that threads of this process may be."""
    room = Room(size, timeout)
    return [ThreadCommunicator(rank, room) for rank in range(size)]
