"""Trees of one fit grow on several devices, and are the same trees."""

from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from cuda_on_cpu.module import available
from engine import same_forest
from hypothesis import given
from hypothesis import strategies as st
from picky import AT, PickyBackend, copies
from tasks import category_tasks, few_builds, tasks

from gpuforest import AdaBoostClassifier, RandomForestClassifier, register_backend
from gpuforest.backends import registry
from gpuforest.backends.numpy import NumpyBackend

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
    monkeypatch.setattr(registry, "_factories", dict(registry._factories))
    register_backend("picky", lambda n_threads, _: devices(n, deep=0))
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
    monkeypatch.setattr(registry, "_factories", dict(registry._factories))
    register_backend("picky", lambda *_: devices(2, deep=0))
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


def test_waves_fit_the_device_with_the_least_memory():
    X, y = np.random.default_rng(0).random((100, 3)), np.arange(100) % 2
    first = devices(2, deep=0)
    least = 2**26 + 4 * 100 * 30
    first.peers[0].free = least
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(registry, "_factories", dict(registry._factories))
        register_backend("picky", lambda *_: first)
        sizes = []
        waves = PickyBackend.waves

        def noted(self, *wanted):
            sizes.append((self.device_number, waves(self, *wanted)[2]))
            return waves(self, *wanted)

        patched.setattr(PickyBackend, "waves", noted)
        RandomForestClassifier(n_estimators=10, backend="picky", random_state=0).fit(X, y)
    by_device = dict(sizes)
    assert by_device[1] < by_device[0] == 5


def test_all_devices_of_a_process(monkeypatch):
    pytest.importorskip("cupy", reason="needs pip install 'gpuforest[test-cuda]'")
    from gpuforest.backends.cuda import device

    current = [1]

    class Device:
        """CuPy's, of a process that sees three; 1 is the current one."""

        attributes: ClassVar = dict.fromkeys(
            ("MaxSharedMemoryPerBlockOptin", "MultiProcessorCount", "L2CacheSize"), 2**16
        )

        def __init__(self, id=None):
            self.id = current[-1] if id is None else id

        def __enter__(self):
            current.append(self.id)

        def __exit__(self, *error):
            current.pop()

    runtime = SimpleNamespace(getDeviceCount=lambda: 3, CUDARuntimeError=RuntimeError)
    cuda = SimpleNamespace(Device=Device, runtime=runtime)
    monkeypatch.setattr(device, "cupy", SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(device, "bytes_to_give", lambda: (current[-1] + 1) * 2**34)
    backend = device.CupyBackend.on_all(2, 2**26)
    assert backend.device_number == 1
    assert [peer.device_number for peer in backend.peers] == [0, 2]
    budgets = [b.memory_budget / backend.memory_budget for b in backend.peers]
    assert np.allclose(budgets, [0.5, 1.5])  # each device's own memory counts
    with backend.peers[1].active():
        assert current == [1, 2]
