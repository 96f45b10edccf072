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
    assert engine.totals(training, rows, weights, begin, end).tolist() == [[1, 3], [0, 3]]


def test_example_of_differs(engine):
    task = Task(column(0, 0, 0), np.array([1.0, 1.0, 2.0]), "squared_error")
    training = task.training(engine)
    rows, first = np.arange(3, dtype=np.int32), training.target.y[:1]
    begin, end = np.array([0, 0, 2]), np.array([3, 2, 2])
    found = engine.differs(training, rows, begin, end, np.repeat(first, 3, axis=0))
    assert found.tolist() == [True, False, False]
