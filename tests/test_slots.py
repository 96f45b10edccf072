"""Slots: what becomes of them, those below; and the CUDA kernels beside the array-API code."""

from dataclasses import fields

import numpy as np
import pytest
from cuda_on_cpu.module import available
from emulated import EmulatedBackend
from engine import Task
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import column, seeds

from gpuforest.backends.base import Backend
from gpuforest.backends.cuda_nodes import CudaNodes
from gpuforest.criteria import CRITERIA
from gpuforest.frontier import Frontier, Rules, Splits
from gpuforest.slots import DEEP, LEAF, NONE, WIDE, all_equal

SETTINGS = settings(derandomize=True, deadline=None, max_examples=25)
MANY = st.sampled_from([1, 2, 7, 256, 257, 2048, 2049, 9000])

needs_kernels = pytest.mark.skipif(available() is not None, reason=str(available()))


def some_slots(rng: np.random.Generator, S: int, C: int) -> Frontier:
    """Slots of 0 to 9 rows of weight one, one after another, in either half of the rows."""
    n = rng.integers(0, 10, S)
    end = np.cumsum(n)
    R = max(1, int(end[-1]))
    begin = end - n + R * int(rng.integers(0, 2))
    share = rng.random((S, C))
    sums = np.floor(share / share.sum(axis=1, keepdims=True) * n[:, None]).astype(np.int64)
    sums[:, 0] = n - sums[:, 1:].sum(axis=1)
    return Frontier(
        tree=rng.integers(0, 5, S).astype(np.int32),
        key=rng.integers(0, 2**64, S, dtype=np.uint64),
        n_rows=n,
        begin=begin,
        end=begin + n,
        sums=sums,
        constant=rng.random(S) < 0.3,
        depth=rng.integers(0, 9, S).astype(np.int32),
        rows=rng.integers(0, 50, 2 * R).astype(np.int32),
        weights=np.ones(2 * R, np.int32),
        n_held=R,
    )


def some_splits(rng: np.random.Generator, wide: Frontier) -> tuple[Splits, np.ndarray]:
    """Splits with some refused, and the number of rows that go left."""
    S = wide.n_slots
    feature = rng.integers(-1, 3, S).astype(np.int32)
    left = np.where(feature[:, None] >= 0, rng.integers(0, 1 + wide.sums), 0)
    n_left = np.where(feature >= 0, rng.integers(0, 1 + wide.n_rows), 0)
    zero = np.zeros(S, np.int32)
    tried, sets = np.ones(S, np.int64), np.zeros((S, 0), np.uint64)
    return Splits(np.zeros(S), feature, zero, zero > 0, left, tried, sets), n_left


def assert_same(a: Frontier, b: Frontier) -> None:
    for field in fields(Frontier):
        x, y = getattr(a, field.name), getattr(b, field.name)
        assert np.array_equal(x, y), field.name
        assert x is None or isinstance(x, int) or x.dtype == y.dtype, field.name


def test_each_slot_has_a_kind():
    rng, rules = np.random.default_rng(0), Rules(CRITERIA["gini"], 1, 4, 5, 1, -np.inf)
    own = some_slots(rng, 200, 2)
    found = EmulatedBackend().sort_out(own, rules, 6)
    must_end = own.constant | (own.n_rows < 5) | (own.depth >= 4)
    expected = np.where(must_end, LEAF, np.where(own.n_rows <= 6, DEEP, WIDE))
    expected[own.n_rows == 0] = NONE
    assert np.array_equal(found.kind, expected)
    assert np.array_equal(found.wide_slots, np.flatnonzero(expected == WIDE))
    assert np.array_equal(found.rank[found.wide_slots], np.arange(found.wide.n_slots))
    assert np.array_equal(found.deep.key, own.key[expected == DEEP])
    assert found.deep.n_held == own.n_rows[expected == DEEP].sum()


@needs_kernels
@SETTINGS
@given(seeds, MANY, st.integers(1, 9), st.integers(0, 9), st.booleans())
def test_kernels_sort_slots_alike(seed, S, C, deep_rows, deep_trees):
    rng = np.random.default_rng(seed)
    own, max_depth = some_slots(rng, S, C), 2**40 if deep_trees else 5
    rules = Rules(CRITERIA["gini"], 1, max_depth, int(rng.integers(2, 6)), 1, -np.inf)
    backend = EmulatedBackend()
    expected, found = (
        f(backend, own, rules, deep_rows) for f in (Backend.sort_out, CudaNodes.sort_out)
    )
    for name in ("kind", "rank", "wide_slots"):
        x, y = getattr(expected, name), getattr(found, name)
        assert np.array_equal(x, y), name
        assert x.dtype == y.dtype, name
    assert_same(expected.wide, found.wide)
    assert_same(expected.deep, found.deep)


@needs_kernels
@SETTINGS
@given(seeds, MANY, st.sampled_from(["gini", "squared_error"]))
def test_kernels_make_children_alike(seed, S, criterion):
    rng, backend = np.random.default_rng(seed), EmulatedBackend()
    y = rng.integers(0, 3, 50) if criterion == "gini" else rng.integers(-2, 3, (50, 2)) * 1.0
    training = Task(column(*range(50)), y, criterion).training(backend)
    wide = some_slots(rng, S, training.n_channels)
    splits, n_left = some_splits(rng, wide)
    held = wide.rows, wide.weights, n_left
    expected = Backend.children(backend, training, wide, splits, *held)
    assert_same(expected, backend.children(training, wide, splits, *held))


@needs_kernels
@SETTINGS
@given(seeds, MANY)
def test_tiles_are_counted(seed, S):
    rng, backend = np.random.default_rng(seed), EmulatedBackend()
    begin = rng.integers(0, 2**40, S)
    n = rng.integers(0, 5000, S)
    tiles, most = backend.tiles_of(begin, begin + n, int(n.sum()))
    expected = np.cumsum(-(-n // tiles.size))
    assert tiles.first.tolist() == [0, *expected.tolist()]
    assert most >= expected[-1]


def test_equal_moments_are_their_mean(engine):
    # 0 and 2 have the mean of 1 and 1, a whole number, and (0, 1) has none
    task = Task(column(*range(6)), np.array([1.0, 1, 0, 2, 0, 1]), "squared_error")
    training, begin = task.training(engine), np.array([0, 2, 4])
    rows, ones = np.arange(6, dtype=np.int32), np.ones(6, np.int32)
    sums = engine.totals(training, rows, ones, begin, begin + 2)
    found = all_equal(training, sums, rows, begin, begin + 2)
    assert found.tolist() == [True, False, False]
