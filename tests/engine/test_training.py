"""The record of a training: what it knows of its parts, and the same on another backend."""

import numpy as np
from engine import Task

from gpuforest.backends.numba import NumbaBackend
from gpuforest.backends.numpy import NumpyBackend

X = np.array([[0.0, 1.0], [1.0, 5.0], [2.0, 1.0], [0.0, 5.0]])


def test_letters():
    training = Task(X, np.array([0, 2, 1, 0])).training(NumpyBackend())
    assert (training.n_features, training.n_channels) == (2, 3)
    assert (training.n_codes, training.n_words) == (4, 0)  # three values, and missing
    assert training.hist_channels == 3
    counted = Task(X, np.array([0, 2, 1, 0]), min_rows_leaf=2).training(NumpyBackend())
    assert counted.hist_channels == 4


def test_sets_of_categories_are_words_of_64_bits():
    codes = np.arange(70.0)[:, None]
    training = Task(codes, np.arange(70) % 2, categorical=(0,)).training(NumpyBackend())
    assert training.n_words == 2


def test_another_backend_changes_nothing_else():
    training, other = Task(X, np.array([0, 2, 1, 0])).training(NumpyBackend()), NumbaBackend()
    moved = training.on(other)
    assert moved.backend is other
    assert all(vars(moved)[k] is v for k, v in vars(training).items() if k != "backend")
