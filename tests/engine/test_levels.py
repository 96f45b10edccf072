"""Levels: positions of nodes; and the CUDA kernels beside the array-API code."""

import array_api_compat.numpy as xp
import numpy as np
import pytest
from cuda_on_cpu.module import available
from emulated import EmulatedBackend
from grown_levels import some_levels
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import seeds

from gpuforest.engine.levels import Level, exclusive, positions, spread
from gpuforest.engine.slots import DEEP, LEAF, WIDE, pairs, true_positions

SETTINGS = settings(derandomize=True, deadline=None, max_examples=50)


def test_positions_and_pairs_by_hand():
    mask = np.array([False, True, True, False, True])
    assert exclusive(xp, mask).tolist() == [0, 0, 1, 2, 2]
    assert true_positions(xp, np.cumsum(mask), 3).tolist() == [1, 2, 4]
    assert pairs(xp, np.array([1, 2]), np.array([3, 4])).tolist() == [1, 3, 2, 4]
    rank = np.array([0, 0, 1, 1, 2])
    assert spread(xp, mask, rank, np.array([7, 8, 9])).tolist() == [0, 7, 8, 0, 9]


def test_a_tree_by_hand():
    # a root with a leaf and a subtree of five nodes below: root, leaf, subtree's root, the rest
    no, kinds = np.zeros(0, np.int32), ([WIDE], [LEAF, DEEP])
    levels = [
        Level(np.array(k, np.int8), no, no, np.zeros(len(k), np.int64), np.arange(2 - len(k)),
              no, no, no, no, len(k) - 1)
        for k in kinds
    ]  # fmt: skip
    sizes, position, below = positions(levels, np.array([5]), xp)
    assert sizes.tolist() == [7]
    assert position.tolist() == [0, 1, 2]
    assert below.tolist() == [1, 3, 3]


@pytest.mark.skipif(available() is not None, reason=str(available()))
@SETTINGS
@given(seeds, st.sampled_from([1, 3, 300]))
def test_kernels_find_the_same_positions(seed, n_trees):
    levels, blocks = some_levels(np.random.default_rng(seed), n_trees)
    expected = positions(levels, blocks, xp)
    roots, sizes, *found = EmulatedBackend().positions(levels, np.append(0, np.cumsum(blocks)))
    assert len(sizes) == len(found[0])
    for a, b in zip(expected, (roots, *found), strict=True):
        assert a.dtype == b.dtype
        assert np.array_equal(a, b)
