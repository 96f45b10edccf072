"""Participants in several processes, which send arrays to each other.

Sums go round a ring: each participant sends and receives 2 (size - 1) / size times the array. Where
it is small, or the others are one, everyone sends all others the whole array, because a message
costs more than its bytes.
"""

from __future__ import annotations

from concurrent.futures import Future
from functools import reduce
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

SMALL = 1 << 14  # bytes, times the other participants


class Links(Protocol):
    """One participant's connections to the others.

    rank, size : as of `Communicator`
    """

    rank: int
    size: int

    def put(self, other: int, array: np.ndarray) -> Future[Any]:
        """Send an array, which may not change any more. Until the future is done, no other array
        may be sent to the same participant.

        Raises
        ------
        ClusterError : by the future: the other is lost
        """

    def get(self, other: int) -> np.ndarray:
        """The next array that the other has sent, which may be its own: not to be changed.

        Raises
        ------
        ClusterError : the other is lost
        """


class RingCommunicator:
    """A participant that is a process.

    sent : bytes of the arrays that it has sent so far
    """

    def __init__(self, links: Links) -> None:
        self.rank, self.size, self._links = links.rank, links.size, links
        self.sent = 0

    def all_reduce(self, array: np.ndarray) -> np.ndarray:
        size, rank = self.size, self.rank
        if size == 1:
            return array.copy()
        if size == 2 or array.nbytes * (size - 1) <= SMALL:
            return reduce(np.add, self.all_gather(array.copy()))
        flat = array.reshape(-1)
        parts = [flat[a:b] for a, b in pairwise(len(flat) * np.arange(size + 1) // size)]
        after, before = (rank + 1) % size, (rank - 1) % size
        for step in range(2 * (size - 1)):
            going = self._put(after, parts[(rank - step) % size])
            at, got = (rank - step - 1) % size, self._links.get(before)
            parts[at] = parts[at] + got if step < size - 1 else got
            going.result()
        return np.concatenate(parts).reshape(array.shape)

    def all_gather(self, array: np.ndarray) -> list[np.ndarray]:
        return self.exchange([array] * self.size)

    def exchange(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        others = [r for r in range(self.size) if r != self.rank]
        going = [self._put(r, arrays[r]) for r in others]
        found = [arrays[r] if r == self.rank else self._links.get(r) for r in range(self.size)]
        for each in going:
            each.result()
        return found

    def _put(self, other: int, array: np.ndarray) -> Future[Any]:
        self.sent += array.nbytes
        return self._links.put(other, array)
