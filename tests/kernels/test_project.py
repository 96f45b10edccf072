"""Codes of combinations: the worked example, and the same on every backend."""

import numpy as np
import pytest
from cuda_on_cpu.module import available
from emulated import EmulatedBackend
from engine import Task, table
from hypothesis import given
from hypothesis import strategies as st
from laws import frontier_of, seeds

from gpuforest.backends import registry
from gpuforest.backends.numba import NumbaBackend
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.engine.records import Data, Frontier
from gpuforest.splits.oblique.numpy import project


def test_the_worked_example():
    codes = np.array([[0, 1], [2, 1], [2, 0], [0, 3]], np.uint8)
    coordinates = np.array([[0, 100, 1000, 0], [0, 100, 1000, 0]], np.int32)
    data = Data(codes, None, np.array([3, 3]), 4, 2)
    rows = np.arange(4, dtype=np.int32)
    slots = Frontier.of_rows(rows, rows, np.array([0]), np.array([4]))
    features, weights = np.array([[[0, 1], [0, -1]]]), np.array([[[1, -1], [1, 1]]])
    found, low, shift = project(data, slots, features, weights, coordinates, 4)
    assert (low[0].tolist(), shift[0].tolist()) == ([-100, 0], [9, 0])
    assert found[:, 0].tolist() == [0, 1, 2, 4]  # the last row's second value is missing
    assert found[:, 1].tolist() == [0, 2, 2, 0]  # a feature alone


@given(seeds, st.integers(1, 5), st.sampled_from([7, 255, 600]))
def test_all_backends_give_the_same(seed, n_slots, max_bins):
    rng = np.random.default_rng(seed)
    X, rows = table(rng, 80, list("cfnNAtm")), rng.integers(0, 80, 120).astype(np.int32)
    task = Task(X, rng.integers(0, 2, 80), combined=3.0, max_bins=max_bins)
    cuts = np.sort(rng.integers(0, 60, n_slots))
    begin, end = np.concatenate([[0], cuts[:-1]]), cuts  # some slots hold no rows
    k, L = 4, task.training(NumpyBackend()).combining.most_features
    features = np.array([rng.permutation(7)[:L] for _ in range(n_slots * k)]).reshape(-1, k, L)
    features[np.arange(L) >= rng.integers(0, L + 1, (n_slots, k, 1))] = -1
    weights = rng.choice([-5, -2, -1, 1, 3], features.shape)
    found = []
    backends = [NumpyBackend(), NumbaBackend(), NumbaBackend(3)]
    if available() is None:
        backends.append(EmulatedBackend())
    for backend in backends:
        frontier = frontier_of(begin, end, rows, rows * 0 + 1, np.zeros((n_slots, 2), np.int64))
        chosen = features.astype(np.int32), weights.astype(np.int32)
        found.append(backend.project(task.training(backend), frontier, *chosen))
    for other in found[1:]:
        for mine, theirs in zip(found[0], other, strict=True):
            assert np.array_equal(mine, theirs)


def test_a_backend_without_it_says_so():
    bare = type("Bare", (NumpyBackend,), {"project": NumpyBackend.__mro__[1].project})
    assert registry.has(NumpyBackend(), "project")
    assert not registry.has(bare(), "project")
    with pytest.raises(NotImplementedError):
        NumpyBackend.__mro__[1].project(NumpyBackend(), None, None, None, None)
