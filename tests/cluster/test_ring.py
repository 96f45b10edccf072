"""Participants that send arrays to each other do as those that share a memory."""

import threading
from concurrent.futures import Future
from queue import SimpleQueue

import numpy as np
import pytest

from gpuforest.cluster.communicator import threads
from gpuforest.cluster.ring import RingCommunicator


class Queues:
    """Links between threads, by bytes: nobody sees what another one changes later."""

    def __init__(self, rank, queues):
        self.rank, self.size, self._queues = rank, len(queues), queues

    def put(self, other, array):
        self._queues[other][self.rank].put((array.dtype, array.shape, array.tobytes()))
        done = Future()
        done.set_result(None)
        return done

    def get(self, other):
        dtype, shape, data = self._queues[self.rank][other].get(timeout=20)
        return np.frombuffer(data, dtype).reshape(shape)  # not to be changed


def each(participants, work):
    """What `work(communicator)` returns for each participant."""
    found = [None] * len(participants)

    def run(rank):
        found[rank] = work(participants[rank])

    workers = [threading.Thread(target=run, args=(rank,)) for rank in range(len(found))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
    return found


def ring(size):
    queues = [[SimpleQueue() for _ in range(size)] for _ in range(size)]
    return [RingCommunicator(Queues(rank, queues)) for rank in range(size)]


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
    for got, want in zip(each(ring(size), talk), each(threads(size, 20), talk), strict=True):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            assert np.array_equal(a, b)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_sums_send_as_much_as_the_formula_says(size):
    def work(communicator):
        communicator.all_reduce(np.ones(6000, np.int64))
        return communicator.sent

    assert each(ring(size), work) == [2 * (size - 1) * 48_000 // size] * size


def test_a_small_sum_takes_one_message_to_each():
    def work(communicator):
        communicator.all_reduce(np.ones(100, np.int64))
        return communicator.sent

    assert each(ring(4), work) == [3 * 800] * 4


def test_a_sum_is_the_callers_own():
    """So what one changes of it reaches nobody else, and what was given stays as it was."""

    def work(communicator):
        given = np.arange(10)
        communicator.all_reduce(given)[...] = 0
        return given.tolist()

    assert each(ring(3), work) == [list(range(10))] * 3
