"""What participants say to each other: sums go round, and one that is lost ends all."""

import threading
import uuid
from itertools import count

import numpy as np
import pytest

from gpuforest.common.errors import ClusterError

pytest.importorskip("distributed", reason="needs pip install 'gpuforest[checks]'")
from distributed import wait
from partitioned import cluster_of
from queues import by_threads

from gpuforest.tools.dask import links
from gpuforest.tools.dask.links import links_of, open_links

SIZE = 3


@pytest.fixture(scope="module", params=["inproc://", "tcp://"])
def client(request):
    with cluster_of(SIZE, protocol=request.param) as client:
        yield client


def addresses_of(client):
    return tuple(client.scheduler_info(-1)["workers"])


def each(client, work, ranks=range(SIZE)):
    """What `work(communicator)` returns or raises for each participant of these ranks."""
    addresses, name = addresses_of(client), f"test-{uuid.uuid4().hex}"
    on = [{"workers": [address], "pure": False} for address in addresses]

    def take_part():
        with links_of(name) as own:
            return work(own)

    wait([client.submit(open_links, name, r, addresses, **on[r]) for r in range(SIZE)])
    going = [client.submit(take_part, **on[rank]) for rank in ranks]
    wait(going, timeout=30)
    return [f.exception() if f.status == "error" else f.result() for f in going]


SHAPES = (((2,), np.int64), ((0, 4), np.int32), ((70_000, 3), "u8"))


def talk(communicator):
    """All calls, with small and large arrays; what is a participant's own changes afterwards."""
    rank, size = communicator.rank, communicator.size
    results = []
    for shape, dtype in SHAPES:
        array = np.arange(np.prod(shape), dtype=dtype).reshape(shape) * (rank + 1)
        total = communicator.all_reduce(array)
        results.append(total.copy())
        array[...] = total[...] = rank
        results += communicator.all_gather(np.full((rank, 3), rank, dtype))
        results += communicator.exchange([array[:r] + r for r in range(size)])
    return results


def check(talked):
    """Whether all participants have heard what was said."""
    size = len(talked)
    for rank, heard in enumerate(talked):
        heard = iter(heard)
        for shape, dtype in SHAPES:
            total = size * (size + 1) // 2 * np.arange(np.prod(shape), dtype=dtype).reshape(shape)
            gathered = [np.full((r, 3), r, dtype) for r in range(size)]
            sent = [np.full((min(rank, shape[0]), *shape[1:]), r + rank) for r in range(size)]
            for want in (total, *gathered, *sent):
                got = next(heard)
                assert (got.dtype, got.shape) == (dtype, want.shape)
                assert np.array_equal(got, want)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_sums_and_exchanges(size):
    check(by_threads(size, talk)[0])


def test_between_workers(client):
    check(each(client, talk))
    left = {name for worker in client.cluster.workers.values() for name in worker.handlers}
    assert not any(name.startswith("test-") for name in left)


@pytest.mark.parametrize(
    ("size", "length", "sent"),
    [*((n, 6000, 2 * (n - 1) * 48_000 // n) for n in (2, 3, 4)), (4, 100, 3 * 800)],
)
def test_large_sums_go_round_and_small_ones_to_each(size, length, sent):
    _, participants = by_threads(size, lambda c: c.all_reduce(np.ones(length, np.int64)))
    assert [communicator.sent for communicator in participants] == [sent] * size


def test_what_is_on_its_way_arrives_and_one_that_fails_ends_the_others(client):
    def work(communicator):
        n = 1 if communicator.rank else 3_000_000
        return int(communicator.exchange([np.full(n, r) for r in range(SIZE)])[0].sum())

    assert each(client, work) == [0, 3_000_000, 6_000_000]

    def work(communicator):
        if communicator.rank == 1:
            raise MemoryError("no room")
        communicator.all_reduce(np.ones(100_000, np.int64))

    kinds = [type(found) for found in each(client, work)]
    assert kinds == [ClusterError, MemoryError, ClusterError]


def test_one_that_does_not_come(client, monkeypatch):
    monkeypatch.setattr(links, "MEETING", 0.3)
    found = each(client, lambda _: None, ranks=[0, 2])
    missing = addresses_of(client)[1]
    for error in found:
        assert isinstance(error, ClusterError)
        assert str(error) == f"{missing} of this fit: not there after 0.3 seconds"


COME = threading.Event()


def late(communicator):
    if communicator.rank == 1:
        COME.wait(20)
    try:
        return communicator.all_reduce(np.ones(3)).tolist()
    except ClusterError:
        COME.set()
        raise


def test_one_that_works_for_long_is_waited_for_and_a_silent_one_is_not(client, monkeypatch):
    monkeypatch.setattr(links, "LOOK", 0.05)
    monkeypatch.setattr(links, "patience", lambda: 0.5)
    COME.clear()
    asked = count()

    async def counted(comm):
        if next(asked) == 5:
            COME.set()
        return b"pong"

    async def silent(comm):
        await comm.read()

    address = addresses_of(client)[1]
    [worker] = [w for w in client.cluster.workers.values() if w.address == address]
    monkeypatch.setitem(worker.handlers, "ping", counted)
    assert each(client, late) == [[SIZE] * 3] * SIZE
    COME.clear()
    monkeypatch.setitem(worker.handlers, "ping", silent)
    [here, _, there] = each(client, late)
    assert {type(here), type(there)} == {ClusterError}
    assert f"{address} of this fit is lost: it has not answered for 0.5 seconds" in str(here)
