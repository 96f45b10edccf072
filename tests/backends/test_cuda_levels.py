"""Levels on a device where all features are tried: histograms of larger slots are what is left of
those above, and the forests are the reference's."""

import weakref
from unittest.mock import patch

import numpy as np
import pytest
from cuda_on_cpu.module import available
from emulated import EmulatedBackend
from engine import same_forest
from hypothesis import given, settings
from hypothesis import strategies as st
from tasks import few_builds, large, tasks

from gpuforest import grow
from gpuforest.backends import cuda_levels
from gpuforest.backends.cuda_histograms import slot_bytes
from gpuforest.backends.numba import NumbaBackend
from gpuforest.backends.numpy import NumpyBackend

SETTINGS = settings(derandomize=True, deadline=None, max_examples=120)
emulated = pytest.mark.skipif(available() is not None, reason=str(available()))
always = patch.object(cuda_levels, "ROWS_A_CELL", 0)  # however few rows slots have


@SETTINGS
@given(
    task=tasks().map(few_builds),
    seed=st.integers(0, 2**31),
    budget=st.sampled_from([3000, 30_000, 2**26, 2**26]),
    deep=st.sampled_from([None, 0, 0, 5]),
    shared_limit=st.sampled_from([4 << 10, 227 << 10]),
)
def test_forests_are_the_reference(cuda, task, seed, budget, deep, shared_limit):
    task = task.but(n_tried=None)
    backend = cuda.backend(budget, deep=deep, shared_limit=shared_limit)
    with cuda.order(seed), always:
        assert same_forest(task.grow(NumpyBackend()), task.grow(backend))


CHANGES = [
    {},
    {"n_draws": 0},
    {"random": True},
    {"min_rows_leaf": 3, "min_rows_split": 20},
    {"min_weight_leaf": 6},
    {"max_bins": 255},
    {"weights": np.arange(6000, dtype=np.int32) % 3},
    {"n_features_tree": 7},
    {"min_gain": 0.5},
]


@pytest.mark.parametrize("name", ["binary", "60 classes", "regression", "two outputs", "counts"])
@pytest.mark.parametrize("changes", CHANGES, ids=lambda changes: ", ".join(changes) or "default")
def test_thousands_of_rows(cuda, name, changes):
    task = large(name).but(n_tried=None, max_bins=15, n_trees=2, max_depth=7).but(**changes)
    forest = task.grow(NumbaBackend())
    for seed, deep in enumerate([0, 300]):
        with cuda.order(seed), always:
            assert same_forest(forest, task.grow(cuda.backend(deep=deep)))


@pytest.mark.parametrize("name", ["binary", "regression"])
def test_limits_of_means(cuda, name):
    task = large(name).but(n_tried=None, max_bins=15, n_trees=2, max_depth=7)
    task = task.but(signs=(1, 0, -1, *[0] * (task.X.shape[1] - 3)))
    with cuda.order(1), always:
        assert same_forest(task.grow(NumbaBackend()), task.grow(cuda.backend()))


class Noting(EmulatedBackend):
    """Notes what histograms live at a time, and how many slots get theirs by subtraction."""

    def __init__(self, memory_budget: int) -> None:
        super().__init__(memory_budget, deep=20)
        self.lengths: list[list[int]] = []  # of those that live when one more is made
        self.subtracted: list[int] = []
        self.living: list[weakref.ref] = []

    def alive(self) -> list[int]:
        return [len(a) for a in (ref() for ref in self.living) if a is not None]

    def empty(self, shape, dtype):
        found = super().empty(shape, dtype)
        if found.ndim == 4:
            self.living.append(weakref.ref(found))
            self.lengths.append(self.alive())
        return found

    def fill_smaller(self, training, slots, above, hist):
        found = super().fill_smaller(training, slots, above, hist)
        self.subtracted.append(int((above.rest_of >= 0).sum()))
        return found

    def grow_subtrees(self, *arguments):
        assert not self.alive()
        return super().grow_subtrees(*arguments)


@emulated
@pytest.mark.parametrize(
    ("n_slots", "n_levels"), [(1, 0), (5, 0), (6, 1), (11, 1), (23, 2), (50, 4), (1000, 6)]
)
def test_histograms_keep_within_the_budget(n_slots, n_levels):
    # levels have 2, 4, 8, 16, 32 slots, a few less each; two neighbouring ones must fit
    task = large("regression").but(n_tried=None, max_bins=15, n_trees=2, max_depth=7)
    each = slot_bytes(task.training(NumpyBackend()))
    backend = Noting(n_slots * each)
    with always:
        assert same_forest(task.grow(NumbaBackend()), task.grow(backend))
    assert max(map(sum, backend.lengths)) <= n_slots
    assert len(backend.subtracted) == n_levels
    assert backend.subtracted[:3] == [2, 4, 8][:n_levels]


@emulated
def test_two_fits_at_once():
    backend = EmulatedBackend(deep=0)
    trainings = [
        large(name).but(n_tried=None, max_bins=15, n_trees=2, seed=seed).training(backend)
        for seed, name in enumerate(["binary", "regression", "binary"])
    ]

    def levels(some, n=5):
        """The features and bins of the splits of n levels, taken in turns."""
        frontiers = [grow.roots(training, 0, 2) for training in some]
        found = [[] for _ in some]
        begun = [[] for _ in some]
        for _ in range(n):
            for i, training in enumerate(some):
                level, frontiers[i] = grow.advance(training, frontiers[i], 0, begun[i])
                found[i].append((level.feature.tolist(), level.bin.tolist()))
        return found

    assert levels(trainings) == [levels([training])[0] for training in trainings]
    assert not backend._kept
