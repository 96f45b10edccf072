"""Assembly: waves join to one forest."""

import pytest
from engine import DeepFrom, same_forest
from laws import some_task

from gpuforest.backends.numpy import NumpyBackend
from gpuforest.engine.nodes import is_leaf


@pytest.mark.parametrize("seed", range(4))
def test_waves_join_to_the_forest_grown_at_once(seed):
    task = some_task(seed, n_trees=5)
    whole = task.grow(NumpyBackend())
    assert same_forest(whole, task.grow(NumpyBackend(1, 1)))  # a tree a wave
    assert same_forest(whole, task.grow(DeepFrom(0, 2, 1)))
    assert is_leaf(whole.nodes).any()
