"""Assembly: waves join to one forest; equal rows of leaf tables are kept once, and the CUDA kernels
find the same rows."""

import numpy as np
import pytest
from cuda_on_cpu.module import available, thread_order
from emulated import EmulatedBackend
from engine import DeepFrom, same_forest
from hypothesis import given
from hypothesis import strategies as st
from laws import seeds, some_task

from gpuforest.backends import slots
from gpuforest.backends.cuda.nodes import CudaNodes
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.backends.slots import distinct_rows, row_keys
from gpuforest.core.nodes import is_leaf
from gpuforest.growing import assemble
from gpuforest.growing.assemble import merged

needs_kernels = pytest.mark.skipif(available() is not None, reason=str(available()))


@pytest.mark.parametrize("seed", range(4))
def test_waves_join_to_the_forest_grown_at_once(seed, monkeypatch):
    task = some_task(seed, n_trees=5)
    whole = task.grow(NumpyBackend())
    assert same_forest(whole, task.grow(NumpyBackend(1, 1)))  # a tree a wave
    assert same_forest(whole, merged([whole], task.training(NumpyBackend()), 1))
    assert is_leaf(whole.nodes).any()
    monkeypatch.setattr(assemble, "NODES_AT_ONCE", 10)  # threads place parts of a wave
    assert same_forest(whole, task.grow(DeepFrom(0, 2, 1)))
    assert same_forest(whole, task.grow(DeepFrom(20, 3)))


@given(st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3), min_size=1, max_size=30))
def test_distinct_rows_are_there_once_in_one_order(rows):
    sums = np.array(rows)
    table, number = distinct_rows([sums[:4], sums[4:]])
    assert np.array_equal(table[number], sums)
    assert len(np.unique(table, axis=0)) == len(table)
    again, _ = distinct_rows([sums[::-1]])
    assert np.array_equal(again, table)  # whatever the order of the rows


def test_rows_of_one_key_are_told_apart(monkeypatch):
    monkeypatch.setattr(slots, "row_keys", lambda sums: np.zeros(len(sums), np.uint64))
    table, number = distinct_rows([np.array([[2, 1], [0, 3], [2, 1], [2, 0]])])
    assert table.tolist() == [[0, 3], [2, 0], [2, 1]]
    assert number.tolist() == [2, 0, 2, 1]


@needs_kernels
@given(seeds, st.sampled_from([1, 2, 257, 2048, 2049, 7000]), st.integers(1, 9))
def test_kernels_find_the_same_rows(seed, V, C):
    rng = np.random.default_rng(seed)
    sums = rng.integers(0, 1 + int(rng.integers(0, 3)), (V, C))
    sums[rng.random((V, C)) < 0.1] = rng.integers(-(2**62), 2**62)
    assert np.array_equal(row_keys(sums), CudaNodes().row_keys(EmulatedBackend(), sums))
    with thread_order(seed):
        found = CudaNodes().distinct_rows(EmulatedBackend(), sums)
    for a, b in zip(distinct_rows([sums]), found, strict=True):
        assert a.dtype == b.dtype
        assert np.array_equal(a, b)


@needs_kernels
def test_kernels_tell_rows_of_one_key_apart():
    class OneKey(CudaNodes):
        def row_keys(self, backend, sums):
            return np.zeros(len(sums), np.uint64)

    sums = np.random.default_rng(0).integers(0, 3, (500, 2))
    table, number = OneKey().distinct_rows(EmulatedBackend(), sums)
    assert np.array_equal(table, np.unique(sums, axis=0))
    assert np.array_equal(table[number], sums)
