"""Rows of leaf tables: equal ones are there once; and the CUDA kernels beside the host's code."""

import numpy as np
import pytest
from cuda_on_cpu.module import available
from emulated import EmulatedBackend
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import seeds

from gpuforest.backends.numpy import NumpyBackend
from gpuforest.leaf_rows import distinct_rows

SETTINGS = settings(derandomize=True, deadline=None, max_examples=50)


@SETTINGS
@given(st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3), min_size=1, max_size=30))
def test_distinct_rows_are_there_once_in_one_order(rows):
    sums = np.array(rows)
    table, number = distinct_rows(NumpyBackend(), sums)
    assert np.array_equal(table[number], sums)
    assert len(np.unique(table, axis=0)) == len(table)
    again, _ = distinct_rows(NumpyBackend(), sums[::-1])
    assert np.array_equal(again, table)  # whatever the order of the rows


def test_rows_of_one_key_are_told_apart(monkeypatch):
    monkeypatch.setattr(NumpyBackend, "row_keys", lambda _, sums: np.zeros(len(sums), np.uint64))
    sums = np.array([[2, 1], [0, 3], [2, 1], [2, 0]])
    table, number = distinct_rows(NumpyBackend(), sums)
    assert table.tolist() == [[0, 3], [2, 0], [2, 1]]
    assert number.tolist() == [2, 0, 2, 1]


@pytest.mark.skipif(available() is not None, reason=str(available()))
@SETTINGS
@given(seeds, st.integers(1, 2000), st.integers(1, 9))
def test_kernels_find_the_same_rows(seed, V, C):
    rng, kernels, reference = np.random.default_rng(seed), EmulatedBackend(), NumpyBackend()
    sums = rng.integers(0, 1 + int(rng.integers(0, 3)), (V, C))
    sums[rng.random((V, C)) < 0.1] = rng.integers(-(2**62), 2**62)
    assert np.array_equal(reference.row_keys(sums), kernels.row_keys(sums))
    table, number = distinct_rows(reference, sums)
    assert kernels.rows_are(table, number, sums)
    sums[rng.integers(0, V), rng.integers(0, C)] += 1
    assert not kernels.rows_are(table, number, sums)
