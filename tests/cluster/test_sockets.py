"""Participants that send arrays over TCP do as those that are threads."""

import threading

import numpy as np
import pytest

from gpuforest.cluster.communicator import threads
from gpuforest.cluster.sockets import SocketCommunicator
from gpuforest.common.errors import ClusterError


def meeting(size):
    """A function by which participants tell each other their addresses."""
    addresses, barrier = [None] * size, threading.Barrier(size)

    def meet(rank):
        def tell(address):
            addresses[rank] = address
            barrier.wait(20)
            return addresses

        return tell

    return meet


def each(size, work):
    """What `work(communicator)` returns or raises for each of `size` participants."""
    meet, found = meeting(size), [None] * size

    def run(rank):
        try:
            with SocketCommunicator(rank, size, "127.0.0.1", meet(rank), "token", 20) as own:
                found[rank] = work(own)
        except Exception as error:
            found[rank] = error

    workers = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
    return found


def talk(communicator):
    """All calls, with arrays of several shapes and dtypes."""
    rank, size = communicator.rank, communicator.size
    found = []
    for shape, dtype in (
        ((2,), np.int64),
        ((3, 5), np.int32),
        ((0, 4), np.int64),
        ((70_000,), "u8"),
    ):
        array = np.arange(np.prod(shape), dtype=dtype).reshape(shape) * (rank + 1)
        found.append(communicator.all_reduce(array))
        found += communicator.all_gather(array[: max(0, len(array) - rank)])
        found += communicator.exchange([array[:r] + r for r in range(size)])
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_the_same_as_between_threads(size):
    room, wanted = threads(size, 20), [None] * size

    def run(rank):
        wanted[rank] = talk(room[rank])

    workers = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
    for got, want in zip(each(size, talk), wanted, strict=True):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            assert np.array_equal(a, b)


def test_sums_send_as_much_as_the_formula_says():
    def work(communicator):
        communicator.all_reduce(np.ones(6000, np.int64))
        return communicator.sent

    assert each(3, work) == [2 * 2 * 48_000 // 3] * 3


def test_one_that_fails_ends_the_others():
    def work(communicator):
        if communicator.rank == 1:
            raise MemoryError("no room")
        communicator.all_reduce(np.ones(100_000, np.int64))

    kinds = [type(found) for found in each(3, work)]
    assert (kinds.count(MemoryError), kinds.count(ClusterError)) == (1, 2)


def test_one_that_does_not_come():
    with pytest.raises(ClusterError, match="of this fit is not reached"):
        SocketCommunicator(0, 2, "127.0.0.1", lambda address: [address] * 2, "token", 0.2)
