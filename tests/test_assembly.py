"""Assembly: pieces in their positions, leaves in their canonical order, waves that join to one."""

import numpy as np
import pytest
from engine import DeepFrom, same_forest
from laws import some_task

from gpuforest.assembly import leaf_table
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.nodes import LEAF_WORD, is_leaf
from gpuforest.target import TargetCoding

CLASSES = TargetCoding(np.arange(2), np.zeros(1), 1.0)
NUMBERS = TargetCoding(None, np.zeros(1), 1.0)


def test_leaves_of_classes_share_rows_and_those_of_numbers_do_not():
    nodes = np.array([5, LEAF_WORD + 2, LEAF_WORD + 0, LEAF_WORD + 1], np.uint64)
    sums = np.array([[3, 1], [0, 2], [3, 1]])
    numbered, table = leaf_table(NumpyBackend(), nodes, sums, CLASSES)
    assert len(table) == 2
    assert numbered[1] == numbered[2] != numbered[3]
    at = (numbered[1:] - np.uint64(LEAF_WORD)).astype(int)
    assert table[at].tolist() == [[3, 1], [3, 1], [0, 2]]
    numbered, table = leaf_table(NumpyBackend(), nodes, sums, NUMBERS)
    assert numbered.tolist() == [5, LEAF_WORD, LEAF_WORD + 1, LEAF_WORD + 2]  # as the nodes come
    assert table.tolist() == [[3, 1], [3, 1], [0, 2]]


@pytest.mark.parametrize("seed", range(4))
def test_waves_join_to_the_forest_grown_at_once(seed):
    task = some_task(seed, n_trees=5)
    whole = task.grow(NumpyBackend())
    assert same_forest(whole, task.grow(NumpyBackend(1, 1)))  # a tree a wave
    assert same_forest(whole, task.grow(DeepFrom(0, 2, 1)))
    assert is_leaf(whole.nodes).any()
