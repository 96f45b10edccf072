"""The O(nodes) code is plain array API: it runs on array-api-strict, on a second device.

The kernels of this backend are the reference's, behind the two doors. Everything else
(the loop, the frontier, the assembly, hashing, sampling, scores) is the package's own
code; it may use nothing but the standard, and must keep all its arrays on the device.
"""

from dataclasses import fields, replace
from functools import partial
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest
from engine import Task, later_rows, out_of_bag_means, same_forest, table
from hypothesis import given, settings
from hypothesis import strategies as st
from tasks import category_tasks, tasks

from gpuforest.backends import base, numba, numpy
from gpuforest.core.frontier import Splits, Subtrees
from gpuforest.core.rules import Sampling
from gpuforest.core.target import Target
from gpuforest.growing.bags import draw_bags, tree_weights
from gpuforest.growing.predict import predict
from gpuforest.growing.targets import encode_classes

CPU = strict.Device("CPU_DEVICE")
DEVICE = strict.Device("device1")
ARRAY = type(strict.asarray(0))


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


class StrictBackend(base.Backend):
    """Reference kernels on array-api-strict's second device."""

    name = "strict"
    xp = Namespace()
    kernels = numpy.NumpyBackend()

    def asnumpy(self, array: Any) -> np.ndarray:
        assert array.device == DEVICE
        return np.array(array.to_device(CPU))

    def host(self, value: Any) -> Any:
        """Arrays on the host; of a dataclass, all its arrays."""
        if isinstance(value, ARRAY):
            return self.asnumpy(value)
        if isinstance(value, np.ndarray):
            return value
        changed = {
            f.name: self.asnumpy(getattr(value, f.name))
            for f in fields(value)
            if isinstance(getattr(value, f.name), ARRAY)
        }
        return replace(value, **changed)

    def there(self, values: Any) -> Any:
        return tuple(self.asarray(np.ascontiguousarray(v)) for v in values)

    def encode(self, X, edges):
        assert isinstance(X, np.ndarray)
        return self.asarray(self.kernels.encode(X, edges))

    def training_on(self, kernels, training):
        """The training where other kernels find it, on the host."""
        matrix, target = self.host(training.matrix), self.host(training.target)
        return replace(training, matrix=matrix, target=target)

    def totals(self, training, *arrays):
        host, arrays = self.training_on(self.kernels, training), map(self.host, arrays)
        return self.there(self.kernels.totals(host, *arrays))

    def histogram(self, training, slots, features):
        host = self.training_on(self.kernels, training)
        return self.asarray(self.kernels.histogram(host, self.host(slots), self.host(features)))

    def best_split(self, training, *values):
        host, values = self.training_on(self.kernels, training), map(self.host, values)
        found = self.kernels.best_split(host, *values)
        return Splits(*self.there(vars(found).values()))

    def partition(self, training, slots, splits):
        host = self.training_on(self.kernels, training)
        return self.there(self.kernels.partition(host, self.host(slots), self.host(splits)))

    def apply(self, forest, codes):
        return self.asarray(self.kernels.apply(forest, self.asnumpy(codes)))

    def accumulate(self, forest, codes, trees, skip, total):
        left_out = None if skip is None else self.asnumpy(skip)
        args = (forest, self.asnumpy(codes), trees, left_out, self.asnumpy(total))
        return self.asarray(self.kernels.accumulate(*args))


class StrictDeepBackend(StrictBackend):
    """And subtrees of few rows grown whole."""

    compiled = numba.NumbaBackend()

    def deep_rows(self, training, n_rows):
        return 0 if training.rules.limited else 12

    def grow_subtrees(self, training, slots, kind):
        host = self.training_on(self.compiled, training)
        found = vars(self.compiled.grow_subtrees(host, self.host(slots), kind)).values()
        return Subtrees(*self.there(v for v in found if v is not None))


@settings(max_examples=40)
@given(task=tasks() | category_tasks(), budget=st.sampled_from([2**28, 100_000]))
def test_forests_and_predictions_are_the_reference(task, budget):
    # sums of features have a kernel of their own
    task = task.but(combined=0.0, n_tried=min(task.n_tried, task.X.shape[1]))
    forest, later = task.grow(numpy.NumpyBackend()), later_rows(task)
    for backend in (StrictBackend(1, budget), StrictDeepBackend(1, budget)):
        assert same_forest(forest, task.grow(backend))
    found = predict(forest, later, StrictBackend())
    assert np.array_equal(found, predict(forest, later, numpy.NumpyBackend()))


def test_out_of_bag():
    rng = np.random.default_rng(11)
    X = table(rng, 90, list("cbnN0dA"), np.float32)
    task = Task(X, rng.integers(0, 3, 90), n_tried=2, n_trees=25, seed=4, n_draws=90)
    forest = task.grow(numpy.NumpyBackend())
    means = [
        out_of_bag_means(forest, task.prepared(backend)[0], task.sampling, backend)
        for backend in (numpy.NumpyBackend(), StrictBackend())
    ]
    assert np.array_equal(*means, equal_nan=True)


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
