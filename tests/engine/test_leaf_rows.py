"""Rows of leaf tables: equal ones are there once; and the CUDA kernels beside the host's code."""

import array_api_compat.numpy as xp
import numpy as np
import pytest
from cuda_on_cpu.module import available, thread_order
from emulated import EmulatedBackend
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import seeds

from gpuforest.engine import leaf_rows
from gpuforest.engine.leaf_rows import distinct_rows

SETTINGS = settings(derandomize=True, deadline=None, max_examples=50)


@SETTINGS
@given(st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3), min_size=1, max_size=30))
def test_distinct_rows_are_there_once_in_one_order(rows):
    sums = np.array(rows)
    table, number = distinct_rows(xp, sums)
    assert np.array_equal(table[number], sums)
    assert len(np.unique(table, axis=0)) == len(table)
    again, _ = distinct_rows(xp, sums[::-1])
    assert np.array_equal(again, table)  # whatever the order of the rows


needs_kernels = pytest.mark.skipif(available() is not None, reason=str(available()))


def test_rows_of_one_key_are_told_apart(monkeypatch):
    monkeypatch.setattr(leaf_rows, "row_keys", lambda _, sums: np.zeros(len(sums), np.uint64))
    sums = np.array([[2, 1], [0, 3], [2, 1], [2, 0]])
    table, number = distinct_rows(xp, sums)
    assert table.tolist() == [[0, 3], [2, 0], [2, 1]]
    assert number.tolist() == [2, 0, 2, 1]


@needs_kernels
@SETTINGS
@given(seeds, st.sampled_from([1, 2, 257, 2048, 2049, 7000]), st.integers(1, 9))
def test_kernels_find_the_same_rows(seed, V, C):
    rng = np.random.default_rng(seed)
    sums = rng.integers(0, 1 + int(rng.integers(0, 3)), (V, C))
    sums[rng.random((V, C)) < 0.1] = rng.integers(-(2**62), 2**62)
    assert np.array_equal(leaf_rows.row_keys(xp, sums), EmulatedBackend().row_keys(sums))
    with thread_order(seed):
        found = EmulatedBackend().distinct_rows(sums)
    for a, b in zip(distinct_rows(xp, sums), found, strict=True):
        assert a.dtype == b.dtype
        assert np.array_equal(a, b)


@needs_kernels
@SETTINGS
@given(seeds, st.integers(2, 3000))
def test_kernels_tell_rows_of_one_key_apart(seed, V):
    rng = np.random.default_rng(seed)
    sums, few = rng.integers(0, 3, (V, 2)), rng.integers(0, 2, V).astype(np.uint64)
    found = OfFewKeys(few).distinct_rows(sums)
    for a, b in zip(leaf_rows.distinct_sorted(xp, sums), found, strict=True):
        # rows of a key are the same by chance only where both have few
        assert V < 30 or np.array_equal(a, b)
    assert np.array_equal(found[0][found[1]], sums)


class OfFewKeys(EmulatedBackend):
    """Gives rows the keys u64[V]."""

    def __init__(self, keys: np.ndarray) -> None:
        super().__init__()
        self.keys = keys

    def row_keys(self, sums):
        return self.keys
