"""Participants that are threads, to try what participants on workers do."""

from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue

import numpy as np

from gpuforest.common.errors import ClusterError
from gpuforest.tools.dask.links import Communicator


class Queues(Communicator):
    """Connections by bytes: nobody sees what another one changes later."""

    def __init__(self, rank, queues):
        super().__init__(rank, len(queues))
        self._queues = queues

    def put(self, other, array):
        self._queues[other][self.rank].put((array.dtype, array.shape, array.tobytes()))
        done = Future()
        done.set_result(None)
        return done

    def get(self, other):
        got = self._queues[self.rank][other].get(timeout=20)
        if got is None:
            raise ClusterError("another participant failed")
        dtype, shape, data = got
        return np.frombuffer(data, dtype).reshape(shape)  # not to be changed

    def fail(self):
        for inbox in self._queues:
            inbox[self.rank].put(None)


def by_threads(size, work):
    """What `work(communicator)` returns or raises for each participant, and these."""
    queues = [[SimpleQueue() for _ in range(size)] for _ in range(size)]
    participants = [Queues(rank, queues) for rank in range(size)]

    def run(participant):
        try:
            return work(participant)
        except BaseException as error:
            participant.fail()
            return error

    with ThreadPoolExecutor(size) as threads:
        return list(threads.map(run, participants, timeout=60)), participants
