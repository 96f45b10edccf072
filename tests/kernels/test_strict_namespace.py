"""The O(nodes) code is plain array API: it runs on array-api-strict, on a second device.

The kernels of this backend are the reference's, behind the two doors. Everything else
(the loop, the frontier, the assembly, hashing, sampling, scores) is the package's own
code; it may use nothing but the standard, and must keep all its arrays on the device.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest
from doors import BehindDoors
from engine import Task, compare_out_of_bag, later_rows, same_forest
from hypothesis import given, settings
from hypothesis import strategies as st
from tasks import category_tasks, tasks

from gpuforest.backends import numba, numpy
from gpuforest.core.rules import Sampling
from gpuforest.core.target import Target
from gpuforest.growing.bags import draw_bags, tree_weights
from gpuforest.growing.predict import predict
from gpuforest.growing.targets import encode_classes

CPU = strict.Device("CPU_DEVICE")
DEVICE = strict.Device("device1")


@pytest.fixture(autouse=True, scope="module")
def standard():
    """The edition of the standard that the package asks for."""
    with strict.ArrayAPIStrictFlags(api_version="2024.12"):
        yield


class Namespace:
    """array-api-strict, which makes arrays on its second device."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(strict, name)
        if name in ("arange", "asarray", "empty", "full", "linspace", "ones", "zeros"):
            return partial(found, device=DEVICE)
        return found


class StrictBackend(BehindDoors):
    """Reference kernels on array-api-strict's second device."""

    name = "strict"
    xp = Namespace()
    array = type(strict.asarray(0))

    def asnumpy(self, array: Any) -> np.ndarray:
        assert array.device == DEVICE
        return np.array(array.to_device(CPU))


class StrictDeepBackend(StrictBackend):
    """And subtrees of few rows grown whole."""

    def deep_rows(self, training, n_rows):
        return 0 if training.rules.limited else 12

    def grow_subtrees(self, training, slots, kind):
        home = self.at_home(training), self.at_home(slots)
        return self.there(numba.NumbaBackend().grow_subtrees(*home, kind))


@settings(max_examples=40)
@given(task=tasks() | category_tasks(), budget=st.sampled_from([2**28, 100_000]))
def test_forests_and_predictions_are_the_reference(task, budget):
    # sums of features have a kernel of their own
    task = task.but(combined=0.0, n_tried=min(task.n_tried, task.X.shape[1]))
    forest, later = task.grow(numpy.NumpyBackend()), later_rows(task)
    for backend in (StrictBackend(1, budget), StrictDeepBackend(1, budget)):
        assert same_forest(forest, task.grow(backend))
    backend = StrictBackend()
    compare_out_of_bag(forest, task, backend)
    assert np.array_equal(*(predict(forest, later, b) for b in (numpy.NumpyBackend(), backend)))


@pytest.mark.parametrize("weighing", [{"factors": np.arange(1, 61, dtype="i4")}, {"balance": 4096}])
def test_class_weights(weighing):
    sampling, y = Sampling(60, 50, None, **weighing), np.arange(60, dtype=np.int32) % 7 % 3
    task = Task(np.zeros((60, 1)), y)
    found = []
    for backend in (StrictBackend(), numpy.NumpyBackend()):
        coding, codes = encode_classes(y, np.arange(3))
        target = Target(coding, backend.asarray(codes))
        training = replace(task.training(backend), target=target, sampling=sampling, seed=9)
        found.append(backend.asnumpy(tree_weights(training, 2, 5, backend)))
    assert np.array_equal(*found)
    assert found[0].dtype == np.int32
    bags = draw_bags(sampling, 9, 2, 5, numpy.NumpyBackend())
    assert np.array_equal(found[0] > 0, bags > 0)
