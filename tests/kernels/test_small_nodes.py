"""Nodes of few rows beside their bins grow whole: they cost what their rows cost."""

import numpy as np
import pytest
from engine import Task

from gpuforest.backends.numba import NumbaBackend


@pytest.mark.parametrize("n_features", [3, 300, 3000])
def test_wide_nodes_hold_a_quarter_as_many_rows_as_bins(n_features):
    X = np.random.default_rng(0).normal(size=(2000, n_features)).astype(np.float32)
    backend = NumbaBackend()
    training = Task(X, np.zeros(2000, int), max_bins=2000).training(backend)
    assert backend.deep_rows(training, 2000) >= training.n_codes // 4 >= 400
