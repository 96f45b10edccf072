"""Histograms: the worked example, and bins that add up to their slots."""

import numpy as np
from engine import Task
from hypothesis import given
from laws import column, one_slot, seeds, some_task

from gpuforest.backends.numba import NumbaBackend
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.engine.grow import roots


@given(seeds)
def test_histograms_add_up_to_their_slots(seed):
    task = some_task(seed, min_rows_leaf=2, n_draws=40)
    for engine in (NumpyBackend(), NumbaBackend(), NumbaBackend(4)):
        training = task.but(seed=0).training(engine)
        frontier, F, C = roots(training, 0, 3), training.n_features, training.n_channels
        features = np.broadcast_to(np.arange(F, dtype=np.int32), (3, F)).copy()
        features[1, F // 2] = -1
        hist = engine.histogram(training, frontier, features)
        assert hist.shape == (3, F, training.n_codes, C + 1)
        sums = hist.sum(axis=2)
        assert not sums[1, F // 2].any()
        sums[1, F // 2] = sums[1, 0]
        assert np.array_equal(sums[..., :C], np.repeat(frontier.sums[:, None], F, axis=1))
        assert np.array_equal(sums[..., C], np.repeat(frontier.n_rows[:, None], F, axis=1))


def test_example_of_histogram(engine):
    task = Task(column(0, 2, 2, 1), np.array([0, 0, 1, 1]))
    training = task.training(engine)
    frontier = one_slot([0, 1, 2], [1, 1, 3], [2, 3])
    features = np.array([[0]], np.int32)
    hist = engine.histogram(training, frontier, features)
    assert hist[0, 0, :3].tolist() == [[1, 0], [0, 0], [1, 3]]
