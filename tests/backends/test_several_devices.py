"""Trees of one fit grow on several devices, and are the same trees."""

from functools import cached_property
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from cuda_on_cpu.module import available
from engine import grown, same_forest
from hypothesis import given
from hypothesis import strategies as st
from picky import AT, PickyBackend, copies
from tasks import category_tasks, few_builds, large, tasks

from gpuforest import AdaBoostClassifier, RandomForestClassifier
from gpuforest.backends import gpu, registry
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.common.errors import BackendError
from gpuforest.growing import grow

pytestmark = pytest.mark.skipif(available() is not None, reason=str(available()))


def devices(n, first=0, **options):
    """The backend of the first device, with those of n - 1 others as its peers."""
    backends = []
    for i in range(n):
        backends.append(PickyBackend(**options))
        backends[-1].device_number = (first + i) % n
    backends[0].peers = backends[1:]
    return backends[0]


@pytest.fixture
def grown_on(monkeypatch):
    """The numbers of the devices that grew levels."""
    numbers = []
    level = PickyBackend.level

    def counted(self, training, slots):
        assert self.device_number == AT.number
        numbers.append(AT.number)
        return level(self, training, slots)

    monkeypatch.setattr(PickyBackend, "level", counted)
    return numbers


@given(
    task=(tasks() | category_tasks()).map(few_builds),
    n=st.sampled_from([2, 3]),
    deep=st.sampled_from([None, 0]),
)
def test_equal_forests(task, n, deep):
    assert same_forest(task.grow(NumpyBackend()), task.grow(devices(n, deep=deep)))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_each_device_grows_trees_and_gets_the_data_once(n, monkeypatch, grown_on):
    monkeypatch.setitem(registry._factories, "picky", lambda n_threads, _: devices(n, deep=0))
    rng = np.random.default_rng(0)
    X, y = rng.random((200, 4)), rng.integers(0, 3, 200)
    options = {"n_estimators": 24, "oob_score": True, "random_state": 0, "max_depth": 5}
    expected = RandomForestClassifier(backend="numpy", **options).fit(X, y)
    copies.clear()
    forest = RandomForestClassifier(backend="picky", n_jobs=4, **options).fit(X, y)
    assert same_forest(expected.forest_, forest.forest_)
    assert expected.oob_score_ == forest.oob_score_
    assert copies["peer"] == 3 * (n - 1)  # codes, numbers of bins, targets
    assert set(grown_on) <= set(range(n))
    assert len(set(grown_on)) > 1 or n == 1


def test_data_stay_on_a_device_from_one_round_to_the_next(monkeypatch):
    monkeypatch.setitem(registry._factories, "picky", lambda *_: devices(2, deep=0))
    rng = np.random.default_rng(0)
    X, y = rng.random((200, 4)), rng.integers(0, 3, 200)
    copies.clear()
    models = [
        AdaBoostClassifier(n_estimators=3, backend=b, random_state=0).fit(X, y)
        for b in ("numpy", "picky")
    ]
    assert same_forest(models[0].forest_, models[1].forest_)
    assert copies["peer"] == 0  # a tree at a time grows on the first
    options = {"n_estimators": "auto", "max_estimators": 150, "oob_tol": 0.5, "random_state": 0}
    models = [RandomForestClassifier(backend=b, **options).fit(X, y) for b in ("numpy", "picky")]
    assert same_forest(models[0].forest_, models[1].forest_)
    assert copies["peer"] == 3


@pytest.fixture
def waves(monkeypatch):
    sizes, grow_wave = [], grow.grow_wave
    monkeypatch.setattr(grow, "grow_wave", lambda *a: sizes.append(a[2]) or grow_wave(*a))
    return sizes


TASK = large("binary").but(n_trees=7, max_depth=3)
TREE = 4 * 6000 + (56 + 12 * 2) * TASK.sampling.likely_bag_rows  # bytes, of two classes


@pytest.mark.parametrize(
    ("trees", "helps", "size"), [(4, True, 4), (2, True, 2), (1, False, 7), (0, False, 7)]
)
def test_a_device_with_little_memory_grows_no_trees(trees, helps, size, waves, grown_on, caplog):
    first = devices(2, deep=0)
    training, peer = TASK.training(first), first.peers[0]
    peer.free = peer.memory_budget + peer.bytes_to_bring(training) + (trees + 1) * TREE - 1
    copies.clear()
    forest = grown(training, first, TASK.n_trees)
    assert same_forest(forest, TASK.grow(NumpyBackend()))
    assert set(waves[: -(-7 // size)]) == {size}
    assert set(grown_on) <= {0, 1} if helps else set(grown_on) == {0}
    assert copies["peer"] == 3 * helps  # nothing is taken from what is left out
    why = f"a wave of {trees} trees fits its memory, and one of 4 the current GPU's"
    assert caplog.messages == [f"GPU 1 grows no trees: {why}"] * (not helps)


def test_the_current_device_is_never_left_out():
    first = devices(2, deep=0)
    first.free = first.memory_budget + TREE - 1
    with pytest.raises(BackendError, match="one tree of 6000 rows needs"):
        TASK.grow(first)


def test_a_limit_of_memory_is_that_of_each_device(waves, caplog):
    first = devices(2, deep=0)
    first.memory_budget, first.peers[0].memory_budget = 1000, 2**33
    first.room = 1000 + 3 * TREE
    assert same_forest(TASK.grow(first), TASK.grow(NumpyBackend()))
    assert (waves[0], caplog.messages) == (2, [])  # two and two of 4 trees, on each


def test_other_devices_are_asked_where_trees_grow_at_once(monkeypatch):
    asked = []

    class Lazy(PickyBackend):
        @cached_property
        def peers(self):
            asked.append(self)
            return devices(2, deep=0).peers

    monkeypatch.setitem(registry._factories, "picky", lambda *_: Lazy(deep=0))
    X, y = np.random.default_rng(0).random((100, 3)), np.arange(100) % 2
    AdaBoostClassifier(n_estimators=3, backend="picky", random_state=0).fit(X, y).predict(X)
    assert asked == []
    model = RandomForestClassifier(4, backend="picky", random_state=0).fit(X, y)
    assert len(asked) == 1
    model.predict(X)
    assert len(asked) == 1


@pytest.mark.parametrize("broken", [None, 0, 2])
def test_all_devices_of_a_process(broken, monkeypatch, caplog):
    pytest.importorskip("cupy", reason="needs pip install 'gpuforest[test-cuda]'")
    from gpuforest.backends.cuda import device

    current, touched = [1], {1}

    class Device:
        """CuPy's, of a process that sees three; 1 is the current one."""

        attributes: ClassVar = dict.fromkeys(
            ("MaxSharedMemoryPerBlockOptin", "MultiProcessorCount", "L2CacheSize"), 2**16
        )

        def __init__(self, id=None):
            self.id = current[-1] if id is None else id

        def use(self):
            current[-1] = self.id  # as CUDA does, before it fails
            touched.add(self.id)
            if self.id == broken:
                raise RuntimeError("cudaErrorDevicesUnavailable")

        def __enter__(self):
            current.append(current[-1])
            self.use()

        def __exit__(self, *error):
            current.pop()

    runtime = SimpleNamespace(getDeviceCount=lambda: 3, CUDARuntimeError=RuntimeError)
    cuda = SimpleNamespace(Device=Device, runtime=runtime)
    monkeypatch.setattr(device, "cupy", SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(device, "bytes_to_give", lambda: (current[-1] + 1) * 2**34)
    monkeypatch.setattr(gpu, "require", lambda: None)
    backend = registry.get_backend("cupy:all", 2)
    assert (backend.device_number, touched) == (1, {1})
    peers = {peer.device_number: peer for peer in backend.peers}
    assert [*peers] == [i for i in (0, 2) if i != broken]
    assert (touched, current) == ({0, 1, 2}, [1])
    why = "GPU {} grows no trees: cudaErrorDevicesUnavailable"
    assert caplog.messages == [why.format(broken)] * (broken is not None)
    budgets = {i: peer.memory_budget / backend.memory_budget for i, peer in peers.items()}
    assert budgets == pytest.approx({i: (i + 1) / 2 for i in peers})  # each one's own memory counts
    for i, peer in peers.items():
        with peer.active():
            assert current == [1, i]
