"""Totals: the worked example."""

import numpy as np
from engine import Task
from laws import column

from gpuforest.engine.target import encode_classes


def test_example_of_totals(engine):
    coding, y = encode_classes(np.array([0, 1, 1]), np.arange(2))
    task = Task(column(0, 0, 0), np.array([0, 1, 1]))
    training = task.training(engine)
    target = training.target
    assert target.coding.n_channels == coding.n_channels
    assert np.array_equal(target.y, y)
    rows, weights = np.arange(3, dtype=np.int32), np.array([1, 1, 2], np.int32)
    begin, end = np.array([0, 1]), np.array([3, 3])
    sums, constant = engine.totals(training, rows, weights, begin, end)
    assert sums.tolist() == [[1, 3], [0, 3]]
    assert constant.tolist() == [False, True]


def test_equal_moments_are_their_mean(engine):
    # 0 and 2 have the mean of 1 and 1, a whole number, and (0, 1) has none
    task = Task(column(*range(6)), np.array([1.0, 1, 0, 2, 0, 1]), "squared_error")
    training, begin = task.training(engine), np.array([0, 2, 4])
    rows, ones = np.arange(6, dtype=np.int32), np.ones(6, np.int32)
    sums, constant = engine.totals(training, rows, ones, begin, begin + 2)
    assert constant.tolist() == [True, False, False]
    again = engine.totals(training, rows, ones, begin, begin + 2, sums)
    assert again[0] is sums
    assert again[1].tolist() == [True, False, False]
